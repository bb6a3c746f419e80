"""Codecs and metrics that change the process in which they run."""

from __future__ import annotations

import ctypes
import locale
import os
import random
import signal
import sys
import tempfile
import threading
import warnings

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream, Metric


class Quantiser:
    """Uniform quantisation to 4 bits."""

    where = "cpu"

    def __init__(self):
        self.info = CodecInfo(type(self).__name__, (16000,), (1,), frame_rate_hz=16000)

    def encode(self, batch):
        self.harm()
        codes = []
        for audio in batch:
            values = ((audio.samples.clip(-1, 1) + 1) / 2 * 15).round().astype(int)
            codes.append(Codes((CodeStream(values, 16, 16000),), audio.num_samples, audio.sample_rate_hz))
        return codes

    def decode(self, codes):
        return [Audio(c.streams[0].values / 15 * 2 - 1, c.sample_rate_hz) for c in codes]

    def harm(self):
        """Does nothing."""


class Forks(Quantiser):
    """Comes back twice from every call."""

    def harm(self):
        os.fork()


class ForksBelowPython(Quantiser):
    """Comes back twice from every call, and no Python code knows of the fork."""

    def harm(self):
        ctypes.CDLL(None).fork()


class ForksInDecode(Quantiser):
    """Comes back twice, late the second time, with other samples."""

    def decode(self, codes):
        child = os.fork() == 0
        if child:
            threading.Event().wait(0.3)
        return [Audio(a.samples * (0.0 if child else 1.0), a.sample_rate_hz) for a in super().decode(codes)]


class ReplacesNumpy(Quantiser):
    """Replaces functions that metrics and resampling use."""

    def harm(self):
        wrong = lambda right: lambda *args, **kwargs: right(*args, **kwargs) * 1.01  # noqa: E731
        for name in ("mean", "sum", "sqrt", "log10", "dot", "abs"):
            setattr(np, name, wrong(getattr(np, name)))
        np.fft.rfft = wrong(np.fft.rfft)
        np.linalg.norm = wrong(np.linalg.norm)


class ReplacesTorch(Quantiser):
    """Replaces functions of torch, and leaves autocast, a default dtype, threads and no gradients."""

    def harm(self):
        import torch

        torch.set_default_dtype(torch.float64)
        torch.autocast("cpu", torch.bfloat16).__enter__()
        torch.set_grad_enabled(False)
        torch.set_num_threads(3)
        torch.nn.functional.conv1d = torch.stft = lambda *args, **kwargs: None


class EmptiesPath(Quantiser):
    """Removes every folder that modules are imported from."""

    def harm(self):
        sys.path.clear()
        sys.path_importer_cache.clear()


class ChangesLocale(Quantiser):
    """Changes locale, variables, warnings, floating-point errors, and the folder."""

    def harm(self):
        locale.setlocale(locale.LC_ALL, "C")
        for name in ("HOME", "PATH", "XDG_CACHE_HOME", "OMP_NUM_THREADS"):
            os.environ[name] = "/nowhere"
        warnings.simplefilter("error")
        np.seterr(all="raise")
        os.chdir(tempfile.gettempdir())


class SeedsAndIgnoresSignals(Quantiser):
    """Seeds the generators, and ignores every signal that it can."""

    def harm(self):
        np.random.seed(0)
        random.seed(0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)


class ClosesFiles(Quantiser):
    """Closes every file but the standard ones, and with them the pipe to the main process."""

    def harm(self):
        os.closerange(3, 4096)


def _open_files():
    """The numbers of all open files but the three of the terminal."""
    return sorted(number for number in map(int, os.listdir("/proc/self/fd")) if number > 2)


class ReplacesFiles(Quantiser):
    """Puts a file of its own in the place of every other."""

    def harm(self):
        with tempfile.TemporaryFile() as file:
            for number in _open_files():
                if number != file.fileno():
                    os.dup2(file.fileno(), number)


class WritesToPipes(Quantiser):
    """Writes messages of its own to every socket."""

    def harm(self):
        from multiprocessing.connection import Connection
        from stat import S_ISSOCK

        for number in _open_files():
            try:
                is_socket = S_ISSOCK(os.fstat(number).st_mode)
            except OSError:
                continue
            if is_socket:
                for message in (("done", 987654, [], 0.0, 0.0, {}, None), ("began", 987654), ("what", 1), "nothing"):
                    Connection(os.dup(number)).send(message)


class Ends(Quantiser):
    """Ends the interpreter."""

    def harm(self):
        sys.exit(0)


class LeavesThreads(Quantiser):
    """Leaves a thread behind that prints and never ends."""

    def harm(self):
        threading.Thread(target=threading.Event().wait, daemon=False).start()
        sys.stdout.close()
        sys.stderr.close()


class Peak(Metric):
    """The largest sample."""

    name, kind, protocol, unit = "peak", "single", "peak/1", ""
    range, higher_is_better = (0.0, 10.0), True

    def compute(self, batch):
        self.harm()
        return [float(item.estimate.max()) for item in batch]

    def harm(self):
        """Does nothing."""


def _metric(codec):
    return type(f"Metric{codec.__name__}", (Peak,), {"harm": codec.harm, "__doc__": codec.__doc__})


METRICS = (Forks, ReplacesNumpy, EmptiesPath, ClosesFiles, Ends)
globals().update({f"Metric{codec.__name__}": _metric(codec) for codec in METRICS})
