// What metrics and benchmarks are: meaning, protocol, paper, and how closely a reference implementation is met.
const sourceLink = (text) => (/^https?:\/\/[^\s"'<>]+$/.test(text) ? el("a", { href: text, rel: "noreferrer noopener", target: "_blank" }, text) : text);
const boardLinks = (keys) => keys.map((key, n) => {
  const board = index.boards.find((one) => one.key === key);
  return [n > 0 && ", ", board ? el("a", { href: address("board", key) }, boardTitle(board)) : key];
});
/** What others published, `rows` of model, metric, value and source, and a sentence about it. */
const publishedByOthers = (rows, about) => [
  el("h2", null, "Published by others"),
  about ? el("p", { class: "lead" }, about) : "",
  wordTable("Published by others", ["Model", "Metric", right("Value"), ...(isMarked(rows) ? ["Marked by"] : []), "Source"], rows.map((row) => [row.model, row.metric, String(Number(row.value.toPrecision(5))), ...(isMarked(rows) ? [row.judge ?? ""] : []), row.source]), "narrow"),
];
const isMarked = (rows) => rows.some((row) => row.judge);
const AGGREGATES = { mean: "the mean over samples", ratio: "the ratio of sums over samples" };

view("metrics", async (box) => {
  const metrics = await load("metrics");
  const rows = Object.entries(metrics).sort(([a], [b]) => collator.compare(a, b)).map(([name, protocols]) => [metricLink(name), Object.values(protocols).at(-1).facts.summary ?? "", String(Object.keys(protocols).length)]);
  box.append(el("h1", null, "Metrics"), wordTable("Metrics", ["Metric", "What it measures", right("Protocols")], rows, "narrow"));
  return "Metrics";
});

view("metric", async (box, [name]) => {
  const protocols = (await load("metrics"))[name];
  if (!protocols) throw new Error(`This site has no metric called ${name}.`);
  const newest = Object.values(protocols).at(-1).facts;
  const many = Object.keys(protocols).length;
  box.append(el("h1", null, name), el("p", { class: "lead" }, newest.summary ?? ""));
  if (many > 1) box.append(el("p", { class: "banner" }, `The runs of this site measured it by ${many} protocols. Numbers of two protocols cannot be compared, and are in separate columns.`));
  for (const [protocol, { facts, boards }] of Object.entries(protocols)) {
    const range = facts.range?.some((end) => end !== null) ? facts.range.map((end) => end ?? "∞").join(" to ") : null;
    const rows = [
      ["Protocol", el("code", null, protocol)],
      ["Better", facts.higher_is_better === null || facts.higher_is_better === undefined ? "neither direction" : facts.higher_is_better ? "higher" : "lower"],
      ["Unit", facts.unit || null], ["Range", range], ["Over the set", AGGREGATES[facts.aggregate] ?? facts.aggregate],
      ["Paper", facts.paper && sourceLink(facts.paper)], ["Agrees with", facts.source && sourceLink(facts.source)],
      ["Leaderboards", boardLinks(boards)],
    ];
    box.append(el("h2", null, many > 1 ? protocol : "Definition"), el("div", { class: "one-column" }, pairs(rows.filter(([, value]) => value))));
  }
  return name;
});

view("benchmarks", async (box) => {
  const benchmarks = await load("benchmarks");
  const rows = Object.entries(benchmarks).sort(([a], [b]) => collator.compare(a, b)).map(([name, facts]) => [el("a", { href: address("benchmark", name) }, facts.title || name), facts.summary ?? "", facts.category ?? ""]);
  box.append(el("h1", null, "Benchmarks"), rows.length ? wordTable("Benchmarks", ["Benchmark", "What it asks", "Category"], rows, "narrow") : el("p", { class: "lead" }, "The runs of this site have no benchmark: they measured codecs or audio on other data."));
  return "Benchmarks";
});

view("benchmark", async (box, [name]) => {
  const facts = (await load("benchmarks"))[name];
  if (!facts) throw new Error(`This site has no benchmark called ${name}.`);
  const boards = index.boards.filter((board) => board.benchmark === name).map(({ key }) => key);
  const rows = [
    ["Name", el("code", null, name)], ["Category", facts.category], ["Language", facts.language], ["Questions", facts.size?.toLocaleString("en")],
    ["Primary metric", facts.primary && metricLink(facts.primary)], ["Licence of the data", facts.licence], ["Paper", facts.paper && sourceLink(facts.paper)],
    ["Leaderboards", boardLinks(boards)],
  ];
  box.append(el("h1", null, facts.title || name), el("p", { class: "lead" }, facts.summary ?? ""), el("div", { class: "one-column" }, pairs(rows.filter(([, value]) => value))));
  box.append(el("p", { class: "lead" }, "The prompt and everything else of its definition: ", el("code", null, `codec-bench show ${name}`)));
  if (facts.published?.length) box.append(...publishedByOthers(facts.published));
  return facts.title || name;
});
