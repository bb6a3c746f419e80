// One system: what it is, its numbers on every leaderboard, and how they changed from run to run.
view("system", async (box, [name]) => {
  const places = index.systems[name];
  if (!places) throw new Error(`This site has no system called ${name}.`);
  const boards = await Promise.all(places.map((n) => load(`boards/${index.boards[n].key}`)));
  const names = runNames();
  const rowsOf = (board) => board.rows.filter((row) => row.system === name);
  const newest = boards.flatMap(rowsOf).reduce((a, b) => ((b.date ?? "") > (a.date ?? "") ? b : a));
  const run = await loadRun(newest.run);
  const facts = Object.entries(run.systems[name].facts).filter(([key, value]) => !["name", "where", "batch_s"].includes(key) && value !== null && value !== "" && !(Array.isArray(value) && !value.length));
  box.append(el("h1", null, words(name)));
  if (facts.length) box.append(el("p", { class: "lead" }, `As the run ${run.name} describes it.`), pairs(facts.map(([key, value]) => [key.replaceAll("_", " "), plainValue(value)])));
  if (run.systems[name].suspect) box.append(el("p", { class: "banner" }, `This system is suspect, and is compared with no other: ${run.systems[name].suspect}`));
  for (const board of boards) {
    const all = newestRows(board.rows);
    const mine = newestRows(rowsOf(board))[0];
    const rows = board.columns.map((column, c) => [column, c, mine.cells[c]]).filter(([, , cell]) => cell).map(([column, c, cell]) => {
      const rivals = all.filter((row) => row.cells[c] && row.cells[c][0] !== null && row.family !== null && !isBarred(row, c));
      const ranked = column.higher === null || column.higher === undefined || mine.family === null || isBarred(mine, c) || cell[0] === null ? "–" : `${1 + rivals.filter((row) => better(column, row.cells[c][0], cell[0])).length} of ${rivals.length}`;
      return [metricLink(column.name), el("a", { href: address("run", sourceOf(mine, c).run, { system: name, metric: column.name }) }, `${shown(cell[0], column)} ${column.unit}`), spreadOf(cell, column, cell[5] !== undefined), ranked, cell[3].toLocaleString("en"), el("code", null, column.protocol)];
    });
    box.append(el("h2", null, el("a", { href: address("board", board.key) }, boardTitle(board))), wordTable(`${name} on ${boardTitle(board)}`, ["Metric", right("Value"), "95 % interval", "Place", right("Samples"), "Protocol"], rows, "narrow"));
    const history = rowsOf(board).filter((row) => !row.state).sort((a, b) => ((a.date ?? "") > (b.date ?? "") ? 1 : -1));
    if (history.length > 1) box.append(...historyOf(board, history, names));
  }
  return name;
});

/** The numbers of one system over the dates of its runs. */
function historyOf(board, rows, names) {
  const columns = board.columns.map((_, c) => c).filter((c) => rows.filter((row) => row.cells[c] && row.cells[c][0] !== null).length > 1);
  if (!columns.length) return [];
  const measured = (c) => rows.filter((row) => row.cells[c] && row.cells[c][0] !== null).length - (board.columns[c].name === "bitrate" ? rows.length : 0);
  let chosen = columns.reduce((a, b) => (measured(b) > measured(a) ? b : a));
  const [picture, table] = [el("div"), el("div")];
  const again = keptDrawn(picture, (room) => {
    const column = board.columns[chosen];
    const at = (value) => (value === null || value === undefined ? null : value * column.factor);
    const points = rows.filter((row) => row.cells[chosen] && row.cells[chosen][0] !== null).map((row) => ({ label: row.revision ?? names.get(row.run), family: 0, x: Date.parse(row.date), y: at(row.cells[chosen][0]), low: at(row.cells[chosen][1]), high: at(row.cells[chosen][2]), row }));
    const lines = (p) => [names.get(p.row.run), namedValue(p, column, column.name), moment(p.row.date), p.row.revision].filter(Boolean);
    return fitPlane(points, {
      label: `${column.name} over time`, xTitle: "date of the run", flat: true, ticks: dayTicks, joined: [points], named: someNamed(points, room),
      lines, ariaLabel: (p) => lines(p).join(", "),
    }, room);
  });
  const draw = () => {
    const column = board.columns[chosen];
    const lines = [...rows].reverse().map((row, n, list) => {
      const before = list[n + 1];
      const changed = !before ? "first run" : before.identity === row.identity ? "as before" : "the system changed";
      const cell = row.cells[chosen];
      return [runLink(row.run, names.get(row.run), { system: row.system, metric: column.name }), moment(row.date), row.revision ?? "–", changed, cell ? shown(cell[0], column) : "–", cell ? spreadOf(cell, column, cell[5] !== undefined) : "", row.doubted.includes(chosen) ? el("a", { href: address("checks") }, "contradicts another run") : ""];
    });
    table.replaceChildren(wordTable(`Runs by date on ${boardTitle(board)}`, ["Run", "Date", "Revision", "Since the run before", right(column.name), "95 % interval", "Checks"], lines, "narrow"));
    again();
  };
  const choice = chooser("Metric of the history", columns.map((c) => [String(c), columnTitle(board.columns, c)]), String(chosen), (value) => {
    chosen = Number(value);
    draw();
  });
  draw();
  return [el("h3", null, "History"), el("div", { class: "controls" }, choice), picture, table];
}

function dayTicks(low, high) {
  if (high - low < 2 * 864e5) return [low, high].map((at, n) => ({ at: n ? high - (high - low) * 0.1 : low + (high - low) * 0.1, text: moment(at) })).slice(0, high > low ? 2 : 1);
  const step = Math.max(864e5, Math.ceil((high - low) / 6 / 864e5) * 864e5);
  const ticks = [];
  for (let at = Math.ceil(low / 864e5) * 864e5; at <= high; at += step) ticks.push({ at, text: day(at) });
  return ticks.length ? ticks : [{ at: (low + high) / 2, text: day((low + high) / 2) }];
}
