// Plots of lines over something that was changed: quality against lost frames and the like, one line for each codec and way.
function figurePlot(figure, room) {
  const points = figure.lines.flatMap((line, family) => line.points.map(([x, y]) => ({ label: line.label, family, x, y, low: null, high: null })));
  const column = { unit: figure.unit, places: 3 };
  const spec = {
    label: `${figure.title}, ${figure.x}`, xTitle: figure.x, flat: true, named: [],
    joined: byFamily(figure.lines, points),
    ticks: (low, high) => {
      const { ticks, places } = niceTicks(low, high, 6);
      return ticks.map((at) => ({ at, text: number(at, places) }));
    },
    lines: (p) => [p.label, namedValue(p, column, figure.title), `${figure.x}: ${Number(p.x.toPrecision(3))}`],
    ariaLabel: (p) => `${p.label}: ${number(p.y, 3)} at ${Number(p.x.toPrecision(3))}`,
  };
  return { picture: fitPlane(points, spec, room), legend: familyLegend(figure.lines.map((line) => line.label), points) };
}

function startFigures() {
  data.figures.forEach((figure, n) => {
    const box = document.querySelector(`[data-figure="${n}"]`);
    box.after(el("div", { class: "legend" }, figurePlot(figure, 300).legend));
    keptDrawn(box, (room) => figurePlot(figure, room).picture)();
  });
}
