// A leaderboard: filtered, sorted, with the columns that are chosen.
const MOST_COLUMNS = 10; // that are shown before columns are chosen

view("board", async (box, [key], state) => {
  const about = index.boards.find((board) => board.key === key);
  if (!about) throw new Error("This site has no such leaderboard.");
  const board = await load(`boards/${key}`);
  const columns = board.columns;
  const names = runNames();
  const first = { sort: board.primary, down: board.primary !== null && columns[board.primary].higher !== false };
  const settings = {
    text: state.get("q") ?? "",
    all: state.get("runs") === "all",
    most: state.get("most") ?? "",
    ...(state.has("sort") ? { sort: state.get("sort") === "runs" ? null : Number(state.get("sort")), down: state.get("down") === "1" } : first),
    shown: new Set(state.has("cols") ? state.get("cols").split(".").map(Number) : columns.map((_, c) => c).slice(0, MOST_COLUMNS)),
    picked: [],
  };
  const remember = () => {
    const same = settings.sort === first.sort && settings.down === first.down;
    keepState({
      q: settings.text, most: settings.most, runs: settings.all ? "all" : null, sort: same ? null : settings.sort ?? "runs", down: same || !settings.down ? null : 1,
      cols: [...settings.shown].sort((a, b) => a - b).join(".") === columns.map((_, c) => c).slice(0, MOST_COLUMNS).join(".") ? null : [...settings.shown].sort((a, b) => a - b).join("."),
    });
  };

  const rate = columns.findIndex((column) => column.name === "bitrate");
  const place = el("div");
  const rest = el("div");
  const plots = el("div");
  const pick = el("button", { type: "button", class: "plain", disabled: true }, "Compare two");
  pick.addEventListener("click", () => (location.hash = address("compare", key, { a: settings.picked[0], b: settings.picked[1] })));

  function rows() {
    const query = settings.text.trim().toLowerCase();
    const found = (settings.all ? [...board.rows] : newestRows(board.rows)).filter((row) => !query || row.system.toLowerCase().includes(query) || (names.get(row.run) ?? "").toLowerCase().includes(query));
    return inOrder(settings.most === "" ? found : found.filter((row) => row.cells[rate] && row.cells[rate][0] / 1000 <= Number(settings.most)));
  }

  function inOrder(found) {
    if (settings.sort === null) return found;
    const sign = settings.down ? -1 : 1;
    if (settings.sort < 0) return found.sort((a, b) => sign * collator.compare(a.system, b.system));
    return found.sort((a, b) => {
      const [x, y] = [a.cells[settings.sort]?.[0] ?? null, b.cells[settings.sort]?.[0] ?? null];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (x - y);
    });
  }

  function sortBy(c) {
    turnSort(settings, c, c >= 0 && columns[c].higher !== false);
    draw();
    place.querySelector(`[data-sort="${c}"] button`)?.focus();
    say(settings.sort === null ? "in the order of the runs" : `sorted by ${c < 0 ? "system" : columnTitle(columns, c)}, ${settings.down ? "descending" : "ascending"}`);
  }

  function cellOf(row, c, range) {
    const [cell, column] = [row.cells[c], columns[c]];
    if (!cell) return el("td", { class: "none" }, "–", el("span", { class: "unseen" }, "not measured"));
    const [value, , , n, failed = 0, note = null] = cell;
    const source = sourceOf(row, c);
    const best = source.best?.includes(c);
    const alike = source.alike?.includes(c);
    const number = el("a", { class: "value", href: address("run", source.run, { system: row.system, metric: column.name }) }, shown(value, column));
    explain(number, () => [
      ...toldEntry(`${row.system}, ${column.name}`, cell, column, failed ? `, ${failed.toLocaleString("en")} without a value` : ""),
      `protocol: ${column.protocol}`,
      `run: ${names.get(source.run)}, ${day(source.date)}`,
      note !== null && board.notes[note],
    ]);
    const doubted = source.doubted.includes(c);
    return el(
      "td",
      { class: best ? "best" : null },
      alike && el("span", { title: "not distinguishable from the best" }, "≈"),
      number,
      best && el("span", { class: "unseen" }, " best"),
      el("span", { class: "spread" }, spreadOf(cell, column, note !== null)),
      whisker(cell, range),
      failed > 0 && el("span", { class: "count" }, `${n.toLocaleString("en")} of ${(n + failed).toLocaleString("en")}`),
      doubted && el("a", { class: "count", href: address("checks") }, "contradicts"),
    );
  }

  function draw() {
    remember();
    const list = rows();
    const visible = columns.map((_, c) => c).filter((c) => settings.shown.has(c));
    const families = [...new Set(board.rows.map((row) => row.family).filter((family) => family !== null))];
    const ranges = new Map(visible.map((c) => [c, reach(list.map((row) => row.cells[c]).filter((cell) => cell && cell[0] !== null))]));
    const sorted = (c) => (settings.sort === c ? (settings.down ? "descending" : "ascending") : null);
    const twice = (c) => columns.filter((column) => column.name === columns[c].name).length > 1;
    const head = el(
      "tr",
      null,
      sortHead("System", sorted(-1), () => sortBy(-1), { class: "name", "data-sort": -1 }),
      visible.map((c) => {
        const th = sortHead(columnHead(columns[c], twice(c)), sorted(c), () => sortBy(c), { "data-sort": c });
        explain(th.firstChild, () => [columns[c].name, columns[c].what, `Protocol: ${columns[c].protocol}`]);
        return th;
      }),
    );
    const body = el("tbody");
    const table = el("table", { class: "grid", id: "board-table" }, el("thead", null, head), body);
    place.replaceChildren(framed(`Leaderboard of ${boardTitle(about)}`, table, "tall wide"));
    const rowElement = (row) => {
      const value = `${row.run}:${row.system}`;
      const choice = el("input", { type: "checkbox", "aria-label": `choose ${row.system} of ${names.get(row.run)} to compare`, checked: settings.picked.includes(value), onchange: () => choose(value, choice) });
      const mark = el("span", { class: "mark" }, marker(row.family === null ? -1 : families.indexOf(row.family)));
      const under = [settings.all || row.state ? `${names.get(row.run)}, ${day(row.date)}` : null, row.revision, row.state && `not finished: ${row.state}`, ...(row.remarks ?? [])].filter(Boolean);
      const attributes = { class: row.family === null ? "unprocessed" : null, "data-row": value };
      return el("tr", attributes, el("th", { scope: "row", class: "name" }, choice, mark, systemLink(row.system), under.map((text) => el("span", { class: "count quiet" }, text))), visible.map((c) => cellOf(row, c, ranges.get(c))));
    };
    inParts(body, list.length, (from, to) => list.slice(from, to).map(rowElement), rest);
    if (!list.length) body.append(el("tr", { class: "empty" }, el("td", { colspan: visible.length + 1 }, "No system fits.")));
    drawFront(list, !settings.all);
  }

  function choose(value, input) {
    settings.picked = settings.picked.filter((other) => other !== value);
    if (input.checked) settings.picked.push(value);
    while (settings.picked.length > 2) {
      const dropped = settings.picked.shift();
      const other = [...place.querySelectorAll("tr[data-row]")].find((tr) => tr.dataset.row === dropped);
      if (other) other.querySelector("input").checked = false;
    }
    pick.disabled = settings.picked.length < 2;
  }

  const older = board.rows.length - newestRows(board.rows).length;
  const links = [el("a", { href: address("samples", key) }, "Samples with sound"), el("a", { href: address("compare", key) }, "Compare two systems")];
  if (rate >= 0 && Object.hasOwn(index.published, "codecs")) links.push(el("a", { href: address("published", "codecs") }, "Published codecs"));
  if (board.benchmark) links.push(el("a", { href: address("benchmark", board.benchmark) }, "About the benchmark"));
  box.append(
    el("h1", null, boardTitle(about)),
    el("p", { class: "lead" }, `${plural(board.samples, "sample")}. Values with their 95 % intervals: ± half the width, or [low, high] if the two sides differ. The best value of the newest runs is `, el("span", { class: "best-key" }, "marked"), "; ≈ marks values not distinguishable from it (paired test, Holm). A suspect system is not compared. Every number leads to its run, its protocol and its command."),
    el("p", { class: "links" }, links),
    el(
      "div",
      { class: "controls" },
      searchBox("Search", settings.text, (text) => {
        settings.text = text;
        draw();
      }),
      rate >= 0 && el("label", null, "At most, kbps ", el("input", { type: "number", id: "most-kbps", min: 0, step: "any", value: settings.most, oninput: (event) => {
        settings.most = event.target.value;
        draw();
      } })),
      older > 0 && chooser("Runs", [["", "the newest of each system"], ["all", "all runs"]], settings.all ? "all" : "", (value) => {
        settings.all = value === "all";
        draw();
      }),
      pick,
    ),
    columns.length > 1 ? columnChoice(columns.map((_, c) => columnTitle(columns, c)), settings.shown, draw) : "",
    place,
    rest,
    plots,
  );
  const drawFront = paretoView(plots, board, state);
  draw();
  const notes = [...newestRows(board.rows).filter((row) => row.suspect).map((row) => `${row.system} is suspect: ${row.suspect}`), ...board.notes];
  if (notes.length) box.append(el("h2", null, "Notes"), el("ul", { class: "remarks" }, notes.map((note) => el("li", null, note))));
  if (board.published.length) box.append(...publishedByOthers(board.published, "These numbers were published elsewhere, and are not measured by these protocols."));
  return boardTitle(about);
});
