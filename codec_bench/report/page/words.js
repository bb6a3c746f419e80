// How numbers and names are written.
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
/** A name on one line; where it does not fit, characters in its middle are omitted. `alike` characters at its end are those of every name. */
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
