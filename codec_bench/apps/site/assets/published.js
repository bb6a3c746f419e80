// What others published: a leaderboard with the runs of this site, how far its ranks can be trusted, and how alike its columns are;
// and codecs, which share no table with the runs.
const span = (pair) => (pair ? (pair[0] === pair[1] ? String(pair[0]) : `${pair[0]}–${pair[1]}`) : "–");

/** A cell of a published leaderboard: that of an own row leads to its run. */
const publishedCell = (row, c) => (row.cells[c] === null ? "–" : row.links[c] ? el("a", { href: address("run", row.links[c][0], { system: row.links[c][1], metric: row.links[c][2] }) }, row.cells[c]) : row.cells[c]);
/** The ranks that other items could give, and how often each comes. */
const otherRanks = (row) => (row.interval ? el("span", null, span(row.interval), el("span", { class: "spread" }, row.shares.filter(([, share]) => share >= 0.005).map(([rank, share]) => `${rank}: ${Math.round(100 * share)} %`).join(", "))) : "–");

/** The rows of a published leaderboard: searched, sorted by a head, with the columns that are chosen. */
function publishedTable(board, title, state) {
  const columns = [
    ...(board.averages ? [{ name: "Average", higher: true, text: (row) => row.average }] : []),
    ...board.means.map((group) => ({ name: `mean of ${group}`, higher: true, text: (row) => row.means[group] })),
    ...board.columns.map(({ name, unit, higher }, c) => ({ name, more: `${higher ? "↑" : "↓"} ${unit}`, higher, text: (row) => row.cells[c], cell: (row) => publishedCell(row, c) })),
  ];
  const all = columns.map((_, c) => c).join(".");
  const settings = { text: state.get("q") ?? "", sort: state.has("sort") ? Number(state.get("sort")) : null, down: state.get("down") === "1", shown: new Set((state.get("cols") ?? all).split(".").map(Number)) };
  const place = el("div");
  const rank = (row) => (columns[settings.sort].text(row) === null ? NaN : Number(columns[settings.sort].text(row))); // a rating that says by whom is no number
  function sorted(rows) {
    if (!columns[settings.sort]) return rows;
    return [...rows].sort((a, b) => Number.isNaN(rank(a)) - Number.isNaN(rank(b)) || (settings.down ? -1 : 1) * (rank(a) - rank(b)) || 0);
  }
  function draw() {
    const cols = [...settings.shown].sort((a, b) => a - b);
    keepState({ q: settings.text, sort: settings.sort, down: settings.down ? 1 : null, cols: cols.join(".") === all ? null : cols.join(".") });
    const visible = columns.map((column, c) => [column, c]).filter(([, c]) => settings.shown.has(c));
    const query = settings.text.trim().toLowerCase();
    const rows = sorted(board.rows.filter((row) => row.name.toLowerCase().includes(query)));
    const head = visible.map(([column, c]) => sortHead([el("span", null, words(column.name)), column.more && el("span", { class: "variant" }, column.more)], settings.sort === c ? (settings.down ? "descending" : "ascending") : null, () => {
      turnSort(settings, c, column.higher);
      draw();
      place.querySelector(`[data-sort="${c}"] button`)?.focus();
      say(settings.sort === null ? "in the order of the leaderboard" : `sorted by ${column.name}, ${settings.down ? "descending" : "ascending"}`);
    }, { "data-sort": c, class: "right" }));
    const body = rows.map((row) => el("tr", null, el("th", { scope: "row", class: "name" }, title(row)), visible.map(([column]) => el("td", { class: "right" }, column.cell ? column.cell(row) : column.text(row) ?? "–"))));
    if (!rows.length) body.push(el("tr", { class: "empty" }, el("td", { colspan: visible.length + 1 }, "No row fits.")));
    place.replaceChildren(framed("Leaderboard", el("table", { class: "grid text compact", id: "published-table" }, el("thead", null, el("tr", null, el("th", { scope: "col", class: "name" }, "Model"), head)), el("tbody", null, body))));
  }
  const search = searchBox("Search", settings.text, (text) => {
    settings.text = text;
    draw();
  });
  draw();
  return [el("div", { class: "controls" }, search), columnChoice(columns.map(({ name }) => name), settings.shown, draw), place];
}

view("published", async (box, [name], state) => {
  if (!Object.hasOwn(index.published, name)) throw new Error("This site has no such published leaderboard.");
  const board = await load(`published/${name}`);
  if (board.tables) return publishedCodecs(box, board, state);
  const title = (row) => {
    const remarks = [row.published ? "" : "own", row.limited ? "a part of a benchmark" : "", row.unfinished ? "a run is not finished" : "", row.complete ? "" : "incomplete", row.note, ...Object.entries(row.doubled).map(([column, other]) => `${column} is ${other} in an earlier run`)].filter(Boolean);
    const system = row.links.find(Boolean)?.[1];
    return el("span", null, system === undefined ? row.name : el("a", { href: address("system", system) }, row.name), el("span", { class: "count quiet" }, remarks.join(", ")));
  };
  box.append(el("h1", null, name), el("p", { class: "lead" }, board.summary), el("p", { class: "lead" }, "Source: ", sourceLink(board.source), board.rows.some((row) => row.links.length) && ". Numbers of rows of this site lead to their runs."));
  box.append(...publishedTable(board, title, state));
  const remarks = [...board.rows.flatMap((row) => [row.lacking, ...row.failures].filter(Boolean).map((remark) => `${row.name}: ${remark}`)), ...board.mixed];
  if (remarks.length) box.append(el("ul", { class: "remarks" }, remarks.map((sentence) => el("li", null, sentence))));
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
      el("p", { class: "lead" }, "The rank by the published rule; the best and the worst rank by other rules; and for rows with items here the ranks that hold the middle 95 % of draws of other items, with the share of draws of each."),
      wordTable("Ranks", ["Model", right("Rank"), ...board.rules.map(right), right("Other items"), "Tied with"], board.rows.filter((row) => row.rank !== null).map((row) => [row.name, String(row.rank), ...row.ranks.map(span), otherRanks(row), row.tied.join(", ") || "–"]), "narrow"),
    );
    const reasons = [...new Set(board.rows.filter((row) => row.rank !== null).flatMap((row) => row.why))];
    if (reasons.length) box.append(el("ul", { class: "remarks" }, reasons.map((why) => el("li", null, why))));
    if (board.dispensable.length) box.append(el("p", { class: "lead" }, "Columns that can be dropped without a change of the ranking, in this order, with the remaining Kendall's tau: ", board.dispensable.map(([column, tau]) => `${column} (${tau.toFixed(2)})`).join(", "), "."));
  }
  if (board.like) box.append(el("h2", null, "Rank correlations of the columns"), el("p", { class: "lead" }, "Spearman's rank correlation of every two columns, similar ones adjacent."), heatmap(board.like));
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
