"""A codec under batch, order, repetition, and short, silent or stereo input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np

from codec_bench.codecs.adapt import decode, encode, fault_of, recode
from codec_bench.codecs.checks import finding
from codec_bench.codecs.checks.batching import (
    WAVE_TOLERANCE,
    BatchingCheck,
    batches_of,
    is_repeated,
    mix_clips,
    one_by_one,
    try_batches,
)
from codec_bench.codecs.checks.rates_and_channels import check_causality, check_clip_ends, check_formats
from codec_bench.codecs.checks.signals import rms
from codec_bench.machine.process_state import preserved_torch_state
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Sent

SHORT = (1, 7, 160, 801)  # samples
_QUIET_DB = -50.0
_LISTS: list[list[tuple[str, bool]]] = []


def probe(codec: Any, clips: Sequence[Audio]) -> list[dict[str, Any]]:
    """Test a codec with all formats, short clips, silence, repetition and batches.

    Args:
        clips: speech of about two seconds each, at a rate and channel count of the codec.

    Returns:
        The findings, without those that only follow from another one.
    """
    clip = clips[0]
    unsteady = finding("causal label", "not applicable", Diagnostic("same_output_needed"))
    together = _check_repeats_and_batches(codec, mix_clips(clips, codec.info.frame_rate_hz))
    steady = any(f["check"] == "repeatable" and f["state"] == "ok" for f in together)
    listed = [
        run_check("length", lambda: _check_short_lengths(codec, clip)),
        *check_formats(codec, clips, steady=steady),
        *run_checks("last frame", lambda: check_clip_ends(codec, clip)),
        run_check("causal label", lambda: check_causality(codec, clip) if steady else unsteady),
        run_check("file", lambda: _check_files(codec, clip)),
        run_check("digital silence", lambda: _check_digital_silence(codec, clip)),
        *together,
    ]
    return without_consequences(listed)


def without_consequences(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop suspect findings that another suspect finding explains.

    For example, a codec whose batches differ from single clips also fails the checks of lengths and levels.
    """
    wrong = {f["check"] for f in findings if f["state"] == "suspect"}
    drop: set[str] = set()
    if wrong & {"first frame", "last frame", "dropouts", "repeatable", "thread"}:
        drop |= {"length of clips"}
    if "silence" in wrong:
        drop |= {"first frame", "last frame"}
    if "batch" in wrong:
        drop |= {"length of clips", "loudness of clips", "dropouts", "first frame", "last frame"}
    return [f for f in findings if f["state"] != "suspect" or f["check"] not in drop]


def _check_repeats_and_batches(codec: Any, clips: Sequence[Audio]) -> list[dict[str, Any]]:
    """Make the findings on repeats and batches for clips in hard batches."""
    batches = batches_of([clip.num_samples for clip in clips])
    return run_checks("batch", lambda: compare_repeats_and_batches(codec, clips, one_by_one(codec, clips), batches))


def compare_repeats_and_batches(
    codec: Any, clips: Sequence[Audio], alone: Sequence[tuple[Sent, Audio]], batches: Sequence[Sequence[int]]
) -> list[dict[str, Any]]:
    """Check a codec for changed input, results that differ on repetition, and batches.

    Args:
        clips: inputs of the codec, from `mix_clips` or similar.
        alone: codes and output of each clip, from `one_by_one`.
        batches: the indices of the clips of each batch.

    Returns:
        Three findings. Batches are not tested if the codec does not repeat its own output.
    """
    unchanged = run_check("input", lambda: _check_input(codec, clips))
    again = run_check("repeatable", lambda: _check_repetition(codec, clips, alone))
    if again["state"] != "ok":
        return [unchanged, again, finding("batch", "not applicable", Diagnostic("same_output_needed"))]
    together = run_check("batch", lambda: _check_batches(codec, clips, alone, batches))
    if together["check"] == "repeatable":
        return [unchanged, together, finding("batch", "not applicable", Diagnostic("same_batch_needed"))]
    return [unchanged, again, together]


@contextmanager
def opened_files() -> Iterator[list[tuple[str, bool]]]:
    """Yield a list of the files that Python opens in this context, as they are opened.

    Each is (absolute path, whether it was opened for writing).
    """
    _begin_to_listen()
    _LISTS.append([])
    try:
        yield _LISTS[-1]
    finally:
        _LISTS.pop()


@cache
def _begin_to_listen() -> None:
    sys.addaudithook(_listen)  # it stays as long as the process, and does nothing while no list is open


def _listen(event: str, args: tuple[Any, ...]) -> None:
    if _LISTS and event == "open" and isinstance(args[0], str | bytes | os.PathLike):
        writes = bool(int(args[2] or 0) & (os.O_WRONLY | os.O_RDWR))
        _LISTS[-1].append((os.path.abspath(os.fsdecode(args[0])), writes))


def run_check(check: str, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run a check that returns one finding; if the codec raises, it is `failed`."""
    return run_checks(check, lambda: [look()])[0]


def run_checks(check: str, look: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Run checks that return findings; if the codec raises, one `failed` finding.

    Args:
        check: the name of that finding.
        look: the checks, called once.
    """
    try:
        return look()
    except MemoryError:
        raise
    except Exception as error:  # custom codecs may raise anything
        return [finding(check, "failed", fault_of(error))]


def _check_short_lengths(codec: Any, clip: Audio) -> dict[str, Any]:
    """Check that clips of 1 to 801 samples keep their length, in every format."""
    info = codec.info
    kinds = [(rate, channels) for rate in sorted(set(info.sample_rates_hz)) for channels in info.channels]
    for rate, channels in kinds:
        for length in SHORT:
            samples = np.resize(clip.samples[:1, : max(SHORT)], (channels, length))
            try:
                recode(codec, [Audio(samples, rate)])
            except Exception as error:
                facts = {"samples": length, "channels": channels, "rate_hz": rate, "cause": fault_of(error)}
                return finding("length", "failed", Diagnostic("short_input", **facts))
    return finding("length", "ok", Diagnostic("length_kept", samples=SHORT))


def _check_files(codec: Any, clip: Audio) -> dict[str, Any]:
    """Check that `decode` does not read a file that `encode` wrote."""
    segment = Audio(0.9 * clip.samples[:, : clip.num_samples // 3 + 1], clip.sample_rate_hz)  # not coded before
    with opened_files() as files:
        codes = encode(codec, [segment])
    written = {path for path, writes in files if writes}
    with opened_files() as files:
        decode(codec, codes, [segment])
    both = written & {path for path, _ in files}
    passed = sorted(path for path in both if os.path.isfile(path) or not os.path.exists(path))  # not /dev/null
    if passed:
        return finding("file", "suspect", Diagnostic("file_read", path=passed[0]))
    return finding("file", "ok", Diagnostic("file_not_read"))


def _check_digital_silence(codec: Any, clip: Audio) -> dict[str, Any]:
    """Check that digital silence stays quiet, and does not bring back an earlier clip."""
    (out,) = recode(codec, [Audio(np.zeros_like(clip.samples), clip.sample_rate_hz)])[1]
    level = rms(out.samples)
    db = 20 * np.log10(max(level, 1e-10))
    if db > _QUIET_DB:
        (before,) = recode(codec, [clip])[1]
        if rms(before.samples - out.samples) < 0.01 * level:
            return finding("repeatable", "suspect", Diagnostic("kept_by_length"), float(db))
    diagnostic = Diagnostic("silence_level", level_db=db) if level > 0 else Diagnostic("silence_kept")
    return finding("digital silence", "suspect" if db > _QUIET_DB else "ok", diagnostic, float(db))


def _check_input(codec: Any, clips: Sequence[Audio]) -> dict[str, Any]:
    """Check that `encode` does not change the samples of its input."""
    clip = max(clips, key=lambda clip: clip.num_samples)
    passed = deepcopy(clip)
    with preserved_torch_state(codec):
        codec.encode([passed])
    if not np.array_equal(passed.samples, clip.samples):
        worst = float(np.abs(passed.samples - clip.samples).max())
        return finding("input", "suspect", Diagnostic("input_changed", by=worst), worst)
    return finding("input", "ok", Diagnostic("input_unchanged"), 0.0)


def _check_repetition(codec: Any, clips: Sequence[Audio], alone: Sequence[tuple[Sent, Audio]]) -> dict[str, Any]:
    """Check that coding clips again in another thread gives the same codes and output.

    If it does not, they are coded again in this thread to tell which of both is the cause.
    """

    def differing(places: Sequence[int]) -> BatchingCheck:
        again = BatchingCheck()
        for index, now in zip(places, one_by_one(codec, [clips[index] for index in places])):
            again.add(index, alone[index], now)
        return again

    order = range(len(clips))
    with ThreadPoolExecutor(1) as other:
        elsewhere = other.submit(differing, list(reversed(order))).result()
    if elsewhere.exact:
        diagnostic = Diagnostic("repeated", clips=len(clips), wave=elsewhere.wave)
        return finding("repeatable", "ok", diagnostic, elsewhere.wave)
    here = differing(order)
    if here.exact:
        return finding("thread", "suspect", Diagnostic("thread_differs", **_differences(elsewhere)), elsewhere.wave)
    count = max(len(elsewhere.differing), len(here.differing))
    diagnostic = Diagnostic("second_differs", differing=count, clips=len(clips), **_differences(here))
    return finding("repeatable", "suspect", diagnostic, here.wave)


def _differences(comparison: BatchingCheck) -> dict[str, Any]:
    """Return counts of differences for a diagnostic; no `wave` if lengths differ."""
    wave = comparison.wave if np.isfinite(comparison.wave) else None
    return {"flips": comparison.flips, "frames": comparison.frames, "wave": wave, "allowed": WAVE_TOLERANCE}


def _check_batches(
    codec: Any, clips: Sequence[Audio], alone: Sequence[tuple[Sent, Audio]], batches: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Compare clips coded in batches with the same clips coded `alone`.

    If they differ, both are coded again: the finding is `repeatable` for a codec that does not repeat its output, else
    `batch`.
    """
    comparison = try_batches(codec, clips, alone, batches)
    compared = {"clips": len(clips), "batches": len(batches)}
    if comparison.exact or (comparison.flips == 1 and comparison.wave <= WAVE_TOLERANCE):
        by = {"wave": comparison.wave, "allowed": WAVE_TOLERANCE, "flips": comparison.flips}
        return finding("batch", "ok", Diagnostic("batch_same", **compared, **by), comparison.wave)
    if not _is_repeated(codec, clips, comparison, alone):
        diagnostic = Diagnostic("batch_unsteady", **compared, **_differences(comparison))
        return finding("repeatable", "suspect", diagnostic, comparison.wave)
    index = comparison.worst or 0
    diagnostic = Diagnostic(
        "batch_differs", differing=len(comparison.differing), **compared, worst_s=clips[index].duration_s,
        **_differences(comparison),
    )  # fmt: skip
    worst = comparison.wave if comparison.wave > WAVE_TOLERANCE else float(comparison.flips)
    return finding("batch", "suspect", diagnostic, worst)


def _is_repeated(
    codec: Any, clips: Sequence[Audio], comparison: BatchingCheck, alone: Sequence[tuple[Sent, Audio]]
) -> bool:
    """Whether the clip that differs most gives the same result when coded again.

    It is coded again alone and in its batch; both must repeat.
    """
    if comparison.worst is None or comparison.worst_item is None:
        return True
    batch = [clips[index] for index in comparison.worst_batch]
    return is_repeated(codec, [clips[comparison.worst]], 0, alone[comparison.worst]) and is_repeated(
        codec, batch, list(comparison.worst_batch).index(comparison.worst), comparison.worst_item
    )
