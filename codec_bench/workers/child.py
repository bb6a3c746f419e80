"""The program of an isolated worker, for the environment's Python (3.8 or later).

    python -I -u child.py SOCKET IN OUT PARENT BEAT_S

Of codec_bench it imports only `wire.py` and `machine/memory.py`. The started process is a guardian, which starts the
worker. When host or worker is gone, it kills the worker's processes, removes its temporary folder, and exits with the
worker's status. It never loads worker code, so no hanging call can stop the cleanup.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import platform
import select
import shutil
import signal
import socket
import sys
import threading
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

_REASON = 2000  # characters of a reason
_PARENT_CHECK_MS = 500
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _file_module(name: str, path: Path) -> Any:
    """Import a file as a module, without compiled files next to it."""
    loader = SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, str(path), loader=loader)
    assert spec is not None  # it is None only without a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look the module up by name
    # Not `exec_module`, which would write compiled files of this Python version next to the source.
    exec(loader.source_to_code(path.read_bytes(), str(path)), module.__dict__)
    return module


wire = _file_module("codec_bench_wire", Path(__file__).resolve().with_name("wire.py"))
memory = _file_module("codec_bench_memory", Path(__file__).resolve().parents[1] / "machine" / "memory.py")


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def guard(worker: int, link: socket.socket, parent: int) -> int:
    """Wait until the worker or the host ends, then kill all processes of the worker.

    Args:
        worker: process id of the worker. link: the socket to the host. parent: process id of the host.

    Returns:
        The exit status of the worker; 128 plus the number of the signal if a signal ended it.
    """
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    watched = select.poll()
    watched.register(link.fileno(), 0)  # poll reports a hang-up even without events to wait for
    watched.register(awake, select.POLLIN)
    status = None
    while status is None:
        done, wait_status = os.waitpid(-1, os.WNOHANG)
        if done == worker:
            status = wait_status
        elif not done:  # otherwise another child had ended, and there may be more
            ready = [handle for handle, _ in watched.poll(_PARENT_CHECK_MS)]
            if awake in ready:
                os.read(awake, 4096)
            if link.fileno() in ready or os.getppid() != parent:
                break
    try:
        os.killpg(worker, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # the worker is gone, and so is its group
    if status is None:
        status = os.waitpid(worker, 0)[1]
    _end_children()
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _end_children() -> None:
    """Kill the processes that the worker left, which are now children of this one."""
    while True:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                left = [int(number) for number in file.read().split()]
        except OSError:
            left = []
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            if os.waitpid(-1, 0 if left else os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def receive(link: socket.socket) -> tuple[int, dict[str, Any]]:
    """Read one frame: kind and JSON object. EOFError if the other side is gone."""
    kind, size = wire.length(_receive_exactly(link, wire.START.size))
    return kind, wire.read_body(_receive_exactly(link, size))


def _receive_exactly(link: socket.socket, size: int) -> bytes:
    """Receive this many bytes; raises EOFError if the connection closes."""
    held = bytearray(size)
    view, at = memoryview(held), 0
    while at < size:
        got = link.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return bytes(held)


def sentence(error: BaseException) -> str:
    """Return the last line of an error's traceback, with file and line."""
    last = "".join(traceback.format_exception_only(type(error), error)).strip().replace("\n", " ")
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return last[:_REASON] + where


def versions() -> dict[str, str]:
    """Return the versions of Python and of every installed package."""
    from email.parser import HeaderParser
    from importlib.metadata import distributions

    installed = {}
    for item in distributions():  # `item.metadata` parses the package's description too, at each access
        text = item.read_text("METADATA") or item.read_text("PKG-INFO") or item.read_text("") or ""
        header = HeaderParser().parsestr(text.partition("\n\n")[0])
        if header["Name"]:
            installed[header["Name"]] = header["Version"]
    return {"python": platform.python_version(), **{name: installed[name] for name in sorted(installed, key=str.lower)}}


class Worker:
    """Loads the worker code and answers the host."""

    def __init__(self, link: socket.socket, requests: Any, replies: Any) -> None:
        self._link, self._request_memory, self._reply_memory = link, requests, replies
        self._lock = threading.Lock()
        self._state: Any = None
        self._code: Any = None

    def send(self, kind: int, body: bytes) -> None:
        """Send a frame. Thread-safe."""
        with self._lock:
            self._link.sendall(wire.frame(kind, body))

    def beat(self, every_s: float) -> None:
        """Send heartbeats at an interval, until the host is gone."""
        pause = threading.Event()
        try:
            while not pause.wait(every_s):
                self.send(wire.BEAT, b"{}")
        except OSError:
            return

    def load(self, code: str, options: dict[str, Any]) -> None:
        """Import the worker code, call its `load`, and send the result to the host."""
        try:
            sys.path.insert(0, str(Path(code).parent))  # the worker code may import modules next to it
            self._code = _file_module("codec_bench_worker_code", Path(code))
            for name in ("load", "answer"):
                if not callable(getattr(self._code, name, None)):
                    raise AttributeError(f"'{code}' has no function '{name}'")
            self._state = self._code.load(**options)
        except BaseException as error:  # worker code may call sys.exit
            traceback.print_exc()
            self.send(wire.BROKEN, json.dumps({"reason": sentence(error)}).encode())
            return
        self.send(wire.READY, json.dumps({"versions": versions()}).encode())

    def ask(self, message: dict[str, Any]) -> None:
        """Answer a batch and send the answers to the host."""
        batch = [_decode(item) for item in wire.unpack(message["items"], message["sounds"], self._request_memory)]
        try:
            packed = [_pack_answer(answer) for answer in self._answers(batch)]
            body = wire.batch_body(message["id"], packed, self._reply_memory)
        except _Unusable as error:
            self.send(wire.BROKEN, json.dumps({"reason": str(error)}).encode())
            return
        except (OSError, wire.WireError) as error:
            reason = f"the answer cannot be sent: {sentence(error)}"
            packed = [_pack_answer({"error": reason})] * len(batch)
            body = wire.batch_body(message["id"], packed, self._reply_memory)
        self.send(wire.REPLY, body)

    def _answers(self, batch: list[dict[str, Any]]) -> list[Any]:
        """Return one answer per item. A failing batch is halved until single items fail."""
        try:
            answers = self._code.answer(self._state, batch)
            if not isinstance(answers, (list, tuple)) or len(answers) != len(batch):
                count = len(answers) if isinstance(answers, (list, tuple)) else type(answers).__name__
                raise ValueError(
                    f"answer() returned {count} for {len(batch)} requests; expected a list with one answer each"
                )
        except Exception as error:  # worker code may raise anything
            traceback.print_exc()
            unknown = "CUDA error" in str(error) and not memory.out_of_memory(error)
            if unknown or memory.is_device_error(str(error)):
                raise _Unusable(sentence(error)) from error
            reason = sentence(error)
        else:
            return list(answers)
        # Outside the handler: the error keeps the frames of the call, and with them their memory, alive.
        if len(batch) == 1:
            return [{"error": reason}]
        memory.give_back()
        half = len(batch) // 2
        return self._answers(batch[:half]) + self._answers(batch[half:])


class _Unusable(Exception):
    pass


def _decode(value: Any) -> Any:
    """Decode audio to NumPy arrays, or to memory views without NumPy."""
    if isinstance(value, dict):
        if isinstance(value.get("samples"), bytearray):
            channels = value["channels"]
            samples = len(value["samples"]) // (4 * channels) if channels else 0
            numpy = _numpy()
            flat = memoryview(value["samples"])
            if numpy is not None:
                array = numpy.frombuffer(flat, numpy.float32).reshape(channels, samples)
            else:
                array = flat.cast("f", (channels, samples))
            return {"samples": array, "sample_rate_hz": value["sample_rate_hz"]}
        return {key: _decode(inner) for key, inner in value.items()}
    return [_decode(inner) for inner in value] if isinstance(value, list) else value


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _pack_answer(answer: Any) -> Any:
    """Pack an answer for the host, or the reason why it cannot be used."""
    try:
        if not isinstance(answer, dict):
            raise TypeError(f"the answer is {type(answer).__name__}; expected a dictionary")
        audio = answer.get("audio")
        if audio is not None:
            if not isinstance(audio, dict) or not {"samples", "sample_rate_hz"} <= set(audio):
                raise TypeError("the answer's audio is not a dictionary with 'samples' and 'sample_rate_hz'")
            rate = int(audio["sample_rate_hz"])
            answer = {**answer, "audio": {"samples": _sound(audio["samples"]), "sample_rate_hz": rate}}
        return wire.pack(answer)
    except Exception as error:  # arrays of any library, with any conversion
        return wire.pack({"error": f"the answer cannot be used: {sentence(error)}"})


def _sound(samples: Any) -> Any:
    """Return samples as a float32 buffer `(channels, samples)`.

    Integers are refused, because their full scale is unknown.
    """
    if hasattr(samples, "detach"):  # a tensor, on any device and of any precision
        if not samples.is_floating_point():
            raise TypeError(f"the samples are {samples.dtype}; expected floating-point numbers")
        samples = samples.detach().cpu().float().numpy()
    numpy = _numpy()
    if numpy is None:
        from array import array

        view = memoryview(array("f", samples) if isinstance(samples, (list, tuple)) else samples)
        if view.format != "f":
            raise TypeError(f"the samples have the format '{view.format}'; expected 'f' (float32)")
        return view if view.ndim == 2 else view.cast("B").cast("f", (1, len(view)))
    converted = numpy.asarray(samples)
    if converted.dtype.kind != "f":
        raise TypeError(f"the samples are {converted.dtype}; expected floating-point numbers")
    if converted.ndim not in (1, 2):
        raise ValueError(f"the samples have shape {converted.shape}; expected (channels, samples)")
    return numpy.ascontiguousarray(numpy.atleast_2d(converted), dtype=numpy.float32)


def main() -> None:
    """Run the process."""
    handles = [int(value) for value in sys.argv[1:4]]
    parent, every_s = int(sys.argv[4]), float(sys.argv[5])
    for handle in handles:
        os.set_inheritable(handle, False)
    link = socket.socket(fileno=handles[0])
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    guardian = os.getpid()
    process = os.fork()
    if process:
        os.setpgid(process, process)  # both processes do this, because either may run first
        for handle in handles[1:]:
            os.close(handle)
        status = guard(process, link, parent)
        folder = os.environ.get("TMPDIR")
        if folder and os.path.basename(folder).startswith("codec-bench-worker-"):
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(status)
    os.setpgid(0, 0)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guardian:
        os._exit(1)
    worker = Worker(link, wire.Memory(handles[1]), wire.Memory(handles[2]))
    worker.send(wire.HELLO, json.dumps({"protocol": wire.PROTOCOL, "pid": os.getpid()}).encode())
    threading.Thread(target=worker.beat, args=(every_s,), daemon=True).start()
    try:
        while True:
            kind, message = receive(link)
            if kind == wire.LOAD:
                worker.load(message["code"], message["options"])
            else:
                worker.ask(message)
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
