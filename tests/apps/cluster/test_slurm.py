"""Submitting the parts of a run to Slurm: arguments of sbatch, repeated submissions, and refusals."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from refusals import Containing, refuses

from codec_bench.apps.cluster.slurm import ROUNDS, Resources, read_submission, resume_submission, submit
from codec_bench.messages.errors import UserError

DATA = ("--data", "embedded", "--metrics", "stoi")
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
    for text in (
        "--parsable",
        "--array=1-8%3",
        "--gres=gpu:1",
        "--cpus-per-task=4",
        "--time=1-02:00:00",
        "--partition=gpu",
        "--account=me",
    ):
        assert text in array, text
    assert array.endswith(f"{out}/slurm/part.sh") and merge.endswith(f"{out}/slurm/merge.sh")
    assert "--dependency=afterany:101" in merge and "--gres" not in merge and "--account=me" in merge
    assert done.jobs == {"parts": "101", "merge": "102"} and read_submission(out) == done


def test_what_the_jobs_run(tmp_path, slurm):
    out = tmp_path / "my run"
    submit(COMMAND, PRINTS, out, 8, Resources())
    ran = subprocess.run(
        ["bash", str(out / "slurm" / "part.sh")], env={**os.environ, "SLURM_ARRAY_TASK_ID": "3"}, capture_output=True,
        text=True, check=True
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


def began(out, done, *numbers, text="it began"):
    """Leaves what Slurm leaves of parts that began."""
    for number in numbers:
        (out / "slurm" / f"{done.jobs['parts']}_{number}.log").write_text(text)


def test_parts_that_are_missing_are_submitted_again_and_not_for_ever(tmp_path, slurm):
    out = tmp_path / "run"
    began(out, submit(COMMAND, PRINTS, out, 9, Resources(gpus=2)), *range(1, 10))
    finish(out, 1, 2, 3, 4, 5, 6, 9)
    (out / "parts" / "4" / "part.ended").unlink()  # its command was ended before it made its second run
    (out / "parts" / "6" / "benchmark" / "model" / "part.json").unlink()  # a run without its mark is not finished
    again = resume_submission(out)
    assert "--array=4,6-8 " in slurm.submitted[2] and "--gres=gpu:2" in slurm.submitted[2]
    assert again.tries == dict.fromkeys((4, 6, 7, 8), (2, 0))
    finish(out, 4, 6, 8)
    for _ in range(ROUNDS - 2):
        began(out, again, 7)
        again = resume_submission(out)
    began(out, again, 7)
    with refuses("parts_failed", count=1, parts=9, times=3, ranges="7"):
        resume_submission(out)
    finish(out, 7)
    assert resume_submission(out) is None


def test_the_same_command_submits_what_is_missing_and_another_is_refused(tmp_path, slurm):
    out = tmp_path / "run"
    submit(COMMAND, PRINTS, out, 4, Resources())
    parts, merging = [word.split("=")[1] for call in slurm.submitted for word in call.split() if "--job-name=" in word]
    assert parts != merging and parts.startswith("codec-bench-") and merging.startswith("codec-bench-merge-")
    slurm.queue(f"101_2 {parts}\n102 {merging}\n")
    with refuses("jobs_in_queue", count=2, folder="run", jobs="101_2, 102"):
        submit(COMMAND, PRINTS, out, 4, Resources())
    slurm.queue("")
    finish(out, 1, 3)
    assert submit(COMMAND, PRINTS, out, 4, Resources(time="60")).tries == {2: (1, 0), 4: (1, 0)}
    for other in ((("score", *COMMAND[1:]), 4), (COMMAND, 5)):
        with refuses("folder_of_other_command"):
            submit(other[0], PRINTS, out, other[1], Resources())
    finish(out, 2, 4)
    with refuses("parts_finished", parts=4, folder="run"):
        submit(COMMAND, PRINTS, out, 4, Resources())


LIMIT = "slurmstepd-n1: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-24T14:09:39 DUE TO TIME LIMIT ***\n"
CANCELLED = "slurmstepd-n1: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-24T14:05:49 ***\nTerminated\n"


def test_what_a_person_cancels_stays_cancelled_and_the_same_command_goes_on(tmp_path, slurm):
    out = tmp_path / "run"
    done = submit(COMMAND, PRINTS, out, 5, Resources())
    finish(out, 1)
    began(out, done, 1)
    began(out, done, 2, text=LIMIT)
    began(out, done, 3, text=LIMIT + CANCELLED)  # the fourth and fifth never began
    with refuses("parts_cancelled", count=3, parts=5, ranges="3-5", hint="the same codec-bench slurm command goes on"):
        resume_submission(out)
    assert len(slurm.submitted) == 2
    began(out, submit(COMMAND, PRINTS, out, 5, Resources()), 2, 3, 4, 5, text=CANCELLED + "it began again\n" + LIMIT)
    assert sorted(resume_submission(out).tries) == [2, 3, 4, 5]


def test_a_part_has_failed_when_it_finishes_no_further_item(tmp_path, slurm, monkeypatch):
    """A part that its time limit ends again and again goes on as long as it gets ahead."""
    out, items = tmp_path / "run", {1: 0, 2: 0}
    monkeypatch.setattr("codec_bench.apps.cluster.slurm._items", lambda out, number: items[number])
    done = submit(COMMAND, PRINTS, out, 2, Resources())
    for _ in range(ROUNDS - 1):
        items[1] += 5
        began(out, done, 1, 2)
        done = resume_submission(out)
        assert sorted(done.tries) == [1, 2] and done.tries[1] == (1, items[1])
    items[1] += 5
    began(out, done, 1, 2)
    done = resume_submission(out)
    assert sorted(done.tries) == [1]
    finish(out, 1)
    with refuses("parts_failed", count=1, parts=2, times=3, ranges="2"):
        resume_submission(out)


def test_a_refused_merge_job_leaves_no_orphan(tmp_path, slurm):
    out = tmp_path / "run"
    slurm.refuses("sbatch", "sbatch: error: QOSMaxSubmitJobPerUserLimit", call=2)
    with refuses(
        "merge_job_missing",
        job="101",
        cause={"code": "slurm_refused", "cause": Containing("QOSMaxSubmit")},
        hint="submits that job alone",
    ):
        submit(COMMAND, PRINTS, out, 3, Resources())
    slurm.allows("sbatch")
    (name,) = [word.split("=")[1] for word in slurm.submitted[0].split() if "--job-name=" in word]
    slurm.queue(f"101_1 {name}\n101_2 {name}\n101_3 {name}\n")
    done = submit(COMMAND, PRINTS, out, 3, Resources())
    assert len(slurm.submitted) == 2 and "--dependency=afterany:101" in slurm.submitted[1]
    assert done.jobs == {"parts": "101", "merge": "102"} == read_submission(out).jobs and sorted(done.tries) == [
        1,
        2,
        3,
    ]


def test_the_job_that_merges_waits_for_every_array_that_is_in_the_queue(tmp_path, slurm):
    out = tmp_path / "run"
    slurm.refuses("sbatch", "sbatch: error: QOSMaxSubmitJobPerUserLimit", call=2)
    with pytest.raises(UserError):
        submit(COMMAND, PRINTS, out, 3, Resources())
    slurm.allows("sbatch")
    (name,) = [word.split("=")[1] for word in slurm.submitted[0].split() if "--job-name=" in word]
    slurm.queue(f"100_1 {name}\n99_2 {name}\n99_3 {name}\n")
    done = submit(COMMAND, PRINTS, out, 3, Resources())
    assert "--dependency=afterany:99:100 " in slurm.submitted[1] and done.jobs["parts"] == "99:100"
    finish(out, 1)
    for array, text in (("99", LIMIT), ("100", CANCELLED)):  # the later array says how a part ended
        (out / "slurm" / f"{array}_2.log").write_text(text)
    (out / "slurm" / "99_3.log").write_text(LIMIT)
    with refuses("parts_cancelled", count=1, parts=3, ranges="2"):
        resume_submission(out)


def test_a_part_that_began_and_has_no_output_has_failed_and_was_not_cancelled(tmp_path, slurm):
    out = tmp_path / "run"
    submit(COMMAND, PRINTS, out, 2, Resources())
    (out / "parts" / "1").mkdir(parents=True)
    with refuses("parts_cancelled", count=1, parts=2, ranges="2"):
        resume_submission(out)
    (out / "parts" / "2").mkdir(parents=True)
    assert resume_submission(out).tries == {1: (2, 0), 2: (2, 0)}


def test_where_scancel_gets_several_arrays_it_names_each(tmp_path, slurm):
    out = tmp_path / "run"
    slurm.refuses("sbatch", "sbatch: error: QOSMaxSubmitJobPerUserLimit", call=2)
    with pytest.raises(UserError):
        submit(COMMAND, PRINTS, out, 3, Resources())
    (name,) = [word.split("=")[1] for word in slurm.submitted[0].split() if "--job-name=" in word]
    slurm.queue(f"100_1 {name}\n99_2 {name}\n")
    slurm.refuses("sbatch", "sbatch: error: QOSMaxSubmitJobPerUserLimit", call=1)
    with refuses("merge_job_missing", job="99 100", hint="scancel 99 100 cancels"):
        submit(COMMAND, PRINTS, out, 3, Resources())


def test_a_command_that_is_killed_between_its_two_jobs_leaves_no_orphan(tmp_path, slurm, monkeypatch):
    out, real = tmp_path / "run", subprocess.run

    def killed(words, **more):
        done = real(words, **more)
        if words[0] == "sbatch":
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(subprocess, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        submit(COMMAND, PRINTS, out, 3, Resources())
    monkeypatch.setattr(subprocess, "run", real)
    (name,) = [word.split("=")[1] for word in slurm.submitted[0].split() if "--job-name=" in word]
    slurm.queue(f"101_1 {name}\n")
    assert submit(COMMAND, PRINTS, out, 3, Resources()).jobs == {"parts": "101", "merge": "102"}
    assert "afterany:101" in slurm.submitted[1]


def test_an_array_that_is_refused_leaves_nothing_behind(tmp_path, slurm):
    out = tmp_path / "run"
    slurm.refuses("sbatch", "sbatch: error: Batch job submission failed: Invalid job array specification")
    with refuses("slurm_refused", cause=Containing("Invalid job array"), hint="fewer --parts"):
        submit(COMMAND, PRINTS, out, 3000, Resources())
    assert read_submission(out) is None
    slurm.allows("sbatch")
    assert submit(COMMAND, PRINTS, out, 1000, Resources()).parts == 1000


def test_nobody_else_can_read_the_arguments_of_the_command(tmp_path, slurm):
    out = tmp_path / "run"
    (out / "slurm").mkdir(parents=True, mode=0o755)
    submit((*COMMAND, "--set", "dnsmos.weights=a-value"), PRINTS, out, 2, Resources())
    holding = [path for path in out.rglob("*") if path.is_file() and b"a-value" in path.read_bytes()]
    assert holding and {path.parent for path in holding} == {out / "slurm"}
    assert (out / "slurm").stat().st_mode & 0o777 == 0o700


def test_what_slurm_refuses_is_one_sentence(tmp_path, slurm, monkeypatch):
    slurm.refuses("sbatch", "sbatch: error: invalid partition specified: gpu")
    with refuses("slurm_refused", program="sbatch", cause="sbatch: error: invalid partition specified: gpu"):
        submit(COMMAND, PRINTS, tmp_path / "run", 4, Resources(partition="gpu"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with refuses("no_slurm_program", program="sbatch"):
        submit(COMMAND, PRINTS, tmp_path / "other", 4, Resources())
    with refuses("nothing_submitted"):
        resume_submission(tmp_path / "none")
    (tmp_path / "torn" / "slurm").mkdir(parents=True)
    (tmp_path / "torn" / "slurm" / "slurm.json").write_text('{"parts": 3}')
    with refuses("submission_unreadable"):
        resume_submission(tmp_path / "torn")


@pytest.mark.parametrize("wrong", [{"gpus": -1}, {"cpus": 0}, {"at_once": 0}])
def test_resources_that_are_none(wrong):
    ((name, value),) = wrong.items()
    with refuses("below_least", name=name, value=value):
        Resources(**wrong)


def test_a_time_limit_that_is_none():
    with refuses("time_limit_form", value="soon"):
        Resources(time="soon")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["profile", "--codec", "x"], "expected eval, score or run"),
        ([], "expected eval, score or run"),
        (["eval", "--codec", "opus-12k", "--data", "embedded", "--shard", "1/2"], "slurm itself sets --shard"),
        (["eval", "--codec", "opus-12k"], "Missing option '--data'"),
        (["eval", "--codec", "opus-12k", "--data", "x", "--limt", "3"], "No such option: --limt"),
        (["eval", "--codec", "opus-12k", "--data", "embedded", "--executor", "ray"], "slurm itself sets --executor"),
        (["eval", "--codec", "opus-12k", "--data", "x", "--parts", "0"], "expected K/N"),
        (["eval", "--codec", "nosuchcodec", *DATA], "there is no codec called 'nosuchcodec'"),
        (["eval", "--codec", "encodec-24khz@6", *DATA], "the weights 'encodec-24khz' are not on this machine"),
        (["eval", "--codec", "opus-12k", *DATA, "--set", "opus-12k.api_key=SECRET"], "does not take 'api_key'"),
        (["eval", "--codec", "./none.py:Mine", *DATA], "there is no file 'none.py'"),
        (["eval", "--codec", f"{json.__file__}:Mine", *DATA], "has nothing that is called 'Mine'"),
        (["eval", "--codec", "opus-12k", "--data", "nosuch.jsonl", "--metrics", "stoi"], "nosuch.jsonl"),
        (
            ["eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "nosuch"],
            "there is no metric called 'nosuch'",
        ),
        (
            ["eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "utmos"],
            "the weights 'utmos22-strong' are not",
        ),
        (["score", "--generated", "nosuch", *DATA], "nosuch"),
        (["run", "nosuch", "--model", "gpt-4o"], "there is no benchmark called 'nosuch'"),
        (["run", "aishell-1", "--model", "gpt-4o", "--data", "nowhere"], "nowhere"),
        (["run", "codec-librispeech-test-clean", "--codec", "opus-12k", "--data", "nowhere"], "nowhere"),
        (["run", "aishell-1", "--model", "openai-chat", "--set", "openai-chat.api_key=SECRET"], "api_key"),
    ],
)
def test_the_command_is_checked_before_anything_is_submitted(tmp_path, slurm, command, typed, message):
    code, _printed, stderr = command("slurm", *typed, "--out", str(tmp_path / "run"))
    assert code == 2, stderr
    assert message in stderr
    assert slurm.submitted == [] and not (tmp_path / "run").exists()


def test_the_command_line_submits_and_shows_progress(tmp_path, slurm, command):
    out = tmp_path / "run"
    typed = ["eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "stoi", "--limit", "6"]
    code, printed, stderr = command("slurm", *typed, "--out", str(out), "--parts", "3", "--gpus-per-part", "1")
    assert code == 0, stderr
    assert "submitted 3 of 3 parts as job 101" in stderr
    assert read_submission(out).command == tuple(typed)
    assert "--gres=gpu:1" in slurm.submitted[0]
    assert not any("--cpus-per-task" in job for job in slurm.submitted), "the cluster chooses, if nobody says how many"
    code, printed, stderr = command("progress", str(out), "--json")
    assert code == 0, stderr
    rows = json.loads(printed)
    assert [row["state"] for row in rows] == ["waiting"] * 3


def test_every_part_has_the_cpus_that_were_requested_also_when_it_is_submitted_again(tmp_path, slurm, command):
    out = tmp_path / "run"
    typed = ["slurm", "eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "stoi", "--limit", "6"]
    typed += ["--out", str(out), "--parts", "3"]
    code, _, stderr = command(*typed, "--cpus-per-part", "0")
    assert (code, slurm.submitted) == (2, []) and "cpus is 0; expected at least 1" in stderr
    code, _, stderr = command(*typed, "--cpus-per-part", "5")
    assert code == 0, stderr
    began(out, read_submission(out), 1, 2, 3)
    finish(out, 2)
    code, _, stderr = command("slurm", "--go-on", "--out", str(out))
    assert code == 0 and "submitted 2 of 3 parts" in stderr, stderr
    first, merge, again, merge_again = slurm.submitted
    assert "--cpus-per-task=5" in first and "--cpus-per-task=5" in again and "--array=1,3" in again
    assert "--cpus-per-task" not in merge + merge_again, "what merges needs one"
