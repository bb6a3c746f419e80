// One run: its numbers, its protocols, its command, and where it was made.
view("run", async (box, [key], state) => {
  const about = index.runs.find(([other]) => other === key);
  if (!about) throw new Error("This site has no such run.");
  const board = index.boards[about[2]];
  const run = await loadRun(key);
  const [selected, of] = [state.get("metric"), state.get("system")];
  box.append(
    el("h1", null, words(run.name)),
    facts([
      ["Leaderboard", el("a", { href: address("board", board.key) }, boardTitle(board))],
      ["Finished", run.finished ? moment(run.finished) : "not finished", run.started ? `started ${moment(run.started)}` : ""],
      ["Items", `${run.counts.finished.toLocaleString("en")} of ${run.counts.items.toLocaleString("en")}`, `${plural(run.counts.failed_items, "item")} and ${plural(run.counts.failed_scores, "score")} failed`],
      ["Machine", String(run.machine.cpu ?? "not recorded"), run.machine.gpu && run.machine.gpu !== "none" ? String(run.machine.gpu) : ""],
    ]),
  );
  if (run.state !== "finished") box.append(el("p", { class: "banner" }, "The run is not finished. All numbers are from its finished items."));
  const rows = [];
  for (const [system, { metrics }] of Object.entries(run.systems)) {
    for (const [metric, held] of Object.entries(metrics)) {
      const factor = ["bps", "bit/s"].includes(held.unit) ? 1e-3 : 1;
      const unit = factor === 1 ? held.unit : "kbps";
      const text = (value) => (value === null || value === undefined ? "–" : String(Number((value * factor).toPrecision(5))).replace("-", "−"));
      const missing = Object.entries(held.missing ?? {}).map(([status, count]) => `${count.toLocaleString("en")} ${status.replaceAll("_", " ")}`).join(", ");
      rows.push({ here: metric === selected && system === of, cells: [systemLink(system), metricLink(metric), `${text(held.value)} ${unit}`, held.ci95 ? `${text(held.ci95[0])} to ${text(held.ci95[1])}` : held.note ?? "–", held.n.toLocaleString("en"), missing || "–", el("code", null, held.protocol)] });
    }
  }
  const table = wordTable("Numbers of the run", ["System", "Metric", right("Value"), "95 % interval", right("Samples"), "Without a value", "Protocol"], rows.map(({ cells }) => cells), "narrow", "tall");
  const marked = rows.findIndex((row) => row.here);
  if (marked >= 0) {
    const [, , value, interval, n, missing, protocol] = rows[marked].cells;
    box.append(
      el("section", { class: "asked", "aria-label": "The number that led here" },
        el("p", { class: "asked-value" }, `${selected} of ${of}: ${value}`),
        pairs([["95 % interval", interval], ["Samples", n], ["Without a value", missing], ["Protocol", protocol.cloneNode(true)], ["Command", run.command ? el("code", null, run.command) : "not recorded"], ["run.json", el("a", { href: `data/runs/${key}/run.json` }, "the request and what ran")]])),
    );
    table.querySelectorAll("tbody tr")[marked].classList.add("asked");
  }
  box.append(el("h2", null, "Numbers"), table);
  if (run.notes.length) box.append(el("ul", { class: "remarks" }, run.notes.map((note) => el("li", null, note))));
  const file = (name, text) => el("li", null, el("a", { href: `data/runs/${key}/${name}` }, name), ` ${text}`);
  box.append(
    el("h2", null, "How it was made"),
    run.command ? el("p", { class: "lead" }, "To repeat the run with the first file below: ", el("code", null, run.command)) : "",
    el("ul", { class: "remarks" }, file("run.json", "the request and what ran"), file("summary.json", "the numbers, also by groups of samples"), file("scores.parquet", "every score as a row")),
    el("h3", null, "Request"), pairs(Object.entries(run.config).map(([name, value]) => [name.replaceAll("_", " "), plainValue(value)])),
    el("h3", null, "Machine"), pairs(Object.entries(run.machine).map(([name, value]) => [name.replaceAll("_", " "), plainValue(value)])),
    el("h3", null, "Versions"), pairs(Object.entries(run.versions).map(([name, value]) => [name, plainValue(value)])),
  );
  if (run.failures.reasons.length) {
    box.append(el("h2", null, "Failures"), wordTable("Failures", ["System", "Metric", "Status", right("Items"), "Reason", "Example"], run.failures.reasons.map((row) => [row.system, row.metric ?? "whole item", row.status.replaceAll("_", " "), row.count.toLocaleString("en"), row.reason, row.example])));
  }
  return run.name;
});
