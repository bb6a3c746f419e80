"""A run in parts under a real Slurm, on this machine alone: two nodes, GPUs that are not there, a part that is cancelled."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from codec_bench import evaluate, open_run

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
GresTypes=gpu
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=1000 Gres=gpu:1 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=1000 Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
WHAT = (
    "--codec",
    "g711-ulaw,opus-12k",
    "--data",
    "embedded",
    "--metrics",
    "stoi,si_sdr,bitrate",
    "--workers",
    "1",
    "--save-audio",
    "none",
)
"""The command of each part."""


def called(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


def until(true, seconds, what):
    """Waits until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what} took more than {seconds} s"
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
    running = []
    try:
        for words in daemons:
            if words[0] == "slurmd":
                (folder / f"spool-{words[-1]}").mkdir()
            running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            until((folder / "munge.sock").exists, 20, "munged")
        until(lambda: called("sinfo", "-h", "-o", "%T").stdout.split() == ["idle"], 60, "the start of Slurm")
        yield
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def test_parts_run_are_submitted_again_and_are_merged(cluster, tmp_path):
    command = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]
    done = called(
        *command, "slurm", "eval", *WHAT, "--out", "run", "--parts", "3", "--gpus-per-part", "1", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    queue = lambda: called("squeue", "-h", "-r", "-o", "%i %T").stdout.splitlines()  # noqa: E731
    until(lambda: any("RUNNING" in line for line in queue()), 30, "the first part")
    # One part is cancelled: the job that merges submits it again.
    assert called("scancel", next(line for line in queue() if "RUNNING" in line).split()[0]).returncode == 0
    until(lambda: not queue(), 180, "the run")
    logs = {path.name: path.read_text() for path in Path(tmp_path, "run", "slurm").glob("*.log")}
    assert any("submitted 1 of 3 parts" in text for text in logs.values()), logs
    whole = evaluate(
        codec="g711-ulaw,opus-12k", data="embedded", metrics="stoi,si_sdr,bitrate", out=tmp_path / "whole", workers=1, page=False, save_audio="none"
    )  # fmt: skip
    assert (tmp_path / "run" / "run.sqlite").exists(), logs
    assert list(open_run(tmp_path / "run").rows()) == list(whole.rows())
    shown = called(*command, "progress", "run", cwd=tmp_path)
    assert "3 of 3 parts are finished; 64 items" in shown.stderr
