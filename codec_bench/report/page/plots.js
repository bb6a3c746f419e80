// Quality against measured bitrate; without bitrates, each system has a line of its own.
const points = (c) =>
  data.systems
    .map((system, s) => ({ ...system, s, entry: data.summary[s][c], rate: bitrateOf(s) }))
    .filter((p) => p.entry && p.entry[0] !== null);
const hasRate = (p) => !p.unprocessed && p.rate && p.rate[0] > 0;
const TALLEST = 1200;
const withBitrates = data.systems.some((system, s) => hasRate({ ...system, rate: bitrateOf(s) }));

function valueRange(list, column) {
  const [least, most] = reach(list.map((p) => p.entry)).map((value) => value * column.factor);
  const pad = (most - least || Math.abs(most) || 1) * 0.07;
  return [least >= 0 && least - pad < 0 ? 0 : least - pad, most + pad];
}

const scaled = (entry, column) => entry.slice(0, 3).map((v) => (v === null ? null : v * column.factor));
// The interval of a value, unless it has no width: then the point says it all.
const hasWidth = ([, from, to]) => from !== null && to > from;

function explainPoint(group, p, column, more) {
  const [value, from, to] = scaled(p.entry, column);
  explain(group, () => [
    p.label,
    `${title(column)}: ${number(value, column.places)} ${column.unit}` + (from === null ? "" : ` (${number(from, column.places)} to ${number(to, column.places)})`),
    [more, plural(p.entry[3], "sample")].filter(Boolean).join(", "),
  ]);
}

/** The scales of a plot against bitrate: from kbps and values to places in a picture. */
function rateScales(rated, list, column, width, height, edge) {
  const rates = rated.map((p) => p.rate[0] / 1000);
  const [lowRate, highRate] = rates.length ? [Math.min(...rates) / 1.25, Math.max(...rates) * 1.25] : [1, 10];
  const [low, high] = valueRange(list, column);
  return {
    x: (kbps) => edge.left + ((width - edge.left - edge.right) * Math.log(kbps / lowRate)) / Math.log(highRate / lowRate),
    y: (value) => height - edge.bottom - ((height - edge.top - edge.bottom) * (value - low)) / (high - low),
    lowRate, highRate, low, high,
  };
}

function ratePlot(c, large, room) {
  if (!large) return drawRates(c, false, 150, 92).picture;
  // Many names want more height, so that each has its place.
  const many = Math.max(0, points(c).filter(hasRate).length - 12);
  let height = Math.round(Math.min(460, Math.max(280, room * 0.6))) + 9 * many;
  for (;;) {
    const { picture, nameless } = drawRates(c, true, room, height);
    if (!nameless || height > TALLEST) return picture;
    height = Math.round(1.25 * height);
  }
}

function drawRates(c, large, width, height) {
  const column = data.columns[c];
  const list = points(c);
  const edge = large ? { top: 14, right: 22, bottom: 46, left: 58 } : { top: 5, right: 5, bottom: 5, left: 5 };
  const picture = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: large ? "group" : "presentation", "aria-label": large ? `${title(column)} against bitrate` : null });
  if (!list.length) {
    picture.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "no values"));
    return { picture, nameless: 0 };
  }
  const rated = list.filter(hasRate);
  const scales = rateScales(rated, list, column, width, height, edge);
  const { x, y } = scales;
  if (large) drawAxes(picture, scales, width, height, edge);
  picture.append(shape("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: height - edge.bottom, y2: height - edge.bottom }));

  const spots = rated.map((p) => ({ label: p.label, family: p.family, x: x(p.rate[0] / 1000), y: y(p.entry[0] * column.factor) }));
  const boxes = drawAnchors(picture, list.filter((p) => !hasRate(p)), column, y, { large, left: edge.left, right: width - edge.right, top: edge.top }, spots);
  const lines = drawJoins(picture, rated, spots);
  rated.forEach((p, n) => {
    const interval = scaled(p.entry, column);
    const at = spots[n].x;
    const group = shape("g", { class: colour(p.family), tabindex: large ? 0 : null, role: large ? "img" : null, "aria-label": large ? `${p.label}: ${number(interval[0], column.places)} at ${number(p.rate[0] / 1000, 1)} kbps` : null });
    if (hasWidth(interval)) {
      const ends = interval.slice(1).map(y);
      group.append(shape("line", { class: "spread", x1: at, x2: at, y1: ends[0], y2: ends[1] }));
      if (large) for (const end of ends) group.append(shape("line", { class: "spread", x1: at - 4, x2: at + 4, y1: end, y2: end }));
      lines.push({ x0: at, x1: at, y0: ends[1], y1: ends[0] });
    }
    group.append(shape("path", { class: "point", d: outline(p.family), transform: `translate(${at},${spots[n].y}) scale(${large ? 1.15 : 0.62})` }));
    if (large) explainPoint(group, p, column, `${number(p.rate[0] / 1000, 2)} kbps measured`);
    picture.append(group);
  });
  if (!large) return { picture, nameless: 0 };
  const chosen = placeLabels(spots, boxes, lines, { x0: edge.left + 2, x1: width - 2, y0: 2, y1: height - edge.bottom - 2 });
  chosen.forEach((place, n) => place && drawLabel(picture, spots[n], place));
  return { picture, nameless: chosen.filter((place) => !place).length };
}

function drawAxes(picture, { x, y, lowRate, highRate, low, high }, width, height, edge) {
  const { ticks, places } = niceTicks(low, high, 6);
  for (const tick of ticks) {
    picture.append(
      shape("line", { class: "rule", x1: edge.left, x2: width - edge.right, y1: y(tick), y2: y(tick) }),
      shape("text", { x: edge.left - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick, places)),
    );
  }
  for (const tick of logTicks(lowRate, highRate)) {
    picture.append(
      shape("line", { class: "axis", x1: x(tick), x2: x(tick), y1: height - edge.bottom, y2: height - edge.bottom + 5 }),
      shape("text", { x: x(tick), y: height - edge.bottom + 19, "text-anchor": "middle" }, String(Number(tick.toPrecision(3)))),
    );
  }
  picture.append(shape("text", { x: width - edge.right, y: height - 8, "text-anchor": "end" }, "measured bitrate, kbps (log scale)"));
}

/** Systems without a bitrate, as dashed lines; those that lie on one line share it. Gives the boxes that no name may cover. */
function drawAnchors(picture, anchors, column, y, { large, left, right, top }, spots) {
  const groups = [];
  for (const p of anchors.map((anchor) => ({ ...anchor, at: y(anchor.entry[0] * column.factor) })).sort((a, b) => a.at - b.at)) {
    const last = groups.at(-1);
    if (last && p.at - last[0].at < (large ? 3 : 1)) last.push(p);
    else groups.push([p]);
  }
  const boxes = [];
  for (const group of groups) {
    const ends = group.map((p) => scaled(p.entry, column)).filter(hasWidth);
    const [up, down] = [y(Math.max(...ends.map((e) => e[2]))), y(Math.min(...ends.map((e) => e[1])))];
    if (ends.length) picture.append(shape("rect", { class: "anchor-band", x: left, width: right - left, y: up, height: down - up }));
    picture.append(shape("line", { class: "anchor", x1: left, x2: right, y1: group[0].at, y2: group[0].at }));
    if (!large) continue;
    boxes.push({ x0: left, x1: right, y0: group[0].at - 2, y1: group[0].at + 2 });
    const label = group.length === 1 ? group[0].label : group.every((p) => p.unprocessed) ? `unprocessed, ${group.length} runs` : `${group[0].label} and ${group.length - 1} more`;
    boxes.push(drawAnchorLabel(picture, label, group[0].at, { left, right, top }, boxes, spots));
  }
  return boxes;
}

/** Writes the name of a dashed line above or below it, where the fewest points and other names are. */
function drawAnchorLabel(picture, label, at, { left, right, top }, boxes, spots) {
  const wide = textWidth(label) + 4;
  const dots = spots.map((p) => ({ x0: p.x - POINT, x1: p.x + POINT, y0: p.y - POINT, y1: p.y + POINT }));
  const choices = [left + 6, right - wide - 4, (left + right - wide) / 2].flatMap((x0) =>
    [at - LABEL_HEIGHT - 3, at + 3].filter((y0) => y0 > top - 12).map((y0) => ({ x0, x1: x0 + wide, y0, y1: y0 + LABEL_HEIGHT })),
  );
  const [box] = choices
    .map((choice, n) => [choice, [...boxes, ...dots].filter((other) => overlap(choice, other)).length + n / 100])
    .sort((a, b) => a[1] - b[1])[0];
  picture.append(shape("text", { class: "anchor-label", x: box.x0 + 2, y: box.y1 - 3 }, label));
  return box;
}

/** Joins the points of each codec, and gives the lines. */
function drawJoins(picture, rated, spots) {
  const lines = [];
  for (let family = 0; family < data.families.length; family += 1) {
    const members = rated.map((p, n) => [p, spots[n]]).filter(([p]) => p.family === family).sort(([a], [b]) => a.rate[0] - b.rate[0]).map(([, spot]) => spot);
    if (members.length < 2) continue;
    const path = members.map((spot) => `${spot.x.toFixed(2)},${spot.y.toFixed(2)}`).join("L");
    picture.append(shape("path", { d: `M${path}`, class: `join ${colour(family)}`, fill: "none" }));
    members.slice(1).forEach((spot, n) => lines.push({ x0: members[n].x, y0: members[n].y, x1: spot.x, y1: spot.y }));
  }
  return lines;
}

function fitted(label, wide) {
  if (textWidth(label) <= wide) return label;
  let keep = label.length - 1;
  while (keep > 4 && textWidth(`${label.slice(0, Math.ceil(keep / 2))}…${label.slice(-Math.floor(keep / 2))}`) > wide) keep -= 1;
  return `${label.slice(0, Math.ceil(keep / 2))}…${label.slice(-Math.floor(keep / 2))}`;
}

function linePlot(c, large, room) {
  const column = data.columns[c];
  const list = points(c);
  const step = large ? 30 : 7;
  const widest = large ? Math.max(0, ...list.map((p) => textWidth(p.label))) + 18 : 0;
  const edge = large ? { top: 10, right: 22, bottom: 34, left: Math.min(Math.max(60, widest), room * 0.42) } : { top: 5, right: 5, bottom: 5, left: 5 };
  const [width, height] = large ? [room, edge.top + edge.bottom + step * list.length] : [150, Math.min(92, edge.top + edge.bottom + step * list.length)];
  const picture = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: large ? "group" : "presentation", "aria-label": large ? title(column) : null });
  if (!list.length) return picture;
  const [low, high] = valueRange(list, column);
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
    const interval = scaled(p.entry, column);
    const at = edge.top + ((height - edge.top - edge.bottom) * (n + 0.5)) / list.length;
    const group = shape("g", { class: colour(p.family), tabindex: large ? 0 : null, role: large ? "img" : null, "aria-label": large ? `${p.label}: ${number(interval[0], column.places)}` : null });
    if (large) picture.append(shape("text", { class: "point-label", x: edge.left - 12, y: at + 4, "text-anchor": "end" }, fitted(p.label, edge.left - 18)));
    if (hasWidth(interval)) group.append(shape("line", { class: "spread", x1: x(interval[1]), x2: x(interval[2]), y1: at, y2: at }));
    group.append(shape("path", { class: "point", d: outline(p.family), transform: `translate(${x(interval[0])},${at}) scale(${large ? 1.15 : 0.5})` }));
    if (large) explainPoint(group, p, column);
    picture.append(group);
  });
  return picture;
}

function startPlots() {
  const draw = withBitrates ? ratePlot : linePlot;
  if (!withBitrates) {
    byId("plots-title").textContent = "Systems side by side";
    document.querySelector('.contents [href="#plots"]').textContent = "Side by side";
    byId("plots-lead").textContent = `The bars are 95 % intervals.${data.asked ? "" : " The run has no measured bitrates to plot against."}`;
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
  let room = 0;
  function drawLarge() {
    // Drawn in true pixels, so that text keeps its size on a narrow screen.
    room = Math.max(300, byId("plot-large").clientWidth);
    byId("plot-large").replaceChildren(draw(chosen, true, room));
    if (!withBitrates) return;
    const shown = new Set(points(chosen).map((p) => p.family));
    byId("plot-legend").replaceChildren(...data.families.map((name, family) => shown.has(family) && el("span", null, marker(family), name)).filter(Boolean));
  }
  function choose(c) {
    const column = data.columns[c];
    const better = column.higher === null || column.higher === undefined ? "" : `${column.higher ? "higher" : "lower"} is better`;
    byId("plot-caption").replaceChildren(title(column), column.unit ? ` (${column.unit})` : "", better && el("small", null, better));
    chosen = c;
    drawLarge();
    for (const [other, button] of buttons) button.setAttribute("aria-pressed", String(other === c));
  }
  new ResizeObserver(() => {
    if (Math.abs(byId("plot-large").clientWidth - room) > 1) drawLarge();
  }).observe(byId("plot-large"));
  if (qualityColumns.length) choose(firstColumn);
  else byId("plots").hidden = true;
}
