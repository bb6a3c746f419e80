// The first page: the leaderboards, and the newest runs.
const NEWEST = 12;

const boardRows = (boards) =>
  boards.map((board) => [
    el("a", { href: address("board", board.key) }, boardTitle(board)),
    board.benchmark ? "benchmark" : "codecs or sounds",
    board.samples.toLocaleString("en"),
    String(board.systems),
    String(board.runs),
    String(board.metrics),
    day(board.latest),
  ]);
const BOARD_HEADS = ["Leaderboard", "Of", { text: "Samples", right: true }, { text: "Systems", right: true }, { text: "Runs", right: true }, { text: "Metrics", right: true }, "Newest run"];

const runRows = (runs) => runs.map(([key, name, board, date, state]) => [runLink(key, name), el("a", { href: address("board", index.boards[board].key) }, boardTitle(index.boards[board])), moment(date), state === "finished" ? "finished" : el("span", { class: "status flagged" }, `not finished: ${state}`)]);
const RUN_HEADS = ["Run", "Leaderboard", "Finished", "State"];

view("", async (box) => {
  box.append(
    el("h1", null, index.title),
    facts([
      ["Leaderboards", index.boards.length.toLocaleString("en")],
      ["Systems", Object.keys(index.systems).length.toLocaleString("en")],
      ["Runs", index.runs.length.toLocaleString("en")],
      ["Updated", moment(index.made)],
    ]),
  );
  if (!index.runs.length) {
    box.append(el("p", { class: "lead" }, "This site holds no run yet."));
    return "Overview";
  }
  if (index.contradictions.length) {
    const [count, are] = [index.contradictions.length, index.contradictions.length === 1 ? "lies" : "lie"];
    box.append(el("p", { class: "banner" }, `${plural(count, "pair")} of numbers ${are} outside each other's intervals: `, el("a", { href: address("checks") }, "see the checks"), "."));
  }
  box.append(
    el("h2", null, "Leaderboards"),
    el("p", { class: "lead" }, "Numbers over different data or by different protocols are never in one column. Each leaderboard is over the same samples."),
    wordTable("Leaderboards", BOARD_HEADS, boardRows(index.boards), "narrow"),
  );
  const published = Object.entries(index.published);
  if (published.length) {
    box.append(
      el("h2", null, "Published leaderboards"),
      el("p", { class: "lead" }, "Rows that others published, with the runs of this site among them, and how much to trust the ranks."),
      wordTable("Published leaderboards", ["Leaderboard", "What it is"], published.map(([name, summary]) => [el("a", { href: address("published", name) }, name), summary]), "narrow"),
    );
  }
  box.append(el("h2", null, "Newest runs"), wordTable("Newest runs", RUN_HEADS, runRows(index.runs.slice(0, NEWEST)), "narrow"));
  if (index.runs.length > NEWEST) box.append(el("p", { class: "lead" }, el("a", { href: address("runs") }, `All ${index.runs.length.toLocaleString("en")} runs`)));
  return "Overview";
});

view("runs", async (box, _, state) => {
  const list = el("div");
  const draw = (text) => {
    keepState({ q: text });
    const wanted = text.trim().toLowerCase();
    const found = index.runs.filter(([, name, board]) => !wanted || `${name} ${boardTitle(index.boards[board])}`.toLowerCase().includes(wanted));
    const frame = wordTable("Runs", RUN_HEADS, [], "narrow");
    const rest = el("div");
    inParts(frame.querySelector("tbody"), found.length, (from, to) => wordTable("", RUN_HEADS, runRows(found.slice(from, to))).querySelectorAll("tbody tr"), rest);
    list.replaceChildren(frame, rest);
  };
  box.append(el("h1", null, "Runs"), el("div", { class: "controls" }, searchBox("Search", state.get("q") ?? "", draw)), list);
  draw(state.get("q") ?? "");
  return "Runs";
});

view("systems", async (box, _, state) => {
  const list = el("div");
  const heads = ["System", "Leaderboards"];
  const draw = (text) => {
    keepState({ q: text });
    const wanted = text.trim().toLowerCase();
    const found = Object.entries(index.systems).filter(([name]) => name.toLowerCase().includes(wanted)).sort(([a], [b]) => collator.compare(a, b));
    const rows = (part) => part.map(([name, boards]) => [systemLink(name), boards.slice(0, 6).map((b, n) => [n > 0 && ", ", el("a", { href: address("board", index.boards[b].key) }, boardTitle(index.boards[b]))]).concat(boards.length > 6 ? [` and ${boards.length - 6} more`] : [])]);
    const frame = wordTable("Systems", heads, [], "narrow");
    const rest = el("div");
    inParts(frame.querySelector("tbody"), found.length, (from, to) => wordTable("", heads, rows(found.slice(from, to))).querySelectorAll("tbody tr"), rest);
    list.replaceChildren(frame, rest);
  };
  box.append(el("h1", null, "Systems"), el("div", { class: "controls" }, searchBox("Search", state.get("q") ?? "", draw)), list);
  draw(state.get("q") ?? "");
  return "Systems";
});
