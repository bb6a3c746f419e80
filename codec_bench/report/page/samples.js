// The table of samples: one row per sample and system, filtered, sorted, a page at a time.
const PAGE = 50;
const [ID, TEXT, SPEAKER, DURATION] = [0, 1, 2, 4];
const view = { metric: firstColumn, system: -1, status: "all", text: "", sort: { key: firstColumn, worst: true }, page: 0, rows: [] };
const searchable = data.samples.map((sample) => `${labelOf(sample)}\n${sample[TEXT]}\n${sample[SPEAKER]}`.toLocaleLowerCase());
for (const [, sample, content] of data.exchanges) searchable[sample] += `\n${content.answer || ""}\n${content.transcript || ""}`.toLocaleLowerCase();
const noted = new Map(data.notes.map(([system, sample, notes]) => [`${system} ${sample}`, notes]));
// Sound of a row: the estimate's, or that of the question which was answered in text.
const isHeard = (s, n) => clipOf.has(`${n} ${s}`) || (exchangeOf.has(`${s} ${n}`) && clipOf.has(`${n} -1`));
const alike = alikeEnd(data.samples.map(labelOf));
// Generated audio has its own length; all other systems share the sample's.
const lengthOf = (s, n) => (data.lengths[s] ? data.lengths[s][n] : data.samples[n][DURATION]);
const isTimed = data.samples.some((sample) => sample[DURATION] !== null);

function valueOf(row, key) {
  if (key === "sample") return labelOf(data.samples[row[1]]);
  if (key === "system") return row[0];
  if (key === "length") return lengthOf(...row);
  return data.values[row[0]][key][row[1]];
}

function selectRows() {
  const words = view.text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const keep = {
    all: () => true,
    value: (s, n) => data.values[s][view.metric][n] !== null,
    missing: (s, n) => data.values[s][view.metric][n] === null,
    trouble: (s, n) => missing.has(`${s} ${n}`),
    noted: (s, n) => noted.has(`${s} ${n}`),
    flagged: (s, n) => Boolean(detailsOf.get(`${s} ${n}`)?.get(view.metric)?.flag),
    controlled: (s, n) => (exchangeOf.get(`${s} ${n}`)?.controls || []).some((mark) => mark.startsWith("right")),
    sound: (s, n) => isHeard(s, n),
  }[view.status];
  const rows = [];
  const of = data.columns[view.metric].data;
  data.samples.forEach((_, n) => {
    if (!words.every((word) => searchable[n].includes(word))) return;
    data.systems.forEach((_, s) => {
      if (data.finished[s][n] && data.systems[s].data === of && (view.system < 0 || view.system === s) && keep(s, n)) rows.push([s, n]);
    });
  });
  const { key, worst } = view.sort;
  const column = data.columns[key];
  const up = column ? (column.higher !== false) === worst : worst;
  rows.sort((a, b) => {
    const [x, y] = [valueOf(a, key), valueOf(b, key)];
    // Rows without a value cannot be ordered: they come last, or alone if the filter selects them.
    if (x === null || y === null) return (x === null) - (y === null) || a[1] - b[1] || a[0] - b[0];
    const difference = typeof x === "string" ? collator.compare(x, y) : x - y;
    return (up ? difference : -difference) || a[1] - b[1] || a[0] - b[0];
  });
  view.rows = rows;
}

// From the best to the worst value of a column over all rows of the page, for the bars.
const spans = data.columns.map((_, c) => {
  let [low, high] = [Infinity, -Infinity];
  for (const system of data.values) for (const v of system[c]) if (v !== null) [low, high] = [Math.min(low, v), Math.max(high, v)];
  return [low, high];
});

function badness(value, c) {
  const [low, high] = spans[c];
  if (value === null || !(high > low)) return null;
  const share = (value - low) / (high - low);
  return data.columns[c].higher === false ? share : 1 - share;
}

function valueCell(s, n, c) {
  const column = data.columns[c];
  const value = data.values[s][c][n];
  const chosen = c === view.metric;
  if (value === null) {
    const because = why(s, n, c);
    const cell = el("td", { class: chosen ? "by" : null }, because ? el("span", { class: `status ${because.status}` }, because.status.replace("_", " ")) : "–");
    if (because) explain(cell, () => [because.status, because.reason]);
    return cell;
  }
  const cell = el("td", { class: chosen ? "by" : null }, single(value, column));
  const bad = chosen ? badness(value, c) : null;
  if (bad !== null) {
    const bar = el("i");
    bar.style.width = `${100 * bad}%`;
    cell.append(el("span", { class: "badness", "aria-hidden": "true" }, bar));
  }
  return cell;
}

function drawRows() {
  const pages = Math.max(1, Math.ceil(view.rows.length / PAGE));
  view.page = Math.min(Math.max(0, view.page), pages - 1);
  // Rows and columns are those of the set of data that the chosen metric belongs to.
  const of = data.columns[view.metric].data;
  const columns = [view.metric, ...data.columns.map((_, c) => c).filter((c) => c !== view.metric && data.columns[c].data === of)];

  const heads = [["sample", "Sample", "left name"], ["system", "System", "left"], ...columns.map((c) => [c, null, null]), ...(isTimed ? [["length", data.has_answers ? "Question’s length" : "Length", null]] : [])];
  const head = el("tr");
  for (const [key, label, kind] of heads) {
    const column = data.columns[key];
    const active = view.sort.key === key;
    const up = column ? (column.higher !== false) === view.sort.worst : view.sort.worst;
    const button = el(
      "button",
      { type: "button", "data-sort": key, onclick: () => sortRows(key) },
      el("span", { class: "metric" }, label || words(column.base, 4), column && column.arrow && el("span", { class: "arrow", "aria-hidden": "true" }, column.arrow)),
      column && (column.variant || column.unit) && el("span", { class: "variant" }, [column.variant, column.unit].filter(Boolean).join(" ")),
    );
    head.append(el("th", { scope: "col", class: kind, "aria-sort": active ? (up ? "ascending" : "descending") : null }, button));
  }
  byId("sample-table").tHead.replaceChildren(head);

  const body = byId("sample-table").tBodies[0];
  const part = view.rows.slice(view.page * PAGE, (view.page + 1) * PAGE);
  body.replaceChildren(
    ...part.map(([s, n]) => {
      const sample = data.samples[n];
      const sound = isHeard(s, n);
      const open = el("button", { type: "button", class: "open" }, shortened(labelOf(sample), alike));
      const length = lengthOf(s, n) === null ? "–" : `${lengthOf(s, n).toFixed(1)} s`;
      return el(
        "tr",
        { "data-row": `${s} ${n}`, onclick: () => openSample(n, s) },
        el(
          "th",
          { scope: "row", class: "name left" },
          el("span", { class: "sample" }, open, sound && el("span", { class: "speaker-icon", title: "with sound" }, "♪", el("span", { class: "unseen" }, " with sound"))),
          sample[TEXT] && el("span", { class: "said" }, sample[TEXT]),
        ),
        el("td", { class: "left" }, el("span", { class: "mark" }, marker(data.systems[s].family)), shortened(data.systems[s].label)),
        columns.map((c) => valueCell(s, n, c)),
        isTimed && el("td", null, length),
      );
    }),
  );
  if (!part.length) body.append(el("tr", { class: "empty" }, el("td", { colspan: heads.length }, "No row matches these filters.")));

  const from = view.page * PAGE;
  const without = view.rows.filter(([s, n]) => data.values[s][view.metric][n] === null).length;
  byId("sample-count").textContent =
    `${plural(view.rows.length, "row")}` +
    (part.length ? `, ${(from + 1).toLocaleString("en")} to ${(from + part.length).toLocaleString("en")} shown` : "") +
    (without && without < view.rows.length ? `; the ${without.toLocaleString("en")} without a value come last` : "");
  byId("page-now").textContent = `${view.page + 1} of ${pages}`;
  byId("page-previous").disabled = view.page === 0;
  byId("page-next").disabled = view.page >= pages - 1;
}

function sortRows(key) {
  const same = view.sort.key === key;
  view.sort = { key, worst: same ? !view.sort.worst : true };
  view.page = 0;
  selectRows();
  drawRows();
  byId("sample-table").tHead.querySelector(`[data-sort="${key}"]`).focus();
}

function showSamples(change) {
  Object.assign(view, change, { page: 0 });
  // A system and a metric of different data have no rows in common: what was chosen last counts.
  const of = (s) => (s < 0 ? null : data.systems[s].data);
  if (view.system >= 0 && of(view.system) !== data.columns[view.metric].data) {
    if ("metric" in change && !("system" in change)) view.system = -1;
    else {
      const { name } = data.columns[view.metric];
      const there = data.columns.map((_, c) => c).filter((c) => data.columns[c].data === of(view.system));
      view.metric = there.find((c) => data.columns[c].name === name) ?? there.find((c) => qualityColumns.includes(c)) ?? there[0];
      change = { ...change, metric: view.metric };
    }
  }
  if ("metric" in change) view.sort = { key: view.metric, worst: true };
  byId("by-metric").value = view.metric;
  byId("by-system").value = view.system;
  byId("by-status").value = view.status;
  byId("by-text").value = view.text;
  selectRows();
  drawRows();
}

function startSamples() {
  byId("by-metric").append(...data.columns.map((column, c) => el("option", { value: c }, heading(column))));
  byId("by-system").append(el("option", { value: -1 }, "all systems"), ...data.systems.map((system, s) => el("option", { value: s }, system.label)));
  byId("by-metric").addEventListener("change", (event) => showSamples({ metric: Number(event.target.value) }));
  byId("by-system").addEventListener("change", (event) => showSamples({ system: Number(event.target.value) }));
  byId("by-status").addEventListener("change", (event) => showSamples({ status: event.target.value }));
  let waiting = 0;
  byId("by-text").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => showSamples({ text: event.target.value }), 120);
  });
  byId("reset").addEventListener("click", () => showSamples({ metric: firstColumn, system: -1, status: "all", text: "" }));
  const turn = (pages) => {
    view.page += pages;
    drawRows();
    byId("sample-table").parentElement.scrollTop = 0;
    byId("sample-table").scrollIntoView({ block: "nearest" });
  };
  byId("page-previous").addEventListener("click", () => turn(-1));
  byId("page-next").addEventListener("click", () => turn(1));
  for (const button of document.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      const [system, column, first] = button.dataset.show.split(" ").map(Number);
      const flagged = button.closest("tr").querySelector(".status.flagged");
      showSamples({ metric: column < 0 ? first : column, system, status: flagged ? "flagged" : "missing", text: "" });
      byId("samples").scrollIntoView();
    });
  }
  for (const cell of document.querySelectorAll("[data-example]")) {
    const n = Number(cell.dataset.example);
    const first = Math.max(0, data.finished.findIndex((done) => done[n]));
    const [system] = cell.closest("tr").querySelector("[data-show]").dataset.show.split(" ").map(Number);
    cell.replaceChildren(el("button", { type: "button", class: "link", onclick: () => openSample(n, system < 0 ? first : system) }, shortened(labelOf(data.samples[n]))));
  }
  showSamples({});
}
