"""Submitting the parts of a run to Slurm: what sbatch is told, what is submitted again, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from codec_bench.apps.cluster.slurm import ROUNDS, Resources, go_on, read_submission, submit
from codec_bench.errors import UserError

COMMAND = ("eval", "--codec", "opus-12k", "--data", "a folder", "--metrics", "stoi")
PRINTS = ("printf", "%s\\n")
"""In place of the program: what a script starts with prints its arguments, one a line."""


def finish(out, *numbers):
    for number in numbers:
        folder = out / "parts" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        run = folder / "benchmark" / "model"
        run.mkdir(parents=True, exist_ok=True)
        for path in (folder / "part.ended", run / "run.sqlite", run / "part.json"):
            path.write_text("{}")


def test_an_array_and_a_job_that_waits_for_it(tmp_path, slurm):
    out = tmp_path / "my run"
    resources = Resources(gpus=1, cpus=4, time="1-02:00:00", partition="gpu", at_once=3, more=("--account=me",))
    done = submit(COMMAND, PRINTS, out, 8, resources)
    array, merge = slurm.submitted
    for said in (
        "--parsable",
        "--array=1-8%3",
        "--gres=gpu:1",
        "--cpus-per-task=4",
        "--time=1-02:00:00",
        "--partition=gpu",
        "--account=me",
    ):
        assert said in array, said
    assert array.endswith(f"{out}/slurm/part.sh") and merge.endswith(f"{out}/slurm/merge.sh")
    assert "--dependency=afterany:101" in merge and "--gres" not in merge and "--account=me" in merge
    assert done.jobs == {"parts": "101", "merge": "102"} and read_submission(out) == done


def test_what_the_jobs_run(tmp_path, slurm):
    out = tmp_path / "my run"
    submit(COMMAND, PRINTS, out, 8, Resources())
    ran = subprocess.run(
        ["bash", str(out / "slurm" / "part.sh")], env={**os.environ, "SLURM_ARRAY_TASK_ID": "3"}, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert ran.stdout.splitlines() == [*COMMAND, "--shard", "3/8", "--out", f"{out}/parts/3"]
    for code in (0, 3, 2, 137):
        folder = tmp_path / str(code)
        submit(COMMAND, ("bash", "-c", f"mkdir -p {folder}/parts/3; exit {code}"), folder, 8, Resources())
        ended = subprocess.run(
            ["bash", str(folder / "slurm" / "part.sh")], env={**os.environ, "SLURM_ARRAY_TASK_ID": "3"}
        )
        assert ended.returncode == code and (folder / "parts" / "3" / "part.ended").exists() == (code in (0, 3))
    merges = subprocess.run(["bash", str(out / "slurm" / "merge.sh")], capture_output=True, text=True, check=True)
    assert merges.stdout.splitlines() == ["slurm", "--go-on", "--out", str(out)]


def test_parts_that_are_missing_are_submitted_again_and_not_for_ever(tmp_path, slurm):
    out = tmp_path / "run"
    submit(COMMAND, PRINTS, out, 9, Resources(gpus=2))
    finish(out, 1, 2, 3, 4, 5, 6, 9)
    (out / "parts" / "4" / "part.ended").unlink()  # its command was ended before it made its second run
    (out / "parts" / "6" / "benchmark" / "model" / "part.json").unlink()  # a run without its mark is not finished
    again = go_on(out)
    assert "--array=4,6-8 " in slurm.submitted[2] and "--gres=gpu:2" in slurm.submitted[2]
    assert again.rounds == 2 and again.waiting_for == (4, 6, 7, 8)
    finish(out, 4, 6, 8)
    for _ in range(ROUNDS - 2):
        go_on(out)
    with pytest.raises(UserError, match=f"1 of 9 parts failed {ROUNDS} times: 7"):
        go_on(out)
    finish(out, 7)
    assert go_on(out) is None


def test_the_same_command_submits_what_is_missing_and_another_is_refused(tmp_path, slurm):
    out = tmp_path / "run"
    submit(COMMAND, PRINTS, out, 4, Resources())
    slurm.queue("101_2\n102\n")
    with pytest.raises(UserError, match=r"2 jobs .* are in the queue already: 101_2, 102"):
        submit(COMMAND, PRINTS, out, 4, Resources())
    slurm.refuses("squeue", "slurm_load_jobs error: Invalid job id specified")
    finish(out, 1, 3)
    assert submit(COMMAND, PRINTS, out, 4, Resources(time="60")).waiting_for == (2, 4)
    for other in ((("score", *COMMAND[1:]), 4), (COMMAND, 5)):
        with pytest.raises(UserError, match="belongs to another command"):
            submit(other[0], PRINTS, out, other[1], Resources())
    finish(out, 2, 4)
    with pytest.raises(UserError, match=r"all 4 parts .* are finished"):
        submit(COMMAND, PRINTS, out, 4, Resources())


def test_what_slurm_refuses_is_one_sentence(tmp_path, slurm, monkeypatch):
    slurm.refuses("sbatch", "sbatch: error: invalid partition specified: gpu")
    with pytest.raises(UserError, match="sbatch refused: sbatch: error: invalid partition specified: gpu"):
        submit(COMMAND, PRINTS, tmp_path / "run", 4, Resources(partition="gpu"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="there is no 'sbatch' on this machine"):
        submit(COMMAND, PRINTS, tmp_path / "other", 4, Resources())
    with pytest.raises(UserError, match="nothing was submitted"):
        go_on(tmp_path / "none")
    (tmp_path / "torn" / "slurm").mkdir(parents=True)
    (tmp_path / "torn" / "slurm" / "slurm.json").write_text('{"parts": 3}')
    with pytest.raises(UserError, match="does not say what was submitted"):
        go_on(tmp_path / "torn")


@pytest.mark.parametrize("wrong", [{"gpus": -1}, {"cpus": 0}, {"at_once": 0}, {"time": "soon"}])
def test_resources_that_are_none(wrong):
    with pytest.raises(UserError, match="expected"):
        Resources(**wrong)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["profile", "--codec", "x"], "expected eval, score or run"),
        ([], "expected eval, score or run"),
        (["eval", "--codec", "opus-12k", "--data", "embedded", "--shard", "1/2"], "slurm itself sets --shard"),
        (["eval", "--codec", "opus-12k"], "Missing option '--data'"),
        (["eval", "--codec", "opus-12k", "--data", "x", "--limt", "3"], "No such option: --limt"),
        (["eval", "--codec", "opus-12k", "--data", "x", "--parts", "0"], "expected K/N"),
    ],
)
def test_the_command_is_checked_before_anything_is_submitted(tmp_path, slurm, command, typed, said):
    code, _printed, said_aloud = command("slurm", *typed, "--out", str(tmp_path / "run"))
    assert code == 2, said_aloud
    assert said in said_aloud
    assert slurm.submitted == []


def test_the_command_line_submits_and_shows_progress(tmp_path, slurm, command):
    out = tmp_path / "run"
    typed = ["eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "stoi", "--limit", "6"]
    code, printed, said_aloud = command("slurm", *typed, "--out", str(out), "--parts", "3", "--gpus-per-part", "1")
    assert code == 0, said_aloud
    assert "submitted 3 of 3 parts as job 101" in said_aloud
    assert read_submission(out).command == tuple(typed)
    assert "--gres=gpu:1" in slurm.submitted[0]
    code, printed, said_aloud = command("progress", str(out), "--json")
    assert code == 0, said_aloud
    rows = json.loads(printed)
    assert [row["state"] for row in rows] == ["waiting"] * 3
