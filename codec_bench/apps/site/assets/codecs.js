// Codecs that others published: one source and set of data at a time, quality against bitrate, and a custom point.
function publishedCodecs(box, { summary, tables }, state) {
  let chosen = tables[Number(state.get("of"))] ? Number(state.get("of")) : 0;
  const place = el("div");
  const draw = (requested) => {
    const { source, data, columns, rows } = tables[chosen];
    const cells = (row) => row.cells.map((cell, c) => (cell === null ? "–" : row.front.includes(c) ? el("span", null, shown(cell[0], columns[c]), el("span", { class: "count quiet" }, "front")) : shown(cell[0], columns[c])));
    const plots = el("div");
    place.replaceChildren(
      el("h2", null, data),
      el("p", { class: "lead" }, "Source: ", source, ". A value on the front is marked: no other codec of the table is as good at the same bitrate or below."),
      wordTable(`Codecs on ${data}`, ["Codec", ...columns.map((column) => right(`${columnTitle(columns, columns.indexOf(column))}${column.unit ? ` (${column.unit})` : ""}${column.arrow ? ` ${column.arrow}` : ""}`))], rows.map((row) => [row.system, ...cells(row)]), "narrow"),
      el("details", { class: "columns" }, el("summary", null, "Protocols"), pairs(columns.filter(({ protocol }) => protocol).map((column) => [column.name, el("code", null, column.protocol)]))),
      plots,
    );
    paretoView(plots, { source, columns, rows }, requested)(rows, true);
  };
  const choose = chooser("Source and data", tables.map(({ source, data }, n) => [String(n), `${data} (${source.split(",")[0]})`]), String(chosen), (value) => {
    chosen = Number(value);
    keepState({ of: chosen, plot: null, own: null });
    draw(new URLSearchParams());
  }, { id: "codecs-of" });
  box.append(el("h1", null, "Published codecs"), el("p", { class: "lead" }, summary, " Runs of this site have other data and protocols, so they are in other tables."), el("div", { class: "controls" }, choose), place);
  draw(state);
  return "Published codecs";
}
