"""A system whose checks found something: its mark and the finding in plots, in what trackers get, and on the page of
several runs.
"""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas
import pytest
import yaml
from compared_runs import FINDING, SUSPECT, recorded

from codec_bench.api.compare import compare
from codec_bench.api.export import export
from codec_bench.api.import_results import import_results
from codec_bench.api.trackers import collect_material
from codec_bench.audio.level_checks import SILENT_ESTIMATE
from codec_bench.report.figures import write_figures
from codec_bench.report.figures.draw import _footnotes
from codec_bench.report.figures.plots import plots_of
from codec_bench.report.numbers import doubts_in
from codec_bench.report.page import write_page
from codec_bench.report.page.collect import collect
from codec_bench.stats.summary import summarise

GOOD = np.linspace(0.5, 0.9, 19)
RESULT = f"side information is suspect: {FINDING['found']}"


@pytest.fixture
def run(tmp_path):
    values = {"side": GOOD + 0.2, "plain": GOOD, "worse": GOOD - 0.1 - 0.001 * np.arange(19)}
    return recorded(
        tmp_path / "run",
        values,
        checks=SUSPECT,
        kbps={"side": 3.0, "plain": 6.0, "worse": 9.0},
        config={"data": "data"},
    )


def test_figures_mark_it_and_state_what_was_detected(run, tmp_path):
    pytest.importorskip("matplotlib")
    plots = [plot for plot in plots_of([run], [summarise(run)]) if plot.kind in ("rate", "systems")]
    assert len(plots) == 3
    for plot in plots:
        assert [point.label for point in plot.points] == ["side (suspect)", "plain", "worse"]
        assert f"side (suspect): {RESULT}" in " ".join(_footnotes(plot)).replace("\n", " ")
    built = write_figures(run, tmp_path / "figures")
    for file in (file for file in built.files if file.suffix == ".csv"):
        with file.open(newline="") as opened:
            rows = {row["system"]: row["suspect"] for row in csv.DictReader(opened)}
        assert rows == {"side": RESULT, "plain": "", "worse": ""}


def test_trackers_show_it(run):
    material = collect_material(run, summarise(run), set())
    assert {row[0]: row[-1] for row in material.rows} == {"side": RESULT, "plain": None, "worse": None}
    assert material.values["suspect/side"] == 1 and "suspect/plain" not in material.values


def test_the_page_marks_it_in_the_table_and_in_the_plots(run, tmp_path):
    page = collect([run], None, audio_bytes=0, max_rows=100, folder=tmp_path)
    rows = {row["label"]: row for row in page.page["table"]}
    position = [head["name"] for head in page.page["heads"]].index("m")
    assert [(name, row["cells"][position]["best"]) for name, row in rows.items()] == [
        ("side (suspect)", False),
        ("plain", True),
        ("worse", False),
    ]
    assert (
        "suspect: side information" in rows["side (suspect)"]["remarks"]
        and f"side (suspect): {RESULT}" in page.page["notes"]
    )
    assert [system["label"] for system in page.data["systems"]] == ["side (suspect)", "plain", "worse"]


def test_systems_of_several_runs_are_compared_with_each_other(tmp_path):
    """The best of each run by itself is not the best of both; a suspect of the one does not compete with those of the
    other.
    """
    first = recorded(tmp_path / "first", {"side": GOOD + 0.3, "a": GOOD, "b": GOOD - 0.1}, checks=SUSPECT)
    second = recorded(
        tmp_path / "second", {"c": GOOD + 0.1, "d": GOOD + 0.1 + 0.001 * np.cos(np.arange(19)), "e": GOOD}
    )
    item = recorded(tmp_path / "part", {"f": [*(GOOD + 0.5)[:6], *[None] * 13]})
    page = collect([first, second, item], None, audio_bytes=0, max_rows=100, folder=tmp_path).page
    best = {row["label"] for row in page["table"] if any(cell and cell["best"] for cell in row["cells"])}
    assert len(best) == 1 and best < {"c", "d"}
    assert {row["label"] for row in page["table"] if any(cell and cell["alike"] for cell in row["cells"])} == {
        "c",
        "d",
    } - best
    assert "f is not compared: it has values for too few samples" in page["notes"]
    assert "side (suspect) is not compared: its checks found something" in page["notes"]


def test_systems_without_speech_of_several_runs_are_not_compared(tmp_path):
    flags = {"silent": (19, SILENT_ESTIMATE)}
    first = recorded(tmp_path / "first", {"silent": GOOD + 0.3, "a": GOOD}, flags=flags)
    second = recorded(tmp_path / "second", {"b": GOOD - 0.1})
    page = collect([first, second], None, audio_bytes=0, max_rows=100, folder=tmp_path).page
    assert {row["label"] for row in page["table"] if any(cell and cell["best"] for cell in row["cells"])} == {"a"}
    assert any(note.startswith("silent is not compared: 19 of its 19 values are") for note in page["notes"])


def test_the_page_says_which_names_form_no_curve(tmp_path):
    run = recorded(tmp_path / "run", {"rvq2": GOOD, "rvq16": GOOD + 0.1}, kbps={"rvq2": 2.0, "rvq16": 16.0})
    write_page([run], tmp_path / "page.html")
    assert "name them rvq@2, rvq@16, by the name in `info`" in (tmp_path / "page.html").read_text()


def test_compare_counts_no_win_for_it_nor_against_it(run, command):
    pairs = {frozenset((pair.a, pair.b)): pair for pair in compare(runs=[run])}
    assert [pair.suspect for names, pair in pairs.items() if "side" in names] == [{"side": RESULT}] * 2
    assert not pairs[frozenset(("plain", "worse"))].suspect
    code, out, _ = command("compare", run.folder, "--json")
    for pair in json.loads(out):
        counts = {c[name] for c in pair["comparisons"] for name in ("wins", "losses", "ties")}
        assert code == 0 and (counts == {None}) == ("side" in (pair["a"], pair["b"])) == bool(pair["suspect"])
    _, out, _ = command("compare", run.folder, "--systems", "side,plain", "--metrics", "m")
    assert f"side is suspect, so neither is the better one: {RESULT}" in " ".join(out.split()) and "19 : 0" not in out
    _, out, _ = command("compare", run.folder, "--systems", "plain,worse", "--metrics", "m")
    assert "suspect" not in out and "19 : 0 : 0" in out


def test_compare_counts_no_win_for_a_system_without_speech(tmp_path, command):
    """More than a tenth of the values is too much, as in the tables; a tenth is not."""
    values = {
        name: [float(n + better) for n in range(20)] for better, name in enumerate(("worst", "plain", "mute", "few"))
    }
    flags = {"mute": (3, SILENT_ESTIMATE), "few": (2, SILENT_ESTIMATE)}
    run = recorded(tmp_path / "run", values, flags=flags)
    for pair in compare(runs=[run]):
        (one,) = pair.as_dict()["comparisons"]
        barred = "mute: 3 of its 20 values are of sound that is not the speech that it should be"
        is_out = "mute" in (pair.a, pair.b)
        assert (one["barred"], one["wins"]) == ((barred, None) if is_out else (None, 0))
    _, out, _ = command("compare", run.folder, "--systems", "mute,plain")
    assert "m: neither is the better one. mute: 3 of its 20 values" in " ".join(out.split()) and "20 : 0" not in out


@pytest.mark.parametrize("form", ["hf-eval-results", "model-index", "lm-eval", "lmms-eval", "inspect"])
def test_exports_for_other_programs_state_it_with_what_was_detected(command, tmp_path, form):
    """The mark stands in the name that such a program shows, where there is one, and the finding beside the value."""
    run = recorded(
        tmp_path / "run", {"side": GOOD + 0.2, "plain": GOOD}, checks=SUSPECT, config={"data": "hf:org/data"}
    )
    options = {}
    for system in ("side", "plain"):
        file = tmp_path / f"{system}.json"
        code, _, err = command("export", run.folder, "--format", form, "--system", system, "--out", file)
        assert code == 0, err
        options[system] = file.read_text("utf-8")
    held = json.dumps(yaml.safe_load(options["side"]))
    assert RESULT in held and ("suspect)" in held or form == "hf-eval-results") and "suspect" not in options["plain"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_every_exported_row_says_it(run, tmp_path, form):
    file = tmp_path / f"rows.{form}"
    export(run, form=form, out=file)
    read = {"csv": pandas.read_csv, "jsonl": lambda f: pandas.read_json(f, lines=True), "parquet": pandas.read_parquet}
    rows = read[form](file).groupby("system").suspect
    assert {name: set(by_name.dropna()) for name, by_name in rows} == {"side": {RESULT}, "plain": set(), "worse": set()}


@pytest.mark.parametrize("form", ["lm-eval", "lmms-eval", "inspect"])
def test_what_is_imported_again_keeps_it(run, tmp_path, form):
    for system, result in (("side", RESULT), ("plain", None)):
        export(run, form=form, out=tmp_path / f"{system}.json", system=system)
        again = import_results(tmp_path / f"{system}.json", toolkit=form, out=tmp_path / f"{system}-again")
        assert doubts_in(again, system) == result


def test_a_foreign_word_in_its_place_is_a_finding_too(run, tmp_path):
    export(run, form="inspect", out=tmp_path / "a.json", system="plain")
    details = json.loads((tmp_path / "a.json").read_text("utf-8"))
    details["results"]["scores"][0]["metadata"]["suspect"] = "somebody doubts it"
    (tmp_path / "a.json").write_text(json.dumps(details))
    again = import_results(tmp_path / "a.json", toolkit="inspect", out=tmp_path / "again")
    assert doubts_in(again, "a") == "export is suspect: somebody doubts it"
