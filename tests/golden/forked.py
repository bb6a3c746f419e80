"""Workers that are forked from a process which has imported what they need, in place of interpreters that import it
each time.

    pool.subprocess = forked.Started({**os.environ, ...})     # once in a process of tests

The server has imported libraries and has called none of them, so no thread of theirs runs in it and no device was
queried. A worker gets the environment, the folder and the outputs that it is started with. What libraries read while
they are imported must be as it was in the server: in another environment, a worker is started as the product starts
it, and so is every other program.

`pool.subprocess.run([*COMMAND, "eval", ...])` forks a command in the same way, `run([sys.executable, "program.py"])` a
program; their workers are forked, too. Commands that tests start in other ways start their workers as the product does.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any
from unittest.mock import patch

import codec_bench

# One worker of one thread, as on a machine of one core. A second worker takes longer to start than a few clips take.
ONE_CORE = "import os; os.sched_getaffinity = lambda _: {0}; "
COMMAND = [sys.executable, "-P", "-c", f"{ONE_CORE}from codec_bench.cli import main; main()"]
WORKER = [sys.executable, "-P", "-m", "codec_bench.engine.worker"]
IMPORTED = (
    "av", "datasets", "huggingface_hub.hf_api", "numba.core.typing.cffi_utils", "onnx", "pandas", "pocketsphinx",
    "resemblyzer", "scipy.signal", "scipy.stats",
    "silero_vad", "soundfile", "soxr", "torch", "transformers.modeling_utils",
)  # fmt: skip
"""What commands and workers import beside the package. A package that is not installed is skipped."""
NOT_IMPORTED = ("codec_bench.apps.profiling", "codec_bench.apps.serving.ray")
"""By the first, a codec of the tests knows whether it is profiled; the second needs a package of its own."""
FORK_SAFE = {"jemalloc_bg_thd"}
"""Threads that may run in the server: Arrow's allocator starts its own one anew after a fork."""
READ_AT_IMPORT = (
    "CUDA_", "GOMP_", "KMP_", "LD_", "MKL_", "NPY_", "NUMBA_", "NUMPY_", "OMP_", "OPENBLAS_", "PYTHON", "PYTORCH_",
    "TORCH_",
)  # fmt: skip
"""How the names of the variables begin that Python and the libraries of `IMPORTED` read when they begin."""
OF_SCIKIT_LEARN = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
"""Some test imports it, and then they are set in this process.

Only Intel's OpenMP reads them, which no library of `IMPORTED` has.
"""
WORKER_OF = "of {}"
"""The name of a forked worker, by the id of the process that it works for."""
FIRST = "CODEC_BENCH_TEST_FIRST"
"""The variable that names a file of Python that each fork runs first, in place of a `sitecustomize.py`."""
GC_THRESHOLDS = (50_000, 20, 50)
"""Thresholds of Python's garbage collector. With its own ones, a fifth of an import's time is garbage collection."""
MADV_HUGEPAGE, MADV_COLLAPSE = 14, 25
"""By their numbers in Linux's mman.h."""
_LONGEST = 1 << 18  # bytes of a message


class Started:
    """In place of the module `subprocess` in `engine/pool.py`. The server is started with the first worker.

    Args:
        environment: of the server.
        name: of the server. Processes that give the same name share it; the one that started it ends it.
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self, environment: dict[str, str], name: str | None = None) -> None:
        self._environment, self._name = environment, name or secrets.token_hex(8)
        self._lock = Lock()  # several threads may ask
        self._socket: socket.socket | None = None
        self.server: subprocess.Popen[bytes] | None = None

    def Popen(
        self, command: list[str], *, pass_fds: list[int], env: dict[str, str], stdout: Any, stderr: Any, **other: Any
    ) -> Any:
        """A worker of the server, or the process that `subprocess` starts.

        A process that leaves the number of its threads to the machine gets one, as on a machine of one core.
        """
        from codec_bench.engine.pool import thread_variables

        program, arguments = command[: len(WORKER)], command[len(WORKER) + 1 :]
        if program != WORKER or read_at_import({**thread_variables(1), **env}) != read_at_import(self._environment):
            return subprocess.Popen(command, pass_fds=pass_fds, env=env, stdout=stdout, stderr=stderr, **other)
        with open(os.devnull, "wb") as nowhere:
            files = [nowhere if file == subprocess.DEVNULL else file for file in (stdout, stderr)]
            question = {"environment": env, "folder": os.getcwd(), "arguments": arguments, "asked_by": os.getpid()}
            numbers = [file if isinstance(file, int) else file.fileno() for file in files]
            return Forked(self, self.ask(question, (*pass_fds, *numbers)))

    def start(self, command: list[str], *, cwd: Any, env: Any = None) -> Any:
        """A command or a program of the server, or the process that `subprocess` starts."""
        from codec_bench.engine.pool import thread_variables

        env = {**(os.environ if env is None else env)}
        forks = command[: len(COMMAND)] == COMMAND or (command[0] == sys.executable and command[1].endswith(".py"))
        if not forks or read_at_import({**env, **thread_variables(1)}) != read_at_import(self._environment):
            pipe = subprocess.PIPE
            return subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True, env=env)
        program, arguments = (command[1], command[2:]) if command[1] != "-P" else (None, command[len(COMMAND) :])
        question = {
            "command": self._name, "program": program, "environment": env, "folder": str(cwd), "arguments": arguments
        }  # fmt: skip
        outputs = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]
        return Forked(self, self.ask(question, tuple(file.fileno() for file in outputs)), outputs)

    def run(
        self, command: list[str], *, cwd: Any, timeout: float, capture_output: bool, text: bool, env: Any = None
    ) -> subprocess.CompletedProcess[str]:
        """What such a command printed."""
        assert capture_output and text
        process = self.start(command, cwd=cwd, env=env)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def ask(self, question: dict[str, Any], files: tuple[int, ...] = ()) -> Any:
        """The server's answer."""
        with self._lock:
            if self._socket is None:
                self._socket, self.server = _connect(self._environment, self._name)
            socket.send_fds(self._socket, [json.dumps(question).encode()], files)
            return json.loads(self._socket.recv(_LONGEST))

    def close(self) -> None:
        """Ends the server."""
        if self._socket is not None:
            self._socket.close()
        if self.server is not None:
            self.server.stdin.close()  # whoever shares it is connected to a fork of it
            self.server.wait()


class Forked:
    """A fork of the server, with what `engine/pool.py` and tests use of a process."""

    def __init__(self, started: Started, pid: int, outputs: Sequence[IO[str]] = ()) -> None:
        self.pid, self._started, self._outputs, self.returncode = pid, started, outputs, None

    def poll(self) -> int | None:
        return self._ended(wait=False)

    def wait(self, timeout: float | None = None) -> int | None:
        if timeout is not None and self.returncode is None:
            ended = os.pidfd_open(self.pid)
            try:
                if not select.select([ended], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout)
            finally:
                os.close(ended)
        return self._ended(wait=True)

    def communicate(self, timeout: float | None = None) -> list[str]:
        """What it wrote, when it has ended."""
        self.wait(timeout)
        texts = []
        for file in self._outputs:
            with file:
                file.seek(0)
                texts.append(file.read())
        return texts

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, *, wait: bool) -> int | None:
        if self.returncode is None:
            try:
                self.returncode = self._started.ask({"pid": self.pid, "wait": wait})
            except (OSError, ValueError):  # the server has ended, and with it all that it started
                self.returncode = -signal.SIGTERM
        return self.returncode


def start(command: list[str], *, cwd: Any, forks: bool = True) -> Any:
    """A command or a program in the background, forked where that is possible."""
    from codec_bench.engine import pool

    if forks and isinstance(pool.subprocess, Started):
        return pool.subprocess.start(command, cwd=cwd)
    # Tests that a shell runs in the background inherit an ignored SIGINT, and so would the command.
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True, preexec_fn=heed)


def read_at_import(environment: dict[str, str]) -> dict[str, str]:
    read = {name: value for name, value in environment.items() if name.startswith(READ_AT_IMPORT)}
    return {name: value for name, value in read.items() if name not in OF_SCIKIT_LEARN}


def _connect(environment: dict[str, str], name: str) -> tuple[socket.socket, subprocess.Popen[bytes] | None]:
    """A connection to the server of a name, and the server if it is started here."""
    ours, listening = (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2))
    address, server = f"\0{name}", None  # in no folder, and free again when the server ends
    with closing(listening), suppress(OSError):  # another process has started it
        listening.bind(address)
        listening.listen(64)
        command = [sys.executable, "-P", __file__, str(listening.fileno())]
        server = subprocess.Popen(
            command, pass_fds=[listening.fileno()], env=environment, stdin=subprocess.PIPE, start_new_session=True
        )
    ours.connect(address)
    return ours, server


def prepare() -> None:
    """Imports what workers and commands need, without a network."""
    gc.disable()
    with patch.object(socket.socket, "connect", refuse), patch.object(socket, "getaddrinfo", refuse):
        for name in IMPORTED:
            with suppress(ImportError), warnings.catch_warnings(action="ignore"):
                importlib.import_module(name)
        for module in pkgutil.walk_packages(codec_bench.__path__, "codec_bench."):
            if not module.name.endswith(("__main__", ".gpu")) and not module.name.startswith(NOT_IMPORTED):
                importlib.import_module(module.name)
        read_tables()
    # A forked process has none of the other threads, and what waits for them waits for ever. ONNX Runtime starts one
    # when imported.
    until = time.monotonic() + 30
    while not (threads := other_threads()) <= FORK_SAFE:  # a thread that has just started has no name yet
        assert time.monotonic() < until, threads
        time.sleep(0.01)
    unregister_exit()
    gc.collect()
    gc.freeze()  # a search for garbage would write to the memory that the workers share
    use_huge_pages()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def refuse(*address: Any) -> None:
    """No import may reach a network."""
    raise AssertionError(f"an import tried to reach {address}")


def read_tables() -> None:
    """Reads what every process would read before its first codec and its first kernel, for half a second."""
    from codec_bench.benchmark.definition import loader
    from codec_bench.codecs import catalogue, collection
    from codec_bench.config import registry
    from codec_bench.machine import environment

    registry.plugins()
    catalogue.families()
    collection.entries()
    environment.versions()
    loader.definitions()
    loader._index()
    with suppress(ImportError):
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()


def unregister_exit() -> None:
    """Leaves out what libraries do at exit for the server's objects: each fork would do it, over 50 MB of pages."""
    for finalizer in list(weakref.finalize._registry):
        finalizer.atexit = False
    if "torch._dynamo.utils" in sys.modules:
        atexit.unregister(sys.modules["torch._dynamo.utils"].dump_compile_times)


def use_huge_pages() -> None:
    """Moves the server's memory to pages of 2 MB, where Linux has them: a fork then copies three times faster."""
    if sys.platform != "linux":
        return
    madvise, size = ctypes.CDLL(None).madvise, 2 << 20
    first = last = 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *fields = line.split()
        if "-" in name and not name.endswith(":"):
            anonymous = fields[0].startswith("rw") and (len(fields) < 5 or fields[4] == "[heap]")
            first, last = (int(bound, 16) for bound in name.split("-")) if anonymous else (0, 0)
            first, last = -(-first // size) * size, last // size * size
        elif name == "Rss:" and first < last and int(fields[0]) << 10 > (last - first) // 2:
            for advice in (MADV_HUGEPAGE, MADV_COLLAPSE):
                madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), advice)


def other_threads() -> set[str]:
    """The names of this process's threads beside the main one."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    return {Path(task, "comm").read_text().strip() for task in tasks}


def serve(requested: socket.socket) -> None:
    """Forks workers and commands and says how they ended, until nobody is left to ask. Never returns."""
    while True:
        message, files, _, _ = socket.recv_fds(requested, _LONGEST, 3)
        if not message:
            os._exit(0)
        question = json.loads(message)
        if "pid" in question:
            pid, status = os.waitpid(question["pid"], 0 if question["wait"] else os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                requested.close()
                act(command if "command" in question else work, question, *files)
            with suppress(OSError):  # the worker did so itself: its client may end its group from now on
                os.setpgid(answer, answer)
        for file in files:
            os.close(file)
        requested.send(json.dumps(answer).encode())


def act(program: Callable[..., None], question: dict[str, Any], *files: int) -> None:
    """Runs a command or a worker and ends with its exit code. Never returns.

    It ends as a program does, but leaves its objects to the system: freeing those of all imported modules takes longer
    than most commands.
    """
    code = 1
    try:
        program(question, *files)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
        traceback.print_exc()
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            threading._shutdown()
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(code)


def become(question: dict[str, Any], out: int, err: int) -> None:
    """Takes the environment, the folder and the outputs of the requested process."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(question["environment"])
    os.chdir(question["folder"])
    for file, number in ((out, 1), (err, 2)):
        os.dup2(file, number)
        os.close(file)
    if FIRST in os.environ:
        runpy.run_path(os.environ[FIRST])


def command(question: dict[str, Any], out: int, err: int) -> None:
    """Is the command, or the program. Its workers are forked, too."""
    from codec_bench.cli import main
    from codec_bench.engine import pool

    of_server = dict(os.environ)
    become(question, out, err)
    os.sched_getaffinity = lambda _: {0}
    program = question["program"]
    sys.argv = [program or "-c", *question["arguments"]]
    with closing(Started(of_server, question["command"])) as pool.subprocess:
        if program is None:
            main()
        else:
            sys.path.insert(0, str(Path(program).parent))
            runpy.run_path(program, run_name="__main__")


def work(question: dict[str, Any], pipe: int, out: int, err: int) -> None:
    """Is the worker."""
    from codec_bench.engine import worker

    become(question, out, err)
    Path("/proc/self/comm").write_text(WORKER_OF.format(question["asked_by"]))
    sys.argv = ["worker", str(pipe), *question["arguments"]]
    worker.main()


def reap(*_: Any) -> None:
    """Waits for the forks that have ended, so that their time counts as time of this process."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def accept(listening: socket.socket) -> None:
    """Forks a server for each process that connects, until the process ends that started this one."""
    signal.signal(signal.SIGCHLD, reap)
    while 0 not in select.select([listening, 0], [], [])[0]:
        connection, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), 0)
            serve(connection)
        connection.close()
    # The time of a fork that nobody waits for would count for no process of tests.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    prepare()
    accept(socket.socket(fileno=int(sys.argv[1])))
