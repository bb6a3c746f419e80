// What linear probes read from the codes: a column for each question, with the log-mel spectrogram and chance.
function startProbes() {
  const { tasks, lines } = data.probes;
  if (!lines.length) return;
  const apart = 0.5 / lines.length;
  const points = lines.flatMap((line, family) =>
    line.points.map(([task, share, low, high]) => ({ label: line.codec, task, x: task + apart * (family - (lines.length - 1) / 2), y: 100 * share, low: low === null ? null : 100 * low, high: high === null ? null : 100 * high, family })),
  );
  const column = { unit: "%", places: 1 };
  const ariaLabel = (p) => `${p.label}: ${namedValue(p, column, tasks[p.task])}`;
  const spec = {
    label: "Accuracy of linear probes", xTitle: "question", ticks: () => tasks.map((text, at) => ({ at, text })), named: [],
    lines: (p) => [p.label, namedValue(p, column, tasks[p.task])], ariaLabel,
  };
  keptDrawn(byId("probes-plot"), (room) => fitPlane(points, spec, room))();
  byId("probes-legend").replaceChildren(...familyLegend(lines.map((line) => line.codec), points));
}
