"""DNSMOS: what listeners would say of a noisy or processed voice, without a reference (P.835 and P.808 networks)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.errors import MissingExtra, UserError, WeightsError
from codec_bench.features.base import Feature, Result, Unavailable

RATE_HZ = 16_000
WINDOW_S = 9.01
WINDOW = 144_160
PROTOCOLS = {None: "dnsmos/speechmos", "all-windows": "dnsmos/all-windows"}
WINDOWS_AT_ONCE = 96
"""Windows that share one picture: bounds the memory (about 100 MB) for signals of any length."""


@dataclass(frozen=True, slots=True)
class _Network:
    """A network's file and what must stand in it, in order: a published network is recognised by its shape."""

    file: str
    operations: str
    convolutions: tuple[tuple[int, ...], ...]
    dense: tuple[tuple[int, int], ...]


_P835 = _Network(
    "sig_bak_ovr.onnx",
    "Conv Conv Conv Relu Conv Relu Conv Relu Conv Relu MaxPool Conv Relu MaxPool Conv Relu MaxPool Conv Relu ReduceMax "
    "MatMul Relu MatMul Relu MatMul",
    (
        *((161, 320, 1), (161, 320, 1), (128, 1, 3, 3), (64, 128, 3, 3), (64, 64, 3, 3), (32, 64, 3, 3)),
        *((32, 32, 3, 3), (32, 32, 3, 3), (64, 32, 3, 3)),
    ),
    ((64, 128), (128, 64), (64, 3)),
)
_P808 = _Network(
    "model_v8.onnx",
    "Conv Relu MaxPool Conv Relu MaxPool Conv Relu Conv Relu MaxPool Conv Relu ReduceMax MatMul Relu MatMul Relu MatMul",
    ((32, 1, 3, 3), (32, 32, 3, 3), (32, 32, 3, 3), (32, 32, 3, 3), (64, 32, 3, 3)),
    ((64, 64), (64, 64), (64, 1)),
)
_POLYNOMIALS = {
    "sig": (-0.08397278, 1.22083953, 0.0052439),
    "bak": (-0.13166888, 1.60915514, -0.39604546),
    "ovrl": (-0.06766283, 1.11546468, 0.04602535),
}
"""From a raw output of the P.835 network to its score, highest power first, in the order of the outputs."""


class Dnsmos(Feature):
    """The four DNSMOS scores of a signal: mean over windows of 9.01 s, one second apart. Higher is better, 1 to 5.

    A signal shorter than a window is doubled until it is long enough. Which windows count is the variant:

    * None, protocol `dnsmos/speechmos`: what the package `speechmos` (and DNS-Challenge's `dnsmos_local.py`, and
      torchmetrics) counts. Those take a window's end from a product of floats, which for windows that start at 7 to
      23 s, at 119 to 122 s, and at some later seconds comes out one sample short, and then skip the window as
      incomplete; a window that starts in the last 10 s is not tried at all. Of a clip of 30 s nothing after 15.01 s
      is heard. Published numbers carry this, so it is the default.
    * `all-windows`, protocol `dnsmos/all-windows`: every window that fits. The same number where nothing was skipped.

    The networks are computed by this project's own kernels (`kernels/dnsmos`), which share between overlapping windows
    what they have in common; no ONNX runtime is needed.

    Result: `{"sig": float, "bak": float, "ovrl": float, "p808": float, "windows": int}`.

    Paper: C. K. A. Reddy, V. Gopal, R. Cutler, "DNSMOS P.835", ICASSP 2022 (`sig`, `bak`, `ovrl`), and "DNSMOS", ICASSP
    2021 (`p808`). Reference implementation: speechmos 0.0.1 with onnxruntime and librosa 0.11, to 1e-4 (found: 1e-5).

    Args:
        device: always computed on the CPU.
        weights: a folder with `sig_bak_ovr.onnx` and `model_v8.onnx`, or None for those in the installed package.
        variant: None or `all-windows`.

    Raises:
        UserError: no such variant. MissingExtra: speechmos is not installed, and no weights were given.
        WeightsError: the folder lacks a file, or a file holds another network (raised by `compute`).
    """

    name = "dnsmos"
    rate_hz = RATE_HZ
    where = "cpu"
    batch_s = 120.0

    def __init__(self, device: str = "cpu", weights: str | None = None, variant: str | None = None) -> None:
        super().__init__(device, weights)
        self.protocol = protocol_of(variant)
        self.variant = variant
        self._folder = _folder(weights)
        self._networks: tuple[Any, Any, Any] | None = None

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """One result per signal `(samples,)`, float32 at 16 kHz in [-1, 1]."""
        return [self._score(signal) for signal in signals]

    def _score(self, signal: np.ndarray) -> Result | Unavailable:
        if not signal.size:
            return Unavailable("the signal has no samples")
        if not max(signal.max(), -signal.min()) <= 1.0:
            return Unavailable("the signal leaves [-1, 1] or is not finite")
        repeated = repeat(np.ascontiguousarray(signal, np.float32))
        starts = window_starts(repeated.size, self.variant)
        # In a repeated signal, windows that start a whole number of repetitions apart are the same samples.
        period = signal.size if repeated.size > signal.size else None
        phases = [start * RATE_HZ % period if period else start for start in starts]
        distinct = dict(zip(reversed(phases), reversed(starts)))
        places = {phase: n for n, phase in enumerate(sorted(distinct, key=distinct.__getitem__))}
        raw, p808 = self._windows(repeated, sorted(distinct.values()), period)
        place = [places[phase] for phase in phases]
        result: Result = {
            name: float(np.polyval(polynomial, raw[place, n].astype(np.float64)).mean())
            for n, (name, polynomial) in enumerate(_POLYNOMIALS.items())
        }
        return result | {"p808": float(p808[place].mean(dtype=np.float64)), "windows": len(starts)}

    def _windows(self, signal: np.ndarray, starts: Sequence[int], period: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Raw outputs of both networks, `(windows, 3)` and `(windows,)`, for windows that start at these seconds."""
        crew, p835, p808 = self._loaded()
        raw, scores = [], []
        with crew:
            for first, count in runs(starts, WINDOWS_AT_ONCE):
                part = signal[first * RATE_HZ : (first + count - 1) * RATE_HZ + WINDOW]
                waits = p835.start_run(crew, part, count, period), p808.start_run(crew, part, count, period)
                raw.append(waits[0]())
                scores.append(waits[1]())
        return np.concatenate(raw), np.concatenate(scores)

    def _loaded(self) -> tuple[Any, Any, Any]:
        if self._networks is None:
            from codec_bench.kernels.dnsmos.cpu import P808, Crew, SigBakOvr

            p835, p808 = (read_network(self._folder / network.file, network) for network in (_P835, _P808))
            self._networks = Crew(_threads()), SigBakOvr(p835), P808(p808)
        return self._networks


def protocol_of(variant: str | None) -> str:
    """The protocol id of a variant.

    Raises:
        UserError: no such variant.
    """
    if variant not in PROTOCOLS:
        known = ", ".join(name for name in PROTOCOLS if name)
        raise UserError(
            f"dnsmos has no variant '{variant}'", hint=f"use dnsmos, or dnsmos[VARIANT] with one of: {known}"
        )
    return PROTOCOLS[variant]


def repeat(signal: np.ndarray) -> np.ndarray:
    """A signal `(samples,)`, not empty, appended to itself until it is at least a window long."""
    while signal.size < WINDOW:
        signal = np.concatenate([signal, signal])
    return signal


def window_starts(num_samples: int, variant: str | None = None) -> list[int]:
    """Seconds at which the windows of a signal start that count, for at least `WINDOW` samples."""
    if variant == "all-windows":
        return list(range((num_samples - WINDOW) // RATE_HZ + 1))
    # The arithmetic of speechmos, in double precision: its rounding decides.
    tried = range(int(num_samples // RATE_HZ - WINDOW_S) + 1)
    return [i for i in tried if min(int((i + WINDOW_S) * RATE_HZ), num_samples) - i * RATE_HZ >= WINDOW]


def runs(starts: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Ascending numbers as stretches without a gap: `(first, count)`, none longer than `most`."""
    found: list[tuple[int, int]] = []
    for start in starts:
        first, count = found[-1] if found else (start, 0)
        if found and start == first + count and count < most:
            found[-1] = first, count + 1
        else:
            found.append((start, 1))
    return found


def read_network(path: Path, network: _Network) -> Any:
    """The weights of one of the two networks, from its ONNX file.

    Raises:
        WeightsError: the file cannot be read, or holds another network.
    """
    import onnx
    from onnx import numpy_helper

    from codec_bench.kernels.dnsmos.ref import Weights

    try:
        graph = onnx.load(os.fspath(path)).graph
        held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    except Exception as error:  # a broken file raises whatever the parser meets
        raise WeightsError(f"'{path}' is not an ONNX file: {type(error).__name__}: {error}") from error
    counted = set(network.operations.split())
    found = [node for node in graph.node if node.op_type in counted]
    convolutions = [[held.get(name) for name in node.input[1:]] for node in found if node.op_type == "Conv"]
    dense = []
    for node in found:
        if node.op_type == "MatMul":
            sums = [n for n in graph.node if n.op_type == "Add" and node.output[0] in n.input]
            biases = [held[name] for n in sums for name in n.input if name in held]
            dense.append((held.get(node.input[1]), biases[0] if biases else None))
    shapes = tuple(np.shape(c[0]) for c in convolutions), tuple(np.shape(d[0]) for d in dense)
    complete = all(value is not None for layer in [*convolutions, *dense] for value in layer)
    if (
        " ".join(node.op_type for node in found) != network.operations
        or shapes != (network.convolutions, network.dense)
        or not complete
    ):
        raise WeightsError(f"'{path}' holds another network than DNSMOS's {network.file}")
    front = [c[0][:, :, 0] for c in convolutions if c[0].ndim == 3]
    return Weights([tuple(c) for c in convolutions if c[0].ndim == 4], dense, tuple(front) or None)


def _folder(weights: str | None) -> Path:
    if weights is None:
        spec = importlib.util.find_spec("speechmos")
        if spec is None or spec.origin is None:
            raise MissingExtra("DNSMOS", "speechmos", "embedded")
        return Path(spec.origin).parent / "dnsmos_models"
    folder = Path(weights).expanduser()
    for network in (_P835, _P808):
        if not (folder / network.file).is_file():
            raise WeightsError(
                f"there is no '{folder / network.file}'",
                hint=f"give a folder that holds {_P835.file} and {_P808.file}",
            )
    return folder


def _threads() -> int:
    """OMP_NUM_THREADS where it is set (a worker among others), else the cores that this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdecimal():
        return max(1, int(asked))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
