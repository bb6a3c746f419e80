// What all parts of the page share: numbers, names, why a value is missing, markers and the tooltip.
function number(value, places) {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(places);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}
const shown = (value, column, extra = 0) =>
  value === null || value === undefined ? "–" : number(value * column.factor, Math.min(4, column.places + extra));
const single = (value, column) => (value === null || value === undefined ? "–" : number(value * column.factor, column.single));
const LONGEST_WHOLE = 18;
/** A name in which a line breaks between words only, which end with a space or with `/`, `_` or `-`; a short one is one word. */
const words = (name, whole = LONGEST_WHOLE) =>
  (name.length <= whole ? [name] : name.match(/[^\s/_-]*[\s/_-]+|[^\s/_-]+/g)).flatMap((piece, n) => [n > 0 && el("wbr"), piece.length <= LONGEST_WHOLE ? el("span", { class: "word" }, piece) : piece]);
/** A name on one line; where it does not fit, characters in its middle are left out. `alike` characters at its end are those of every name. */
function shortened(name, alike = 0) {
  if (name.length <= LONGEST_WHOLE) return el("span", { class: "id" }, name);
  const [end, tail] = [name.length - alike, Math.max(0, name.length - alike - 9)];
  return el("span", { class: "id", title: name }, el("span", { class: "start" }, name.slice(0, tail)), name.slice(tail, end), alike > 0 && el("span", { class: "alike" }, name.slice(end)));
}

/** How many characters all names end with alike; 0 if there are too few to be worth leaving out. */
function alikeEnd(names) {
  const [first, ...others] = new Set(names);
  let count = 0;
  while (others.length && count < first.length && others.every((name) => name.at(-1 - count) === first.at(-1 - count))) count += 1;
  return count > 3 ? count : 0;
}
const collator = new Intl.Collator("en", { numeric: true });
const title = (column) => (column.data ? `${column.name}, ${column.data}` : column.name);
const heading = (column) => [title(column), column.unit && `(${column.unit})`, column.arrow].filter(Boolean).join(" ");

// If the page shows several benchmarks, the label of a sample names its benchmark.
const labelOf = (sample) => [sample[6], sample[0]].filter(Boolean).join(": ");

// Runs over different data have columns of their own, bitrates too.
const bitrateColumns = data.columns.map((_, c) => c).filter((c) => data.columns[c].name === "bitrate");
const qualityColumns = data.columns.map((_, c) => c).filter((c) => !bitrateColumns.includes(c));

/** The summary's entry of a system's bitrate, or null. */
function bitrateOf(s) {
  const column = bitrateColumns.find((c) => data.summary[s][c] !== null);
  return column === undefined ? null : data.summary[s][column];
}
/** The lowest and the highest of the values of summary entries and of the ends of their intervals; equal if only rounding tells them apart. */
function reach(entries) {
  const all = entries.flatMap(([value, from, to]) => [value, from ?? value, to ?? value]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return high - low > 1e-6 * Math.max(Math.abs(low), Math.abs(high)) ? [low, high] : [low, low];
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

// Markers differ in both shape and colour, so that either is enough to tell them apart.
const SHAPES = [
  "M-5,0A5,5 0 1 1 5,0A5,5 0 1 1 -5,0Z",
  "M-4.5,-4.5H4.5V4.5H-4.5Z",
  "M0,-5.8L5.6,4.4H-5.6Z",
  "M0,-6.2L6.2,0L0,6.2L-6.2,0Z",
  "M0,5.8L5.6,-4.4H-5.6Z",
  "M-1.9,-5.5H1.9V-1.9H5.5V1.9H1.9V5.5H-1.9V1.9H-5.5V-1.9H-1.9Z",
  "M0,-6L5.7,-1.9L3.5,4.9H-3.5L-5.7,-1.9Z",
  "M-5.5,-3.2L0,-6.3L5.5,-3.2V3.2L0,6.3L-5.5,3.2Z",
];
const colour = (family) => (family < 0 ? "hollow" : `f${family % 8}`);
const outline = (family) => (family < 0 ? SHAPES[0] : SHAPES[(family + Math.floor(family / 8)) % 8]);
const marker = (family) =>
  shape("svg", { viewBox: "-7.5 -7.5 15 15", "aria-hidden": "true" }, shape("path", { d: outline(family), class: colour(family) }));

// One tooltip for everything that has an explanation on hover and on focus.
const tip = byId("tip");
let explained = null;

function placeTip() {
  const box = explained.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(6, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 6);
  const above = box.top - own.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
}

function hideTip() {
  tip.hidden = true;
  if (explained) explained.removeAttribute("aria-describedby");
  explained = null;
}

function explain(element, lines) {
  const show = () => {
    hideTip();
    explained = element;
    const [first, ...rest] = lines();
    tip.replaceChildren(el("b", null, first), ...rest.filter(Boolean).map((line) => el("div", null, line)));
    // A modal dialog covers everything outside of it.
    (element.closest("dialog") || document.body).append(tip);
    tip.hidden = false;
    element.setAttribute("aria-describedby", "tip");
    placeTip();
  };
  element.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && show());
  element.addEventListener("pointerleave", hideTip);
  element.addEventListener("focus", () => element.matches(":focus-visible") && show());
  element.addEventListener("blur", hideTip);
}
addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});
// The focus scrolls to what it explains, so that explanation goes along; one under the pointer is left behind and goes.
addEventListener(
  "scroll",
  () => {
    if (explained && explained === document.activeElement) placeTip();
    else hideTip();
  },
  { passive: true, capture: true },
);
