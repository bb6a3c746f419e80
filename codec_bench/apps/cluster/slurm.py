"""Shards as an array of jobs under Slurm, and a job that merges them when all have ended.

How it works
    `submit` writes two scripts into `OUT/slurm`. The first is an array: its job K runs the command with `--shard K/N` into
    `OUT/parts/K`. The second starts when every job of the array has ended, however it ended. It looks at the marks of the
    parts. If all are there it merges them into `OUT`. If not, it submits those that are missing once more, at most `ROUNDS`
    times in all, and then itself.
    A job that Slurm ends early, by its time limit or because its node is lost, so costs a round and no results: its command
    continues the part where it was.

Source: the manual of sbatch (https://slurm.schedmd.com/sbatch.html) and of job arrays (https://slurm.schedmd.com/job_array.html).
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from codec_bench.errors import UserError
from codec_bench.store.files import read_json, write_json
from codec_bench.store.integrity import DATABASE
from codec_bench.store.parts import MARK

ROUNDS = 3
"""How often a part is submitted before it counts as failed."""
FOLDER, STATE = "slurm", "slurm.json"
ENDED = "part.ended"
"""The file in a part's folder that says that its command has ended well. A command may make several runs."""
_ID = re.compile(r"[0-9]+")
_TIME = re.compile(r"(\d+-)?\d+(:\d+){0,2}")


@dataclass(frozen=True, slots=True)
class Resources:
    """What Slurm gives to each part.

    Args:
        gpus: how many GPUs. cpus: how many CPUs; None for what the cluster gives.
        time: the longest that one round of a part may take, as sbatch writes it, such as `4:00:00`; None for the cluster's limit.
        partition: where it runs; None for the cluster's default. at_once: how many parts run at a time; None for all that fit.
        more: further arguments of sbatch.

    Raises:
        UserError: a number is too small, or the time is not written as sbatch reads it.
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
                raise UserError(f"{name} is {value}; expected at least {least}")
        if self.time is not None and not _TIME.fullmatch(self.time):
            raise UserError(
                f"the time limit is {self.time!r}; expected minutes, hours:minutes:seconds or days-hours:minutes"
            )

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
    """What was submitted for one run.

    Args:
        command: what each part runs, without `--shard` and `--out`. program: what the merge job starts `codec-bench` with.
        parts: how many there are. resources: of each. rounds: how often parts were submitted.
        jobs: of the last round: the array and the job that merges. waiting_for: the parts of the last round.
    """

    command: tuple[str, ...]
    program: tuple[str, ...]
    parts: int
    resources: Resources
    rounds: int = 0
    jobs: Mapping[str, str] = field(default_factory=dict)
    waiting_for: tuple[int, ...] = ()


def submit(command: Sequence[str], program: Sequence[str], out: Path, parts: int, resources: Resources) -> Submission:
    """Submits all parts of a run that are not finished.

    Args:
        command: `eval` or `score` with its options, without `--shard` and `--out`.
        program: what starts `codec-bench` on the nodes.
        out: the folder of the merged run, on a file system that all nodes share.
        parts: how many shards there are. resources: what each gets.

    Raises:
        UserError: there is no Slurm here, it refuses the job, another command was submitted for this folder, or a part of an
            earlier call is still in the queue.
    """
    asked = Submission(tuple(command), tuple(program), parts, resources)
    before = read_submission(out)
    if before is not None:
        if (before.command, before.parts) != (asked.command, asked.parts):
            raise UserError(
                f"'{out}' belongs to another command: {shlex.join(before.command)} in {before.parts} parts",
                hint="give another --out",
            )
        if queued := _queued(before):
            raise UserError(
                f"{len(queued)} jobs of '{out}' are in the queue already: {', '.join(queued[:5])}",
                hint=f"codec-bench progress {out} shows how far they are",
            )
    left = unfinished(out, parts)
    if not left:
        raise UserError(
            f"all {parts} parts in '{out}' are finished", hint=f"codec-bench merge {out / 'parts'} --out {out}"
        )
    return _submit(asked, out, left)


def go_on(out: Path) -> Submission | None:
    """Submits the parts that are not finished once more, as the merge job does; None if all are finished.

    Raises:
        UserError: nothing was submitted for this folder, Slurm refuses, or a part was submitted `ROUNDS` times.
    """
    before = read_submission(out)
    if before is None:
        raise UserError(f"nothing was submitted for '{out}'", hint="codec-bench slurm eval ... --out DIR submits a run")
    left = unfinished(out, before.parts)
    if not left:
        return None
    if before.rounds >= ROUNDS:
        raise UserError(
            f"{len(left)} of {before.parts} parts failed {ROUNDS} times: {_ranges(left)}",
            hint=f"their output is in {out / FOLDER}; the same codec-bench slurm command submits them anew",
        )
    return _submit(before, out, left)


def unfinished(out: Path, parts: int) -> list[int]:
    """The numbers of the parts whose command has not ended well, or has left a run without its mark."""
    return [number for number in range(1, parts + 1) if not _is_finished(part_folder(out, number))]


def _is_finished(folder: Path) -> bool:
    runs = [path.parent for path in folder.rglob(DATABASE)]
    return (folder / ENDED).is_file() and bool(runs) and all((run / MARK).is_file() for run in runs)


def part_folder(out: Path, number: int | str) -> Path:
    """The run folder of a part."""
    return out / "parts" / str(number)


def read_submission(out: Path) -> Submission | None:
    """What was submitted for a folder; None if nothing was.

    Raises:
        UserError: the file that says so cannot be read.
    """
    path = out / FOLDER / STATE
    if not path.is_file():
        return None
    held = read_json(path)
    try:
        resources = Resources(**{**held["resources"], "more": tuple(held["resources"]["more"])})
        command, program, waiting = (tuple(held[name]) for name in ("command", "program", "waiting_for"))
        return Submission(command, program, held["parts"], resources, held["rounds"], held["jobs"], waiting)
    except (KeyError, TypeError) as error:
        raise UserError(f"'{path}' does not say what was submitted: {error}", hint="give another --out") from error


def _submit(asked: Submission, out: Path, left: Sequence[int]) -> Submission:
    folder = out / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part.sh").write_text(_part_script(asked, out))
        (folder / "merge.sh").write_text(_merge_script(asked, out))
    except OSError as error:
        raise UserError(f"'{folder}' cannot be written: {error.strerror or error}") from error
    limit = f"%{asked.resources.at_once}" if asked.resources.at_once else ""
    array = _sbatch(
        f"--array={_ranges(left)}{limit}",
        f"--output={folder}/%A_%a.log",
        *asked.resources.arguments(),
        str(folder / "part.sh"),
    )
    partition = [f"--partition={asked.resources.partition}"] if asked.resources.partition else []
    merge = _sbatch(
        f"--dependency=afterany:{array}",
        f"--output={folder}/%j.log",
        *partition,
        *asked.resources.more,
        str(folder / "merge.sh"),
    )
    jobs = {"parts": array, "merge": merge}
    done = replace(asked, rounds=asked.rounds + 1, jobs=jobs, waiting_for=tuple(left))
    write_json(folder / STATE, asdict(done))
    return done


def _part_script(asked: Submission, out: Path) -> str:
    number = "$SLURM_ARRAY_TASK_ID"
    command = shlex.join([*asked.program, *asked.command])
    place = shlex.quote(str(part_folder(out.resolve(), "")))
    # 3 means finished with failures of single items, which are in the record.
    return f"""#!/bin/bash
#SBATCH --job-name=codec-bench
#SBATCH --open-mode=append
{command} --shard "{number}/{asked.parts}" --out {place}/"{number}"
code=$?
if [ $code -eq 0 ] || [ $code -eq 3 ]; then touch {place}/"{number}"/{ENDED}; fi
exit $code
"""


def _merge_script(asked: Submission, out: Path) -> str:
    return f"""#!/bin/bash
#SBATCH --job-name=codec-bench-merge
#SBATCH --open-mode=append
exec {shlex.join([*asked.program, "slurm", "--go-on", "--out", str(out.resolve())])}
"""


def _sbatch(*arguments: str) -> str:
    """Submits a job; returns its id."""
    done = _called("sbatch", "--parsable", *arguments)
    found = _ID.match(done)
    if found is None:
        raise UserError(f"sbatch said {done!r}; expected the number of a job")
    return found.group()


def _queued(submission: Submission) -> list[str]:
    """The jobs of a submission that are waiting or running."""
    ids = ",".join(submission.jobs.values())
    if not ids:
        return []
    try:
        return _called("squeue", "--noheader", "--array", "--format=%i", f"--jobs={ids}").split()
    except UserError as error:  # squeue refuses jobs that it has forgotten
        if "Invalid job id" in error.message:
            return []
        raise


def _called(program: str, *arguments: str) -> str:
    if shutil.which(program) is None:
        raise UserError(
            f"there is no '{program}' on this machine", hint="run this command where jobs are submitted to Slurm"
        )
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise UserError(f"{program} refused: {said}", hint="further arguments of sbatch can be given by --sbatch")
    return done.stdout.strip()


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers as sbatch reads them: `1-3,7`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in found)
