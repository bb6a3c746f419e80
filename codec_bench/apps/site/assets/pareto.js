// A metric against bitrate, the systems that none beats in both, and a custom point.

/** The points that no other one beats: as good or better at a bitrate as low or lower, and better in one of both. */
function frontOf(points, column) {
  const front = [];
  for (const p of [...points].sort((a, b) => a.x - b.x || (better(column, a.y, b.y) ? -1 : 1))) {
    if (!front.length || better(column, p.y, front.at(-1).y)) front.push(p);
  }
  return front;
}

/** Puts the plot into a box if the leaderboard has bitrates, and gives a function that draws it for rows. One that others published has a `source`. */
function paretoView(box, board, state) {
  const rate = board.columns.findIndex((column) => column.name === "bitrate");
  const others = board.columns.map((_, c) => c).filter((c) => c !== rate && board.columns[c].higher !== null && board.columns[c].higher !== undefined);
  if (rate < 0 || !others.length || !board.rows.some((row) => row.cells[rate]?.[0] > 0)) return () => {};
  const families = [...new Set(board.rows.map((row) => row.family).filter((family) => family !== null))];
  let chosen = others.includes(Number(state.get("plot"))) && state.has("plot") ? Number(state.get("plot")) : others[0];
  let own = (state.get("own") ?? "").split(",").map(Number);
  if (!(own.length === 2 && own[0] > 0 && own.every(Number.isFinite))) own = null;
  let rows = [];
  let joining = true; // points of several runs of one codec are on no line
  const [picture, legend, verdict] = [el("div", { id: "pareto" }), el("div", { class: "legend" }), el("p", { role: "status", class: "lead" })];
  const [ownRate, ownValue] = [0, 1].map((k) => el("input", { type: "number", id: ["own-rate", "own-value"][k], step: "any", min: k === 0 ? "0" : null, value: own ? String(own[k]) : "" }));
  const caption = el("figcaption");

  const pointsOf = () => {
    const column = board.columns[chosen];
    const at = (value) => (value === null || value === undefined ? null : value * column.factor);
    return rows
      .filter((row) => row.cells[rate]?.[0] > 0 && row.cells[chosen] && row.cells[chosen][0] !== null && row.family !== null)
      .map((row) => ({ label: row.suspect ? `${row.system} (suspect)` : row.system, barred: isBarred(row, chosen), family: families.indexOf(row.family), x: row.cells[rate][0] / 1000, y: at(row.cells[chosen][0]), low: at(row.cells[chosen][1]), high: at(row.cells[chosen][2]), n: row.cells[chosen][3] }));
  };

  const again = keptDrawn(picture, (room) => {
    const column = board.columns[chosen];
    const points = pointsOf();
    const mine = own ? [{ label: "your point", family: -1, own: true, x: own[0], y: own[1] }] : [];
    const all = [...points, ...mine];
    if (!all.length) {
      verdict.textContent = "";
      return el("p", { class: "lead" }, "None of the systems shown has a bitrate and a value.");
    }
    const front = frontOf(all.filter((p) => !p.barred), column);
    if (own) {
      const beaten = points.filter((p) => !p.barred && p.x <= own[0] && !better(column, own[1], p.y) && (p.x < own[0] || p.y !== own[1]));
      const first = beaten.reduce((a, b) => (a === null || better(column, b.y, a.y) ? b : a), null);
      verdict.textContent = first === null ? "Your point is on the front: no system shown is as good at its bitrate or below." : `${first.label} is as good or better at ${number(first.x, 2)} kbps${beaten.length > 1 ? `, and so ${beaten.length === 2 ? "is" : "are"} ${beaten.length - 1} more` : ""}.`;
    } else verdict.textContent = "";
    const frontKey = el("span", null, shape("svg", { viewBox: "0 0 15 15", "aria-hidden": "true" }, shape("path", { class: "front", d: "M0,7.5H15" })), "front");
    legend.replaceChildren(...familyLegend(families, points), frontKey);
    const lines = (p) => [p.label, namedValue(p, column, column.name), `${number(p.x, 2)} kbps${p.n ? `, ${plural(p.n, "sample")}` : ""}`];
    return fitPlane(all, {
      label: `${column.name} against bitrate`,
      xTitle: `${board.source ? "" : "measured "}bitrate, kbps (log scale)`,
      log: true, ticks: kbpsTicks, front, joined: joining ? byFamily(families, points) : [],
      named: someNamed([...mine, ...front.filter((p) => !p.own), ...points.filter((p) => !front.includes(p))], room),
      lines, ariaLabel: (p) => lines(p).join(", "),
    }, room);
  });

  function draw() {
    const column = board.columns[chosen];
    const unit = column.unit ? ` (${column.unit})` : "";
    caption.replaceChildren(`${columnTitle(board.columns, chosen)}${unit}`, el("small", null, `${column.higher ? "higher" : "lower"} is better`));
    again();
  }
  const take = () => {
    const [kbps, value] = [ownRate, ownValue].map((input) => (input.value === "" ? NaN : Number(input.value)));
    own = kbps > 0 && Number.isFinite(value) ? [kbps, value] : null;
    keepState({ own: own?.join(",") });
    draw();
  };
  for (const input of [ownRate, ownValue]) input.addEventListener("input", take);
  box.replaceChildren(
    el("h2", null, "Quality and bitrate"),
    el("p", { class: "lead" }, `The line is the front: no system shown is better at the same bitrate or below. A system that is suspect, or has values for too few samples, is on no front. Points of one codec are joined${board.source ? "" : "; bars are 95 % intervals"}. Type a bitrate and a value to place another system.`),
    el("div", { class: "controls" },
      chooser("Metric", others.map((c) => [String(c), columnTitle(board.columns, c)]), String(chosen), (value) => {
        chosen = Number(value);
        keepState({ plot: value });
        draw();
      }, { id: "plot-metric" }),
      el("label", null, "Your bitrate, kbps ", ownRate),
      el("label", null, "Your value ", ownValue)),
    el("figure", null, caption, picture, legend),
    verdict,
  );
  return (list, joins) => {
    rows = list;
    joining = joins;
    draw();
  };
}
