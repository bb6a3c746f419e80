"""Pitch over time: the fundamental frequency of a voice, frame by frame."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable, refuse_weights
from codec_bench.machine.environment import package_version
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UserError

RATE_HZ = 16_000
WORLD_FLOOR_HZ, WORLD_CEILING_HZ = 40.0, 800.0
WORLD_HOP_S = 0.005
LOW_CUT_TAPS, LOW_CUT_HZ = 255, 70.0
FULL_SCALE = 32767.0
SWIFT_VERSION, SWIFT_HOP_S, SWIFT_VOICED = "0.3", 0.016, 0.5
PROTOCOLS = {
    None: "pitch/boersma-ac-60-600hz/10ms",
    "swift": f"pitch/swift-f0-{SWIFT_VERSION}/16ms",
    "world": "pitch/world-harvest-40-800hz/low-cut-70hz/5ms",
}


class Pitch(Feature):
    """The pitch of a signal in Hz, frame by frame; 0 where it is unvoiced.

    The variant names the tracker, and each tracker has its own protocol:

    * None, protocol `pitch/boersma-ac-60-600hz/10ms`: Boersma's autocorrelation method, which is Praat's "To Pitch
      (ac)" with its standard settings between 60 and 600 Hz, every 10 ms. Computed by `kernels/pitch`.
    * `world`, protocol `pitch/world-harvest-40-800hz/low-cut-70hz/5ms`: WORLD's Harvest as VERSA calls it: the signal
      in 16-bit units through a high-pass of 255 taps at 70 Hz (which delays it by 8 ms), then Harvest between 40 and
      800 Hz every 5 ms, without StoneMask's refinement. About 200 times slower than the default. Harvest continues the
      pitch through short unvoiced sounds, so more frames are voiced than with other trackers.
    * `swift`, protocol `pitch/swift-f0-0.3/16ms`: SwiftF0, a small network trained on speech and music, between 47 and
      2094 Hz every 16 ms. A frame is voiced from a confidence of 0.5 on.

    Result: `{"f0_hz": float32 (frames,), "hop_s": float}`.

    Papers: P. Boersma, "Accurate short-term analysis of the fundamental frequency ...", IFA Proceedings 17, 1993; M.
    Morise, "Harvest: A high-performance fundamental frequency estimator from speech signals", Interspeech 2017; L.
    Nieradzik, "SwiftF0: Fast and Accurate Monophonic Pitch Detection", 2025, arXiv 2508.18440. Reference
    implementations: Praat 6.1 through parselmouth 0.4 on clean speech, voicing equal on 99 % of the frames and pitch to
    0.2 % on 99 % of those voiced in both (measured: 99.9 %, and 0.1 %; `docs/metrics/pitch.md` has noise); pyworld
    0.3.5 itself; swift-f0 0.3 itself.

    Args:
        device: unused; it runs on the CPU. weights: must be None. variant: None, `swift` or `world`.

    Raises:
        UserError: no such variant, or weights were passed. MissingExtra: pyworld or swift-f0 is not installed.
    """

    name = "pitch"
    rate_hz = RATE_HZ
    where = "cpu"
    batch_s = 600.0

    def __init__(self, device: str = "cpu", weights: str | None = None, variant: str | None = None) -> None:
        refuse_weights(self.name, weights)
        if variant not in PROTOCOLS:
            raise UserError("no_variant", variant=variant, name="pitch", hint="use pitch, pitch[swift] or pitch[world]")
        if variant == "world":
            check_world("pitch[world]")
        if variant == "swift":
            check_swift("pitch[swift]")
        super().__init__(device, weights)
        self.protocol = PROTOCOLS[variant]
        self._track = {None: _boersma, "swift": _swift, "world": _world}[variant]
        self._hop_s = {None: 0.01, "swift": SWIFT_HOP_S, "world": WORLD_HOP_S}[variant]

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Track signals `(samples,)`, float32 at 16 kHz."""
        return [self._pitch(signal) for signal in signals]

    def _pitch(self, signal: np.ndarray) -> Result | Unavailable:
        return unusable(signal) or {"f0_hz": self._track(signal), "hop_s": self._hop_s}


def unusable(signal: np.ndarray) -> Unavailable | None:
    """Return why a signal without samples or finite values has no pitch; else None."""
    if not signal.size:
        return Unavailable(Diagnostic("no_samples_heard"))
    return None if np.isfinite(signal).all() else Unavailable(Diagnostic("signal_not_finite"))


def _boersma(signal: np.ndarray) -> np.ndarray:
    from codec_bench.kernels.pitch.cpu import track

    return track(signal)


def _world(signal: np.ndarray) -> np.ndarray:
    return harvest(signal)[1].astype(np.float32)


def harvest(signal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run WORLD's Harvest as VERSA calls it, on a signal `(samples,)` at 16 kHz.

    Returns:
        The filtered signal in 16-bit units; each frame's pitch in Hz, 0 where unvoiced; the frames' times in seconds.

    Raises:
        MissingExtra: pyworld, or a package that it imports, is not installed.
    """
    from scipy.signal import firwin, lfilter

    pyworld = import_world()
    taps = firwin(LOW_CUT_TAPS, LOW_CUT_HZ / (RATE_HZ / 2), pass_zero=False)
    filtered = lfilter(taps, 1.0, signal.astype(np.float64) * FULL_SCALE)
    f0, times = pyworld.harvest(
        filtered, RATE_HZ, f0_floor=WORLD_FLOOR_HZ, f0_ceil=WORLD_CEILING_HZ, frame_period=1000 * WORLD_HOP_S
    )
    return filtered, f0, times


@cache
def _swift_detector() -> Any:
    from swift_f0 import SwiftF0

    return SwiftF0(threads=1)  # the engine's workers share the cores


def _swift(signal: np.ndarray) -> np.ndarray:
    contour = _swift_detector().detect(signal, RATE_HZ)
    return np.where(contour.confidence >= SWIFT_VOICED, contour.pitch_hz, 0.0).astype(np.float32)


def check_swift(name: str) -> None:
    """Check that the installed swift-f0 has the network that the protocol names.

    Args:
        name: the feature's name in messages.

    Raises:
        MissingExtra: swift-f0 is not installed.
        UserError: its version contains another network.
    """
    installed = package_version("swift-f0")
    if installed is None:
        raise MissingExtra(name, "swift-f0", "pitch")
    if not f"{installed}.".startswith(f"{SWIFT_VERSION}."):
        raise UserError(
            "package_version_unexpected",
            feature=name,
            package="swift-f0",
            version=SWIFT_VERSION,
            installed=installed,
            hint=f"pip install 'swift-f0=={SWIFT_VERSION}.*'",
        )


def check_world(name: str) -> None:
    """Raise MissingExtra for a feature if pyworld is not installed."""
    if importlib.util.find_spec("pyworld") is None:
        raise MissingExtra(name, "pyworld", "pitch")


def import_world() -> Any:
    """Import pyworld.

    Raises:
        MissingExtra: it, or a package that it imports, is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pyworld imports pkg_resources, which warns that it is deprecated
        try:
            import pyworld
        except ModuleNotFoundError as error:  # pyworld needs pkg_resources, which newer releases of setuptools lack
            raise MissingExtra("pyworld", error.name or "pyworld", "pitch") from error
    return pyworld
