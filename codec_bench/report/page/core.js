// What all parts of the page share: the columns, and why a value is missing.
// Where two columns differ by their protocol alone, as by the judge, the variant ends with it.
const named = (column) => (column.variant.endsWith(column.protocol) && column.protocol ? `${column.name}, ${column.protocol}` : column.name);
const title = (column) => (column.data ? `${named(column)}, ${column.data}` : named(column));
const heading = (column) => [title(column), column.unit && `(${column.unit})`, column.arrow].filter(Boolean).join(" ");

// If the page shows several benchmarks, the label of a sample names its benchmark.
const labelOf = (sample) => [sample[6], sample[0]].filter(Boolean).join(": ");

// Runs over different data have separate columns, bitrates too.
const bitrateColumns = data.columns.map((_, c) => c).filter((c) => data.columns[c].name === "bitrate");
const qualityColumns = data.columns.map((_, c) => c).filter((c) => !bitrateColumns.includes(c));

/** The summary's entry of a system's bitrate, or null. */
function bitrateOf(s) {
  const column = bitrateColumns.find((c) => data.summary[s][c] !== null);
  return column === undefined ? null : data.summary[s][column];
}
const firstColumn = qualityColumns.length ? qualityColumns[0] : 0;

// Missing values by "system sample": whole items under -1, scores under their column.
const missing = new Map();
for (const [system, sample, column, status, reason] of data.missing) {
  const key = `${system} ${sample}`;
  if (!missing.has(key)) missing.set(key, new Map());
  missing.get(key).set(column, { status, reason: reason || "no reason was recorded" });
}
const why = (system, sample, column) => {
  const found = missing.get(`${system} ${sample}`);
  if (!found) return null;
  // An item that failed has no value of any metric of its own run; other runs' metrics were not computed for it.
  const isMeasured = column < 0 || data.summary[system][column] !== null;
  return found.get(column) || (isMeasured && found.get(-1)) || null;
};
