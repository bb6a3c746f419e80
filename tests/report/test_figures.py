"""Figures as files: what they show is what the summary says, nothing lies over anything else, and the same run gives
the same bytes.
"""

from __future__ import annotations

import csv
import re
import sys
from contextlib import closing
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from refusals import refuses

from codec_bench.report.figures import write_figures
from codec_bench.report.figures.plots import plots_of
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

pytest.importorskip("matplotlib")
FACTS = {
    "bitrate": {"unit": "bps", "higher_is_better": False, "protocol": "b/1", "aggregate": "ratio"},
    "utmos": {"unit": "", "higher_is_better": True, "protocol": "u/1", "aggregate": "mean"},
}


def crowd(folder, count=40, samples=9) -> Run:
    """A run of many systems whose points lie close together: families of one to five operating points, some without a
    bitrate.
    """
    rng = np.random.default_rng(3)
    names = ["unprocessed", "vocoder-a", "vocoder-b"]
    while len(names) < count:
        family, points = f"codec-{len(names):02d}", rng.integers(1, 6)
        names += [f"{family}@{rate}" for rate in sorted(rng.choice([1.5, 3, 6, 9, 12, 24], points, replace=False))]
    names = names[:count]
    rows = [
        Sample(f"s{n}", None, speaker=f"p{n}", extra={"room": "small" if n % 2 else "large"}) for n in range(samples)
    ]
    with closing(RunWriter(folder, {"of": "a test"})) as writer:
        writer.begin({name: {} for name in names}, FACTS, rows)
        for name in names:
            rate = float(name.partition("@")[2] or 0) * 1000 * rng.uniform(0.8, 1.2)
            level = 4.2 if not rate else 1.5 + 0.7 * np.log10(rate / 300) + rng.normal(0, 0.25)
            for n, sample in enumerate(rows):
                bits = (
                    Score.ok(rate, "b/1", numerator=2 * rate, denominator=2)
                    if rate
                    else Score.undefined("no bits", "b/1")
                )
                scores = {"bitrate": bits, "utmos": Score.ok(level + rng.normal(0, 0.2), "u/1")}
                writer.write([(n, ItemRecord(name, sample.id, "ok", None, scores))])
    return Run(folder)


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    return crowd(tmp_path_factory.mktemp("forty") / "run")


@pytest.fixture(scope="module")
def nine(tmp_path_factory):
    return crowd(tmp_path_factory.mktemp("nine") / "run", 9)


@pytest.fixture(scope="module")
def written(nine, tmp_path_factory):
    return write_figures(nine, tmp_path_factory.mktemp("figures") / "new" / "folder", by="room")


def table(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float | None:
    return float(text) if text else None


def test_every_plot_is_an_svg_a_pdf_and_a_table(written):
    stems = ["systems-bitrate", "by-room-bitrate", "rate-utmos", "systems-utmos", "by-room-utmos"]
    assert [path.name for path in written.files] == [
        f"{stem}.{form}" for stem in stems for form in ("svg", "pdf", "csv")
    ]
    assert written.notes == ()
    for path in written.files:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        elif path.suffix == ".pdf":
            data = path.read_bytes()
            assert data.startswith(b"%PDF") and b"/FontFile2" in data and b"/Type3" not in data, (
                "an embedded TrueType font"
            )


def test_the_tables_hold_what_the_summary_says(nine, written):
    summary = summarise(nine, "room").as_dict()["systems"]
    rows = {row["system"]: row for row in table(written.folder / "rate-utmos.csv")}
    assert list(rows) == list(summary)
    for name, row in rows.items():
        entry, rate = summary[name]["metrics"]["utmos"], summary[name]["metrics"]["bitrate"]
        assert number(row["value"]) == entry["value"]
        assert [number(row["ci95_low"]), number(row["ci95_high"])] == entry["ci95"]
        assert (int(row["n"]), int(row["failed"]), row["protocol"], row["higher_is_better"]) == (9, 0, "u/1", "true")
        expected = None if rate["value"] is None else pytest.approx(rate["value"] / 1000, rel=1e-12)
        assert number(row["bitrate_kbps"]) == expected
        assert row["family"] == ("" if name == "unprocessed" else name.partition("@")[0])
    by_room = {(row["room"], row["system"]): row for row in table(written.folder / "by-room-utmos.csv")}
    assert len(by_room) == 18
    for (room, name), row in by_room.items():
        entry = summary[name]["metrics"]["utmos"]["subsets"]["room"][room]
        assert (number(row["value"]), int(row["n"])) == (entry["value"], entry["n"])


@cache
def figure(run, kind, stem_ends, by=None):
    """A plot of a run as matplotlib has it, its texts, and the boxes of these in pixels."""
    from codec_bench.report.figures.draw import Drawing, figure_of

    plot = next(p for p in plots_of([run], [summarise(run, by)]) if p.kind == kind and p.stem.endswith(stem_ends))
    drawing = Drawing()
    with drawing.styled():
        built = figure_of(plot)
        built.draw_without_rendering()
        renderer = built.canvas.get_renderer()
        (axes,) = built.axes
        texts = [*axes.texts, *axes.get_yticklabels(), *axes.get_xticklabels(), axes.xaxis.label, axes.yaxis.label]
        if axes.get_legend() is not None:
            texts += axes.get_legend().get_texts()
        boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
    return plot, axes, boxes


def overlapping(boxes) -> list[tuple[str, str]]:
    return [(a, b) for k, (a, one) in enumerate(boxes) for b, two in boxes[k + 1 :] if one.overlaps(two)]


@pytest.mark.parametrize(
    ("kind", "metric", "by"),
    [("rate", "utmos", None), ("systems", "utmos", None), ("systems", "bitrate", None), ("groups", "utmos", "room")],
)
@pytest.mark.parametrize("count", [9, 40])
def test_no_text_lies_over_another(nine, forty, kind, metric, by, count):
    run = forty if count == 40 else nine
    plot, axes, boxes = figure(run, kind, metric, by)
    assert overlapping(boxes) == []
    if kind == "rate":
        # Neither does the name of a point lie over another point.
        marks = {
            p.label: axes.transData.transform((p.at_kbps, p.value)) for p in plot.points if p.rate_kbps is not None
        }
        for name, box in boxes:
            if name in marks:
                assert not any(box.contains(*at) for at in marks.values()), name


def test_every_system_can_be_distinguished_from_the_plot(forty):
    plot, axes, boxes = figure(forty, "rate", "utmos")
    texts = [text for text, _ in boxes]
    legend = [" ".join(text.get_text().split()) for text in axes.get_legend().get_texts()]
    for point in plot.points:
        family, _, rate = point.label.partition("@")
        listed = [text for text in legend if text.startswith((f"{family}:", f"{family}@")) or text == family]
        assert point.label in texts or any(rate in text for text in listed), f"{point.label} is named nowhere"
    marks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.get_legend().get_lines()}
    assert len(marks) == len(legend), "no two families look alike"


def test_a_family_has_the_colour_of_the_page(forty):
    axes = figure(forty, "rate", "utmos")[1]
    page = (files("codec_bench.report") / "page" / "style.css").read_text("utf-8")
    light = re.findall(r"--c\d: (#\w{6});", page)[:8]
    used = {line.get_color() for line in axes.get_legend().get_lines()}
    assert len(set(light)) == 8 and set(light) <= used


def test_only_the_style_sheet_writes_a_colour():
    holders = [
        path
        for path in Path(str(files("codec_bench"))).rglob("*.py")
        if re.search(r"#[0-9a-fA-F]{6}\b", path.read_text("utf-8"))
    ]
    assert holders == []


def test_intervals_are_drawn_where_they_are(forty):
    plot, axes, _ = figure(forty, "systems", "utmos")
    assert len(axes.containers) == len(plot.points) == 40
    for point, bar in zip(plot.points, axes.containers):
        _, _, (lines,) = bar
        ((low, y), (high, _)) = lines.get_segments()[0]
        assert (low, high) == pytest.approx(point.ends, rel=1e-9)
        assert axes.get_yticklabels()[list(axes.get_yticks()).index(y)].get_text().rstrip("*") == point.label


def test_equal_runs_give_equal_bytes(nine, written, tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "none"}):  # as somebody's matplotlibrc would have it
        again = write_figures([nine], tmp_path / "again", by="room")
    assert [path.name for path in again.files] == [path.name for path in written.files]
    for one, two in zip(written.files, again.files):
        assert one.read_bytes() == two.read_bytes(), one.name


def test_without_bitrates_there_is_no_plot_against_them(make_run):
    run = make_run("no rates", systems=["unprocessed", "opus-6k"], metrics=["stoi", "wer[pocketsphinx]"], audio=False)
    plots = plots_of([run], [summarise(run)])
    assert [plot.stem for plot in plots] == ["systems-wer-pocketsphinx", "systems-stoi", "time-no-rates"]
    shares = {row[0]: row[1] for row in plots[-1].rows}
    assert shares["dnsmos"] == pytest.approx(31.0) and plots[-1].measure == "share of the workers' time (%)"


def test_runs_side_by_side_keep_their_data_apart(make_run):
    systems, metrics = ["opus-6k"], ["stoi", "bitrate"]
    runs = [
        make_run(name, samples=4, systems=systems, metrics=metrics, audio=False, finish=False, seed=seed, data=name)
        for seed, name in ((1, "one"), (2, "two"))
    ]
    plots = {plot.stem: plot for plot in plots_of(runs, [summarise(run) for run in runs])}
    assert list(plots) == [
        "systems-bitrate",
        "systems-bitrate-2",
        "rate-stoi",
        "systems-stoi",
        "rate-stoi-2",
        "systems-stoi-2",
    ]
    first, second = (
        dict(zip(plots[stem].heads, row)) for stem in ("rate-stoi", "rate-stoi-2") for row in plots[stem].rows
    )
    assert first["data"] != second["data"] and {first["run"], second["run"]} == {"one", "two"}


def test_names_are_texts_and_no_formulas(tmp_path):
    from codec_bench.report.figures.draw import Drawing, figure_of
    from codec_bench.report.figures.plots import Plot, PlotPoint

    names = ["$x^2$ and $y$", "\\frac{", "编码器", "x" * 200]
    points = [PlotPoint(name, ("", -1), None, 1.0, None, "one unit", 3) for name in names]
    drawing = Drawing()
    svg, *_ = drawing.write(partial(figure_of, Plot("systems", "odd", "stoi", points, (), ())), tmp_path, "odd", (), ())
    details = re.findall(r"<!-- (.*?) -->", svg.read_text("utf-8"))
    assert names[0] in details and names[1] in details and f"{'x' * 24}…{'x' * 24}" in details
    # Where no font of the machine has Chinese letters, this is said; a machine with such a font has nothing to say.
    assert drawing.notes == [] or "no font" in drawing.notes[0]


def test_a_folder_that_cannot_be_written_is_one_sentence(forty, tmp_path):
    (tmp_path / "file").write_text("")
    with refuses("file_not_writable", path="file"):
        write_figures(forty, tmp_path / "file")
    with refuses("file_not_writable", path="below"):
        write_figures(forty, tmp_path / "file" / "below")


def test_without_matplotlib_the_extra_is_named(forty, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refuses("package_not_installed", feature="figure", package="matplotlib") as e:
        write_figures(forty, tmp_path / "figures")
    assert "codec-bench[figures]" in e.value.hint
