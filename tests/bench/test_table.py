"""What the documentation claims is what the rows say, and the check of it can fail."""

from __future__ import annotations

import csv
import subprocess

import common
import numpy as np
import pytest
import table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for rows, and a README that claims one ratio from them."""
    data = tmp_path / "bench" / "data"
    data.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(common, "DATA", data)
    monkeypatch.setattr(table, "ROOT", tmp_path)
    monkeypatch.setattr(table, "COSTS", tmp_path / "costs.csv")
    monkeypatch.setattr(table, "DEVICE_COSTS", tmp_path / "device_costs.csv")
    monkeypatch.setattr(common, "ROOT", tmp_path)
    claim = table.Claim("mine", "stoi", "speech", "ours", "what it is", "theirs", against="theirs")
    monkeypatch.setattr(table, "claims", lambda: {"mine": claim})
    monkeypatch.setattr(table, "CLAIMS", {**table.CLAIMS, "metrics": ["mine"]})
    start = {"date": "2026-11-01T10:00:00Z", "load": "0.10", "tree": "clean", "commit": "0123456789"}
    monkeypatch.setattr(common, "START", start)
    common.rows_of.cache_clear()
    yield tmp_path
    common.rows_of.cache_clear()


def measured(theirs_s: float, ours_s: float, **start: str) -> None:
    """Appends a run of both sides, as a bench does."""
    common.START.update(start)
    around = np.array([0.9, 1.0, 1.1])
    measured_rows = [
        common.row("speech", name, s * around, n=1) for name, s in (("theirs", theirs_s), ("ours", ours_s))
    ]
    common.append_rows("stoi", measured_rows)
    common.rows_of.cache_clear()


def settle(folder) -> None:
    """Writes every text from the rows, as `python bench/table.py` does."""
    page = folder / "README.md"
    page.write_text(table.written(page.read_text("utf-8") if page.exists() else START), "utf-8")
    (common.DATA / "README.md").write_text(table.data_page(), "utf-8")
    table.COSTS.write_text(table.costs(), "utf-8")
    table.DEVICE_COSTS.write_text(table.device_costs(), "utf-8")


START = "# A\n\nIt is <!-- row: mine --><!-- /row --> as fast.\n\n<!-- rows: metrics -->\n<!-- rows end -->\n"


def faults() -> list[str]:
    common.rows_of.cache_clear()
    return [text for text in table.wrong() if "has no command in" not in text]


def test_the_documentation_states_what_the_rows_state():
    assert list(table.wrong()) == []


def test_a_row_says_where_when_and_how_often_it_was_measured(folder):
    measured(6.0, 2.0)
    ours = common.rows_of("stoi")[1]
    assert (ours["repeats"], ours["load"], ours["tree"], ours["commit"]) == ("3", "0.10", "clean", "0123456789")
    assert ours["run"].startswith("20261101T100000Z-") and ours["p50"] == "2" and ours["machine"]


@pytest.mark.parametrize(
    ("model", "commit", "tree"),
    [("0123456789", "0123456789", "clean"), ("0123456789-dirty", "0123456789", "changed"), ("", "unknown", "unknown")],
)
@pytest.mark.parametrize("stale", [False, True])
def test_a_copy_gets_its_revision(monkeypatch, model, commit, tree, stale):
    """A copy may have the repository of another revision, beside whose files its own look changed."""
    monkeypatch.setenv(common.REVISION, model)

    def git(*words):
        return {"rev-parse": "9999999999"}.get(words[0], " M bench/x.py") if stale else None

    monkeypatch.setattr(common, "git", git)
    if stale and not model:
        commit, tree = "9999999999", "changed"
    assert (common._start()["commit"], common._start()["tree"]) == (commit, tree)


def test_texts_get_ratio_spread_passes_machine_and_day(folder):
    measured(6.0, 2.0)
    settle(folder)
    text = (folder / "README.md").read_text("utf-8")
    assert "It is <!-- row: mine -->3.0 times<!-- /row --> as fast." in text
    # Of 0.9, 1, 1.1 the 20th and the 80th percentile are 0.94 and 1.06: from 3 x 0.94/1.06 to 3 x 1.06/0.94.
    assert "| what it is | theirs | 3.0x | 2.7 to 3.4 (3) |\n" in text and "2026-11-01, 0123456789." in text
    assert faults() == []


def test_a_mark_that_a_line_break_divides_gets_its_ratio_too(folder):
    measured(6.0, 2.0)
    (folder / "README.md").write_text(START + "\nIt is <!-- row:\nmine -->9 times<!-- /row\n--> as fast.\n", "utf-8")
    settle(folder)
    assert "<!-- row:\nmine -->3.0 times<!-- /row\n--> as fast." in (folder / "README.md").read_text("utf-8")


def test_the_newest_rows_of_a_quiet_machine_stand(folder):
    measured(6.0, 2.0)
    measured(8.0, 2.0, date="2026-11-02T10:00:00Z")
    measured(20.0, 2.0, date="2026-11-03T10:00:00Z", load="1.70")
    measured(40.0, 2.0, date="2026-11-04T10:00:00Z", load="0.10", tree="changed")
    result = table.standing(table.claims()["mine"])
    assert result.value() == "4.0x" and result.quiet


def test_a_busy_machine_is_reported(folder):
    measured(6.0, 2.0, load="0.51")
    settle(folder)
    text = (folder / "README.md").read_text("utf-8")
    assert text.count("not measured on a quiet machine yet") == 2 and "3.0x" in text


@pytest.mark.parametrize("tree", ["changed", "unknown"])
def test_a_row_of_a_changed_tree_supports_no_claim(folder, tree):
    measured(6.0, 2.0, tree=tree)
    settle(folder)
    text = (folder / "README.md").read_text("utf-8")
    assert text.count("not measured on a quiet machine yet") == 2 and "3.0x" not in text
    measured(8.0, 2.0, tree="clean", load="0.9")
    assert table.standing(table.claims()["mine"]).value() == "4.0x"


def compared(monkeypatch, **details) -> table.Standing | None:
    """The second line of a comparison whose first is the claim of the fixture."""
    first = table.claims()["mine"]
    claims = {"mine": first, "next": table.Claim("next", "stoi", "more", "ours", "the same", "theirs", **details)}
    monkeypatch.setattr(table, "claims", lambda: claims)
    return table.standing(claims["next"])


NEXT = {"against": "theirs", "head": "mine"}


@pytest.mark.parametrize(
    ("start", "n", "note", "varies"),
    [
        ({"commit": "9876543210"}, 1, "", ()),
        ({}, 2, "", "size"),
        ({}, 1, "float16", "precision"),
    ],
)
def test_rows_of_another_commit_size_or_precision_are_not_compared(folder, monkeypatch, start, n, note, varies):
    measured(6.0, 2.0)
    common.START.update(start)
    around = np.array([0.9, 1.0, 1.1])
    common.append_rows(
        "stoi", [common.row("more", name, s * around, n=n, note=note) for name, s in (("theirs", 9), ("ours", 3))]
    )
    common.rows_of.cache_clear()
    assert compared(monkeypatch, **NEXT) is None
    assert table.sentence("mine, next") == f"({table.NOT_QUIET})"
    assert table.NOT_COMPARABLE in table.table(["next"]) and "3.0x" not in table.table(["next"])
    declared = compared(monkeypatch, **NEXT, varies=("size", "precision"))
    assert (declared is None) == (not varies)
    alone = compared(monkeypatch, against="theirs")
    assert alone.value() == "3.0x"
    if start:
        assert table.sentence("mine, next") == f"({table.NOT_COMPARABLE})"


def test_a_sentence_joins_no_rows_of_another_size(folder, monkeypatch):
    measured(6.0, 2.0)
    around = np.array([0.9, 1.0, 1.1])
    for case, n in (("more", 1), ("most", 2)):
        common.append_rows(
            "stoi", [common.row(case, name, s * around, n=n) for name, s in (("theirs", 8), ("ours", 2))]
        )
    common.rows_of.cache_clear()
    claims = {
        name: table.Claim(name, "stoi", case, "ours", "what", "theirs", against="theirs")
        for name, case in (("mine", "speech"), ("more", "more"), ("most", "most"))
    }
    monkeypatch.setattr(table, "claims", lambda: claims)
    assert table.sentence("mine, more") == "3.0 to 4.0 times"
    assert table.sentence("mine, most") == f"({table.NOT_COMPARABLE})"


def test_designs_of_two_commits_are_marked_and_never_mixed(folder):
    for commit, case, values in (
        ("0123456789", "design: a", {"coverage": 0.9, "width": 2}),
        ("9876543210", "design: b", {"coverage": 0.8, "width": 3}),
        ("9876543210", "design: a", {"coverage": 0.7}),
    ):
        common.START["commit"] = commit
        common.append_rows("gate", [{"case": case, "unit": unit, "p50": value} for unit, value in values.items()])
        if case.endswith("b"):
            common.START["commit"] = "5555555555"
            common.append_rows("gate", [{"case": "design: c", "unit": "width", "p50": 4}])
    common.rows_of.cache_clear()
    text = table.design_table("gate")
    assert "| a | 0.700 | – | a |" in text and "| b | 0.800 | 3.000 | a |" in text and "| c | – | 4.000 | b |" in text
    assert "9876543210" in text and "5555555555" in text and "0123456789" not in text


def test_a_row_of_older_costs_supports_no_claim_of_the_virtual_clock(folder, monkeypatch):
    monkeypatch.setattr(common, "machine", lambda: {"machine": "m", "cores": "16", "gpu": "none", "python": "3"})
    claim = table.Claim("clock", "device", "100,000", "half", "what", "", value="given", note=(table.COSTS_OF_STAGES,))
    assert claim.stem == "device"
    clock = {"case": "100,000", "variant": "half", "n": 1, "unit": "s", "p50": "1500"}
    common.append_rows("device", [{**clock, "note": f"stage costs {table.costs_id()}"}, clock])
    common.rows_of.cache_clear()
    assert [row.value() for row in table.measurements(claim)] == ["1500x"]
    monkeypatch.setattr(common, "machine", lambda: {"machine": "m", "cores": "16", "gpu": "NVIDIA H200", "python": "3"})
    stage = common.row("sim", "batch", np.array([2.0]), n=8, note="8 items, 40.0 s of audio")
    common.append_rows("gpu_stages", [stage])
    common.rows_of.cache_clear()
    assert not list(table.measurements(claim))


def test_costs_of_a_busy_machine_are_marked(folder, monkeypatch):
    claim = table.Claim("cost", "stoi", "speech", "ours", "what", "", value="given", says="{} s")
    names = ("whole-codecs-seconds", "gpu-seed", "million-main", "million-bytes", "ten-report", "ten-compare")
    monkeypatch.setattr(table, "claims", lambda: dict.fromkeys(names, claim))
    for load, marks in (("0.10", 0), ("9.0", 8)):
        (common.DATA / "stoi.csv").unlink(missing_ok=True)
        measured(6.0, 2.0, load=load)
        assert table.cost_table().count(table.NOT_QUIET) == marks


def test_every_line_that_says_the_same_belongs_to_a_comparison():
    claims = table.claims()
    assert claims["gpu-sim-float16"].head == "gpu-sim" and claims["gpu-sim"].head == "gpu-sim"
    assert claims["gpu-six-busy"].head == "gpu-six" and claims["million-left"].head == "million-planning"


def test_the_virtual_clock_takes_committed_rows_first(folder, monkeypatch):
    shared = {"n": 8, "note": "8 items, 40.0 s of audio"}
    monkeypatch.setattr(common, "machine", lambda: {"machine": "m", "cores": "16", "gpu": "NVIDIA H200", "python": "3"})
    for seconds, tree, day in ((2.0, "changed", "03"), (3.0, "clean", "01"), (4.0, "clean", "02")):
        common.START.update(tree=tree, date=f"2026-11-{day}T10:00:00Z")
        common.append_rows("gpu_stages", [common.row("sim", "batch", np.array([seconds]), **shared)])
    common.rows_of.cache_clear()
    assert table.device_costs().splitlines()[1].startswith("float32,Speaker,4,40.0,clean,20261102T")
    assert len(table.device_costs().splitlines()) == 2


def test_what_was_never_measured_is_reported(folder):
    settle(folder)
    text = (folder / "README.md").read_text("utf-8")
    assert text.count("not measured on a quiet machine yet") == 2 and "0x" not in text


def test_sides_of_two_runs_are_no_ratio(folder):
    measured(6.0, 2.0)
    common.START["date"] = "2026-11-05T10:00:00Z"
    common.append_rows("stoi", [common.row("speech", "ours", np.array([0.5, 0.6]), n=1)])
    common.rows_of.cache_clear()
    assert table.standing(table.claims()["mine"]).value() == "3.0x"


def test_rows_of_a_gpu_stand_for_its_own_claims_alone(folder, monkeypatch):
    measured(6.0, 2.0)
    on_cpu = common.machine()
    monkeypatch.setattr(common, "machine", lambda: {**on_cpu, "gpu": "NVIDIA H200", "cores": "16"})
    measured(8.0, 1.0, date="2026-11-02T10:00:00Z", load="3.9")
    assert table.standing(table.claims()["mine"]).value() == "3.0x"
    monkeypatch.setitem(table.CLAIMS["commands"], "on a GPU", {"run": "bench_stoi.py", "gpu": True})

    def result(**options):
        return table.standing(table.Claim("a", "on a GPU", "speech", "ours", "what", "", **options))

    assert result(against="theirs").value() == "8.0x"
    assert result(value="ms", says="{} ms").value() == "1000 ms" and result(value="ms").quiet
    assert result(value="ms").where().startswith("NVIDIA H200, ")


def test_another_gpu_and_two_gpus_have_lines_of_their_own(folder, monkeypatch):
    monkeypatch.setitem(table.CLAIMS["commands"], "on a GPU", {"run": "bench_stoi.py", "gpu": True})
    claim = table.Claim("mine", "on a GPU", "speech", "ours", "what it is", "theirs", against="theirs")
    monkeypatch.setattr(table, "claims", lambda: {"mine": claim})
    on_cpu = common.machine()
    names = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA H200; NVIDIA H200")
    for day, (gpu, seconds) in enumerate(zip(names, (6.0, 8.0, 10.0)), 1):
        monkeypatch.setattr(common, "machine", lambda gpu=gpu: {**on_cpu, "gpu": gpu})
        measured(seconds, 2.0, date=f"2026-11-0{day}T10:00:00Z")
        stage = common.row("sim", "batch", np.array([seconds]), n=8, note="8 items, 40.0 s of audio")
        common.append_rows("gpu_stages", [stage])
    common.rows_of.cache_clear()
    assert table.sentence("mine") == "3.0 times"
    text = table.table(["mine"])
    assert [value in text for value in ("3.0x", "4.0x", "5.0x")] == [True] * 3 and all(name in text for name in names)
    assert table.device_costs().splitlines()[1].startswith("float32,Speaker,6,40.0,clean,")


def test_a_share_and_a_rate_are_reported_as_the_bench_wrote_them(folder):
    shared = {"case": "3000", "variant": "half", "n": 3000}
    busy = {**shared, "unit": "busy share", "p50": "0.97406"}
    common.append_rows("stoi", [{**shared, "unit": "s", "p50": "30", "ratio_to_baseline": "7.73"}, busy])
    common.rows_of.cache_clear()

    def spoken(**options):
        claim = table.Claim("mine", "stoi", "3000", "half", "what", "", **options)
        return table.standing(claim).value()

    assert spoken(value="share", unit="busy share", says="{} % busy") == "97.4 % busy"
    assert spoken(value="given", unit="s", says="{} s") == "30 s"
    assert spoken(value="recorded", unit="s") == "7.73x"
    assert (
        table.standing(table.Claim("mine", "stoi", "3000", "half", "what", "", value="recorded", unit="busy share"))
        is None
    )


def edited(change) -> None:
    """Changes the rows of the file as a person with an editor would."""
    path = common.DATA / "stoi.csv"
    held = list(csv.DictReader(path.open(newline="")))
    change(held)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, common.FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(held)


def test_a_row_that_was_changed_or_removed_is_detected(folder):
    measured(6.0, 2.0)
    settle(folder)
    assert faults() == []
    edited(lambda rows: rows[1].update(load="0.01"))
    assert any("are not those that the bench wrote" in text for text in faults())
    edited(lambda rows: rows.pop())
    assert any("are not those that the bench wrote" in text for text in faults())
    edited(lambda rows: rows.clear())
    assert any("bench/data/README.md does not say" in text for text in faults())


def test_a_committed_row_that_was_changed_or_removed_is_detected(folder):
    measured(6.0, 2.0)
    settle(folder)
    measured(6.0, 2.0, date="2026-11-02T10:00:00Z")
    settle(folder)
    assert faults() == [], "a new run only adds rows"
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "rows")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    measured(6.0, 2.0, date="2026-11-03T10:00:00Z")
    settle(folder)
    assert faults() == []
    edited(lambda rows: rows.__delitem__(slice(2)))
    settle(folder)
    assert any("2 committed rows were changed or removed" in text for text in faults())


def test_a_number_that_is_not_the_rows_is_detected(folder):
    measured(6.0, 2.0)
    settle(folder)
    page = folder / "README.md"
    text = page.read_text("utf-8")
    page.write_text(text.replace("3.0 times", "3.1 times"), "utf-8")
    assert any("README.md does not say what the rows say" in fault for fault in faults())
    page.write_text(text, "utf-8")
    table.COSTS.write_text(table.costs() + "stoi,1\n", "utf-8")
    assert faults() == ["costs.csv does not say what the rows say; run `python bench/table.py`"]
    page.write_text(f"{text}\nIt was 9.7x.\n", "utf-8")
    assert any("'9.7x'" in fault and "without a claim" in fault for fault in faults())
    page.write_text(f"{text}\nIt is 6 times faster.\n", "utf-8")
    assert any("without a claim" in fault for fault in faults())
