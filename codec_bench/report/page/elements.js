// How elements are made. Text from data is only ever set as text, never as markup.
const SVG = document.getElementById("svg-namespace").namespaceURI;
const byId = (id) => document.getElementById(id);

function build(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}
const el = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
const shape = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

/** A text under what it is; null where there is none. */
function labelledText(label, text, kind) {
  if (text === undefined || text === null) return null;
  return el("div", { class: "labelled" }, el("span", { class: "labelled-name" }, label), el("pre", { class: kind }, text));
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
