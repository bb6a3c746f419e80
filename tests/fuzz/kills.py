"""Kills commands at random moments and compares what they end with: `python tests/fuzz/kills.py --kills 300` (`make
kills`).

For each of `eval`, `score`, `run`, and shards with their merging, a run without any kill gives the expected rows. Then
the same command is started, and its process or one of its workers is killed (SIGKILL) at a random moment. This is
repeated until the command ends by itself. Its record must then be whole, and its rows must be equal to the expected
ones. Of `paid`, a run whose model is a service that charges, every answer that the service gave must be in the record
after each kill, except those in flight. `rounds` is such a run of questions in several rounds; its answers and turns
are compared too. Of `ray`, a run on a Ray cluster on this machine, actors, their workers and raylets are killed as
well; it is skipped where Ray is not installed. Conversations are killed by `tests/fuzz/talks.py`.

An item that was alone in a worker twice when the worker was killed is given up, and a question that a model's process
had
when it was killed: the command ends with 3, and the reason of each failed score says so. With `--retry-failed` it must
then end with the expected rows. A command ends with 2 where two workers were killed while they loaded the same thing;
it must go on as after a kill.

While some of the starts run, their folder is copied (`cp -r`), and at the end the finished folder is copied over that
copy. The copy must then read as the finished folder, or be refused; the command, given the copy, must ask nothing and
write nothing into what is refused; and with the files deleted that SQLite left, it must read as the finished folder.

Some of the starts have something else instead: a clock that is two days back (needs the package `faketime`), a folder
that is removed while the command writes into it, or a disk that becomes full (needs the right to mount one). The exit
code of this script is 1 if there was any fault.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Container, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import soundfile
import yaml
from paid_service import SLOTS, Service
from raylets import LIMITS, Raylets, end_all

from codec_bench import Audio, open_run
from codec_bench.data.source import REGISTERED
from codec_bench.messages.errors import UserError
from codec_bench.store.answers import exchanges
from codec_bench.store.rescue import verify_record

COMMAND = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]
MODELS = """
import asyncio

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response


class Echo(Model):
    info = ModelInfo("echo", inputs=("text", "audio"), outputs=("text", "audio"))
    identity = {"echo": "1"}

    async def ask(self, request):
        await asyncio.sleep(0.02)
        sound = next((part for part in request.messages[-1].content if not isinstance(part, str)), None)
        if sound is not None:
            return Response(audio=sound.read())
        return Response(text=request.messages[-1].content[-1].rpartition("|")[2].strip())
"""
QUESTIONS = {
    "version": 1, "title": "Text", "summary": "Questions that are repeated.", "category": "QA", "kind": "qa",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]},
    "metrics": ["accuracy[exact]", "wer[answer]", "bleu[13a]"], "primary": "accuracy[exact]",
}  # fmt: skip
ROUNDS = {
    **QUESTIONS, "title": "Rounds", "summary": "Questions in one to four rounds.",
    "data": {"path": "rows.jsonl", "id": "id",
        "columns": {"audio": ["a.0", "a.1", "a.2", "a.3"], "question": "id", "reference": "right"}},
    "prompt": {"rounds": "audio", "messages": [{"content": [{"audio": "audio"}, "{{ question }}"]}]},
}  # fmt: skip
CLOCK = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""The library that gives a process another clock, where the package `faketime` is installed."""
REFUSED, FAILED = 2, 3
"""The exit codes of a command that cannot go on, and of one that has ended with failures."""
NOT_LOADED = re.compile(
    r"ended \(killed by signal 9\) while loading '[^']+', and so did the one before it"
    r"|could not be started: the model's process ended \(killed by signal 9\)"
)
"""What a command says of which two workers were killed while they loaded the same thing, or the process of a model."""
ABANDONED = re.compile(r"the (worker process died 2 times|model's process ended) \(killed by signal 9\)")
"""What the reason says of a score whose item was given up, or whose question was with a model that was killed."""
LIMIT_S = 600.0
"""How long one start may take before it counts as a hang."""


@dataclass(slots=True)
class Job:
    """A command that is killed, and what it must end with."""

    name: str
    arguments: Sequence[str]
    location: Path
    program: Sequence[str] = tuple(COMMAND)
    record: str = ""
    """Where below its folder the command writes the record that is compared."""
    expected: dict[tuple, tuple] | None = None
    took_s: float = 0.0
    """How long the whole command takes without a kill."""
    started_s: float = 0.0
    """How long the command takes when everything is in its record already: what every start takes at least."""
    service: Service | None = None
    """Who answers the command's questions."""
    ends: tuple[int, ...] = (0,)
    """The exit codes of a command that has ended by itself."""
    cluster: Raylets | None = None
    """Where the command's work is done, if not by its own processes."""
    title: str = ""
    """What it is called here; the name is that of the command."""

    def __post_init__(self) -> None:
        self.title = self.title or self.name

    def rows(self, out: Path) -> dict[tuple, tuple]:
        """What the command has made, to be compared; an error if it is not whole."""
        return rows_of(out / self.record, "**/run.sqlite" if self.cluster is None else "run.sqlite")

    def close(self) -> None:
        """Ends the cluster, if there is one."""
        if self.cluster is not None:
            self.cluster.close()

    def start(self, out: Path, clock: str | None = None, further: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Starts the command; `clock` is what its clock is off by, such as `-2d`, and `further` are more arguments."""
        shifted = {"LD_PRELOAD": str(CLOCK), "FAKETIME": clock} if clock else {}
        with (self.location / "errors").open("w") as errors:
            return subprocess.Popen(
                [*self.program, self.name, *self.arguments, *further, "--out", str(out), "--no-cache"],
                cwd=self.location,
                env={**os.environ, **shifted}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip

    def text(self) -> str:
        """What the last start said on its standard error."""
        return (self.location / "errors").read_text("utf-8", "replace")


def eval_job(location: Path) -> Job:
    """Three codecs, with metrics in this process and in workers."""
    codecs = "unprocessed,opus-12k,g711-ulaw"
    return Job(
        "eval",
        ("--codec", codecs, "--data", "embedded", "--metrics", "stoi,pesq_wb,si_sdr,bitrate", "--workers", "2"),
        location,
    )


def score_job(location: Path) -> Job:
    """Two folders of made sound against the embedded speech."""
    for number, system in enumerate(("quiet", "loud")):
        (location / system).mkdir()
        for path in sorted(REGISTERED["embedded"].rglob("*.flac")):
            clip = Audio.read(path)
            rng = random.Random(f"{path.stem}{number}")
            samples = clip.samples * (0.3 + 0.2 * number) * rng.uniform(0.9, 1.0)
            soundfile.write(location / system / f"{path.stem}.wav", samples.T, clip.sample_rate_hz, subtype="FLOAT")
    requested = (
        "--generated",
        "quiet=quiet,loud=loud",
        "--data",
        "embedded",
        "--metrics",
        "stoi,pesq_wb,dnsmos",
        "--workers",
        "2",
    )
    return Job("score", requested, location)


def questions(location: Path) -> None:
    """The benchmark `./text`: 400 questions in text."""
    folder = location / "text"
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(QUESTIONS))
    (folder / "README.md").write_text("# text\n")
    rows = [{"id": f"r{n:04d}", "q": f"{n} | {n % 7} of {n % 3}", "right": f"{n % 5} of {n % 3}"} for n in range(400)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run_job(location: Path) -> Job:
    """Questions in text, answered by a model of one file: both the answers and the scores are killed."""
    questions(location)
    (location / "models.py").write_text(MODELS)
    return Job("run", ("./text", "--model", "./models.py:Echo"), location)


def paid_job(location: Path) -> Job:
    """The same questions, answered by a service that charges."""
    questions(location)
    service = Service()
    requested = ("./text", "--model", "openai-chat")
    settings = {"base_url": service.url, "model": "m", "concurrency": SLOTS}
    options = [word for name, value in settings.items() for word in ("--set", f"openai-chat.{name}={value}")]
    return Job("run", (*requested, *options), location, service=service)


class Conversing(Job):
    """A run whose questions have several rounds: beside the scores, what was answered in each round is compared."""

    def rows(self, out: Path) -> dict[tuple, tuple]:
        """The rows of any run, and of each question the words of all its answers."""
        result = Job.rows(self, out)
        for database in out.glob("**/run.sqlite"):
            with closing(open_run(database.parent)) as run:
                for one in exchanges(run):
                    text = (*(turn.text for turn, _ in one.turns), one.answer.text)
                    result["said", one.question.id] = (text, one.answer.status, one.answer.reason, one.question.prompt)
        return result


def summed(question: str, messages: list[dict[str, Any]]) -> str:
    """An answer that follows from everything that was asked and answered before it."""
    return f"{zlib.crc32(json.dumps(messages).encode()) % 97} of {question}"


def rounds_job(location: Path) -> Job:
    """150 questions in one to four rounds, each a sound of its own, answered by a service that charges."""
    folder = location / "rounds"
    (folder / "sounds").mkdir(parents=True)
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(ROUNDS))
    (folder / "README.md").write_text("# rounds\n")
    rows = []
    for n in range(150):
        names = [f"sounds/{n}-{at}.wav" for at in range(1 + n % 4)]
        for at, name in enumerate(names):
            soundfile.write(folder / name, [0.001 * (n + 1), 0.1 * (at + 1)] * 400, 16_000)
        rows.append({"id": f"r{n:04d}", "a": names, "right": f"{n % 97} of r{n:04d}"})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    service = Service(summed)
    settings = {"base_url": service.url, "model": "m", "concurrency": SLOTS}
    options = [word for name, value in settings.items() for word in ("--set", f"openai-chat.{name}={value}")]
    return Conversing(
        "run", ("./rounds", "--model", "openai-chat", *options), location, service=service, title="rounds"
    )


SHARDS = """
import sys
from codec_bench.cli import main

_, _, *asked, out, _ = sys.argv  # the name, the options of eval, --out, the folder, --no-cache
steps = [["eval", *asked[:-1], "--shard", f"{k}/3", "--out", f"{out}/parts/{k}", "--no-cache"] for k in (1, 2, 3)]
for step in [*steps, ["merge", f"{out}/parts", "--out", f"{out}/whole"]]:
    sys.argv = ["codec-bench", *step]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def shards_job(location: Path) -> Job:
    """Three shards after each other, and their merging, in one process: what is compared is the merged record."""
    steps = location / "steps.py"
    steps.write_text(SHARDS)
    job = eval_job(location)
    return Job("shards", job.arguments, location, program=(sys.executable, "-P", str(steps)), record="whole")


def ray_job(location: Path) -> Job:
    """The codecs of `eval` on a Ray cluster of two nodes, an actor on each."""
    os.environ |= {f"RAY_{name}": str(limit) for name, limit in LIMITS.items()} | {"RAY_USAGE_STATS_ENABLED": "0"}
    os.environ.pop("RAY_ADDRESS", None)
    job, cluster = eval_job(location), Raylets(2)
    on_it = ("--executor", "ray", "--ray-address", cluster.address, "--cpus-per-actor", "1", "--shards", "6")
    return Job("eval", (*job.arguments[:-2], *on_it), location, cluster=cluster)


JOBS = {
    "eval": eval_job, "score": score_job, "run": run_job, "paid": paid_job, "rounds": rounds_job, "shards": shards_job,
    "ray": ray_job,
}  # fmt: skip


class DamagedCopy(AssertionError):
    """A record is not whole, which only one that was copied over another may be."""


def copied(source: Path, target: Path) -> None:
    """Copies a folder as people do it: what the target has and the source has not, stays."""
    target.mkdir(exist_ok=True)
    # Files may vanish meanwhile, which `cp` says.
    subprocess.run(["cp", "-r", f"{source}/.", f"{target}/"], capture_output=True, check=False)


def is_refused(database: Path) -> bool:
    """Whether a record is refused by who opens it."""
    try:
        open_run(database.parent).close()
    except UserError:
        return True
    return False


def contents_of(folder: Path, parts: Container[Path]) -> dict[Path, str]:
    """A hash of every record, and of what SQLite has next to it, in such folders below a folder."""
    return {
        path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("run.sqlite*")
        if path.suffix != ".sqlite-shm" and path.stat().st_size and path.parent.relative_to(folder) in parts
    }


def rows_of(out: Path, where: str = "**/run.sqlite") -> dict[tuple, tuple]:
    """Everything that the records below a folder say of the scores; an error if one is not whole."""
    results: dict[tuple, tuple] = {}
    for database in sorted(out.glob(where)):
        damaged = [check for check in verify_record(database.parent) if not check.is_intact]
        if damaged:
            raise DamagedCopy(f"the record is damaged: {damaged}")
        with closing(open_run(database.parent)) as run:
            for score in run.scores():
                key = (score.system, score.id, score.metric)
                if key in results:
                    raise AssertionError(f"the row {key} is doubled")
                results[key] = (score.value, score.status, score.reason, score.protocol)
    return results


def workers_of(pid: int) -> list[int]:
    """The processes below a process."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            below.setdefault(int((entry / "stat").read_text().rpartition(")")[2].split()[1]), []).append(
                int(entry.name)
            )
        except OSError:
            continue
    results, todo = [], [pid]
    while todo:
        children = below.get(todo.pop(), [])
        results += children
        todo += children
    return results


class Killing:
    """One series: a command and what is done to it until it ends by itself."""

    def __init__(self, job: Job, rng: random.Random, counts: Counter[str]) -> None:
        self.job, self.rng, self.counts = job, rng, counts
        self.copy: Path | None = None

    def series(self, out: Path, kills: int) -> int:
        """Kills a command up to so many times, lets it end, and compares. Returns how many kills there were."""
        done = 0
        if self.job.service is not None:
            self.job.service.sent.clear()
        while done < kills:
            clock = "-2d" if CLOCK and self.job.cluster is None and self.rng.random() < 0.15 else None
            process = self.job.start(out, clock)
            ended = self._kill(process, kills, out)
            if ended is not None and not (ended == REFUSED and NOT_LOADED.search(self.job.text())):
                if not self._gave_up(ended, out):
                    self._check_end(ended)
                break
            done += 1
            self.counts["ended while loading"] += ended is not None
            self.counts["under an earlier clock"] += clock is not None
        self.finish(out)
        return done

    def finish(self, out: Path) -> None:
        """Lets the command end without a kill, and compares its rows with the expected ones."""
        code = self.job.start(out).wait(LIMIT_S)
        if self._gave_up(code, out):
            self.counts["with items given up"] += 1
            code = self.job.start(out, further=["--retry-failed"]).wait(LIMIT_S)
        self._check_end(code)
        if self.job.rows(out) != self.job.expected:
            raise AssertionError("the rows are not those of the run without a kill")
        if self.copy is not None:
            self._check_copy(out, self.copy)
            shutil.rmtree(self.copy, ignore_errors=True)
            self.copy = None

    def _check_copy(self, out: Path, copy: Path) -> None:
        """Copies the finished folder over a copy that was taken while it was written, and reads and continues that."""
        copied(out, copy)
        # Of shards, the merged record may be whole and the parts that the command opens not; whole parts it may write.
        parts = {path.parent.relative_to(copy) for path in copy.rglob("run.sqlite") if is_refused(path)}
        before, sent = contents_of(copy, parts), self._sent()
        readable = self._reads_as_expected(copy)
        refused = not readable or bool(parts)
        code = self.job.start(copy).wait(LIMIT_S)
        allowed = {0} if not refused else {REFUSED, 0} if readable else {REFUSED}
        if "Traceback" in self.job.text() or code not in allowed:
            raise AssertionError(f"given a copy over a copy, the command ended with {code}:\n{self.job.text()[-2000:]}")
        if code == REFUSED and contents_of(copy, parts) != before:
            raise AssertionError("a record that is refused was written")
        for database in copy.rglob("run.sqlite"):
            for suffix in ("-wal", "-journal"):
                database.with_name(database.name + suffix).unlink(missing_ok=True)
        if not self._reads_as_expected(copy):
            raise AssertionError("without what SQLite left there, a copy over a copy is refused")
        code = self.job.start(copy).wait(LIMIT_S)
        self._check_end(code)
        if not self._reads_as_expected(copy) or self._sent() != sent:
            raise AssertionError("a copy over a copy was not continued as the finished run")
        self.counts["copies over copies"] += 1
        self.counts["of them refused"] += refused

    def _sent(self) -> int:
        return 0 if self.job.service is None else self.job.service.calls

    def _reads_as_expected(self, out: Path) -> bool:
        """Whether the rows are those of the run without a kill; False if a record is refused, with one sentence."""
        try:
            rows = self.job.rows(out)
        except (UserError, DamagedCopy):
            return False
        if rows != self.job.expected:
            raise AssertionError("a copy over a copy has other rows")
        return True

    def _gave_up(self, code: int, out: Path) -> bool:
        """Whether the command ended with failures, all of them of items that were alone in a worker twice when it was
        killed, or of questions that a model's process had when it was.
        """
        if code != FAILED or FAILED in self.job.ends:
            return False
        rows = self.job.rows(out) or rows_of(out)  # shards that ended so are not merged
        reasons = [str(reason) for _, status, reason, _ in rows.values() if status == "failed"]
        other = [reason for reason in reasons if not ABANDONED.search(reason)]
        if other:
            raise AssertionError(f"{len(reasons)} scores failed, such as: {other[0]}")
        return bool(reasons)

    def _check_end(self, code: int) -> None:
        if code not in self.job.ends or "Traceback" in self.job.text():
            raise AssertionError(f"the command ended with {code}:\n{self.job.text()[-2000:]}")

    def _kill(self, process: subprocess.Popen[bytes], kills: int, out: Path) -> int | None:
        """Kills the process, or first something of what works for it. Returns the exit code where it ended before.

        One kill in five falls into the start. The others leave the command the part of its work that lets the series
        last for about `kills` kills.
        """
        part_s = 2 * (self.job.took_s - self.job.started_s) / kills
        starting = self.rng.random() < 0.2
        time.sleep(
            self.rng.uniform(0, self.job.started_s) if starting else self.job.started_s + self.rng.uniform(0, part_s)
        )
        if self.copy is None and self.rng.random() < 0.3 and process.poll() is None and out.exists():
            self.copy = out.with_name(f"{out.name}-copy")
            copied(out, self.copy)
        while self.rng.random() < 0.4 and process.poll() is None and self._kill_other(process):
            time.sleep(self.rng.uniform(0, part_s))
        if process.poll() is not None:
            return process.returncode
        process.kill()
        process.wait()
        if self.job.service is not None:
            self.job.service.check(out, self.counts)
        return None

    def _kill_other(self, process: subprocess.Popen[bytes]) -> bool:
        """Kills something of what works for the process; whether there was anything."""
        cluster = self.job.cluster
        if cluster is None:
            kind, result = "of workers", workers_of(process.pid)
        else:
            kind = self.rng.choice(("of actors", "of actors' workers", "of raylets"))
            result = cluster.actors()
        if kind == "of raylets":
            cluster.kill_node(self.rng.choice(cluster.nodes))
            cluster.add()
        else:
            if kind == "of actors' workers":
                result = [below for actor in result for below in workers_of(actor)]
            end_all([self.rng.choice(result)] if result else [])
        self.counts[kind] += bool(result) or kind == "of raylets"
        return bool(result) or kind == "of raylets"

    def removed(self, out: Path) -> None:
        """Removes the folder while the command writes into it.

        It must say so, and begin anew when it is started again.
        """
        process = self.job.start(out)
        time.sleep(self.rng.uniform(0.3, 0.9) * self.job.took_s)
        was = out.exists()
        shutil.rmtree(out, ignore_errors=True)
        code = process.wait(LIMIT_S)
        if "Traceback" in self.job.text() or code not in (0, 2):
            raise AssertionError(f"with its folder removed, the command ended with {code}:\n{self.job.text()[-2000:]}")
        self.counts["folders removed"] += was
        shutil.rmtree(out, ignore_errors=True)
        self.finish(out)

    def full(self, disk: Path) -> None:
        """Runs on a disk that is too small. The command must say so and go on when there is room."""
        disk.mkdir()
        size = f"size={self.rng.randrange(60, 400)}k"
        if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", str(disk)], capture_output=True).returncode:
            return
        try:
            code = self.job.start(disk / "out").wait(LIMIT_S)
            if "Traceback" in self.job.text() or code not in (0, 2):
                raise AssertionError(f"on a full disk, the command ended with {code}:\n{self.job.text()[-2000:]}")
            self.counts["full disks"] += code == 2
            subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
            self.finish(disk / "out")
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=300, help="in all, over the jobs in turn")
    parser.add_argument("--job", action="append", choices=sorted(JOBS), help="only this; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with ExitStack() as opened:
            faults = _all(
                [_build(name, Path(folder), opened) for name in _there(requested.job)], requested.kills, requested.seed
            )
    return 1 if faults else 0


def _there(requests: Sequence[str] | None) -> list[str]:
    """The jobs that can be done here."""
    names = list(requests or sorted(JOBS))
    if "ray" in names and find_spec("ray") is None:
        print("ray: skipped, since Ray is not installed (the extra ray)", flush=True)
        names.remove("ray")
    return names


def _build(name: str, folder: Path, opened: ExitStack) -> Job:
    """A job in a folder of its own, which has run once without a kill."""
    target = folder / name
    target.mkdir()
    job = JOBS[name](target)
    job.title = name
    opened.callback(job.close)
    return calm(job)


def calm(job: Job) -> Job:
    """Runs the command without a kill, and notes what it ends with and how long it takes."""
    for _ in range(2):  # the first one may compile kernels
        shutil.rmtree(job.location / "calm", ignore_errors=True)
        start = time.monotonic()
        code = ended(job)
        job.took_s = time.monotonic() - start
        if code not in job.ends:
            raise SystemExit(f"{job.title} does not run:\n{job.text()}")
    job.expected = job.rows(job.location / "calm")
    start = time.monotonic()
    ended(job)
    job.started_s = min(time.monotonic() - start, job.took_s)
    shown = (
        f"{len(job.expected)} rows in {job.took_s:.1f} s without a kill, of which {job.started_s:.1f} s are the start"
    )
    print(f"{job.title}: {shown}", flush=True)
    return job


def ended(job: Job) -> int:
    """The exit code of a start without a kill."""
    process = job.start(job.location / "calm")
    try:
        return process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise SystemExit(
            f"{job.title} does not end in {LIMIT_S:.0f} s without a kill: take a quieter machine"
        ) from None


def _all(jobs: Sequence[Job], kills: int, seed: int) -> int:
    counts: Counter[str] = Counter()
    faults = number = 0
    while counts["kills"] < kills:
        job = jobs[number % len(jobs)]
        rng = random.Random(f"{seed}:{number}")
        killing, out = Killing(job, rng, counts), job.location / f"out{number}"
        try:
            if number % 12 == 10:
                killing.removed(out)
            elif number % 12 == 11:
                killing.full(out)
            else:
                counts["kills"] += killing.series(out, min(rng.randrange(1, 12), kills - counts["kills"]))
        except (AssertionError, subprocess.TimeoutExpired) as fault:
            faults += 1
            print(f"{job.title}, series {number} of seed {seed}: {fault}", flush=True)
        counts["series"] += 1
        shutil.rmtree(out, ignore_errors=True)
        number += 1
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print(f"{job.title}: {shown}, {faults} faults", flush=True)
    return faults


if __name__ == "__main__":
    sys.exit(main())
