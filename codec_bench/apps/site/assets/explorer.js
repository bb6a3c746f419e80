// Samples across the systems of a leaderboard, worst first.
const MOST_SYSTEMS = 6;
const MOST_LISTED = 200;

/** The leaderboard that a view is about, with a list to choose another one. */
async function boardOf(box, key, word) {
  const about = index.boards.find((board) => board.key === key) ?? index.boards[0];
  if (!about) throw new Error("This site holds no run yet.");
  const choose = chooser("Leaderboard", index.boards.map((board) => [board.key, boardTitle(board)]), about.key, (value) => (location.hash = address(word, value)), { id: "board-choice" });
  return { about, choose, board: await load(`boards/${about.key}`) };
}

view("samples", async (box, [key], state) => {
  const { about, choose, board } = await boardOf(box, key, "samples");
  const choices = rowChoices(board);
  const metrics = board.columns.map((column, c) => [column, c]).filter(([column]) => column.higher !== null && column.higher !== undefined);
  if (!metrics.length) throw new Error("This leaderboard has no metric of which one direction is better.");
  const quality = metrics.filter(([column]) => column.name !== "bitrate");
  let chosen = (state.get("systems") ?? "").split("|").filter((value) => rowOf(board, value)).slice(0, MOST_SYSTEMS);
  if (!chosen.length) chosen = usual(board).slice(0, 3).map((row) => `${row.run}:${row.system}`);
  let c = state.has("metric") && board.columns[Number(state.get("metric"))] ? Number(state.get("metric")) : (quality[0] ?? metrics[0])[1];
  let order = state.get("order") ?? "worst";
  let text = state.get("q") ?? "";
  const [place, rest, status] = [el("div"), el("div"), el("p", { class: "lead", role: "status" })];
  let samples = [];

  async function gather() {
    place.replaceChildren(el("p", { class: "lead" }, "Loading."));
    const column = board.columns[c];
    const sides = await Promise.all(chosen.map(async (value) => {
      const row = rowOf(board, value);
      const scores = row.cells[c] ? await loadScores(sourceOf(row, c).run, row.system, column.name) : null;
      return { row, value, label: choices.find(([other]) => other === value)[1], scores, samples: await loadSamples(row.run), audible: new Set((await loadRun(row.run)).heard) };
    }));
    // The scores may be of another run than the texts: samples are then found by their ids.
    for (const side of sides) {
      const places = !side.scores || side.scores.samples === side.samples ? null : new Map(side.scores.samples.ids.map((id, n) => [id, n]));
      side.at = (id, n) => (places ? (places.get(id) ?? -1) : n);
    }
    const byName = new Map();
    sides.forEach((side, k) => side.samples.ids.forEach((id, n) => {
      if (!byName.has(id)) byName.set(id, { id, values: Array(sides.length).fill(null), places: Array(sides.length).fill(-1), audible: false });
      const held = byName.get(id);
      held.places[k] = n;
      held.values[k] = side.scores ? scoreOf(side.scores, side.at(id, n)) : null;
      held.audible ||= side.audible.has(n);
    }));
    samples = [...byName.values()];
    draw(sides, column);
  }

  const badness = (column, value) => (value === null ? -Infinity : column.higher ? -value : value);
  function sortKey(sample, column) {
    const known = sample.values.filter((value) => value !== null);
    if (order === "missing") return sample.values.length - known.length;
    if (!known.length) return -Infinity;
    if (order === "apart") return Math.max(...known) - Math.min(...known);
    if (order === "best") return -Math.max(...known.map((value) => badness(column, value)));
    return Math.max(...known.map((value) => badness(column, value)));
  }

  function draw(sides, column) {
    keepState({ systems: chosen.join("|"), metric: c, order: order === "worst" ? null : order, q: text });
    const query = text.trim().toLowerCase();
    const found = samples.filter((sample) => !query || sample.id.toLowerCase().includes(query)).map((sample) => [sortKey(sample, column), sample]).sort((a, b) => b[0] - a[0] || collator.compare(a[1].id, b[1].id)).map(([, sample]) => sample);
    const body = el("tbody");
    const table = el("table", { class: "grid rows", id: "samples-table" }, el("thead", null, el("tr", null, el("th", { scope: "col", class: "name" }, "Sample"), sides.map(({ label, row }) => el("th", { scope: "col" }, el("a", { class: "metric", href: address("run", sourceOf(row, c).run, { system: row.system, metric: column.name }) }, words(label)))))), body);
    place.replaceChildren(framed("Samples", table, "tall wide"));
    const rowElement = (sample) => {
      const present = sides.map((side, k) => ({ label: side.label, key: side.row.run, system: side.row.system, n: sample.places[k] })).filter(({ n }) => n >= 0);
      const open = () => showSample(sample.id, present).catch((error) => say(error.message));
      const row = el("tr", null, el("th", { scope: "row", class: "name" }, sampleName(sample.id, sample.audible)), sample.values.map((value) => el("td", { class: value === null ? "none" : null }, single(value, column))));
      row.addEventListener("click", open);
      return row;
    };
    inParts(body, found.length, (from, to) => found.slice(from, to).map(rowElement), rest);
    status.textContent = `${plural(found.length, "sample")} by ${column.name}${column.unit ? ` (${column.unit})` : ""}.`;
    redraw = () => draw(sides, column);
  }
  let redraw = () => {};

  const pickers = () => {
    const boxes = choices.slice(0, MOST_LISTED).map(([value, label]) =>
      el("label", { class: "check" }, el("input", { type: "checkbox", value, checked: chosen.includes(value), onchange: (event) => {
        const selected = event.target.checked ? [...chosen, value] : chosen.filter((other) => other !== value);
        if (!selected.length || selected.length > MOST_SYSTEMS) {
          event.target.checked = !event.target.checked;
          say(selected.length ? `at most ${MOST_SYSTEMS} systems are shown` : "one system stays");
          return;
        }
        chosen = choices.map(([other]) => other).filter((other) => selected.includes(other));
        gather();
      } }), label));
    return el("details", { class: "columns" }, el("summary", null, `Systems (at most ${MOST_SYSTEMS})`), el("fieldset", null, el("legend", { class: "unseen" }, "Systems that are shown"), boxes, choices.length > MOST_LISTED && el("p", { class: "lead" }, `${choices.length - MOST_LISTED} more systems are not listed here; the leaderboard has them all.`)));
  };
  box.append(
    el("h1", null, "Samples"),
    el("p", { class: "lead" }, "One row per sample, one column per system. Open a row for transcripts, reasons of missing values, and synchronised audio of the systems."),
    el("div", { class: "controls" },
      choose,
      chooser("Metric", metrics.map(([column, n]) => [String(n), columnTitle(board.columns, n)]), String(c), (value) => {
        c = Number(value);
        gather();
      }, { id: "sample-metric" }),
      chooser("Order", [["worst", "worst first"], ["best", "best first"], ["apart", "systems furthest apart"], ["missing", "most values missing"]], order, (value) => {
        order = value;
        redraw();
      }, { id: "sample-order" }),
      searchBox("Search", text, (value) => {
        text = value;
        redraw();
      })),
    pickers(), status, place, rest,
  );
  await gather();
  return `Samples of ${boardTitle(about)}`;
});
