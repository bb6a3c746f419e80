"""The plots of a page in a browser: every point has its name, and everything is drawn where its number says."""

from __future__ import annotations

import math

import pytest
from page_in_browser import click, column_of, complaints, open_page, resize, texts

from codec_bench.report.page import write_page
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FACTS = {
    "bitrate": {"protocol": "b", "unit": "bps", "higher_is_better": False, "aggregate": "ratio"},
    "stoi": {"protocol": "s", "higher_is_better": True},
    "error": {"protocol": "e", "higher_is_better": False},
}
READ = """
const box = (e) => { const b = e.getBBox ? e.getBoundingClientRect() : e; return [b.left, b.top, b.right, b.bottom]; };
const plot = document.querySelector("#plot-large svg");
const scale = plot.getBoundingClientRect().width / plot.viewBox.baseVal.width;
const pen = document.createElement("canvas").getContext("2d");
// A name takes the room of its visible letters. The room above and below a line differs between fonts.
const seen = (e) => {
  const [left, , right] = box(e), style = getComputedStyle(e);
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const letters = pen.measureText(e.textContent), line = box(plot)[1] + scale * e.y.baseVal.getItem(0).value;
  return [left, line - scale * letters.actualBoundingBoxAscent, right, line + scale * letters.actualBoundingBoxDescent];
};
return {
  plot: box(plot),
  names: [...plot.querySelectorAll(".point-label")].map((e) => [e.textContent, seen(e)]),
  points: [...plot.querySelectorAll("g[aria-label]")].map((g) => [
    g.getAttribute("aria-label").split(": ")[0], box(g.querySelector(".point")),
  ]),
  leaders: [...plot.querySelectorAll(".leader")].map((e) => [["x1", "y1"], ["x2", "y2"]].map(
    (end) => end.map((k) => e[k].baseVal.value),
  )),
  scale,
  anchors: [...plot.querySelectorAll(".anchor-label")].map((e) => e.textContent),
  dashes: plot.querySelectorAll(".anchor").length,
};
"""


def record(folder, systems, spread=0.02, samples=6) -> Run:
    """A run of systems with given bits per second (None for no codec), STOI and error: `{name: (bps, stoi, error)}`."""
    writer = RunWriter(folder, {})
    rows = [Sample(f"clip {n}", None, speaker=f"speaker {n}") for n in range(samples)]
    writer.begin({name: {} for name in systems}, FACTS, rows)
    writer.set_meta(state="finished", started="2026-11-20T18:40:00+00:00", finished="2026-11-20T18:41:00+00:00")
    for n, sample in enumerate(rows):
        off = spread * (n - (samples - 1) / 2)
        items = []
        for name, (bps, stoi, error) in systems.items():
            scores = {"stoi": Score.ok(stoi + off, "s"), "error": Score.ok(error - off, "e")}
            scores["bitrate"] = (
                Score.undefined("no codec", "b") if bps is None else Score.ok(bps, "b", numerator=bps, denominator=1.0)
            )
            items.append((n, ItemRecord(name, sample.id, "ok", None, scores, duration_s=1.0)))
        writer.write(items)
    writer.close()
    return Run(folder)


def shown(browser, runs, path, width=1400):
    write_page(runs, path)
    page = open_page(browser, path)
    resize(page, width)
    return page


def overlap(a, b, slack=1.0):
    return a[0] + slack < b[2] and a[2] - slack > b[0] and a[1] + slack < b[3] and a[3] - slack > b[1]


def gap(a, b):
    return math.hypot(max(a[0] - b[2], b[0] - a[2], 0), max(a[1] - b[3], b[1] - a[3], 0))


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Forty codecs with long names in a narrow band of quality, some of them on the very same spot."""
    systems = {"unprocessed": (None, 0.99, 0.02)}
    for n in range(40):
        rate = 1000.0 * 2 ** (n % 8 / 2)
        systems[f"neural-codec-{n // 4}@{n % 4}"] = (rate, 0.7 + 0.03 * (n % 8) + 0.01 * (n % 3), 0.5 - 0.04 * (n % 8))
    return record(tmp_path_factory.mktemp("crowd") / "run", systems)


def test_every_point_is_named_and_no_name_covers_another(browser, crowd, tmp_path):
    page = shown(browser, [crowd], tmp_path / "report.html")
    for metric, width in (("stoi", 390), ("error", 390), ("stoi", 1400), ("error", 2560)):
        resize(page, width)
        click(page, f'[data-plot="{column_of(page, metric)}"]')
        drawn = page.execute_script(READ)
        names, points = dict(drawn["names"]), dict(drawn["points"])
        assert set(names) == set(points) == {name for name in crowd.systems if name != "unprocessed"}
        boxes = [*names.values(), *points.values()]
        for n, (name, box) in enumerate(names.items()):
            assert not any(overlap(box, other) for other in boxes[:n] + boxes[n + 1 :]), (width, name)
            assert drawn["plot"][0] <= box[0] and box[2] <= drawn["plot"][2] + 1, (width, name)
        # From a name that stands apart a line leads to its point.
        left, top, scale = *drawn["plot"][:2], drawn["scale"]
        lines = [[[left + scale * x, top + scale * y] for x, y in line] for line in drawn["leaders"]]
        for name, box in names.items():
            if gap(box, points[name]) < 15:
                continue
            at = [(points[name][0] + points[name][2]) / 2, (points[name][1] + points[name][3]) / 2]
            assert any(math.dist(at, a) < 12 and gap([*b, *b], box) < 4 for a, b in lines), (width, name)
    assert complaints(page) == []


def test_a_long_name_is_shortened_in_a_plot_and_widens_no_page(browser, tmp_path):
    """A name that fits nowhere neither vanishes nor makes the plot as tall as it may be, and the legend breaks it."""
    long = f"{'L' * 90}@6"
    systems = {"unprocessed": (None, 0.99, 0.02), long: (6000.0, 0.9, 0.1), "opus@12": (12000.0, 0.95, 0.05)}
    page = shown(browser, [record(tmp_path / "run", systems)], tmp_path / "report.html")
    for width in (390, 1400):
        resize(page, width)
        drawn = page.execute_script(READ)
        shortened = next(name for name, _ in drawn["names"] if "…" in name)
        start, end = shortened.split("…")
        assert long.startswith(start) and long.endswith(end) and len(drawn["names"]) == 2
        left, top, right, bottom = drawn["plot"]
        assert bottom - top <= 0.9 * (right - left)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert long[:-2] in texts(page, "#plot-legend")[0]
    assert complaints(page) == []


def test_systems_without_a_bitrate_share_a_line_where_they_coincide(browser, tmp_path):
    runs = [
        record(tmp_path / f"run {n}", {"unprocessed": (None, 0.98, 0.1), f"own@{n + 1}": (1000.0 * (n + 1), 0.7, 0.3)})
        for n in range(12)
    ]
    page = shown(browser, runs, tmp_path / "report.html")
    drawn = page.execute_script(READ)
    assert drawn["anchors"] == ["unprocessed, 12 runs"] and drawn["dashes"] == 1
    band = page.execute_script(
        "return [...document.querySelectorAll('#plot-large .anchor-band')].map((e) => getComputedStyle(e).opacity)"
    )
    assert len(band) == 1 and float(band[0]) < 0.2


@pytest.mark.parametrize("apart", [0.0, 3e-9, 3e-7])
def test_an_interval_of_no_width_lies_at_its_point(browser, tmp_path, apart):
    """Values that differ by less than the page's digits: neither a point nor an interval
    leaves its place or its box.
    """
    stoi = 0.975123456789
    systems = {
        "one": (64000.000123, stoi, 0.1),
        "two": (64000.000124, stoi + apart, 0.1),
        "three": (32000.0, stoi, 0.1),
    }
    page = shown(browser, [record(tmp_path / "run", systems, spread=0.0)], tmp_path / "report.html")
    whiskers = page.execute_script(
        """return [...document.querySelectorAll("#summary-table td[data-cell]")].map((cell) => {
          const lines = [...cell.querySelectorAll(".whisker line")].map(
            (l) => [l.getAttribute("class"), l.x1.baseVal.value, l.x2.baseVal.value],
          );
          return [Number(cell.dataset.cell), lines];
        })"""
    )
    rates = [lines for c, lines in whiskers if c == column_of(page, "bitrate")]
    dots = [x for lines in rates for kind, x, _ in lines if kind == "dot"]
    assert dots == pytest.approx([98, 98, 2]) and all(kind != "bar" for lines in rates for kind, *_ in lines)
    assert all(lines == [] for c, lines in whiskers if c == column_of(page, "stoi"))  # there is nothing to tell apart
    outside = page.execute_script(
        """return [...document.querySelectorAll(".plot-choice svg, #plot-large svg")].flatMap((plot) => {
          const frame = plot.getBoundingClientRect();
          return [...plot.querySelectorAll(".point, .spread")].filter((e) => {
            const box = e.getBoundingClientRect();
            return box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
          }).map((e) => e.outerHTML);
        })"""
    )
    assert outside == []
    assert page.execute_script("return document.querySelectorAll('.plot .spread').length") == 0


def test_a_mark_lies_on_its_interval_in_every_cell(browser, make_run, tmp_path):
    page = shown(browser, [make_run(audio=False)], tmp_path / "report.html")
    cells = page.execute_script(
        """return [...document.querySelectorAll("#summary-table .whisker")].map((w) =>
          Object.fromEntries([...w.querySelectorAll("line")].map(
            (l) => [l.getAttribute("class"), [l.x1.baseVal.value, l.x2.baseVal.value]],
          )))"""
    )
    assert len(cells) > 80
    for cell in cells:
        dot = cell["dot"][0]
        assert 2 <= dot <= 98 and cell["dot"][1] == dot
        if "bar" in cell:
            assert cell["bar"][0] - 1e-3 <= dot <= cell["bar"][1] + 1e-3 and cell["bar"][0] < cell["bar"][1]


def test_each_set_of_data_has_its_own_table_plots_and_rows(browser, make_run, tmp_path):
    names = ["opus-12k", "opus-24k"]
    runs = [
        make_run(where, samples=count, systems=names, metrics=["stoi", "bitrate"], audio=False, data=where)
        for where, count in (("here", 4), ("there", 6))
    ]
    page = shown(browser, runs, tmp_path / "report.html")
    assert texts(page, "#summary h3") == ["here, 4 samples", "there, 6 samples"] == texts(page, "#plot-choice p")
    for n, table in enumerate(("#summary-table", "#summary-table-2")):
        assert len(texts(page, f"{table} tbody tr")) == 2 and len(texts(page, f"{table} thead th")) == 3
        assert texts(page, f"{table} td.none") == []
        # Sorting one table leaves the other.
        click(page, f"{table} [data-sort='name']")
        assert page.execute_script("return document.querySelectorAll('#summary [aria-sort]').length") == n + 1
    assert texts(page, "#sample-count")[0].startswith("8 rows")
    page.execute_script(
        "const e = document.getElementById('by-system'); e.value = 3; e.dispatchEvent(new Event('change'))"
    )
    assert texts(page, "#sample-count")[0].startswith("6 rows")
    chosen = (
        "return "
        "JSON.parse(document.getElementById('data').textContent).columns[document.getElementById('by-metric').value]"
    )
    assert page.execute_script(chosen)["data"] == "there, 6 samples"
    assert complaints(page) == []
