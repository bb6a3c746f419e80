"""Some kills of a run whose model charges; `make kills` kills every kind of command hundreds of times."""

from __future__ import annotations

import random
from collections import Counter

import kills
import pytest
from kills import Killing, calm, paid_job, rounds_job


@pytest.mark.long
@pytest.mark.parametrize("built", [paid_job, rounds_job])
def test_a_killed_run_asks_a_service_again_only_for_what_was_in_flight(tmp_path, built):
    """The shorter tests stand in `test_question_loop.py` and `test_rounds.py`: there the record is read while the
    questions are asked.
    """
    job, counts, done, kills = calm(built(tmp_path)), Counter(), 0, 50
    while done < kills:
        killing = Killing(job, random.Random(done), counts)
        done += killing.series(tmp_path / f"out{done}", min(10, kills - done))
    assert done == kills


def test_without_ray_its_job_is_excluded_and_that_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(kills, "find_spec", lambda name: None)
    assert kills._there(["ray", "eval"]) == ["eval"] and "ray" not in kills._there(None)
    assert "ray: skipped, since Ray is not installed" in capsys.readouterr().out
    monkeypatch.setattr(kills, "find_spec", lambda name: name)
    assert kills._there(["ray", "eval"]) == ["ray", "eval"]


def test_an_item_that_was_abandoned_differs_from_other_failures(tmp_path, monkeypatch):
    killing = Killing(kills.Job("eval", (), tmp_path), random.Random(0), Counter())
    reasons = ["the worker process died 2 times (killed by signal 9) while computing 'stoi'"]
    reasons.append("the model's process ended (killed by signal 9)")

    def rows(self, out):
        return {number: (None, "failed", reason, "") for number, reason in enumerate(reasons)}

    monkeypatch.setattr(kills.Job, "rows", rows)
    assert killing._gave_up(3, tmp_path) and not killing._gave_up(0, tmp_path)
    reasons.append("the file cannot be read")
    with pytest.raises(AssertionError, match="3 scores failed, such as: the file cannot be read"):
        killing._gave_up(3, tmp_path)
    killing.job.ends = (0, 3)
    assert not killing._gave_up(3, tmp_path), "such an end is one by itself"
    killing.job.ends = (0,)
    reasons.clear()
    assert not killing._gave_up(3, tmp_path)
