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

/** A whisker: where a value and its interval lie between the lowest and the highest of the column; null where these are equal. */
function whisker([value, from, to], [low, high]) {
  if (value === null || !(high > low)) return null;
  // The ends lie half a mark inside of the picture, so that every mark is drawn whole and at its value.
  const x = (at) => 2 + (96 * (at - low)) / (high - low);
  const line = (kind, x1, x2, y1, y2) => shape("line", { class: kind, x1, x2, y1, y2 });
  const bar = from !== null && from !== undefined && to > from && line("bar", x(from), x(to), 2.5, 2.5);
  return shape("svg", { class: "whisker", viewBox: "0 0 100 5", preserveAspectRatio: "none", "aria-hidden": "true" }, line("span", 0, 100, 2.5, 2.5), bar, line("dot", x(value), x(value), 0, 5));
}

/** What the tooltip of a number in a table tells first: the value, its interval and its samples, with `more` about these. */
const toldEntry = (name, [value, low, high, n], column, more = "") => [
  `${name}: ${shown(value, column, 1)} ${column.unit}`,
  low === null || low === undefined ? "interval unknown" : `95 % interval: ${shown(low, column, 1)} to ${shown(high, column, 1)}`,
  `from ${plural(n, "sample")}${more}`,
];

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
