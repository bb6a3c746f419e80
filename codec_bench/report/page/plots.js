// Quality against measured bitrate; without bitrates, each system has a line of its own.
const points = (c) =>
  data.systems
    .map((system, s) => ({ ...system, s, entry: data.summary[s][c], rate: bitrateOf(s) }))
    .filter((p) => p.entry && p.entry[0] !== null);
const hasRate = (p) => !p.unprocessed && p.rate && p.rate[0] > 0;
const withBitrates = data.systems.some((system, s) => hasRate({ ...system, rate: bitrateOf(s) }));

function niceTicks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k += 1) ticks.push(k * step);
  return { ticks, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

function logTicks(low, high) {
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1; power += 1) {
    for (const m of [1, 2, 5]) all.push(m * 10 ** power);
  }
  return all.filter((t) => t >= low * 0.999 && t <= high * 1.001);
}

function valueRange(list, column) {
  let low = Math.min(...list.map((p) => (p.entry[1] ?? p.entry[0]) * column.factor));
  let high = Math.max(...list.map((p) => (p.entry[2] ?? p.entry[0]) * column.factor));
  const pad = (high - low || Math.abs(high) || 1) * 0.07;
  low = low >= 0 && low - pad < 0 ? 0 : low - pad;
  return [low, high + pad];
}

function ratePlot(c, large, room) {
  const column = data.columns[c];
  const list = points(c);
  const [width, height] = large ? [room, Math.round(Math.min(460, Math.max(280, room * 0.6)))] : [150, 92];
  const edge = large ? { top: 14, right: 22, bottom: 46, left: 58 } : { top: 5, right: 5, bottom: 5, left: 5 };
  const label = `${title(column)} against bitrate`;
  const picture = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: large ? "group" : "presentation", "aria-label": large ? label : null });
  if (!list.length) {
    picture.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "no values"));
    return picture;
  }
  const rated = list.filter(hasRate);
  const anchors = list.filter((p) => !hasRate(p));
  const rates = rated.map((p) => p.rate[0] / 1000);
  const [lowRate, highRate] = rates.length ? [Math.min(...rates) / 1.25, Math.max(...rates) * (large ? 1.45 : 1.25)] : [1, 10];
  const [low, high] = valueRange(list, column);
  const x = (kbps) => edge.left + ((width - edge.left - edge.right) * Math.log(kbps / lowRate)) / Math.log(highRate / lowRate);
  const y = (value) => height - edge.bottom - ((height - edge.top - edge.bottom) * (value - low)) / (high - low);

  if (large) {
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
  picture.append(shape("line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: height - edge.bottom, y2: height - edge.bottom }));

  const taken = [];
  for (const p of anchors) {
    const [value, from, to] = p.entry.map((v) => (v === null ? null : v * column.factor));
    if (from !== null) picture.append(shape("rect", { class: "anchor-band", x: edge.left, width: width - edge.left - edge.right, y: y(to), height: Math.max(0, y(from) - y(to)) }));
    picture.append(shape("line", { class: "anchor", x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) }));
    if (large) {
      taken.push({ x0: edge.left, x1: width, y0: y(value) - 2, y1: y(value) + 2 });
      const above = y(value) - 6 > edge.top + 8;
      const at = above ? y(value) - 6 : y(value) + 16;
      picture.append(shape("text", { x: edge.left + 6, y: at }, p.label));
      taken.push({ x0: edge.left, x1: edge.left + 7 * p.label.length + 8, y0: at - 11, y1: at + 3 });
    }
  }
  for (let family = 0; family < data.families.length; family += 1) {
    const members = rated.filter((p) => p.family === family).sort((a, b) => a.rate[0] - b.rate[0]);
    if (members.length > 1) {
      const path = members.map((p) => `${x(p.rate[0] / 1000).toFixed(2)},${y(p.entry[0] * column.factor).toFixed(2)}`).join("L");
      picture.append(shape("path", { d: `M${path}`, class: `join ${colour(family)}`, fill: "none" }));
    }
  }
  for (const p of rated) {
    const [at, up] = [x(p.rate[0] / 1000), y(p.entry[0] * column.factor)];
    taken.push({ x0: at - 7, x1: at + 7, y0: up - 7, y1: up + 7 });
    if (p.entry[1] !== null) taken.push({ x0: at - 4, x1: at + 4, y0: y(p.entry[2] * column.factor), y1: y(p.entry[1] * column.factor) });
  }
  for (const p of rated) {
    const [value, from, to] = p.entry.map((v) => (v === null ? null : v * column.factor));
    const [at, up] = [x(p.rate[0] / 1000), y(value)];
    const group = shape("g", { class: colour(p.family), tabindex: large ? 0 : null, role: large ? "img" : null, "aria-label": large ? `${p.label}: ${number(value, column.places)} at ${number(p.rate[0] / 1000, 1)} kbps` : null });
    if (from !== null) {
      group.append(shape("line", { class: "spread", x1: at, x2: at, y1: y(from), y2: y(to) }));
      if (large) for (const end of [from, to]) group.append(shape("line", { class: "spread", x1: at - 4, x2: at + 4, y1: y(end), y2: y(end) }));
    }
    group.append(shape("path", { class: "point", d: outline(p.family), transform: `translate(${at},${up}) scale(${large ? 1.15 : 0.62})` }));
    if (large) {
      explain(group, () => [
        p.label,
        `${title(column)}: ${number(value, column.places)} ${column.unit}` + (from === null ? "" : ` (${number(from, column.places)} to ${number(to, column.places)})`),
        `${number(p.rate[0] / 1000, 2)} kbps measured, ${plural(p.entry[3], "sample")}`,
      ]);
    }
    picture.append(group);
  }
  if (large) for (const p of rated) placeLabel(picture, p, x(p.rate[0] / 1000), y(p.entry[0] * column.factor), width, taken);
  return picture;
}

// The name of a point is put beside it if it hides nothing there; otherwise the legend and the tooltip name it.
function placeLabel(picture, p, at, up, width, taken) {
  const wide = 6.9 * p.label.length;
  const spots = [
    [at + 11, up + 4, "start", at + 10],
    [at - 11, up + 4, "end", at - 11 - wide],
    [at + 8, up - 9, "start", at + 8],
    [at + 8, up + 19, "start", at + 8],
    [at - 8, up - 9, "end", at - 8 - wide],
    [at - 8, up + 19, "end", at - 8 - wide],
  ];
  for (const [x, y, anchor, left] of spots) {
    const box = { x0: left, x1: left + wide, y0: y - 10, y1: y + 3 };
    if (box.x0 < 60 || box.x1 > width || box.y0 < 2) continue;
    if (taken.some((t) => t.x0 < box.x1 && t.x1 > box.x0 && t.y0 < box.y1 && t.y1 > box.y0)) continue;
    taken.push(box);
    picture.append(shape("text", { class: "point-label", x, y, "text-anchor": anchor }, p.label));
    return;
  }
}

const fitted = (label, wide) => (label.length * 6.9 > wide ? `${label.slice(0, Math.floor(wide / 6.9) - 1)}…` : label);

function linePlot(c, large, room) {
  const column = data.columns[c];
  const list = points(c);
  const step = large ? 30 : 7;
  const edge = large ? { top: 10, right: 22, bottom: 34, left: Math.min(190, room * 0.36) } : { top: 5, right: 5, bottom: 5, left: 5 };
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
    const [value, from, to] = p.entry.map((v) => (v === null ? null : v * column.factor));
    const at = edge.top + ((height - edge.top - edge.bottom) * (n + 0.5)) / list.length;
    const group = shape("g", { class: colour(p.family), tabindex: large ? 0 : null, role: large ? "img" : null, "aria-label": large ? `${p.label}: ${number(value, column.places)}` : null });
    if (large) picture.append(shape("text", { class: "point-label", x: edge.left - 12, y: at + 4, "text-anchor": "end" }, fitted(p.label, edge.left - 18)));
    if (from !== null) group.append(shape("line", { class: "spread", x1: x(from), x2: x(to), y1: at, y2: at }));
    group.append(shape("path", { class: "point", d: outline(p.family), transform: `translate(${x(value)},${at}) scale(${large ? 1.15 : 0.5})` }));
    if (large) {
      explain(group, () => [
        p.label,
        `${title(column)}: ${number(value, column.places)} ${column.unit}` + (from === null ? "" : ` (${number(from, column.places)} to ${number(to, column.places)})`),
        plural(p.entry[3], "sample"),
      ]);
    }
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
    const button = el("button", { type: "button", "aria-pressed": "false", "data-plot": c, onclick: () => choose(c) }, el("span", null, [title(column), column.arrow].filter(Boolean).join(" ")), draw(c, false));
    return [c, button];
  });
  byId("plot-choice").append(...buttons.map(([, button]) => button));

  let chosen = firstColumn;
  let room = 0;
  function drawLarge() {
    // Drawn in true pixels, so that text keeps its size on a narrow screen.
    room = Math.max(300, byId("plot-large").clientWidth);
    byId("plot-large").replaceChildren(draw(chosen, true, room));
  }
  function choose(c) {
    const column = data.columns[c];
    const better = column.higher === null || column.higher === undefined ? "" : `${column.higher ? "higher" : "lower"} is better`;
    byId("plot-caption").replaceChildren(title(column), column.unit ? ` (${column.unit})` : "", better && el("small", null, better));
    chosen = c;
    drawLarge();
    for (const [other, button] of buttons) button.setAttribute("aria-pressed", String(other === c));
  }
  if (withBitrates) {
    byId("plot-legend").append(...data.families.map((name, family) => el("span", null, marker(family), name)));
  }
  new ResizeObserver(() => {
    if (Math.abs(byId("plot-large").clientWidth - room) > 1) drawLarge();
  }).observe(byId("plot-large"));
  if (qualityColumns.length) choose(firstColumn);
  else byId("plots").hidden = true;
}
