// The template writes a table for each column and metric; this script shows one of them at a time.
function startBreakdown() {
  const tables = [...document.querySelectorAll("[data-breakdown]")];
  if (!tables.length) return;
  for (const place of document.querySelectorAll("#breakdown [data-mark]")) {
    place.append(marker(data.systems[place.dataset.mark].family));
  }
  const [column, metric] = [byId("breakdown-column"), byId("breakdown-metric")];
  // Runs may be broken down by different columns: each column offers the metrics that it has.
  const offerMetrics = () => {
    const before = metric.value;
    const offered = tables.filter((table) => table.dataset.breakdown === column.value);
    metric.replaceChildren(...offered.map((table) => el("option", { value: table.dataset.metric }, table.dataset.title)));
    if (offered.some((table) => table.dataset.metric === before)) metric.value = before;
  };
  const show = () => {
    for (const table of tables) table.hidden = table.dataset.breakdown !== column.value || table.dataset.metric !== metric.value;
  };
  column.append(...[...new Set(tables.map((table) => table.dataset.breakdown))].map((value) => el("option", { value }, value)));
  const first = tables.find((table) => "first" in table.dataset);
  column.value = first.dataset.breakdown;
  offerMetrics();
  metric.value = first.dataset.metric;
  column.addEventListener("change", () => {
    offerMetrics();
    show();
  });
  metric.addEventListener("change", show);
  byId("breakdown-choice").hidden = false;
  show();
}
