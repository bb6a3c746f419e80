"""A real `transformers serve` of a tiny checkpoint, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx

SERVE = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"


def free_port():
    """A port of this machine that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(folder):
    """The address of a real server of the checkpoint in a folder."""
    port = free_port()
    args = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--device", "cpu"]
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SERVE, *args], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not answers(port):
            try:
                process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError("transformers serve ended")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(port):
    """Whether the server answers."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
