// Tables of a site: sorted by their heads, drawn in parts.
const MOST_ROWS = 100;

/** A head of a column of numbers in a table of words. */
const right = (text) => ({ text, right: true });

/**
 * The newest finished row of every system. What its run did not measure is filled from older runs of the same system, if it has
 * not changed since. `from` of a row says which run each cell is of.
 */
function newestRows(rows) {
  const seen = new Map();
  for (const row of rows) {
    const before = seen.get(row.system);
    if (!before || (before.state && !row.state)) seen.set(row.system, row);
  }
  const others = new Map([...seen.keys()].map((name) => [name, []]));
  for (const row of rows) others.get(row.system).push(row);
  return rows.filter((row) => seen.get(row.system) === row).map((row) => {
    const alike = others.get(row.system).filter((other) => other.identity === row.identity && !other.state);
    const filled = { ...row, cells: [...row.cells], from: row.cells.map(() => row) };
    row.cells.forEach((cell, c) => {
      const other = cell === null && !row.state ? alike.find((one) => one.cells[c] !== null) : undefined;
      if (other) [filled.cells[c], filled.from[c]] = [other.cells[c], other];
    });
    return filled;
  });
}

/** The row that a cell is of. */
const sourceOf = (row, c) => (row.from ? row.from[c] : row);

/** Whether what a row has in a column is compared with no other: its system is suspect, or has values for too few samples. */
const isBarred = (row, c) => Boolean(row.suspect || sourceOf(row, c).barred?.includes(c));

/** A head that sorts. `sorted` is the direction by which the table is sorted by it, or null. */
function sortHead(content, sorted, onclick, attributes = {}) {
  return el("th", { scope: "col", "aria-sort": sorted, ...attributes }, el("button", { type: "button", onclick }, content));
}

/** What a click on a head does to `sort` and `down` of some settings: its first direction, then the other one, then the order of the rows. */
function turnSort(settings, c, firstDown) {
  if (settings.sort !== c) [settings.sort, settings.down] = [c, firstDown];
  else if (settings.down === firstDown) settings.down = !firstDown;
  else [settings.sort, settings.down] = [null, false];
}

/** The columns to choose from, by their names: `chosen` is the set of the numbers of those that are shown, `draw` shows the table again. */
function columnChoice(names, chosen, draw) {
  const boxes = names.map((name, c) => el("label", { class: "check" }, el("input", { type: "checkbox", checked: chosen.has(c), onchange: (event) => {
    if (event.target.checked) chosen.add(c);
    else chosen.delete(c);
    draw();
  } }), name));
  return el("details", { class: "columns" }, el("summary", null, "Columns"), el("fieldset", null, el("legend", { class: "unseen" }, "Columns of the table"), boxes));
}

/** A table of words: heads as texts or {text, right}, rows as lists of cells. */
function wordTable(label, heads, rows, kind = "", frame = "") {
  const right = heads.map((head) => typeof head === "object" && head.right);
  const table = el(
    "table",
    { class: `grid text compact ${kind}` },
    el("thead", null, el("tr", null, heads.map((head, n) => el("th", { scope: "col", class: right[n] ? "right" : null }, words(typeof head === "object" ? head.text : head))))),
    el("tbody", null, rows.map((cells) => el("tr", null, cells.map((cell, n) => (n === 0 ? el("th", { scope: "row", class: "name" }, cell) : el("td", { class: right[n] ? "right" : typeof cell === "string" && cell.length > 40 ? "reason" : null }, cell)))))),
  );
  return framed(label, table, frame);
}

/** Draws a long list in parts: `draw(from, to)` gives the rows, a button asks for more. */
function inParts(body, count, draw, after) {
  const more = el("button", { type: "button", class: "plain" });
  const box = el("div", { class: "pager" }, el("p", { role: "status" }), el("div", null, more));
  let end = 0;
  const grow = () => {
    const from = end;
    end = Math.min(count, end + MOST_ROWS);
    body.append(...draw(from, end));
    box.firstChild.textContent = count > MOST_ROWS ? `${end.toLocaleString("en")} of ${count.toLocaleString("en")} rows` : "";
    more.textContent = `Show ${Math.min(MOST_ROWS, count - end)} more`;
    more.hidden = end >= count;
  };
  more.addEventListener("click", grow);
  grow();
  after.replaceChildren(count > MOST_ROWS ? box : "");
}
