// The template writes the tables of the summary; this script sorts them, adds tooltips, and draws each value's place in its column.
function startSummary() {
  for (const place of document.querySelectorAll("#summary [data-mark]")) place.append(marker(data.systems[place.dataset.mark].family));
  for (const table of document.querySelectorAll("#summary .sortable")) {
    makeSortable(table);
    data.columns.forEach((_, c) => drawColumn(table, c));
  }
  offerViews();
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const order = [...body.rows];
  for (const button of table.tHead.querySelectorAll("button")) {
    const key = button.dataset.sort;
    const column = data.columns[key];
    button.addEventListener("click", () => sortBy(button, key));
    if (column) {
      explain(button, () => [
        title(column),
        column.what,
        column.higher === null || column.higher === undefined ? "" : `${column.higher ? "Higher" : "Lower"} is better.`,
        `Protocol: ${column.protocol}`,
      ]);
    }
  }

  function sortBy(button, key) {
    const head = button.closest("th");
    const before = head.getAttribute("aria-sort");
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    const byName = key === "name";
    const column = data.columns[key];
    // The best comes first, then the worst, then the order of the run.
    const first = !byName && column.higher !== false ? "descending" : "ascending";
    const second = first === "descending" ? "ascending" : "descending";
    const now = before === null ? first : before === first ? second : null;
    if (now === null) {
      body.append(...order);
      return;
    }
    head.setAttribute("aria-sort", now);
    const sign = now === "ascending" ? 1 : -1;
    const value = (row) => {
      const system = Number(row.dataset.system);
      if (byName) return data.systems[system].label;
      const entry = data.summary[system][key];
      return entry ? entry[0] : null;
    };
    const sorted = [...order].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (byName ? collator.compare(x, y) : x - y);
    });
    body.append(...sorted);
  }
}

/** Draws where each value and its interval lie between the lowest and the highest of the column, and explains them. */
function drawColumn(table, c) {
  const column = data.columns[c];
  const found = data.systems.map((_, s) => data.summary[s][c]).filter((entry) => entry && entry[0] !== null);
  if (found.length < 2) return;
  const range = reach(found);
  for (const row of table.tBodies[0].rows) {
    const entry = data.summary[row.dataset.system][c];
    const cell = row.querySelector(`[data-cell="${c}"]`);
    if (!cell || !entry) continue;
    explain(cell, () => toldEntry(`${data.systems[row.dataset.system].label}, ${title(column)}`, entry, column));
    const picture = whisker(entry, range);
    if (picture) cell.insertBefore(picture, cell.querySelector(".count"));
  }
}

/** Shows one of the tables of the same systems at a time, with a button for each. Without this script all are shown. */
function offerViews() {
  const views = [...document.querySelectorAll("#summary [data-view]")];
  if (views.length < 2) return;
  const choose = (chosen) => {
    for (const [view, button] of buttons) {
      view.hidden = view !== chosen;
      button.setAttribute("aria-pressed", String(view === chosen));
    }
  };
  const buttons = new Map(
    views.map((view) => [view, el("button", { type: "button", class: "plain", onclick: () => choose(view) }, view.dataset.view)]),
  );
  views[0].before(el("div", { class: "views", role: "group", "aria-label": "Which samples count" }, ...buttons.values()));
  choose(views[0]);
}
