// What the views of a site share: names, dates, cells of leaderboards, and lists to choose from.
let index = null;

const day = (text) => {
  const when = new Date(text ?? "");
  return Number.isNaN(when.getTime()) ? "–" : when.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
};
const moment = (text) => {
  const when = new Date(text ?? "");
  return Number.isNaN(when.getTime()) ? "–" : `${day(text)}, ${when.toISOString().slice(11, 16)} UTC`;
};
const say = (text) => (byId("told").textContent = text);

const runNames = () => new Map(index.runs.map(([key, name]) => [key, name]));
const boardTitle = (board) => `${board.title}${board.limit ? ` (limit ${board.limit})` : ""}`;

const systemLink = (name) => el("a", { href: address("system", name) }, shortened(name));
const runLink = (key, name, state) => el("a", { href: address("run", key, state ?? {}) }, shortened(name));
const metricLink = (name) => el("a", { href: address("metric", name) }, name);

/** The id of a sample as a button, marked if the site holds sound of it. */
const sampleName = (id, audible, onclick) => el("span", { class: "sample" }, el("button", { type: "button", class: "link", onclick }, shortened(id)), audible && el("span", { class: "has-sound", title: "the site holds sound of it" }, "♪", el("span", { class: "unseen" }, " with sound")));

/** The name of a column, and its protocol where several columns have the name. */
function columnTitle(columns, c) {
  const twice = columns.filter((column) => column.name === columns[c].name).length > 1;
  return twice ? `${columns[c].name} (${columns[c].protocol})` : columns[c].name;
}

/** The head of a column of numbers. */
function columnHead(column, twice) {
  const metric = el("span", { class: "metric" }, words(column.base, 4), column.arrow && el("span", { class: "arrow", "aria-hidden": "true" }, column.arrow));
  const more = [column.variant, column.unit].filter(Boolean).join(" ");
  const better = column.higher === null || column.higher === undefined ? "" : `, ${column.higher ? "higher" : "lower"} is better`;
  return [metric, more && el("span", { class: "variant" }, more), column.protocol.startsWith("imported/") && el("span", { class: "variant" }, "imported"), twice && el("span", { class: "variant protocol-of" }, column.protocol), better && el("span", { class: "unseen" }, better)];
}

/** An interval as the report page writes it: `±0.02`, or both ends if the sides differ. */
function spreadOf([value, low, high], column, noted) {
  if (low === null || low === undefined || value === null) return "";
  const [below, above] = [value - low, high - value];
  const mark = noted ? "*" : "";
  const half = (column.factor * (high - low)) / 2;
  let places = column.places;
  while (half > 0 && places < 8 && Number(half.toFixed(places)) === 0) places += 1; // a width that is not zero does not look like it
  if (Math.abs(above - below) <= (0.1 * (above + below)) / 2) return `±${half.toFixed(places)}${mark}`;
  return `[${number(low * column.factor, places)}, ${number(high * column.factor, places)}]${mark}`;
}

const better = (column, a, b) => (column.higher === false ? a < b : a > b);

/** A list to choose from: `options` are [value, text]. */
function chooser(label, options, chosen, onchange, more = {}) {
  const select = el("select", { onchange: () => onchange(select.value), ...more }, options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return el("label", null, label, " ", select);
}

function searchBox(label, value, onchange) {
  let timer = 0;
  const input = el("input", { type: "search", value, autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => onchange(input.value), 120);
  });
  return el("label", { class: "grow" }, label, " ", input);
}

/** Pairs of names and values, as on the report page. */
const pairs = (entries) => el("dl", { class: "pairs" }, entries.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value))));
const facts = (entries) => el("dl", { class: "facts" }, entries.map(([name, value, remark]) => el("div", null, el("dt", null, name), el("dd", null, value, remark && el("small", null, remark)))));
const plainValue = (value) => (typeof value === "string" ? value : Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(", ") : JSON.stringify(value));

/** The rows that a view begins with: the newest of every system, unprocessed sound last. */
const usual = (board) => {
  const rows = newestRows(board.rows);
  return [...rows.filter((row) => row.family !== null), ...rows.filter((row) => row.family === null)];
};

/** The systems of a leaderboard as [value, text], the newest run of each first; the value is KEY:SYSTEM. */
function rowChoices(board) {
  const names = runNames();
  const newest = new Set(newestRows(board.rows).map((row) => `${row.run}:${row.system}`));
  return board.rows.map((row) => [`${row.run}:${row.system}`, `${row.system}${row.suspect ? ", suspect" : ""}${newest.has(`${row.run}:${row.system}`) ? "" : ` (${names.get(row.run)}, ${day(row.date)})`}`]);
}
/** The row of a value KEY:SYSTEM; the newest row of a system is filled as on the leaderboard. */
const rowOf = (board, value) => [...newestRows(board.rows), ...board.rows].find((row) => `${row.run}:${row.system}` === value);
