// The scales of plots: from where to where they reach, and where they are marked.
/** The lowest and the highest of the values of summary entries and of the ends of their intervals; equal if only rounding tells them apart. */
function reach(entries) {
  const all = entries.flatMap(([value, from, to]) => [value, from ?? value, to ?? value]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return high - low > 1e-6 * Math.max(Math.abs(low), Math.abs(high)) ? [low, high] : [low, low];
}

function niceTicks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k += 1) ticks.push(k * step);
  return { ticks, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** Round numbers from low to high on a scale of factors: 1, 2 and 5, or more of them where these are too few. */
function logTicks(low, high) {
  const ticks = (marks) => {
    const all = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1; power += 1) all.push(...marks.map((m) => m * 10 ** power));
    return all.filter((t) => t >= low * 0.999 && t <= high * 1.001);
  };
  const few = ticks([1, 2, 5]);
  return few.length > 2 ? few : ticks([1, 1.5, 2, 3, 4, 5, 6, 8]);
}

const kbpsTicks = (low, high) => logTicks(low, high).map((at) => ({ at, text: String(Number(at.toPrecision(3))) }));
