"""Shards as an array of jobs under Slurm, and a job that merges them.

`submit` writes two scripts to `OUT/slurm`: an array whose job K runs the command with `--shard K/N` into `OUT/parts/K`,
and a merge job that starts when the array has ended. It merges, or submits missing parts and itself again; parts
continue where they were. A part submitted `ROUNDS` times without another finished item has failed; cancelled parts stay
cancelled. The scripts hold option values, so only the user may read the folder. Source: the manuals
https://slurm.schedmd.com/sbatch.html and https://slurm.schedmd.com/job_array.html.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from codec_bench.apps.cluster.parts import progress_of
from codec_bench.messages.errors import UserError, first_of, on_disk
from codec_bench.store.files import read_json, write_json
from codec_bench.store.integrity import DATABASE
from codec_bench.store.parts import MARK

ROUNDS = 3
"""Submissions of a part without another finished item before it counts as failed."""
FOLDER, STATE = "slurm", "slurm.json"
ENDED = "part.ended"
"""Marks a part whose command, possibly with several runs, has succeeded."""
_ID = re.compile(r"[0-9]+")
_TIME = re.compile(r"(\d+-)?\d+(:\d+){0,2}")
_ENDED_EARLY = re.compile(r"\*\*\* (?:JOB|STEP) .* CANCELLED AT \S+(?P<why>.*) \*\*\*")
"""Slurm's line on ending a job, with a reason unless a person cancelled it."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of each part.

    Args:
        cpus: None for the cluster's default.
        time: limit of one round, as sbatch writes it, such as `4:00:00`; None for the cluster's.
        partition: None for the cluster's default.
        at_once: concurrent parts; None for all that fit.
        more: further arguments of sbatch.

    Raises:
        UserError: a number is too small, or the time is not in sbatch's format.
    """

    gpus: int = 0
    cpus: int | None = None
    time: str | None = None
    partition: str | None = None
    at_once: int | None = None
    more: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, least in (("gpus", self.gpus, 0), ("cpus", self.cpus, 1), ("at_once", self.at_once, 1)):
            if value is not None and value < least:
                raise UserError("below_least", name=name, value=value, least=least)
        if self.time is not None and not _TIME.fullmatch(self.time):
            raise UserError("time_limit_form", value=self.time)

    def arguments(self) -> list[str]:
        """As arguments of sbatch."""
        return [
            *([f"--gres=gpu:{self.gpus}"] if self.gpus else []),
            *([f"--cpus-per-task={self.cpus}"] if self.cpus else []),
            *([f"--time={self.time}"] if self.time else []),
            *([f"--partition={self.partition}"] if self.partition else []),
            *self.more,
        ]


@dataclass(frozen=True, slots=True)
class Submission:
    """The submission of one run.

    Args:
        command: of each part, without `--shard` and `--out`.
        program: starts `codec-bench` in the merge job.
        empty: the numbers of parts without samples, which are not run.
        jobs: of the last round: the array, or several joined by `:`, and the merge job.
        tries: of each part of the last round, submissions since it last finished an item, and items finished then.
    """

    command: tuple[str, ...]
    program: tuple[str, ...]
    parts: int
    resources: Resources
    empty: tuple[int, ...] = ()
    jobs: Mapping[str, str] = field(default_factory=dict)
    tries: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def needed(self) -> list[int]:
        """Numbers of the parts with samples, from 1."""
        return sorted(set(range(1, self.parts + 1)) - set(self.empty))


def submit(
    command: Sequence[str], program: Sequence[str], out: Path, parts: int, resources: Resources,
    empty: Collection[int] = ()
) -> Submission:  # fmt: skip
    """Submit all unfinished parts, or only a missing merge job.

    Args:
        command: `eval`, `score` or `run` with its options, without `--shard` and `--out`.
        program: starts `codec-bench` on the nodes.
        out: the folder of the merged run, on a file system that all nodes share.
        parts: number of shards.
        empty: the numbers of those without samples.

    Raises:
        UserError: there is no Slurm here, it refuses a job, another command was submitted for this folder, or its jobs
            are in the queue.
    """
    submission = Submission(tuple(command), tuple(program), parts, resources, tuple(sorted(empty)))
    before = read_submission(out)
    if before is not None:
        if (before.command, before.parts) != (submission.command, submission.parts):
            raise UserError(
                "folder_of_other_command",
                folder=out,
                command=shlex.join(before.command),
                parts=before.parts,
                hint="give another --out",
            )
        queued = _queued(out)
        if queued and _names(out)[1] not in queued.values():
            arrays = sorted({job.partition("_")[0] for job in queued}, key=int)
            return _submit_merge(replace(before, jobs={"parts": ":".join(arrays)}), out)
        if queued:
            raise UserError(
                "jobs_in_queue",
                count=len(queued),
                folder=out,
                jobs=first_of(list(queued), 5),
                hint=f"codec-bench progress {out} shows how far they are",
            )
    left = unfinished_parts(out, submission.needed)
    if not left:
        raise UserError(
            "parts_finished", parts=parts, folder=out, hint=f"codec-bench merge {out / 'parts'} --out {out}"
        )
    return _submit(replace(submission, tries={number: (1, _items(out, number)) for number in left}), out)


def resume_submission(out: Path) -> Submission | None:
    """Submit unfinished parts again, as the merge job does; None if all are finished.

    Raises:
        UserError: nothing was submitted for this folder, Slurm refuses, a part was cancelled, or the rest was submitted
            `ROUNDS` times without finishing one more item.
    """
    before = read_submission(out)
    if before is None:
        raise UserError("nothing_submitted", folder=out, hint="codec-bench slurm eval ... --out DIR submits a run")
    left = unfinished_parts(out, before.needed)
    if not left:
        return None
    array = before.jobs.get("parts")
    cancelled = [number for number in left if number in before.tries and array and _was_cancelled(out, array, number)]
    if cancelled:
        raise UserError(
            "parts_cancelled",
            count=len(cancelled),
            parts=before.parts,
            ranges=_ranges(cancelled),
            hint="the same codec-bench slurm command goes on where they ended",
        )
    tries: dict[int, tuple[int, int]] = {}
    for number in sorted({*left} & {*before.tries}):  # others had failed before the last round
        times, items = before.tries[number]
        now = _items(out, number)
        if now > items or times < ROUNDS:
            tries[number] = (1 if now > items else times + 1, now)
    if not tries:
        raise UserError(
            "parts_failed",
            count=len(left),
            parts=before.parts,
            times=ROUNDS,
            ranges=_ranges(left),
            hint=f"their output is in {out / FOLDER}; the same codec-bench slurm command submits them anew",
        )
    return _submit(replace(before, tries=tries), out)


def unfinished_parts(out: Path, needed: Sequence[int]) -> list[int]:
    """Return numbers of parts whose command failed, or left a run without its mark."""
    return [number for number in needed if not _is_finished(part_folder(out, number))]


def _is_finished(folder: Path) -> bool:
    runs = [path.parent for path in folder.rglob(DATABASE)]
    return (folder / ENDED).is_file() and bool(runs) and all((run / MARK).is_file() for run in runs)


def _items(out: Path, number: int) -> int:
    return progress_of([part_folder(out, number)])[0].done


def _was_cancelled(out: Path, arrays: str, number: int) -> bool:
    """Whether Slurm's output says that a part was cancelled, or it never began."""
    for array in reversed(arrays.split(":")):
        try:
            log = (out / FOLDER / f"{array}_{number}.log").read_text("utf-8", "replace")
        except OSError:
            continue
        ended = list(_ENDED_EARLY.finditer(log))
        return bool(ended) and not ended[-1]["why"]
    return not part_folder(out, number).exists()


def part_folder(out: Path, number: int | str) -> Path:
    """Return the run folder of the part with this number."""
    return out / "parts" / str(number)


def read_submission(out: Path) -> Submission | None:
    """Read the submitted jobs of a folder; None without a file, UserError if damaged."""
    path = out / FOLDER / STATE
    if not path.is_file():
        return None
    held = read_json(path)
    try:
        resources = Resources(**{**held["resources"], "more": tuple(held["resources"]["more"])})
        command, program, empty = (tuple(held[name]) for name in ("command", "program", "empty"))
        tries = {int(number): (times, items) for number, (times, items) in held["tries"].items()}
        return Submission(command, program, held["parts"], resources, empty, held["jobs"], tries)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError("submission_unreadable", path=path, cause=error, hint="give another --out") from error


def _submit(submission: Submission, out: Path) -> Submission:
    """Write job scripts and state, and submit the parts and the merge job.

    Returns:
        The submission with the ids of its jobs.
    """
    folder = out / FOLDER
    state = folder / STATE
    with on_disk("file_not_writable", path=folder):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        (folder / "part.sh").write_text(_part_script(submission, out))
        (folder / "merge.sh").write_text(_merge_script(submission, out))
        before = state.read_bytes() if state.is_file() else None
    write_json(state, asdict(replace(submission, jobs={})))
    limit = f"%{submission.resources.at_once}" if submission.resources.at_once else ""
    try:
        array = _sbatch(
            *submission.resources.arguments(),
            f"--array={_ranges(sorted(submission.tries))}{limit}",
            f"--job-name={_names(out)[0]}",
            f"--output={folder}/%A_%a.log",
            str(folder / "part.sh"),
        )
    except UserError:  # nothing was submitted, so the folder belongs to no command that it did not belong to before
        state.write_bytes(before) if before is not None else state.unlink(missing_ok=True)
        raise
    done = replace(submission, jobs={"parts": array})
    write_json(state, asdict(done))
    return _submit_merge(done, out)


def _submit_merge(submission: Submission, out: Path) -> Submission:
    """Submit the merge job after the parts, which run on if Slurm refuses it."""
    folder, array = out / FOLDER, submission.jobs["parts"]
    partition = [f"--partition={submission.resources.partition}"] if submission.resources.partition else []
    try:
        merge = _sbatch(
            *partition,
            *submission.resources.more,
            f"--dependency=afterany:{array}",
            f"--job-name={_names(out)[1]}",
            f"--output={folder}/%j.log",
            str(folder / "merge.sh"),
        )
    except UserError as error:
        raise UserError(
            "merge_job_missing",
            job=array.replace(":", " "),
            cause=error.message,
            hint=f"the same codec-bench slurm command submits that job alone; scancel {array.replace(':', ' ')} "
            f"cancels the parts",
        ) from error
    done = replace(submission, jobs={"parts": array, "merge": merge})
    write_json(folder / STATE, asdict(done))
    return done


def _names(out: Path) -> tuple[str, str]:
    """Return the job names of a run folder: of the parts, and of the merge job."""
    mark = blake2b(str(out.resolve()).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return f"codec-bench-{mark}", f"codec-bench-merge-{mark}"


def _part_script(submission: Submission, out: Path) -> str:
    """Format the shell script of one part, an element of Slurm's job array."""
    number = "$SLURM_ARRAY_TASK_ID"
    command = shlex.join([*submission.program, *submission.command])
    folder = shlex.quote(str(part_folder(out.resolve(), "")))
    # 3 means finished with failures of single items, which are in the record.
    return f"""#!/bin/bash
#SBATCH --open-mode=append
{command} --shard "{number}/{submission.parts}" --out {folder}/"{number}"
code=$?
if [ $code -eq 0 ] || [ $code -eq 3 ]; then touch {folder}/"{number}"/{ENDED}; fi
exit $code
"""


def _merge_script(submission: Submission, out: Path) -> str:
    return f"""#!/bin/bash
#SBATCH --open-mode=append
exec {shlex.join([*submission.program, "slurm", "--go-on", "--out", str(out.resolve())])}
"""


def _sbatch(*arguments: str) -> str:
    """Submit a job by `sbatch` with these arguments, and return its id."""
    done = _called("sbatch", "--parsable", *arguments)
    match = _ID.match(done)
    if match is None:
        raise UserError("sbatch_output", output=done)
    return match.group()


def _queued(out: Path) -> dict[str, str]:
    """Return the waiting and running jobs of a run folder by name."""
    output = _called("squeue", "--noheader", "--array", "--format=%i %j", f"--name={','.join(_names(out))}")
    return {job: name for job, _, name in (line.partition(" ") for line in output.splitlines())}


def _called(program: str, *arguments: str) -> str:
    """Run a program of Slurm, and return its output; raises UserError if it fails."""
    if shutil.which(program) is None:
        raise UserError("no_slurm_program", program=program, hint="run this command where jobs are submitted to Slurm")
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode:
        message = " ".join((done.stderr or done.stdout).split())
        hint = "--sbatch passes further arguments to sbatch"
        if "Invalid job array specification" in message:
            hint = "give fewer --parts: Slurm allows less than its MaxArraySize, which scontrol show config prints"
        raise UserError("slurm_refused", program=program, cause=message, hint=hint)
    return done.stdout.strip()


def _ranges(numbers: Sequence[int]) -> str:
    """Format numbers for sbatch: `1-3,7`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)
