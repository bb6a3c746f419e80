// Two systems of a leaderboard over the samples that both have: every metric, every group, and the samples that differ most.
const FURTHEST = 8;

view("compare", async (box, [key], state) => {
  const { about, choose, board } = await boardOf(box, key, "compare");
  const choices = rowChoices(board);
  box.append(el("h1", null, "Compare two systems"));
  if (choices.length < 2) {
    box.append(el("div", { class: "controls" }, choose), el("p", { class: "lead" }, "This leaderboard has only one system."));
    return "Compare";
  }
  const newest = usual(board).map((row) => `${row.run}:${row.system}`);
  const known = (name, otherwise) => (rowOf(board, state.get(name)) ? state.get(name) : otherwise);
  let a = known("a", newest[0]);
  let b = known("b", newest.find((value) => value !== a) ?? choices.find(([value]) => value !== a)[0]);
  let metric = state.has("metric") ? Number(state.get("metric")) : null;
  const result = el("div");
  const label = (value) => choices.find(([other]) => other === value)[1];

  async function draw() {
    const [rowA, rowB] = [rowOf(board, a), rowOf(board, b)];
    const shared = board.columns.map((_, c) => c).filter((c) => rowA.cells[c] && rowB.cells[c]);
    if (a === b || !shared.length) {
      result.replaceChildren(el("p", { class: "lead" }, a === b ? "Choose two different systems." : "The two have no metric with the same protocol."));
      return;
    }
    const quality = shared.filter((c) => board.columns[c].name !== "bitrate");
    if (!shared.includes(metric)) metric = quality[0] ?? shared[0];
    keepState({ a, b, metric });
    result.replaceChildren(el("p", { class: "lead" }, "Loading."));
    const scored = await Promise.all(shared.map(async (c) => {
      const [one, other] = await Promise.all([rowA, rowB].map((row) => loadScores(sourceOf(row, c).run, row.system, board.columns[c].name)));
      const pairs = inCommon(one, other);
      return { c, one, other, pairs, test: pairedDifference(one, other, pairs, board.columns[c].higher) };
    }));
    const suspects = [rowA, rowB].filter((row) => row.suspect);
    const lines = scored.map(({ c, test }) => {
      const column = board.columns[c];
      return [
        el("button", { type: "button", class: "link", "data-metric": c, "aria-pressed": String(c === metric), onclick: () => {
          metric = c;
          draw().then(() => result.querySelector(`[data-metric="${c}"]`)?.focus());
        } }, columnTitle(board.columns, c)),
        ...[[rowA, test.a], [rowB, test.b]].map(([row, value]) => (value === null ? "–" : el("a", { href: address("run", sourceOf(row, c).run, { system: row.system, metric: column.name }) }, shown(value, column)))),
        el("span", null, shown(test.difference, column, 1), el("span", { class: "spread" }, test.why || plural(test.units, "independent unit"))),
        suspects.length ? "–" : `${test.wins} / ${test.ties} / ${test.losses}`, test.pairs.toLocaleString("en"),
      ];
    });
    result.replaceChildren(
      ...suspects.map((row) => el("p", { class: "banner" }, `${row.system} is suspect, so neither is the better one: ${row.suspect}`)),
      el("h2", null, "Every metric"),
      el("p", { class: "lead" }, "A minus B over the samples with values of both, and the number of independent units (speakers, or samples). Wins are samples on which A is better. Choose a metric to see its groups and samples."),
      wordTable("Differences of every metric", ["Metric", right("A"), right("B"), right("A − B"), right("wins / ties / losses"), right("samples")], lines, "narrow"),
      el("p", { class: "lead" }, "The interval of each difference, and the exact test with p adjusted for the number of metrics: ", el("code", null, rowA.run === rowB.run ? `codec-bench compare RUN --systems ${rowA.system},${rowB.system}` : `codec-bench compare RUN RUN --systems ${rowA.system},${rowB.system}`)),
      ...groupsOf(scored.find(({ c }) => c === metric)),
      ...furthest(scored.find(({ c }) => c === metric), rowA, rowB),
    );
  }

  function groupsOf({ c, one, other, pairs }) {
    const column = board.columns[c];
    const made = Object.entries(one.samples.groups).map(([name, group]) => {
      const rows = group.names.map((value, g) => {
        const test = pairedDifference(one, other, pairs.filter((pair) => group.of[pair.a] === g), column.higher);
        return [value || "not known", shown(test.a, column), shown(test.b, column), el("span", null, shown(test.difference, column, 1), el("span", { class: "spread" }, test.why || plural(test.units, "independent unit"))), test.pairs.toLocaleString("en")];
      });
      return el("details", { class: "columns" }, el("summary", null, `By ${name.replaceAll("_", " ")}`), wordTable(`By ${name}`, [name.replaceAll("_", " "), right("A"), right("B"), right("A − B"), right("samples")], rows, "narrow"));
    });
    return made.length ? [el("h2", null, `${column.name} by groups of samples`), ...made] : [];
  }

  function furthest({ c, one, other, pairs }, rowA, rowB) {
    const column = board.columns[c];
    const sign = column.higher === false ? -1 : 1;
    const apart = pairs.map((pair) => ({ ...pair, x: scoreOf(one, pair.a), y: scoreOf(other, pair.b) })).filter(({ x, y }) => x !== null && y !== null).map((pair) => ({ ...pair, by: sign * (pair.x - pair.y) })).sort((p, q) => q.by - p.by);
    const audible = new Set(one.run.heard.map((n) => one.samples.ids[n]));
    const table = (name, list) => wordTable(name, ["Sample", right("A"), right("B"), right("A − B")], list.map((pair) => [
      sampleName(pair.id, audible.has(pair.id), () => showSample(pair.id, [{ label: label(a), key: sourceOf(rowA, c).run, system: rowA.system, n: pair.a }, { label: label(b), key: sourceOf(rowB, c).run, system: rowB.system, n: pair.b }]).catch((error) => say(error.message))),
      single(pair.x, column), single(pair.y, column), single(pair.x - pair.y, column),
    ]), "narrow");
    const [best, worst] = [apart.filter(({ by }) => by > 0).slice(0, FURTHEST), apart.filter(({ by }) => by < 0).reverse().slice(0, FURTHEST)];
    return [
      el("h2", null, `Samples that differ most in ${column.name}`),
      el("p", { class: "lead" }, `Open one to read it and to listen to both on one clock. At most ${FURTHEST} are shown on each side, of ${apart.filter(({ by }) => by > 0).length.toLocaleString("en")} on which A is better and ${apart.filter(({ by }) => by < 0).length.toLocaleString("en")} on which B is.`),
      el("h3", null, "A is better"), best.length ? table("Samples on which A is better", best) : el("p", { class: "lead" }, "There are none."),
      el("h3", null, "B is better"), worst.length ? table("Samples on which B is better", worst) : el("p", { class: "lead" }, "There are none."),
    ];
  }

  const swap = el("button", { type: "button", class: "plain", onclick: () => {
    [a, b] = [b, a];
    [selectA.value, selectB.value] = [a, b];
    draw();
  } }, "Swap A and B");
  const pickA = chooser("A", choices, a, (value) => { a = value; draw(); }, { id: "side-a" });
  const pickB = chooser("B", choices, b, (value) => { b = value; draw(); }, { id: "side-b" });
  const [selectA, selectB] = [pickA, pickB].map((pick) => pick.querySelector("select"));
  box.append(el("div", { class: "controls" }, choose, pickA, pickB, swap), result);
  await draw();
  return `Compare on ${boardTitle(about)}`;
});
