// How often the entries of a codebook occur, most frequent first; the dashed line is where all occur equally often.
const HEIGHT = 60;
const SHOWN = 16; // pictures before the rest is folded away
const MOST = 8; // multiples of equal use at the top of every picture, so that pictures compare

function bookPicture(bars) {
  const picture = shape("svg", { viewBox: `0 0 ${bars.length} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  // A square root, so that rare entries are visible next to frequent ones.
  const y = (times) => HEIGHT - HEIGHT * Math.sqrt(Math.min(times, MOST) / MOST);
  bars.forEach((times, n) => {
    if (times > 0) picture.append(shape("rect", { class: "bar", x: n, width: 1.02, y: y(times), height: HEIGHT - y(times) }));
  });
  picture.append(shape("line", { class: "equal", x1: 0, x2: bars.length, y1: y(1), y2: y(1) }));
  return picture;
}

function startCodebooks() {
  data.codebooks.forEach((stream, n) => {
    const first = document.querySelector(`[data-books="${n}"]`);
    const rest = document.querySelector(`[data-more="${n}"]`);
    rest.hidden = stream.books.length <= SHOWN;
    stream.books.forEach((bars, book) => {
      if (!bars.length) return;
      const figure = el("figure", { tabindex: 0, role: "img", "aria-label": `Codebook ${book + 1}: use of its entries` }, bookPicture(bars), el("figcaption", null, `codebook ${book + 1}`));
      explain(figure, () => {
        const used = bars.filter((times) => times > 0).length;
        return [
          `${stream.codec}, codebook ${book + 1}`,
          `The most frequent entries occur ${bars[0].toPrecision(3)} times as often as they would if all were equal.`,
          used < bars.length ? `The last ${Math.round((100 * (bars.length - used)) / bars.length)} % did not occur.` : "All parts of the codebook occur.",
        ];
      });
      (book < SHOWN ? first : rest).append(figure);
    });
  });
}
