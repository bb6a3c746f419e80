// How many bits a second codes need the more is known: equally likely, by n-grams of rising order, by a small transformer.
function startLanguage() {
  if (!data.language.length) return;
  const names = ["nothing", "order 1", "2", "3", "4", "transformer"];
  const full = (place) => (place > 0 && place < names.length - 1 ? `n-grams of order ${place}` : place ? "a small transformer" : "equally likely codes");
  const points = data.language.flatMap((line, family) => line.points.map(([x, bps]) => ({ label: line.codec, x, y: bps / 1000, low: null, high: null, family })));
  const column = { unit: "kbps", places: 3 };
  const spec = {
    label: "Bits per second by what is known of the codes", xTitle: "what is known", ticks: () => names.map((text, at) => ({ at, text })),
    joined: byFamily(data.language.map((line) => line.codec), points.filter((p) => p.x < names.length - 1)), named: points.filter((p) => p.x === 0),
    lines: (p) => [p.label, `${number(p.y, column.places)} kbps by ${full(p.x)}`], ariaLabel: (p) => `${p.label}: ${number(p.y, column.places)} kbps by ${full(p.x)}`,
  };
  keptDrawn(byId("language-plot"), (room) => fitPlane(points, spec, room))();
  byId("language-legend").replaceChildren(...familyLegend(data.language.map((line) => line.codec), points));
}
