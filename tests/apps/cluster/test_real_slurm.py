"""A run in parts under a real Slurm, on this machine alone: whatever happens to its jobs, what is merged is the run of
one machine.

The daemons run as root with a `slurm.conf` in a temporary folder, and end with the tests. Two nodes stand for two
machines.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from codec_bench import open_run
from codec_bench.data import open_source

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")
MISSING = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(MISSING), reason=f"no Slurm here: {', '.join(MISSING)} (Debian: slurm-wlm, munge)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons are started as root"),
]
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
KillWait=5
SlurmdTimeout=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
GresTypes=gpu
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=1000 Gres=gpu:1 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=1000 Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2
"""
METRICS = "stoi,si_sdr"
COMMAND = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]
SLOW = """
import os, time
from codec_bench.codecs.classical.g711 import G711

class Slow(G711):
    def __init__(self):
        super().__init__("ulaw")

    def encode(self, batch):
        # A part of a run is slow while there is a file that says so.
        while os.path.exists({hold!r}):
            time.sleep(0.1)
        return super().encode(batch)
"""


def called(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


def until(true, seconds, kind):
    """Waits until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{kind} took more than {seconds} s"
        time.sleep(0.2)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A Slurm of two nodes."""
    folder = tmp_path / "slurm"
    (folder / "state").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    with closing(socket.socket()) as a, closing(socket.socket()) as b, closing(socket.socket()) as c:
        for one in (a, b, c):
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in (a, b, c)]
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    (folder / "slurm.conf").write_text(CONFIG.format(host=host, folder=folder, ports=ports))
    (folder / "gres.conf").write_text("Name=gpu File=/dev/zero\n")
    monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    files = {name: f"--{name}-file={folder / name}" for name in ("log", "pid", "seed")}
    daemons = [
        [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={folder / 'munge.sock'}",
            *files.values(),
        ],
        ["slurmctld", "-D"],
        *(["slurmd", "-D", "-N", node] for node in ("n1", "n2")),
    ]
    running = {}
    try:
        for words in daemons:
            if words[0] == "slurmd":
                (folder / f"spool-{words[-1]}").mkdir()
            running[words[-1]] = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until((folder / "munge.sock").exists, 60, "munged")
        until(lambda: called("sinfo", "-h", "-o", "%T").stdout.split() == ["idle"], 120, "the start of Slurm")
        yield running
    finally:
        called("scancel", "--signal=KILL", "--full", "--user=root")
        called("scancel", "--user=root")
        for process in reversed(running.values()):
            process.kill()
            process.wait()


class InParts:
    """A run in parts, whose parts wait while `hold` is there."""

    def __init__(self, folder: Path, parts: int, *options: str, limit: int = 12) -> None:
        self.folder, self.out, self.hold = folder, folder / "run", folder / "hold"
        (folder / "slow.py").write_text(SLOW.format(hold=str(self.hold)))
        self.kind = {"codec": "./slow.py:Slow", "data": "clips.jsonl", "metrics": METRICS, "limit": limit}
        samples = open_source("embedded").samples
        (folder / "clips.jsonl").write_text(
            "".join(json.dumps({"id": one.id, "audio": str(one.audio)}) + "\n" for one in samples)
        )
        typed = [f"--{name}={value}" for name, value in self.kind.items()]
        more = ["--workers=1", "--save-audio=none", "--no-check", "--no-cache"]
        self.command = ["slurm", "eval", *typed, *more, "--out=run", f"--parts={parts}", *options]

    def submit(self) -> str:
        """What the command says."""
        done = called(*COMMAND, *self.command, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def running(self) -> dict[str, str]:
        """The parts that run now, each with its node; only those whose command has started."""
        lines = called("squeue", "-h", "-r", "-t", "RUNNING", "-o", "%i %N").stdout.splitlines()
        parts = dict(line.split() for line in lines if "_" in line)
        return {
            job: node for job, node in parts.items() if (self.out / "parts" / job.split("_")[1] / "run.sqlite").exists()
        }

    def begin(self) -> tuple[str, str]:
        """Submits the parts; the first of them that runs, and its node. It waits until `go` is called."""
        self.hold.touch()
        self.submit()
        until(self.running, 120, "the first part")
        return next(iter(self.running().items()))

    def go(self) -> None:
        """Lets the parts run."""
        self.hold.unlink()

    def end(self, kind: str = "the run") -> str:
        """Waits until no job is left; returns the output of the jobs."""

        def nothing_left() -> bool:
            for job in called("squeue", "-h", "-r", "-t", "PENDING", "-o", "%i %r").stdout.splitlines():
                if job.endswith("BeginTime"):  # Slurm lets a job that it puts back wait for two minutes
                    called("scontrol", "update", f"jobid={job.split()[0]}", "StartTime=now")
            return not called("squeue", "-h", "-r").stdout.strip()

        until(nothing_left, 400, kind)
        return "".join(path.read_text() for path in sorted((self.out / "slurm").glob("*.log")))

    def check(self) -> None:
        """Checks that the merged run is that of one machine."""
        complete = [
            *COMMAND,
            "eval",
            *(f"--{name}={value}" for name, value in self.kind.items()),
            "--out=whole",
            "--workers=1",
            "--no-cache",
        ]
        done = called(*complete, "--save-audio=none", "--no-check", cwd=self.folder)
        assert done.returncode == 0, done.stderr
        merged, alone = open_run(self.out), open_run(self.folder / "whole")
        assert list(merged.rows()) == list(alone.rows())
        assert merged.counts() == alone.counts() and merged.meta["state"] == "finished"


def lose(cluster, node, job) -> None:
    """Ends a node's daemon and all that it runs of a job at once, as when a machine loses its power."""
    cluster.pop(node).kill()
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if f"SLURM_CONF={os.environ['SLURM_CONF']}".encode() not in environment:
            continue
        watches = name.startswith(f"slurmstepd: [{job}.".encode())
        if watches or f"SLURM_JOB_ID={job}".encode() in environment:
            processes.append((not watches, int(folder.name)))
    assert [watched for watched, _ in processes].count(False) == 1, processes
    for _, process in sorted(processes):  # first the one that would tell that the job has ended
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def test_jobs_that_are_put_back_and_a_node_that_goes(cluster, tmp_path):
    run = InParts(tmp_path, 3)
    item, node = run.begin()
    assert called("scontrol", "requeue", item).returncode == 0
    until(lambda: item not in run.running(), 60, "the end of the part that is put back")
    until(run.running, 120, "another part")
    item, node = next(iter(run.running().items()))
    lose(cluster, node, called("squeue", "-h", f"--jobs={item}", "-o", "%A").stdout.strip())
    run.go()
    text = run.end()
    assert "DUE TO JOB REQUEUE" in text, text
    run.check()


def test_a_job_of_higher_priority_takes_the_node(cluster, tmp_path):
    run = InParts(tmp_path, 2)
    item, node = run.begin()
    assert (
        called("sbatch", "--partition=urgent", f"--nodelist={node}", "--wrap=sleep 1", "--output=/dev/null").returncode
        == 0
    )
    until(lambda: item not in run.running(), 60, "the end of the part")
    run.go()
    assert "DUE TO PREEMPTION" in run.end()
    run.check()


def test_the_time_limit_ends_a_part_and_it_is_submitted_again(cluster, tmp_path):
    run = InParts(tmp_path, 2, "--time=0:05")
    item, _ = run.begin()
    until(lambda: item not in run.running(), 200, "the time limit")
    run.go()
    text = run.end()
    assert "DUE TO TIME LIMIT" in text and "submitted" in text, text
    run.check()


def test_a_part_that_fails_thrice_and_the_same_command_again(cluster, tmp_path):
    run = InParts(tmp_path, 2, limit=4)
    run.hold.touch()
    run.submit()
    manifest = tmp_path / "clips.jsonl"
    manifest.rename(tmp_path / "away.jsonl")
    run.go()
    text = run.end()
    assert "2 of 2 parts failed 3 times: 1-2" in text, text
    assert len(list((run.out / "slurm").glob("*_1.log"))) == 3
    (tmp_path / "away.jsonl").rename(manifest)
    run.submit()
    run.end()
    run.check()


def test_what_is_cancelled_stays_cancelled_and_the_same_command_goes_on(cluster, tmp_path):
    run = InParts(tmp_path, 3)
    item, _ = run.begin()
    twice = called(*COMMAND, *run.command, cwd=tmp_path)
    assert twice.returncode == 2 and "are in the queue already" in twice.stderr
    # The job that merges is lost; the same command submits it alone.
    names = lambda: called("squeue", "-h", "-o", "%j").stdout.split()  # noqa: E731
    merge = next(name for name in names() if "-merge-" in name)
    assert called("scancel", f"--name={merge}").returncode == 0
    until(lambda: merge not in names(), 30, "the end of the merge job")
    run.submit()
    arrays = {line.partition("_")[0] for line in called("squeue", "-h", "-r", "-o", "%i").stdout.split() if "_" in line}
    assert arrays == {item.partition("_")[0]}
    assert called("scancel", item.partition("_")[0]).returncode == 0
    text = run.end()
    assert "3 of 3 parts were cancelled: 1-3; nothing is submitted again" in text, text
    run.go()
    assert "submitted 3 of 3 parts" in run.submit()
    run.end()
    run.check()
    shown = called(*COMMAND, "progress", "run", cwd=tmp_path)
    assert "3 of 3 parts are finished; 12 items" in shown.stderr
