"""Workers that are forked from a process which has imported what they need, in place of interpreters that import it
each time.

    pool.subprocess = forked.Started({**os.environ, ...})     # once in a process of tests

The server has imported libraries and has called none of them, so no thread of theirs runs in it and no device was asked
for. A worker gets the environment, the folder and the outputs that it is started with. What libraries read while they
are imported must be as it was in the server: in another environment, a worker is started as the product starts it, and
so is every other program.

`pool.subprocess.run([*COMMAND, "eval", ...])` forks a command in the same way, and before it begins, a server of its
own, which forks its workers. Commands that tests start in other ways, to stop or kill them, start their workers as the
product does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from contextlib import closing, suppress
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

# One worker of one thread, as on a machine of one core. A second worker takes longer to start than a few clips take.
ONE_CORE = "import os; os.sched_getaffinity = lambda _: {0}; "
COMMAND = [sys.executable, "-P", "-c", f"{ONE_CORE}from codec_bench.cli import main; main()"]
WORKER = [sys.executable, "-P", "-m", "codec_bench.engine.worker"]
IMPORTED = (
    "codec_bench.engine.worker", "codec_bench.codecs.collection", "codec_bench.features", "codec_bench.kernels.stoi.cpu",
    "codec_bench.metrics.base", "codec_bench.weights", "codec_bench.cli.evaluate", "numba.core.typing.cffi_utils", "scipy.signal", "torch",
    "av", "onnx", "soundfile", "soxr",
)  # fmt: skip
READ_AT_IMPORT = (
    "CUDA_", "GOMP_", "KMP_", "LD_", "MKL_", "NPY_", "NUMBA_", "NUMPY_", "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH_", "TORCH_",
)  # fmt: skip
"""How the names of the variables begin that Python and the libraries of `IMPORTED` read when they begin."""
OF_SCIKIT_LEARN = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
"""Some test imports it, and then they are set in this process.

Only Intel's OpenMP reads them, which no library of `IMPORTED` has.
"""
SELDOM = (50_000, 20, 50)
"""Python's thresholds of a search for garbage. With its own ones, a fifth of an import's time goes into such searches."""
_LONGEST = 1 << 18  # bytes of a message


class Started:
    """In place of the module `subprocess` in `engine/pool.py`. The server is started with the first worker.

    Args:
        environment: of the server.
        connection: to the server, where there is one already.
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self, environment: dict[str, str], connection: socket.socket | None = None) -> None:
        self._environment = environment
        self._lock = Lock()  # several threads may ask
        self._socket = connection
        self.server: subprocess.Popen[bytes] | None = None

    def Popen(
        self, command: list[str], *, pass_fds: list[int], env: dict[str, str], stdout: Any, stderr: Any, **other: Any
    ) -> Any:
        """A worker of the server, or the process that `subprocess` starts."""
        program, arguments = command[: len(WORKER)], command[len(WORKER) + 1 :]
        if program != WORKER or _at_import(env) != _at_import(self._environment):
            return subprocess.Popen(command, pass_fds=pass_fds, env=env, stdout=stdout, stderr=stderr, **other)
        with open(os.devnull, "wb") as nowhere:
            files = [nowhere if file == subprocess.DEVNULL else file for file in (stdout, stderr)]
            question = {"environment": env, "folder": os.getcwd(), "arguments": arguments}
            numbers = [file if isinstance(file, int) else file.fileno() for file in files]
            return Forked(self, self.ask(question, (*pass_fds, *numbers)))

    def run(
        self, command: list[str], *, cwd: Any, timeout: float, capture_output: bool, text: bool
    ) -> subprocess.CompletedProcess[str]:
        """What a command of the server printed, or what `subprocess` runs."""
        from codec_bench.engine.pool import thread_variables

        in_server = _at_import({**os.environ, **thread_variables(1)}) == _at_import(self._environment)
        if command[: len(COMMAND)] != COMMAND or not in_server:
            return subprocess.run(command, cwd=cwd, timeout=timeout, capture_output=capture_output, text=text)
        arguments = command[len(COMMAND) :]
        question = {"command": True, "environment": dict(os.environ), "folder": str(cwd), "arguments": arguments}
        with TemporaryFile("w+", encoding="utf-8") as out, TemporaryFile("w+", encoding="utf-8") as err:
            process = Forked(self, self.ask(question, (out.fileno(), err.fileno())))
            until = time.monotonic() + timeout
            while (code := process.poll()) is None:
                if time.monotonic() > until:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(command, timeout)
                time.sleep(0.01)
            out.seek(0), err.seek(0)
            return subprocess.CompletedProcess(command, code, out.read(), err.read())

    def ask(self, question: dict[str, Any], files: tuple[int, ...] = ()) -> Any:
        """The server's answer."""
        with self._lock:
            if self._socket is None:
                self._socket, self.server = _serving(self._environment)
            socket.send_fds(self._socket, [json.dumps(question).encode()], files)
            return json.loads(self._socket.recv(_LONGEST))

    def close(self) -> None:
        """Ends the server."""
        if self._socket is not None:
            self._socket.close()
            self.server.wait()


class Forked:
    """A worker of the server, with what `engine/pool.py` uses of a process."""

    def __init__(self, started: Started, pid: int) -> None:
        self.pid, self._started, self._code = pid, started, None

    def poll(self) -> int | None:
        return self._ended(wait=False)

    def wait(self) -> int | None:
        return self._ended(wait=True)

    def _ended(self, *, wait: bool) -> int | None:
        if self._code is None:
            self._code = self._started.ask({"pid": self.pid, "wait": wait})
        return self._code


def _at_import(environment: dict[str, str]) -> dict[str, str]:
    read = {name: value for name, value in environment.items() if name.startswith(READ_AT_IMPORT)}
    return {name: value for name, value in read.items() if name not in OF_SCIKIT_LEARN}


def _serving(environment: dict[str, str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A new server, and the connection to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with closing(theirs):
        command = [sys.executable, "-P", __file__, str(theirs.fileno())]
        return ours, subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, start_new_session=True
        )


def prepare() -> None:
    """Imports what workers and commands need."""
    gc.disable()
    for name in IMPORTED:
        importlib.import_module(name)
    # A forked process has none of the other threads, and what waits for them waits for ever. ONNX Runtime starts one
    # when imported.
    assert len(os.listdir("/proc/self/task")) == 1
    gc.collect()
    gc.freeze()  # a search for garbage would write to the memory that the workers share
    gc.set_threshold(*SELDOM)
    gc.enable()


def serve(asked: socket.socket) -> None:
    """Forks workers and commands and says how they ended, until nobody is left to ask.

    A command returns from here, too.
    """
    while True:
        message, files, _, _ = socket.recv_fds(asked, _LONGEST, 3)
        if not message:
            return
        question = json.loads(message)
        if "pid" in question:
            pid, status = os.waitpid(question["pid"], 0 if question["wait"] else os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                asked.close()
                return command(question, *files) if "command" in question else work(question, *files)
            with suppress(OSError):  # the worker did so itself: whoever asked may end its group from now on
                os.setpgid(answer, answer)
        for file in files:
            os.close(file)
        asked.send(json.dumps(answer).encode())


def become(question: dict[str, Any], out: int, err: int) -> None:
    """Takes the environment, the folder and the outputs of the process that was asked for."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(question["environment"])
    os.chdir(question["folder"])
    for file, number in ((out, 1), (err, 2)):
        os.dup2(file, number)
        os.close(file)


def command(question: dict[str, Any], out: int, err: int) -> None:
    """Is the command. It ends as a program does, after the server of its workers, which is forked while it has no other
    thread.
    """
    from codec_bench.cli import main
    from codec_bench.engine import pool

    of_server = dict(os.environ)
    become(question, out, err)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = os.fork()
    if server == 0:
        ours.close()
        return serve(theirs)
    theirs.close()
    os.sched_getaffinity = lambda _: {0}
    sys.argv = ["-c", *question["arguments"]]
    try:
        with closing(ours):
            pool.subprocess = Started(of_server, ours)
            main()
    finally:
        os.waitpid(server, 0)


def work(question: dict[str, Any], pipe: int, out: int, err: int) -> None:
    """Is the worker, and never returns."""
    from codec_bench.engine import worker

    code = 1
    try:
        become(question, out, err)
        sys.argv = ["worker", str(pipe), *question["arguments"]]
        worker.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    prepare()
    serve(socket.socket(fileno=int(sys.argv[1])))
