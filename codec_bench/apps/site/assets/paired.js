// The difference of two systems over the samples that both have, with the interval of `codec-bench compare`. Any two systems can be
// asked for, over any group of samples, so their sums over independent units are added up here; what is known of intervals lies in
// `data/intervals.js`, which stats/intervals.py gives. The exact test is not made here.

/** How many standard errors a 95 % interval reaches to each side: that of `freedom` n + 2 in place n, and last that of endlessly many. */
function quantileOf(quantiles, freedom) {
  const [last, beyond] = [quantiles.length, quantiles.at(-1)];
  return freedom <= last ? quantiles[freedom - 2] : beyond + ((quantiles[last - 2] - beyond) * last) / freedom;
}

const belowOf = (scores, n) => (scores.below ? scores.below[n] : 1);
const scoreOf = (scores, n) => {
  const [above, below] = [scores.above[n], belowOf(scores, n)];
  return above === null || above === undefined || !below ? null : above / below;
};

/**
 * The samples that two lists of scores share, as {id, a, b, unit}: positions in both, and the number of the independent unit.
 * Samples are the same if their ids are equal.
 */
function inCommon(a, b) {
  const sameList = a.samples === b.samples || (a.samples.ids.length === b.samples.ids.length && a.samples.ids.every((id, n) => id === b.samples.ids[n]));
  const places = sameList ? null : new Map(b.samples.ids.map((id, n) => [id, n]));
  const found = [];
  a.samples.ids.forEach((id, n) => {
    const at = sameList ? n : places.get(id);
    if (at === undefined || a.above[n] === null || b.above[at] === null || a.above[n] === undefined || b.above[at] === undefined) return;
    found.push({ id, a: n, b: at, unit: a.samples.units[n] });
  });
  return found;
}

/**
 * A minus B over shared samples: `{a, b, difference, low, high, units, wins, losses, ties, why}`; `why` says why there is no interval.
 * `intervals` is the data file of this name.
 */
function pairedDifference(a, b, shared, higher, intervals) {
  const told = { pairs: shared.length, a: null, b: null, difference: null, low: null, high: null, units: 0, wins: 0, losses: 0, ties: 0, why: "" };
  for (const pair of shared) {
    const [x, y] = [scoreOf(a, pair.a), scoreOf(b, pair.b)];
    if (x === null || y === null) continue;
    if (x === y) told.ties += 1;
    else if (x > y === (higher !== false)) told.wins += 1;
    else told.losses += 1;
  }
  if (a.fold) return { ...told, why: "the metric is computed over all samples at once; codec-bench compare gives its difference" };
  const units = new Map();
  const sums = [0, 0, 0, 0];
  for (const pair of shared) {
    const parts = [a.above[pair.a], belowOf(a, pair.a), b.above[pair.b], belowOf(b, pair.b)];
    if (!units.has(pair.unit)) units.set(pair.unit, [0, 0, 0, 0]);
    const held = units.get(pair.unit);
    parts.forEach((part, k) => {
      held[k] += part;
      sums[k] += part;
    });
  }
  if (!(sums[1] && sums[3])) return { ...told, why: "no sample has a number of both systems" };
  const difference = sums[0] / sums[1] - sums[2] / sums[3];
  const adding = [...units.values()].filter((parts) => parts.some((part) => part !== 0));
  Object.assign(told, { a: sums[0] / sums[1], b: sums[2] / sums[3], difference, units: adding.length });
  if (adding.length < intervals.fewest) return { ...told, why: `${plural(adding.length, "independent unit")} (speakers, or samples of unknown speaker); an interval needs ${intervals.fewest}` };
  let squares = 0;
  for (const parts of adding) {
    const left = sums.map((sum, k) => sum - parts[k]);
    squares += (left[0] / left[1] - left[2] / left[3] - difference) ** 2;
  }
  if (!Number.isFinite(squares)) return { ...told, why: "without one of the units there is no value" };
  const error = Math.sqrt(((adding.length - 1) / adding.length) * squares);
  const reachTo = error > 1e-12 * Math.abs(difference) ? quantileOf(intervals.quantiles, adding.length - 1) * error : 0;
  return { ...told, low: difference - reachTo, high: difference + reachTo };
}
