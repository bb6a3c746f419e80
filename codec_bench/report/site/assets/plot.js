// Points with intervals in a plane: value against bitrate, or over time.
const PLOT_EDGE = { top: 14, right: 22, bottom: 46, left: 58 };
const MOST_NAMED = 24; // points; beyond, the tooltip says the name
const ROOM_OF_A_NAME = 30; // pixels of the width for each name: a narrow plot names fewer points

/**
 * Draws points `{label, x, y, low, high, family, own}` in true pixels.
 *
 * spec: `label` for screen readers, `xTitle`, `ticks(low, high)` of x as {at, text}, `log` of x, `places` of y, `front` as points
 * that a line joins in steps, `joined` as lists of points that a line joins, `lines(point)` as what is told of a point.
 */
function drawPlot(points, spec, room) {
  const width = Math.max(300, room);
  const height = spec.flat ? 240 : Math.round(Math.min(460, Math.max(280, width * 0.55)));
  const picture = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": spec.label });
  const xs = points.map((p) => p.x);
  const [lowY, highY] = reach(points.map((p) => [p.y, p.low, p.high]));
  const padY = (highY - lowY || Math.abs(highY) || 1) * 0.07;
  const [y0, y1] = [lowY >= 0 && lowY - padY < 0 ? 0 : lowY - padY, highY + padY];
  const padX = spec.log ? 1.25 : (Math.max(...xs) - Math.min(...xs) || 864e5) * 0.05;
  const [x0, x1] = spec.log ? [Math.min(...xs) / padX, Math.max(...xs) * padX] : [Math.min(...xs) - padX, Math.max(...xs) + padX];
  const share = (x) => (spec.log ? Math.log(x / x0) / Math.log(x1 / x0) : (x - x0) / (x1 - x0));
  const X = (x) => PLOT_EDGE.left + (width - PLOT_EDGE.left - PLOT_EDGE.right) * share(x);
  const Y = (y) => height - PLOT_EDGE.bottom - ((height - PLOT_EDGE.top - PLOT_EDGE.bottom) * (y - y0)) / (y1 - y0);
  const { ticks, places } = niceTicks(y0, y1, 6);
  for (const tick of ticks) {
    picture.append(
      shape("line", { class: "rule", x1: PLOT_EDGE.left, x2: width - PLOT_EDGE.right, y1: Y(tick), y2: Y(tick) }),
      shape("text", { x: PLOT_EDGE.left - 8, y: Y(tick) + 4, "text-anchor": "end" }, number(tick, places)),
    );
  }
  const floor = height - PLOT_EDGE.bottom;
  let last = -Infinity;
  for (const { at, text } of spec.ticks(x0, x1)) {
    picture.append(shape("line", { class: "axis", x1: X(at), x2: X(at), y1: floor, y2: floor + 5 }));
    if (X(at) - last < textWidth(text) + 10) continue;
    last = X(at);
    picture.append(shape("text", { x: X(at), y: floor + 19, "text-anchor": "middle" }, text));
  }
  picture.append(
    shape("line", { class: "axis", x1: PLOT_EDGE.left, x2: width - PLOT_EDGE.right, y1: floor, y2: floor }),
    shape("text", { x: width - PLOT_EDGE.right, y: height - 8, "text-anchor": "end" }, spec.xTitle),
  );
  const steps = (list) => list.map((p, n) => (n ? `H${X(p.x).toFixed(2)}V${Y(p.y).toFixed(2)}` : `M${X(p.x).toFixed(2)},${Y(p.y).toFixed(2)}`)).join("");
  if (spec.front?.length) picture.append(shape("path", { class: "front", d: `${steps(spec.front)}H${width - PLOT_EDGE.right}` }));
  for (const list of spec.joined ?? []) {
    if (list.length > 1) picture.append(shape("path", { class: `join ${colour(list[0].family)}`, d: `M${list.map((p) => `${X(p.x).toFixed(2)},${Y(p.y).toFixed(2)}`).join("L")}` }));
  }
  const named = new Set((spec.named ?? points).slice(0, Math.min(MOST_NAMED, Math.round(width / ROOM_OF_A_NAME))));
  const bars = [];
  for (const p of points) {
    const group = shape("g", { class: p.own ? "own" : colour(p.family), tabindex: 0, role: "img", "aria-label": spec.lines(p).filter(Boolean).join(", ") });
    if (p.low !== null && p.low !== undefined && p.high > p.low) {
      group.append(shape("line", { class: "spread", x1: X(p.x), x2: X(p.x), y1: Y(p.low), y2: Y(p.high) }));
      if (named.has(p)) bars.push({ x0: X(p.x), x1: X(p.x), y0: Y(p.high), y1: Y(p.low) });
    }
    group.append(shape("path", { class: "point", d: p.own ? "M0,-8L2.3,-2.6L8,-2.6L3.4,1.2L5,7.2L0,3.8L-5,7.2L-3.4,1.2L-8,-2.6L-2.3,-2.6Z" : outline(p.family), transform: `translate(${X(p.x)},${Y(p.y)}) scale(1.15)` }));
    explain(group, () => spec.lines(p));
    picture.append(group);
  }
  const labels = [...named].map((p) => ({ label: p.label, family: p.own ? -1 : p.family, x: X(p.x), y: Y(p.y) }));
  const chosen = placeLabels(labels, [], bars, { x0: PLOT_EDGE.left + 2, x1: width - 2, y0: 2, y1: floor - 2 });
  chosen.forEach((place, n) => place && drawLabel(picture, labels[n], place));
  return picture;
}

/** Draws a picture in a box, again whenever the box gets another width. `draw(room)` gives the picture. */
function kept(box, draw) {
  let room = 0;
  const again = () => {
    room = box.clientWidth;
    if (room) box.replaceChildren(draw(room));
  };
  new ResizeObserver(() => Math.abs(box.clientWidth - room) > 1 && again()).observe(box);
  return again;
}

const kbpsTicks = (low, high) => logTicks(low, high).map((at) => ({ at, text: String(Number(at.toPrecision(3))) }));
function dayTicks(low, high) {
  if (high - low < 2 * 864e5) return [low, high].map((at, n) => ({ at: n ? high - (high - low) * 0.1 : low + (high - low) * 0.1, text: moment(at) })).slice(0, high > low ? 2 : 1);
  const step = Math.max(864e5, Math.ceil((high - low) / 6 / 864e5) * 864e5);
  const ticks = [];
  for (let at = Math.ceil(low / 864e5) * 864e5; at <= high; at += step) ticks.push({ at, text: day(at) });
  return ticks.length ? ticks : [{ at: (low + high) / 2, text: day((low + high) / 2) }];
}
