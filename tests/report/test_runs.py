"""What a page says of its runs: what they share, what differs, and which systems have a speed."""

from __future__ import annotations

import pytest
from page_in_browser import complaints, open_page, resize, texts

from codec_bench.report.page import write_page
from codec_bench.report.page.runs import describe, run_facts
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score


def record(folder, systems, failing=(), half=(), data="speech", samples=4) -> Run:
    """A finished run; of some systems all items failed, of others every second one."""
    writer = RunWriter(folder, {})
    rows = [Sample(f"clip {n}", None, speaker=f"speaker {n}") for n in range(samples)]
    writer.begin({name: {} for name in systems}, {"stoi": {"protocol": "s", "higher_is_better": True}}, rows)
    for n, sample in enumerate(rows):
        items = []
        for s, name in enumerate(systems):
            bad = name in failing or (name in half and n % 2 == 1)
            score = Score.failed("no estimate", "s") if bad else Score.ok(0.8 + 0.01 * s + 0.001 * n, "s")
            items.append(
                (
                    n,
                    ItemRecord(
                        name, sample.id, "failed" if bad else "ok", "it broke" if bad else None, {"stoi": score}
                    ),
                )
            )
        writer.write(items)
    speeds = {name: {"encode_s": 0.5, "audio_s": 442.5, "times_real_time": 885.0} for name in systems}
    writer.set_meta(
        state="finished", started="2026-11-20T18:40:00+00:00", finished="2026-11-20T18:41:00+00:00",
        machine={"cpu": "A processor", "cores": 2}, config={"seed": 1},
        data={"name": data, "samples": samples, "fingerprint": data},
        timings={"wall_s": 60.0, "stages": [{"stage": "stoi", "items": samples, "busy_s": 3.5, "share": 0.4}],
            "systems": speeds},
    )  # fmt: skip
    writer.close()
    return Run(folder)


def test_what_runs_share_stands_once_and_what_differs_in_a_table(tmp_path):
    runs = [record(tmp_path / "one", ["a"]), record(tmp_path / "two", ["a", "b"], failing=["b"])]
    details = run_facts([describe(run, name, summarise(run)) for run, name in zip(runs, ("one", "two"))])
    assert {head: fact.text for head, fact in details["facts"].items()} == {
        "Data": "speech", "Finished": "20 Nov 2026, 18:41 UTC", "Machine": "A processor",
    }  # fmt: skip
    assert details["run_heads"] == ["Measured", "Failed", "Systems"]
    assert [[row["name"], *(cell.text for cell in row["cells"])] for row in details["run_rows"]] == [
        ["one", "1 system", "nothing", "a"],
        ["two", "2 systems", "4 items, 0 scores", "a, b"],
    ]
    alone = run_facts([describe(runs[0], "one", summarise(runs[0]))])
    assert alone["run_rows"] == [] and set(alone["facts"]) == {"Data", "Measured", "Finished", "Machine", "Failed"}


def test_many_systems_of_a_run_are_counted(tmp_path):
    run = record(tmp_path / "run", [f"codec-{n}" for n in range(6)], samples=1)
    details = run_facts([describe(run, name, summarise(run)) for name in ("one", "two")])
    assert [row["cells"][-1].text for row in details["run_rows"]] == ["codec-0, codec-1, codec-2 and 3 more"] * 2


def test_a_system_of_which_items_failed_has_no_speed(browser, tmp_path):
    run = record(tmp_path / "run", ["good", "broken", "sometimes"], failing=["broken"], half=["sometimes"])
    write_page([run], tmp_path / "report.html")
    page = open_page(browser, tmp_path / "report.html")
    rows = page.execute_script(
        "return [...document.querySelectorAll('.speeds tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert rows == [
        ["good", "0.5 s", "7 min 22 s", "885.0 ×"],
        ["broken", "0.5 s", "7 min 22 s", "–4 failed"],
        ["sometimes", "0.5 s", "7 min 22 s", "–2 failed"],
    ]
    assert texts(page, "#spent h2") == ["Where the time went"] and "stoi" in texts(page, "#spent")[0]
    assert texts(page, '.contents [href="#spent"]') == ["Time"]


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (2560, 1440)])
def test_a_dozen_runs_leave_room_for_the_first_number(browser, tmp_path, width, height):
    runs = [record(tmp_path / f"sweep-{n:02d}", ["unprocessed", f"own@{n}"]) for n in range(12)]
    write_page(runs, tmp_path / "report.html")
    page = open_page(browser, tmp_path / "report.html")
    resize(page, width, height)
    assert texts(page, "h1") == ["12 runs"] and page.title == "12 runs – codec-bench"
    assert len(texts(page, "#runs-table tbody tr")) == 12
    first = "return document.querySelector('#summary-table .value').getBoundingClientRect().bottom"
    assert page.execute_script(first) < height
    # Each run's time and its machine are there, folded.
    assert len(texts(page, "#spent details")) == len(texts(page, "#run details.part")) == 12
    assert complaints(page) == []
