// The template writes the summary table; this script sorts it, adds tooltips, and draws each value's place in its column.
function startSummary() {
  const table = byId("summary-table");
  const body = table.tBodies[0];
  const order = [...body.rows];

  for (const place of table.querySelectorAll("[data-mark]")) {
    place.append(marker(data.systems[place.dataset.mark].family));
  }

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
    const collator = new Intl.Collator("en", { numeric: true });
    const sorted = [...order].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (byName ? collator.compare(x, y) : x - y);
    });
    body.append(...sorted);
  }

  offerViews();

  data.columns.forEach((column, c) => {
    const found = data.systems.map((_, s) => data.summary[s][c]).filter((entry) => entry && entry[0] !== null);
    if (found.length < 2) return;
    const low = Math.min(...found.map((e) => e[1] ?? e[0]));
    const high = Math.max(...found.map((e) => e[2] ?? e[0]));
    if (!(high > low)) return;
    const x = (value) => (100 * (value - low)) / (high - low);
    for (const row of order) {
      const entry = data.summary[row.dataset.system][c];
      const cell = row.querySelector(`[data-cell="${c}"]`);
      if (!cell || !entry) continue;
      const system = data.systems[row.dataset.system];
      const [value, from, to, n] = entry;
      explain(cell, () => [
        `${system.label}, ${title(column)}: ${shown(value, column, 1)} ${column.unit}`,
        from === null ? "no interval" : `95 % interval: ${shown(from, column, 1)} to ${shown(to, column, 1)}`,
        `from ${plural(n, "sample")}`,
      ]);
      if (value === null) continue;
      const picture = shape("svg", { class: "whisker", viewBox: "0 0 100 5", preserveAspectRatio: "none", "aria-hidden": "true" });
      picture.append(shape("line", { class: "span", x1: 0, x2: 100, y1: 2.5, y2: 2.5 }));
      if (from !== null) picture.append(shape("line", { class: "bar", x1: x(from), x2: x(to), y1: 2.5, y2: 2.5 }));
      picture.append(shape("rect", { class: "dot", x: Math.min(Math.max(x(value) - 1.5, 0), 97), width: 3, y: 0, height: 5 }));
      cell.insertBefore(picture, cell.querySelector(".count"));
    }
  });
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
