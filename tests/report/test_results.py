"""The files beside a record are written again when, and only when, the record holds something else."""

import json

import pytest
from refusals import refuses

from codec_bench import evaluate, score
from codec_bench.data import open_source
from codec_bench.report.results import results_stand, write_results
from codec_bench.store.integrity import PAGE, RUN_JSON, SUMMARY_JSON

MARK = "<!-- as it was -->"
FILES = (SUMMARY_JSON, PAGE, RUN_JSON)


@pytest.fixture
def run_it(tmp_path):
    manifest = tmp_path / "manifest.jsonl"
    rows = [{"id": s.id, "audio": str(s.audio)} for s in list(open_source("embedded"))[:3]]

    def run(save_audio="none", **more):
        manifest.write_text("".join(json.dumps({**row, **more}) + "\n" for row in rows))
        options = {"workers": 1, "check": False, "cache": False, "save_audio": save_audio}
        return evaluate(codec="g711-ulaw", data=manifest, metrics="si_sdr", out=tmp_path / "run", **options)

    return run


def marked(run):
    """Marks the page at its end, so that it is seen whether it is written again."""
    with (run.folder / PAGE).open("a") as page:
        page.write(MARK)
    return run


def is_marked(run):
    return (run.folder / PAGE).read_text().endswith(MARK)


def test_files_stand_if_nothing_was_left_and_are_written_if_the_data_state_more(run_it):
    run = marked(run_it())
    assert results_stand(run) and json.loads((run.folder / RUN_JSON).read_text())["state"] == "finished"
    assert is_marked(run_it())
    assert not is_marked(run_it(noise="loud"))  # a further column of the manifest
    assert is_marked(marked(run_it(noise="loud")))


def test_files_that_are_missing_damaged_or_of_an_unfinished_command_do_not_stand(run_it):
    run = run_it()
    for name in FILES:
        complete = (run.folder / name).read_bytes()
        (run.folder / name).unlink()
        assert not results_stand(run)
        (run.folder / name).write_bytes(complete)
    assert results_stand(run)
    (run.folder / PAGE).unlink()
    assert results_stand(run, page=False)
    built = json.loads((run.folder / RUN_JSON).read_text())
    for other in (
        b"{",
        json.dumps({**built, "state": "running"}).encode(),
        json.dumps({**built, "config": {}}).encode(),
    ):
        (run.folder / RUN_JSON).write_bytes(other)
        assert not results_stand(run, page=False)
    write_results(run)
    assert results_stand(run)


def test_saved_audio_is_scored_by_the_ids_of_its_manifest(run_it, tmp_path):
    run = run_it(save_audio="all")
    folder = run.folder / "audio" / "g711-ulaw"
    data = {"data": tmp_path / "manifest.jsonl", "metrics": "si_sdr", "workers": 1, "cache": False}
    again = score(generated=folder, out=tmp_path / "again", **data)
    assert {s.id: s.value for s in again.scores()} == pytest.approx({s.id: s.value for s in run.scores()})
    assert {s.status for s in again.scores()} == {"ok"}
    with refuses("folder_of_run", folder=str(run.folder)):
        score(generated=run.folder, out=tmp_path / "none", **data)
