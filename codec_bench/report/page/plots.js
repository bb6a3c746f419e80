// Quality against measured bitrate; without bitrates, each system has a separate line.
const withBitrates = data.systems.some((system, s) => !system.unprocessed && bitrateOf(s)?.[0] > 0);

/** The systems that have a value of a column, as points; x is null without a bitrate. */
function valuesOf(c) {
  const at = (value) => (value === null ? null : value * data.columns[c].factor);
  return data.systems
    .map((system, s) => ({ ...system, entry: data.summary[s][c], rate: system.unprocessed ? null : bitrateOf(s) }))
    .filter(({ entry }) => entry && entry[0] !== null)
    .map(({ label, family, unprocessed, entry: [y, low, high, n], rate }) => ({ label, family, unprocessed, n, x: rate?.[0] > 0 ? rate[0] / 1000 : null, y: at(y), low: at(low), high: at(high) }));
}

const toldPoint = (column) => ({
  lines: (p) => [p.label, namedValue(p, column, title(column)), [p.x !== null && withBitrates && `${number(p.x, 2)} kbps measured`, plural(p.n, "sample")].filter(Boolean).join(", ")],
  ariaLabel: (p) => `${p.label}: ${number(p.y, column.places)}${p.x !== null && withBitrates ? ` at ${number(p.x, 1)} kbps` : ""}`,
});

function ratePlot(c, large, room) {
  const column = data.columns[c];
  const all = valuesOf(c);
  const points = all.filter((p) => p.x !== null);
  const spec = {
    label: `${title(column)} against bitrate`, xTitle: "measured bitrate, kbps (log scale)", log: true, ticks: kbpsTicks,
    levels: all.filter((p) => p.x === null), joined: byFamily(data.families, points), ...toldPoint(column),
  };
  return large ? fitPlane(points, spec, room) : drawPlane(points, spec, 150, 92, false).picture;
}

function linePlot(c, large, room) {
  const column = data.columns[c];
  const list = valuesOf(c);
  const step = large ? 30 : 7;
  const widest = large ? Math.max(0, ...list.map((p) => textWidth(p.label))) + 18 : 0;
  const edge = large ? { top: 10, right: 22, bottom: 34, left: Math.min(Math.max(60, widest), room * 0.42) } : SMALL_EDGE;
  const [width, height] = large ? [room, edge.top + edge.bottom + step * list.length] : [150, Math.min(92, edge.top + edge.bottom + step * list.length)];
  const picture = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: large ? "group" : "presentation", "aria-label": large ? title(column) : null });
  if (!list.length) return picture;
  const [low, high] = valueRange(list);
  const x = (value) => edge.left + ((width - edge.left - edge.right) * (value - low)) / (high - low);
  if (large) {
    const { ticks, places } = niceTicks(low, high, 6);
    for (const tick of ticks) {
      picture.append(
        shape("line", { class: "rule", x1: x(tick), x2: x(tick), y1: edge.top, y2: height - edge.bottom }),
        shape("text", { x: x(tick), y: height - edge.bottom + 18, "text-anchor": "middle" }, number(tick, places)),
      );
    }
  }
  list.forEach((p, n) => {
    const at = edge.top + ((height - edge.top - edge.bottom) * (n + 0.5)) / list.length;
    if (large) picture.append(shape("text", { class: "point-label", x: edge.left - 12, y: at + 4, "text-anchor": "end" }, fitted(p.label, edge.left - 18)));
    picture.append(drawPoint(p, x(p.y), at, isWide(p) ? [[x(p.low), x(p.high), at, at]] : [], large ? toldPoint(column) : null));
  });
  return picture;
}

function startPlots() {
  const draw = withBitrates ? ratePlot : linePlot;
  if (!withBitrates) {
    byId("plots-title").textContent = "Systems side by side";
    document.querySelector('.contents [href="#plots"]').textContent = "Side by side";
    byId("plots-lead").textContent = `The bars are 95 % intervals.${data.has_answers ? "" : " Add bitrate to --metrics to plot quality against bitrate."}`;
  } else {
    byId("plots-lead").textContent =
      "The bars are 95 % intervals. Points of one codec are joined. A dashed line is a system without a bitrate, such as the unprocessed audio.";
  }
  const buttons = qualityColumns.map((c) => {
    const column = data.columns[c];
    const button = el("button", { type: "button", "aria-pressed": "false", "data-plot": c, onclick: () => choose(c) }, el("span", null, [column.name, column.arrow].filter(Boolean).join(" ")), draw(c, false));
    return [c, button];
  });
  // The metrics of each set of data stand together under its name.
  for (const set of new Set(qualityColumns.map((c) => data.columns[c].data ?? ""))) {
    if (set) byId("plot-choice").append(el("p", null, set));
    byId("plot-choice").append(...buttons.filter(([c]) => (data.columns[c].data ?? "") === set).map(([, button]) => button));
  }

  let chosen = firstColumn;
  const again = keptDrawn(byId("plot-large"), (room) => draw(chosen, true, Math.max(300, room)));
  function choose(c) {
    const column = data.columns[c];
    const better = column.higher === null || column.higher === undefined ? "" : `${column.higher ? "higher" : "lower"} is better`;
    byId("plot-caption").replaceChildren(title(column), column.unit ? ` (${column.unit})` : "", better && el("small", null, better));
    chosen = c;
    again();
    if (withBitrates) byId("plot-legend").replaceChildren(...familyLegend(data.families, valuesOf(c)));
    for (const [other, button] of buttons) button.setAttribute("aria-pressed", String(other === c));
  }
  if (qualityColumns.length) choose(firstColumn);
  else byId("plots").hidden = true;
}
