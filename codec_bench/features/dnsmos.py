"""DNSMOS: opinion scores without a reference (P.835, P.808)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import numpy as np

from codec_bench.features.base import PreparedFeature, Result, Unavailable
from codec_bench.features.dnsmos_files import P808, P835, folder_of, read_network
from codec_bench.machine.environment import own_threads
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UserError
from codec_bench.networks.on_device import change_samples, concatenate, fit_samples

RATE_HZ = 16_000
WINDOW_S = 9.01
WINDOW = 144_160
WINDOWS_AT_ONCE = 96
"""Windows per pass. It bounds the memory (about 100 MB) for signals of any length."""


@dataclass(frozen=True, slots=True)
class DnsmosProtocol:
    """How a variant of DNSMOS cuts a signal into windows.

    Args:
        windows: the windows whose scores are averaged: those of `speechmos`, `all`, or the zero-padded `first`.
        peak: whether the signal is first divided by its largest absolute value.
        reflect: whether the mel levels extend a window by its mirror image instead of zeros.
    """

    id: str
    windows: Literal["speechmos", "all", "first"] = "speechmos"
    peak: bool = False
    reflect: bool = False


PROTOCOLS = {
    None: DnsmosProtocol("dnsmos/speechmos"),
    "all-windows": DnsmosProtocol("dnsmos/all-windows", windows="all"),
    "ultraeval-audio": DnsmosProtocol("dnsmos/ultraeval-audio", windows="first", reflect=True),
    "versa": DnsmosProtocol("dnsmos/versa", peak=True),
}
BACKENDS = ("numba", "torch", "onnxruntime")
_POLYNOMIALS = {
    "sig": (-0.08397278, 1.22083953, 0.0052439),
    "bak": (-0.13166888, 1.60915514, -0.39604546),
    "ovrl": (-0.06766283, 1.11546468, 0.04602535),
}
"""Polynomials from raw P.835 outputs to scores, highest power first."""


class Dnsmos(PreparedFeature):
    """The four DNSMOS scores: means over windows of 9.01 s. Higher is better, 1 to 5.

    The variant says which windows count, and each variant has its own protocol:

    * None, protocol `dnsmos/speechmos`: the windows that the package `speechmos` counts (and DNS-Challenge's
      `dnsmos_local.py`, and torchmetrics). A signal shorter than a window is doubled until it is long enough. These
      programs compute a window's end as a product of floats. For windows that start at 7 to 23 s, at 119 to 122 s, and
      at some later seconds, the result is one sample too small, and the window is skipped as incomplete. A window that
      starts in the last 10 s is not tried at all. So nothing after 15.01 s of a clip of 30 s counts. Published numbers
      were computed in this way, so it is the default.
    * `all-windows`, protocol `dnsmos/all-windows`: every window that fits. It gives the default's number for signals of
      which the default skips no window.
    * `ultraeval-audio`, protocol `dnsmos/ultraeval-audio`: only the first 9.01 s; a shorter signal is filled with
      zeros. Mel levels are those of librosa 0.8 (the first frame contains the signal's mirror image). UltraEval-Audio's
      tables hold these numbers.
    * `versa`, protocol `dnsmos/versa`: the windows of the default, after the signal was divided by its largest absolute
      value. VERSA reports these numbers.

    The library that computes the networks is not part of the protocol, because the scores agree to 1e-5. On a CPU it is
    this project's own kernels (`kernels/dnsmos`), on a GPU torch (`networks/dnsmos.py`). Both compute the common part
    of overlapping windows once. `dnsmos@numba`, `dnsmos@torch` and `dnsmos@onnxruntime` name the library: `@numba`
    leaves the GPU to other features; `@onnxruntime` is the slow reference, and uses the GPU if `onnxruntime-gpu` is
    installed.

    Result: `{"sig": float, "bak": float, "ovrl": float, "p808": float, "windows": int}`.

    Paper: C. K. A. Reddy, V. Gopal, R. Cutler, "DNSMOS P.835", ICASSP 2022 (`sig`, `bak`, `ovrl`), and "DNSMOS", ICASSP
    2021 (`p808`). Reference implementation: speechmos 0.0.1 with onnxruntime and librosa 0.11, to 1e-4 (measured:
    1e-5).

    Args:
        weights: a folder with `sig_bak_ovr.onnx` and `model_v8.onnx`, or None for those in the installed package.
        variant: None, `all-windows`, `ultraeval-audio` or `versa`.
        point: the library that computes the networks, or None for the device's own.

    Raises:
        UserError: no such variant or library. MissingExtra: speechmos is not installed, and weights are None.
        WeightsError: the folder lacks a file, or a file holds another network (raised by `load`).
    """

    name = "dnsmos"
    licence = "MIT"
    rate_hz = RATE_HZ
    where: Literal["device", "cpu"] = "device"
    batch_s = 120.0
    mib_per_s = 11.0  # it took 10.5 on an H200 at 120 s; beyond, about 2 GiB whatever the batch

    def __init__(
        self, device: str = "cpu", weights: str | None = None, variant: str | None = None, point: str | None = None
    ) -> None:
        super().__init__(device, weights)
        self.protocol = protocol_of(variant)
        self.backend = backend_of(point) or ("torch" if device.startswith("cuda") else "numba")
        if point == "numba" or (point == "onnxruntime" and not _onnxruntime_has_cuda()):
            self.where = "cpu"
        self._variant = PROTOCOLS[variant]
        self._folder = folder_of(weights)
        self._scorer: _Kernels | _Torch | _OnnxRuntime | None = None

    @classmethod
    def protocol_id(cls, variant: str | None = None, point: str | None = None) -> str:
        """Return the protocol id, without the weights; the library is not part of it.

        Raises:
            UserError: no such variant or library.
        """
        backend_of(point)
        return protocol_of(variant)

    def load(self) -> None:
        """Read the networks and prepare them for the library."""
        self._loaded()

    def _loaded(self) -> _Kernels | _Torch | _OnnxRuntime:
        """Read both networks once, and return the library that computes them."""
        if self._scorer is None:
            p835, p808 = (read_network(self._folder / network.file, network) for network in (P835, P808))
            if self.backend == "numba":
                self._scorer = _Kernels(self, p835, p808)
            elif self.backend == "torch":
                self._scorer = _Torch(self, p835, p808)
            else:
                self._scorer = _OnnxRuntime(self, p835, p808)
        return self._scorer

    def prepare(self, signals: Sequence[np.ndarray]) -> _DnsmosBatch:
        """Cut the signals into windows and prepare them for the library."""
        clips = [self._choose_windows(signal) for signal in signals]
        return _DnsmosBatch(clips, self._loaded().prepare([clip for clip in clips if isinstance(clip, _Clip)]))

    def compute_prepared(self, batch: _DnsmosBatch) -> list[Result | Unavailable]:
        """Score signals `(samples,)`, float32 at 16 kHz in [-1, 1]."""
        outputs = iter(self._loaded().score(batch.ready))
        return [clip if isinstance(clip, Unavailable) else clip.result(*next(outputs)) for clip in batch.clips]

    def _choose_windows(self, signal: np.ndarray) -> _Clip | Unavailable:
        """Choose the windows of a signal for the metric's variant.

        Returns:
            The signal with its distinct windows, or the reason why it has no score.
        """
        if not signal.size:
            return Unavailable(Diagnostic("no_samples_heard"))
        peak = max(signal.max(), -signal.min())
        if not peak <= 1.0:
            return Unavailable(Diagnostic("signal_out_of_range"))
        if self.backend != "torch":
            signal = np.ascontiguousarray(signal, np.float32)
        if self._variant.peak:
            if peak == 0:
                return Unavailable(Diagnostic("signal_without_peak"))
            # A GPU divides by a tensor, but multiplies by the reciprocal of a number.
            signal = change_samples(signal, lambda samples: samples / abs(samples).max())
        if self._variant.windows == "first":
            return _Clip(fit_samples(signal, WINDOW), [0], [0], None)
        repeated = repeat(signal)
        starts = window_starts(repeated.size, "all-windows" if self._variant.windows == "all" else None)
        # In a repeated signal, windows whole repetitions apart are the same samples.
        period = signal.size if repeated.size > signal.size else None
        phases = [start * RATE_HZ % period if period else start for start in starts]
        distinct = dict(zip(reversed(phases), reversed(starts)))
        places = {phase: n for n, phase in enumerate(sorted(distinct, key=distinct.__getitem__))}
        return _Clip(repeated, sorted(distinct.values()), [places[phase] for phase in phases], period)


@dataclass(frozen=True, slots=True, eq=False)
class _Clip:
    """A signal of at least one window, and the windows to score.

    Args:
        starts: the seconds at which distinct windows start, ascending.
        places: for each window that is averaged, the index in `starts` of an equal window.
        period: the samples after which the signal repeats itself, or None.
    """

    signal: np.ndarray
    starts: list[int]
    places: list[int]
    period: int | None

    def parts(self, most: int) -> list[tuple[np.ndarray, int]]:
        """Cut the signal into runs of consecutive windows.

        Args:
            most: the most windows of a run.

        Returns:
            The samples of each run, and its number of windows.
        """
        return [
            (self.signal[first * RATE_HZ : (first + count - 1) * RATE_HZ + WINDOW], count)
            for first, count in runs(self.starts, most)
        ]

    def result(self, raw: np.ndarray, p808: np.ndarray) -> Result:
        """Average the scores over windows, from both networks' outputs for distinct ones.

        Args:
            raw: outputs of the P.835 network, `(starts, 3)`.
            p808: outputs of the P.808 network, `(starts,)`.
        """
        result: Result = {
            name: float(np.polyval(polynomial, raw[self.places, n].astype(np.float64)).mean())
            for n, (name, polynomial) in enumerate(_POLYNOMIALS.items())
        }
        return result | {"p808": float(p808[self.places].mean(dtype=np.float64)), "windows": len(self.places)}


_Outputs = list[tuple[np.ndarray, np.ndarray]]
"""Raw outputs of the networks, `(starts, 3)` and `(starts,)`, per clip."""


@dataclass(frozen=True, slots=True, eq=False)
class _DnsmosBatch:
    """A prepared batch: clips or why a signal has none, and the library's input."""

    clips: list[_Clip | Unavailable]
    ready: Any


class _ClipByClip:
    """A library that scores the windows of one clip at a time."""

    def prepare(self, clips: list[_Clip]) -> list[_Clip]:
        return clips

    def score(self, clips: list[_Clip]) -> _Outputs:
        return [self.windows(clip) for clip in clips]

    def windows(self, clip: _Clip) -> tuple[np.ndarray, np.ndarray]:
        """Run both networks on a clip's distinct windows.

        Returns:
            Raw outputs of the P.835 network, `(windows, 3)`, and of the P.808 network, `(windows,)`.
        """
        raise NotImplementedError


class _Kernels(_ClipByClip):
    """This project's kernels."""

    def __init__(self, feature: Dnsmos, p835: Any, p808: Any) -> None:
        from codec_bench.kernels.dnsmos import cpu

        self._crew = cpu.Crew(own_threads())
        self._p835, self._p808 = cpu.SigBakOvr(p835), cpu.P808(p808, feature._variant.reflect)

    def windows(self, clip: _Clip) -> tuple[np.ndarray, np.ndarray]:
        """Run both networks on a clip's windows, in parallel on shared threads.

        Returns raw outputs of the P.835 network, `(windows, 3)`, and of the P.808 network, `(windows,)`.
        """
        raw, scores = [], []
        with self._crew as crew:
            for chunk, count in clip.parts(WINDOWS_AT_ONCE):
                waits = [net.start_run(crew, chunk, count, clip.period) for net in (self._p835, self._p808)]
                raw.append(waits[0]())
                scores.append(waits[1]())
        return np.concatenate(raw), np.concatenate(scores)


class _Torch:
    """The networks in torch, all clips together."""

    def __init__(self, feature: Dnsmos, p835: Any, p808: Any) -> None:
        from codec_bench.networks.dnsmos import Networks

        self._feature = feature
        self._networks = Networks(p835, p808, feature.device, feature._variant.reflect)

    def prepare(self, clips: list[_Clip]) -> tuple[list[int], Any]:
        """Upload the runs of all clips; return each clip's number of runs, and the runs."""
        parts = [clip.parts(min(WINDOWS_AT_ONCE, self._networks.longest_run)) for clip in clips]
        return [len(some) for some in parts], self._networks.sent([run for some in parts for run in some])

    def score(self, ready: tuple[list[int], Any]) -> _Outputs:
        """Run both networks on all clips' windows, and split the outputs by clip.

        Args:
            ready: the number of passes of each clip, and the networks' uploaded inputs.
        """
        counts, runs_there = ready
        outputs = iter(self._networks.score(runs_there))
        joined = ([next(outputs) for _ in range(count)] for count in counts)
        return [(np.concatenate([o[0] for o in some]), np.concatenate([o[1] for o in some])) for some in joined]


class _OnnxRuntime(_ClipByClip):
    """The published files, window by window."""

    def __init__(self, feature: Dnsmos, p835: Any, p808: Any) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtra("dnsmos@onnxruntime", "onnxruntime", "embedded") from error
        self._reflect = feature._variant.reflect
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = own_threads()
        providers: list[Any] = ["CPUExecutionProvider"]
        if feature.device.startswith("cuda") and _onnxruntime_has_cuda():
            number = int(feature.device.partition(":")[2] or 0)
            # Without TensorFloat-32, whose 11 bits are too few for 1e-4 of a score.
            providers.insert(0, ("CUDAExecutionProvider", {"device_id": number, "use_tf32": 0}))
        files = (feature._folder / network.file for network in (P835, P808))
        self._p835, self._p808 = (onnxruntime.InferenceSession(os.fspath(f), options, providers) for f in files)
        if len(providers) > 1 and self._p835.get_providers()[0] != "CUDAExecutionProvider":
            raise UserError(
                "onnxruntime_without_gpu",
                hint="codec-bench doctor detects a CPU package onnxruntime over it; dnsmos@torch needs neither package",
            )

    def windows(self, clip: _Clip) -> tuple[np.ndarray, np.ndarray]:
        """Run both published ONNX files on each window of a clip alone.

        Returns raw outputs of the P.835 network, `(windows, 3)`, and of the P.808 network, `(windows,)`.
        """
        from codec_bench.kernels.dnsmos.ref import HOP_SAMPLES, mel_levels

        raw, scores = [], []
        for start in clip.starts:
            window = clip.signal[start * RATE_HZ : start * RATE_HZ + WINDOW]
            levels = mel_levels(window[:-HOP_SAMPLES], self._reflect).astype(np.float32)
            raw.append(self._p835.run(None, {"input_1": window[None]})[0][0])
            scores.append(self._p808.run(None, {"input_1": levels[None]})[0][0, 0])
        return np.stack(raw), np.array(scores)


def backend_of(point: str | None) -> str | None:
    """Parse the library of a name such as `dnsmos@torch`.

    Raises:
        UserError: no such library.
    """
    if point is not None and point not in BACKENDS:
        raise UserError(
            "no_point_of_metric",
            point=point,
            name="dnsmos",
            hint=f"use dnsmos, or dnsmos@ one of: {', '.join(BACKENDS)}",
        )
    return point


def _onnxruntime_has_cuda() -> bool:
    try:
        version("onnxruntime-gpu")
    except PackageNotFoundError:
        return False
    return True


def protocol_of(variant: str | None) -> str:
    """Return the protocol id of a variant.

    Raises:
        UserError: no such variant.
    """
    if variant not in PROTOCOLS:
        known = ", ".join(name for name in PROTOCOLS if name)
        raise UserError(
            "no_variant", variant=variant, name="dnsmos", hint=f"use dnsmos, or dnsmos[VARIANT] with one of: {known}"
        )
    return PROTOCOLS[variant].id


def repeat(signal: np.ndarray) -> np.ndarray:
    """Double a signal `(samples,)`, not empty, until it is at least a window long."""
    while signal.size < WINDOW:
        signal = concatenate([signal, signal])
    return signal


def window_starts(num_samples: int, variant: str | None = None) -> list[int]:
    """Return the start in seconds of each window whose scores are averaged.

    Args:
        num_samples: of the signal, at least `WINDOW`.
        variant: `all-windows`, or None for those that the package speechmos counts.
    """
    if variant == "all-windows":
        return list(range((num_samples - WINDOW) // RATE_HZ + 1))
    # speechmos's arithmetic in double precision. Its rounding decides which windows count.
    tried = range(int(num_samples // RATE_HZ - WINDOW_S) + 1)
    return [i for i in tried if min(int((i + WINDOW_S) * RATE_HZ), num_samples) - i * RATE_HZ >= WINDOW]


def runs(starts: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Group ascending numbers into runs of consecutive ones, as `(first, count)`.

    Args:
        starts: the numbers.
        most: the largest count of a run.
    """
    stretches: list[tuple[int, int]] = []
    for start in starts:
        first, count = stretches[-1] if stretches else (start, 0)
        if stretches and start == first + count and count < most:
            stretches[-1] = first, count + 1
        else:
            stretches.append((start, 1))
    return stretches
