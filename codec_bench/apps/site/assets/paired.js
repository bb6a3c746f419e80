// The difference of two systems over the samples that both have. A page may compare any two systems, over any group of samples, so their
// sums are added up here. Its interval and the exact test are those of `codec-bench compare`.

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

/** A minus B over shared samples: `{a, b, difference, pairs, units, wins, losses, ties, why}`; `why` says why there is no difference. */
function pairedDifference(a, b, shared, higher) {
  const units = new Set(shared.map((pair) => pair.unit)).size;
  const result = { pairs: shared.length, a: null, b: null, difference: null, units, wins: 0, losses: 0, ties: 0, why: "" };
  for (const pair of shared) {
    const [x, y] = [scoreOf(a, pair.a), scoreOf(b, pair.b)];
    if (x === null || y === null) continue;
    if (x === y) result.ties += 1;
    else if (x > y === (higher !== false)) result.wins += 1;
    else result.losses += 1;
  }
  if (a.fold) return { ...result, why: "the metric is computed over all samples at once; codec-bench compare gives its difference" };
  const sums = [0, 0, 0, 0];
  for (const pair of shared) {
    [a.above[pair.a], belowOf(a, pair.a), b.above[pair.b], belowOf(b, pair.b)].forEach((part, k) => {
      sums[k] += part;
    });
  }
  if (!(sums[1] && sums[3])) return { ...result, why: "no sample has a number of both systems" };
  return { ...result, a: sums[0] / sums[1], b: sums[2] / sums[3], difference: sums[0] / sums[1] - sums[2] / sums[3] };
}
