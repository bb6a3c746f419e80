// The plots of pages and sites: points with intervals in a plane, lines per family, a front, dashed levels, names and tooltips.
const LARGE_EDGE = { top: 14, right: 22, bottom: 46, left: 58 };
const SMALL_EDGE = { top: 5, right: 5, bottom: 5, left: 5 };
const TALLEST = 1200;
const MOST_NAMED = 24; // points of a site; beyond, the tooltip says the name
const ROOM_OF_A_NAME = 30; // pixels of the width for each name: a narrow plot names fewer points
const STAR = "M0,-8L2.3,-2.6L8,-2.6L3.4,1.2L5,7.2L0,3.8L-5,7.2L-3.4,1.2L-8,-2.6L-2.3,-2.6Z";

/** Whether the interval of a point has a width; if not, the point says it all. */
const isWide = ({ low, high }) => low !== null && low !== undefined && high > low;

/** From where to where an axis of values goes. */
function valueRange(points) {
  const [least, most] = reach(points.map((p) => [p.y, p.low, p.high]));
  const pad = (most - least || Math.abs(most) || 1) * 0.07;
  return [least >= 0 && least - pad < 0 ? 0 : least - pad, most + pad];
}

/** A value with its interval, as a tooltip says it. */
const namedValue = (p, column, name) =>
  `${name}: ${number(p.y, column.places)} ${column.unit}${p.low === null || p.low === undefined ? "" : ` (${number(p.low, column.places)} to ${number(p.high, column.places)})`}`;

/**
 * Draws points `{label, x, y, low, high, family, own}` in true pixels, `large` with axes, names and tooltips.
 *
 * spec: `label` for screen readers, `xTitle`, `ticks(low, high)` of x as {at, text}, `log` of x, `levels` as values without an x,
 * `front` as points that a line joins in steps, `joined` as lists of points that a line joins, `named` as the points with names
 * (all by default), `lines(point)` as what its tooltip tells, `ariaLabel(point)` as what a screen reader says. Gives the picture, and how many names found no room.
 */
function drawPlane(points, spec, width, height, large) {
  const edge = large ? LARGE_EDGE : SMALL_EDGE;
  const room = { left: edge.left, right: width - edge.right, top: edge.top, bottom: height - edge.bottom };
  const picture = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: large ? "group" : "presentation", "aria-label": large ? spec.label : null });
  const levels = spec.levels ?? [];
  if (!points.length && !levels.length) {
    picture.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "no values"));
    return { picture, nameless: 0 };
  }
  const scales = planeScales(points, levels, spec.log, room);
  const { x, y } = scales;
  if (large) drawAxes(picture, scales, spec, room, height);
  picture.append(shape("line", { class: "axis", x1: room.left, x2: room.right, y1: room.bottom, y2: room.bottom }));
  const spots = new Map(points.map((p) => [p, { label: fitted(p.label, (room.right - room.left) / 2), family: p.own ? -1 : p.family, x: x(p.x), y: y(p.y) }]));
  const boxes = drawLevels(picture, levels, y, room, large, [...spots.values()]);
  const lines = [...drawFront(picture, (spec.front ?? []).map((p) => spots.get(p)), room.right), ...(spec.joined ?? []).flatMap((list) => drawJoin(picture, list.map((p) => spots.get(p))))];
  for (const p of points) {
    const { x: at, y: level } = spots.get(p);
    const ends = isWide(p) ? [y(p.low), y(p.high)] : null;
    if (ends) lines.push({ x0: at, x1: at, y0: ends[1], y1: ends[0] });
    const marks = ends && [[at, at, ...ends], ...(large ? ends.map((end) => [at - 4, at + 4, end, end]) : [])];
    picture.append(drawPoint(p, at, level, marks ?? [], large ? spec : null));
  }
  if (!large) return { picture, nameless: 0 };
  const named = (spec.named ?? points).map((p) => spots.get(p));
  const others = [...spots.values()].filter((spot) => !named.includes(spot)).map(squareOf);
  const chosen = placeLabels(named, [...boxes, ...others], lines, { x0: room.left + 2, x1: width - 2, y0: 2, y1: room.bottom - 2 });
  chosen.forEach((place, n) => place && drawLabel(picture, named[n], place));
  return { picture, nameless: chosen.filter((place) => !place).length };
}

/** Draws a large plot for a width. It grows until each point has its name, unless only some are named or the plot is `flat`. */
function fitPlane(points, spec, room) {
  const width = Math.max(300, room);
  if (spec.flat) return drawPlane(points, spec, width, 240, true).picture;
  const names = (spec.named ?? points).length;
  let height = Math.round(Math.min(460, Math.max(280, width * 0.6))) + 9 * Math.max(0, names - 12);
  for (;;) {
    const { picture, nameless } = drawPlane(points, spec, width, height, true);
    if (!nameless || names < points.length || height > TALLEST) return picture;
    height = Math.round(1.25 * height);
  }
}

/** The first points of a list, as many as a plot of a width has names for. */
const someNamed = (points, room) => points.slice(0, Math.min(MOST_NAMED, Math.round(Math.max(300, room) / ROOM_OF_A_NAME)));

/** The scales of a plane: from x and values to places in a picture. */
function planeScales(points, levels, log, room) {
  const xs = points.map((p) => p.x);
  const [least, most] = xs.length ? [Math.min(...xs), Math.max(...xs)] : [1.25, 8];
  const pad = log ? 1.25 : (most - least || 864e5) * 0.05;
  const [x0, x1] = log ? [least / pad, most * pad] : [least - pad, most + pad];
  const [y0, y1] = valueRange([...points, ...levels]);
  return {
    x: (at) => room.left + (room.right - room.left) * (log ? Math.log(at / x0) / Math.log(x1 / x0) : (at - x0) / (x1 - x0)),
    y: (value) => room.bottom - ((room.bottom - room.top) * (value - y0)) / (y1 - y0),
    x0, x1, y0, y1,
  };
}

function drawAxes(picture, { x, y, x0, x1, y0, y1 }, spec, room, height) {
  const { ticks, places } = niceTicks(y0, y1, 6);
  for (const tick of ticks) {
    picture.append(
      shape("line", { class: "rule", x1: room.left, x2: room.right, y1: y(tick), y2: y(tick) }),
      shape("text", { x: room.left - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick, places)),
    );
  }
  let last = -Infinity;
  for (const { at, text } of spec.ticks(x0, x1)) {
    picture.append(shape("line", { class: "axis", x1: x(at), x2: x(at), y1: room.bottom, y2: room.bottom + 5 }));
    if (x(at) - last < textWidth(text) + 10) continue;
    last = x(at);
    picture.append(shape("text", { x: x(at), y: room.bottom + 19, "text-anchor": "middle" }, text));
  }
  picture.append(shape("text", { x: room.right, y: height - 8, "text-anchor": "end" }, spec.xTitle));
}

/** A point and the lines of its interval, each [x1, x2, y1, y2]. With `texts`, as `lines` and `ariaLabel` of a plot, it has a tooltip, and the keyboard reaches it. */
function drawPoint(p, x, y, marks, texts) {
  const group = shape("g", { class: p.own ? "own" : colour(p.family), ...(texts && { tabindex: 0, role: "img", "aria-label": texts.ariaLabel(p) }) });
  for (const [x1, x2, y1, y2] of marks) group.append(shape("line", { class: "spread", x1, x2, y1, y2 }));
  group.append(shape("path", { class: "point", d: p.own ? STAR : outline(p.family), transform: `translate(${x},${y}) scale(${texts ? 1.15 : 0.6})` }));
  if (texts) explain(group, () => texts.lines(p));
  return group;
}

/** Values without an x, as dashed lines; equal ones share a line. Gives the boxes that no name may cover. */
function drawLevels(picture, levels, y, room, large, spots) {
  const groups = [];
  for (const p of levels.map((level) => ({ ...level, at: y(level.y) })).sort((a, b) => a.at - b.at)) {
    const last = groups.at(-1);
    if (last && p.at - last[0].at < (large ? 3 : 1)) last.push(p);
    else groups.push([p]);
  }
  const boxes = [];
  for (const group of groups) {
    const ends = group.filter(isWide);
    const [up, down] = [y(Math.max(...ends.map((p) => p.high))), y(Math.min(...ends.map((p) => p.low)))];
    if (ends.length) picture.append(shape("rect", { class: "anchor-band", x: room.left, width: room.right - room.left, y: up, height: down - up }));
    picture.append(shape("line", { class: "anchor", x1: room.left, x2: room.right, y1: group[0].at, y2: group[0].at }));
    if (!large) continue;
    boxes.push({ x0: room.left, x1: room.right, y0: group[0].at - 2, y1: group[0].at + 2 });
    const label = group.length === 1 ? group[0].label : group.every((p) => p.unprocessed) ? `unprocessed, ${group.length} runs` : `${group[0].label} and ${group.length - 1} more`;
    boxes.push(drawLevelLabel(picture, label, group[0].at, room, boxes, spots));
  }
  return boxes;
}

/** Writes the name of a dashed line above or below it, where the fewest points and other names are. */
function drawLevelLabel(picture, label, at, { left, right, top }, boxes, spots) {
  const text = fitted(label, (right - left) / 2);
  const wide = textWidth(text) + 4;
  const dots = spots.map(squareOf);
  const choices = [left + 6, right - wide - 4, (left + right - wide) / 2].flatMap((x0) =>
    [at - LABEL_HEIGHT - 3, at + 3].filter((y0) => y0 > top - 12).map((y0) => ({ x0, x1: x0 + wide, y0, y1: y0 + LABEL_HEIGHT })),
  );
  const [box] = choices
    .map((choice, n) => [choice, [...boxes, ...dots].filter((other) => overlap(choice, other)).length + n / 100])
    .sort((a, b) => a[1] - b[1])[0];
  picture.append(shape("text", { class: "anchor-label", x: box.x0 + 2, y: box.y1 - 3 }, text));
  return box;
}

/** Draws a path through corners, and gives the lines between them. */
function drawPath(picture, kind, corners) {
  picture.append(shape("path", { class: kind, fill: "none", d: `M${corners.map(({ x, y }) => `${x.toFixed(2)},${y.toFixed(2)}`).join("L")}` }));
  return corners.slice(1).map((corner, n) => ({ x0: corners[n].x, y0: corners[n].y, x1: corner.x, y1: corner.y }));
}

/** Joins the points of one family. */
const drawJoin = (picture, spots) => (spots.length < 2 ? [] : drawPath(picture, `join ${colour(spots[0].family)}`, spots));

/** Draws a front in steps, up to the right edge: what costs more is no better. */
function drawFront(picture, spots, right) {
  if (!spots.length) return [];
  const steps = spots.flatMap((spot, n) => (n ? [{ x: spot.x, y: spots[n - 1].y }, spot] : [spot]));
  return drawPath(picture, "front", [...steps, { x: right, y: spots.at(-1).y }]);
}

/** The families of points, each with its mark. */
const familyLegend = (names, points) => names.map((name, family) => points.some((p) => p.family === family) && el("span", null, marker(family), name)).filter(Boolean);

/** The points of each family in the order of x. */
const byFamily = (names, points) => names.map((_, family) => points.filter((p) => p.family === family).sort((a, b) => a.x - b.x));

/** Draws a picture in a box, again whenever the box gets another width. `draw(room)` gives the picture. */
function keptDrawn(box, draw) {
  let room = 0;
  const again = () => {
    room = box.clientWidth;
    if (room) box.replaceChildren(draw(room));
  };
  new ResizeObserver(() => Math.abs(box.clientWidth - room) > 1 && again()).observe(box);
  return again;
}
