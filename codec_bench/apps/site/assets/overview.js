// The first page: the leaderboards, and the newest runs.
const NEWEST = 12;

const boardRows = (boards) =>
  boards.map((board) => [
    el("a", { href: address("board", board.key) }, boardTitle(board)),
    board.benchmark ? "benchmark" : board.generated ? "generated sound" : "codecs",
    board.samples.toLocaleString("en"),
    String(board.systems),
    String(board.runs),
    String(board.metrics),
    day(board.latest),
  ]);
const BOARD_HEADS = ["Leaderboard", "Of", right("Samples"), right("Systems"), right("Runs"), right("Metrics"), "Newest run"];

/** The state of a run in words, with the systems that failed on every item. */
const stateOf = (key, state) => {
  const lost = (index.lost ?? []).filter(([run]) => run === key).map(([, , system]) => system);
  if (state === "finished" && !lost.length) return "finished";
  return el("span", { class: "status flagged" }, [state === "finished" ? state : `not finished: ${state}`, ...(lost.length ? [`${lost.join(", ")} failed on every item`] : [])].join("; "));
};

const runRows = (runs) => runs.map(([key, name, board, date, state]) => [runLink(key, name), el("a", { href: address("board", index.boards[board].key) }, boardTitle(index.boards[board])), moment(date), stateOf(key, state)]);
const RUN_HEADS = ["Run", "Leaderboard", "Finished", "State"];

view("", async (box, _, state) => {
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
  if (index.contradictions) {
    const are = index.contradictions === 1 ? "lies" : "lie";
    box.append(el("p", { class: "banner" }, `${plural(index.contradictions, "pair")} of numbers ${are} outside each other's intervals: `, el("a", { href: address("checks") }, "see the checks"), "."));
  }
  if (index.lost?.length) {
    const of = index.lost.slice(0, NEWEST).map(([key, run, system, items]) => el("li", null, `${system} failed on all ${plural(items, "item")} of `, runLink(key, run, { system }), ", so it has no numbers."));
    const rest = index.lost.length - of.length;
    if (rest > 0) of.push(el("li", null, `${plural(rest, "more system")} failed on every item: `, el("a", { href: address("runs") }, "see the runs"), "."));
    box.append(el("div", { class: "banner" }, el("ul", { class: "remarks" }, of)));
  }
  box.append(
    el("h2", null, "Leaderboards"),
    el("p", { class: "lead" }, "Numbers over different data or by different protocols are never in one column. Each leaderboard is over the same samples."),
    wordTable("Leaderboards", BOARD_HEADS, boardRows(index.boards), "narrow"),
  );
  if (index.front) {
    const [about, plots] = [index.boards.find((board) => board.key === index.front), el("div")];
    const board = await load(`boards/${index.front}`);
    box.append(plots);
    paretoView(plots, board, state)(newestRows(board.rows), true);
    box.append(el("p", { class: "lead" }, "The newest leaderboard with bitrates: ", el("a", { href: address("board", index.front) }, boardTitle(about)), "."));
  }
  const published = Object.entries(index.published);
  if (published.length) {
    box.append(
      el("h2", null, "Published leaderboards"),
      el("p", { class: "lead" }, "Published results: leaderboards together with the runs of this site and the certainty of the ranks, and codecs in separate tables."),
      wordTable("Published leaderboards", ["Leaderboard", "What it is"], published.map(([name, summary]) => [el("a", { href: address("published", name) }, name), summary]), "narrow"),
    );
  }
  box.append(el("h2", null, "Newest runs"), wordTable("Newest runs", RUN_HEADS, runRows(index.runs.slice(0, NEWEST)), "narrow"));
  if (index.runs.length > NEWEST) box.append(el("p", { class: "lead" }, el("a", { href: address("runs") }, `All ${index.runs.length.toLocaleString("en")} runs`)));
  return "Overview";
});

/** A view of a long list that can be searched: `all` are the entries, `text` what is searched, `rows` the rows of some entries. */
function searchedView(word, title, heads, all, text, rows) {
  view(word, async (box, _, state) => {
    const list = el("div");
    const draw = (sought) => {
      keepState({ q: sought });
      const query = sought.trim().toLowerCase();
      const found = all().filter((entry) => text(entry).toLowerCase().includes(query));
      const frame = wordTable(title, heads, [], "narrow");
      const rest = el("div");
      inParts(frame.querySelector("tbody"), found.length, (from, to) => wordTable("", heads, rows(found.slice(from, to))).querySelectorAll("tbody tr"), rest);
      list.replaceChildren(frame, rest);
    };
    box.append(el("h1", null, title), el("div", { class: "controls" }, searchBox("Search", state.get("q") ?? "", draw)), list);
    draw(state.get("q") ?? "");
    return title;
  });
}

searchedView("runs", "Runs", RUN_HEADS, () => index.runs, ([, name, board]) => `${name} ${boardTitle(index.boards[board])}`, runRows);

searchedView(
  "systems",
  "Systems",
  ["System", "Leaderboards"],
  () => Object.entries(index.systems).sort(([a], [b]) => collator.compare(a, b)),
  ([name]) => name,
  (found) => found.map(([name, boards]) => [systemLink(name), [boardLinks(boards.slice(0, 6).map((b) => index.boards[b].key)), boards.length > 6 && ` and ${boards.length - 6} more`]]),
);
