// Names next to the points of a plot. None covers another or a point; a line leads to a name far from its point.
const LABEL_HEIGHT = 13;
const POINT = 7; // half the side of the square that a point takes
const RINGS = [11, 22, 34, 48, 64, 84, 108, 136, 170, 212];
const FAR = 14; // from here on a line leads to the name

const textWidth = (() => {
  const pen = document.createElement("canvas").getContext("2d");
  return (text) => {
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };
})();

/** A name, shortened in its middle where it is wider than its place. */
function fitted(label, wide) {
  if (textWidth(label) <= wide) return label;
  let keep = label.length - 1;
  while (keep > 4 && textWidth(`${label.slice(0, Math.ceil(keep / 2))}…${label.slice(-Math.floor(keep / 2))}`) > wide) keep -= 1;
  return `${label.slice(0, Math.ceil(keep / 2))}…${label.slice(-Math.floor(keep / 2))}`;
}

const overlap = (a, b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;

const nearest = (point, box) => ({ x: Math.min(Math.max(point.x, box.x0), box.x1), y: Math.min(Math.max(point.y, box.y0), box.y1) });

function distance(point, box) {
  const { x, y } = nearest(point, box);
  return Math.hypot(x - point.x, y - point.y);
}

/** Whether the line from (x0, y0) to (x1, y1) meets a box. */
function meets(line, box) {
  let [from, to] = [0, 1];
  for (const [start, way, low, high] of [
    [line.x0, line.x1 - line.x0, box.x0, box.x1],
    [line.y0, line.y1 - line.y0, box.y0, box.y1],
  ]) {
    if (way === 0) {
      if (start < low || start > high) return false;
      continue;
    }
    const [a, b] = [(low - start) / way, (high - start) / way].sort((x, y) => x - y);
    [from, to] = [Math.max(from, a), Math.min(to, b)];
  }
  return from < to;
}

/** Places for the name of a point: next to it first, then in rings around it, on the right before the left. */
function* places(point, wide) {
  for (const ring of RINGS) {
    const steps = ring < 20 ? 8 : 16;
    for (let step = 0; step < steps; step += 1) {
      const turn = (Math.PI * (step % 2 ? step + 1 : -step)) / steps;
      const [x, y] = [point.x + ring * Math.cos(turn), point.y + ring * Math.sin(turn)];
      const lean = Math.abs(Math.cos(turn)) < 0.3 ? 0.5 : Math.cos(turn) > 0 ? 0 : 1;
      const box = { x0: x - lean * wide, x1: x + (1 - lean) * wide, y0: y - LABEL_HEIGHT / 2, y1: y + LABEL_HEIGHT / 2 };
      const [end, away] = [nearest(point, box), distance(point, box)];
      yield { box, leader: away > FAR ? { x0: point.x, y0: point.y, x1: end.x, y1: end.y } : null, cost: (away > FAR ? 2 + 0.1 * (away - FAR) : 0) + 0.2 * step };
    }
  }
}

/** The square that a point takes. */
const squareOf = ({ x, y }) => ({ x0: x - POINT, x1: x + POINT, y0: y - POINT, y1: y + POINT });

/**
 * Chooses a place for the name of every point.
 *
 * points: `{x, y, label}`; boxes: what names must not cover; lines: what they had better not cover; bounds: where they must lie.
 * Gives a place for each point, or null for one without room.
 */
function placeLabels(points, boxes, lines, bounds) {
  const dots = points.map(squareOf);
  const chosen = points.map(() => null);
  const wides = points.map((point) => textWidth(point.label) + 4);
  const costOf = (n, { box, leader, cost }) => {
    if (box.x0 < bounds.x0 || box.x1 > bounds.x1 || box.y0 < bounds.y0 || box.y1 > bounds.y1) return Infinity;
    if (boxes.some((other) => overlap(box, other)) || dots.some((dot) => overlap(box, dot))) return Infinity;
    let sum = cost;
    for (const line of lines) if (meets(line, box)) sum += 5;
    // A name must not seem to be that of another point.
    const own = distance(points[n], box) + 5;
    if (!leader) for (const [other, point] of points.entries()) if (other !== n && distance(point, box) < own) sum += 16;
    if (leader) for (const [other, dot] of dots.entries()) if (other !== n && meets(leader, dot)) sum += 9;
    for (const [other, place] of chosen.entries()) {
      if (!place || other === n) continue;
      if (overlap(box, place.box)) return Infinity;
      if (leader && meets(leader, place.box)) sum += 25;
      if (place.leader && meets(place.leader, box)) sum += 25;
    }
    return sum;
  };
  // Points with many neighbours choose first; then all choose once more, knowing the others.
  const near = (a) => points.filter((b) => Math.hypot(a.x - b.x, a.y - b.y) < 60).length;
  const order = points.map((_, n) => n).sort((a, b) => near(points[b]) - near(points[a]));
  for (const n of [...order, ...order]) {
    let least = Infinity;
    chosen[n] = null;
    for (const place of places(points[n], wides[n])) {
      if (place.cost >= least) continue;
      const cost = costOf(n, place);
      if (cost < least) [least, chosen[n]] = [cost, place];
    }
  }
  return chosen;
}

function drawLabel(picture, point, { box, leader }) {
  if (leader) {
    const [dx, dy] = [leader.x1 - leader.x0, leader.y1 - leader.y0];
    const skip = POINT / Math.hypot(dx, dy);
    picture.append(shape("line", { class: `leader ${colour(point.family)}`, x1: leader.x0 + skip * dx, y1: leader.y0 + skip * dy, x2: leader.x1, y2: leader.y1 }));
  }
  picture.append(shape("text", { class: "point-label", x: box.x0 + 2, y: box.y1 - 3 }, point.label));
}
