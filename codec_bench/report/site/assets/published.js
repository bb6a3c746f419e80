// What others published: a leaderboard with the runs of this site, how far its ranks can be trusted, and how alike its columns are;
// and codecs, which share no table with the runs.
const span = (pair) => (pair ? (pair[0] === pair[1] ? String(pair[0]) : `${pair[0]}–${pair[1]}`) : "–");

/** A cell of a published leaderboard: that of an own row leads to its run. */
const publishedCell = (row, c) => (row.cells[c] === null ? "–" : row.links[c] ? el("a", { class: "value", href: address("run", row.links[c][0], { system: row.links[c][1], metric: row.links[c][2] }) }, row.cells[c]) : row.cells[c]);
/** The ranks that other items could give, and how often each comes. */
const otherRanks = (row) => (row.interval ? el("span", null, span(row.interval), el("span", { class: "spread" }, row.shares.filter(([, share]) => share >= 0.005).map(([rank, share]) => `${rank}: ${Math.round(100 * share)} %`).join(", "))) : "–");

view("published", async (box, [name], state) => {
  if (!Object.hasOwn(index.published, name)) throw new Error("This site has no such published leaderboard.");
  const board = await load(`published/${name}`);
  if (board.tables) return publishedCodecs(box, board, state);
  const names = runNames();
  const right = (text) => ({ text, right: true });
  const title = (row) => {
    const told = [row.published ? "" : "own", row.limited ? "a part of a benchmark" : "", row.unfinished ? "a run is not finished" : "", row.complete ? "" : "incomplete", row.note, ...Object.entries(row.doubled).map(([column, other]) => `${column} is ${other} in an earlier run`)].filter(Boolean);
    return el("span", null, row.name, el("span", { class: "count quiet" }, told.join(", ")), row.runs.map((key) => el("span", { class: "count quiet" }, runLink(key, names.get(key) ?? key))));
  };
  box.append(el("h1", null, name), el("p", { class: "lead" }, board.summary), el("p", { class: "lead" }, "Source: ", sourceLink(board.source)));
  box.append(wordTable("Leaderboard", ["Model", ...(board.averages ? [right("Average")] : []), ...board.means.map(right), ...board.columns.map((column) => right(column.name))], board.rows.map((row) => [title(row), ...(board.averages ? [row.average ?? "–"] : []), ...board.means.map((group) => row.means[group] ?? "–"), ...row.cells.map((_, c) => publishedCell(row, c))])));
  if (board.mixed.length) box.append(el("ul", { class: "remarks" }, board.mixed.map((sentence) => el("li", null, sentence))));
  if (board.views.length) {
    const rows = board.rows.filter((row) => row.views.some((value) => value !== null)).map((row) => [row.name, ...row.views.map((value) => value ?? "–")]);
    box.append(
      el("h2", null, "Groups of columns"),
      el("p", { class: "lead" }, board.views.map((view) => `${view.name}: the mean of ${view.columns.join(", ")}`).join("; "), ". A row that lacks one of the columns has none."),
      wordTable("Groups of columns", ["Model", ...board.views.map((view) => right(view.name))], rows, "narrow"),
    );
  }
  if (board.trusted) {
    box.append(
      el("h2", null, "How much to trust the ranks"),
      el("p", { class: "lead" }, "The rank by the published rule; the best and the worst rank without each benchmark, without each group of tasks, and under other normalisations of the columns; and for rows with items here the ranks that hold the middle 95 % of draws of other items, with the share of draws of each."),
      wordTable("Ranks", ["Model", right("Rank"), right("Without a benchmark"), right("Without a group"), right("Other normalisations"), right("Other items"), "Tied with"], board.rows.filter((row) => row.rank !== null).map((row) => [row.name, String(row.rank), ...row.ranks.map(span), otherRanks(row), row.tied.join(", ") || "–"]), "narrow"),
    );
    const reasons = [...new Set(board.rows.filter((row) => row.rank !== null).flatMap((row) => row.why))];
    if (reasons.length) box.append(el("ul", { class: "remarks" }, reasons.map((why) => el("li", null, why))));
    if (board.dispensable.length) box.append(el("p", { class: "lead" }, "Columns that could be left out with the ranking kept, in this order, with Kendall's tau that is left: ", board.dispensable.map(([column, tau]) => `${column} (${tau.toFixed(2)})`).join(", "), "."));
  }
  if (board.like) box.append(el("h2", null, "How alike the columns order the rows"), el("p", { class: "lead" }, "Spearman's rank correlation of every two columns, similar ones side by side."), heatmap(board.like));
  return name;
});

function heatmap({ order, pairs: found }) {
  const by = new Map(found.flatMap(([a, b, ...rest]) => [[`${a}\n${b}`, rest], [`${b}\n${a}`, rest]]));
  const cell = (a, b) => {
    if (a === b) return el("td", { class: "heat self" }, "");
    const [value, low, high] = by.get(`${a}\n${b}`) ?? [null];
    const td = el("td", { class: value === null ? "heat none" : `heat h${Math.round(Math.abs(value) * 9)}${value < 0 ? " minus" : ""}`, title: low === null || low === undefined ? null : `${number(low, 2)} to ${number(high, 2)}` }, number(value, 2));
    return td;
  };
  return framed("Correlations", el("table", { class: "grid compact heatmap" }, el("thead", null, el("tr", null, el("th", { scope: "col", class: "name" }, "Column"), order.map((name) => el("th", { scope: "col" }, words(name, 4))))), el("tbody", null, order.map((a) => el("tr", null, el("th", { scope: "row", class: "name" }, a), order.map((b) => cell(a, b)))))));
}
