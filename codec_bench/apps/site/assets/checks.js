// Runs that contradict each other.
view("checks", async (box) => {
  const names = runNames();
  const text = ([value, low, high]) => `${Number(value.toPrecision(5))} [${Number(low.toPrecision(5))}, ${Number(high.toPrecision(5))}]`;
  box.append(
    el("h1", null, "Checks"),
    el("p", { class: "lead" }, "Two runs of one system, over the same data and by the same protocol, contradict each other if each number is outside the other's 95 % interval. Then one record is wrong, or one of their programs has changed."),
  );
  const found = await load("checks");
  if (!found.length) box.append(el("p", null, "No runs of this site contradict each other."));
  else {
    box.append(
      wordTable("Contradictions", ["System", "Metric", "Older run", "Newer run", "Versions that differ"], found.map(([system, metric, a, b, one, other, versions]) => [
        systemLink(system), metricLink(metric),
        ...[[a, one], [b, other]].map(([key, value]) => el("span", null, runLink(key, names.get(key), { system, metric }), el("span", { class: "spread" }, text(value)))),
        versions.join(", ") || "none",
      ])),
    );
  }
  const unfinished = index.runs.filter(([, , , , state]) => state !== "finished");
  if (unfinished.length) box.append(el("h2", null, "Runs that are not finished"), el("p", { class: "lead" }, "Their numbers are over the finished items, and are never marked as best."), wordTable("Runs that are not finished", RUN_HEADS, runRows(unfinished), "narrow"));
  return "Checks";
});
