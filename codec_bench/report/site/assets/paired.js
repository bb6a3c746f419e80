// The difference of two systems over the samples that both have: the jackknife over independent units, with Student's t, as
// `codec-bench compare` computes it. Its exact test is not made here.

/** The logarithm of the gamma function (Lanczos 1964, with the coefficients of Godfrey for g = 7). */
function logGamma(x) {
  const c = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  const t = x + 6.5;
  let sum = c[0];
  for (let n = 1; n < 9; n += 1) sum += c[n] / (x - 1 + n);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** The incomplete beta function by its continued fraction (Lentz). */
function incompleteBeta(a, b, x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x)) / a;
  const tiny = 1e-300;
  let [f, c, d] = [1, 1, 0];
  for (let m = 0; m < 500; m += 1) {
    const k = m >> 1;
    const step = m === 0 ? 1 : m % 2 ? (-(a + k) * (a + b + k) * x) / ((a + 2 * k) * (a + 2 * k + 1)) : (k * (b - k) * x) / ((a + 2 * k - 1) * (a + 2 * k));
    d = 1 + step * d;
    d = 1 / (Math.abs(d) < tiny ? tiny : d);
    c = 1 + step / c;
    if (Math.abs(c) < tiny) c = tiny;
    f *= c * d;
    if (Math.abs(c * d - 1) < 1e-14) break;
  }
  return front * (f - 1);
}

/** How many standard errors a 95 % interval reaches to each side, by halving. */
function tQuantile(freedom) {
  const outside = (t) => incompleteBeta(freedom / 2, 0.5, freedom / (freedom + t * t));
  let [low, high] = [0, 20];
  for (let n = 0; n < 80; n += 1) {
    const middle = (low + high) / 2;
    if (outside(middle) > 0.05) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

const FEWEST_UNITS = 3;
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

/** A minus B over shared samples: `{a, b, difference, low, high, units, wins, losses, ties, why}`; `why` says why there is no interval. */
function pairedDifference(a, b, shared, higher) {
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
  if (adding.length < FEWEST_UNITS) return { ...told, why: `${plural(adding.length, "independent unit")} (speakers, or samples of unknown speaker); an interval needs ${FEWEST_UNITS}` };
  let squares = 0;
  for (const parts of adding) {
    const left = sums.map((sum, k) => sum - parts[k]);
    squares += (left[0] / left[1] - left[2] / left[3] - difference) ** 2;
  }
  if (!Number.isFinite(squares)) return { ...told, why: "without one of the units there is no value" };
  const error = Math.sqrt(((adding.length - 1) / adding.length) * squares);
  const reachTo = error > 1e-12 * Math.abs(difference) ? tQuantile(adding.length - 1) * error : 0;
  return { ...told, low: difference - reachTo, high: difference + reachTo };
}
