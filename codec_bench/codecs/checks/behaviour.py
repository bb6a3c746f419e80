"""What must not matter to a codec: the batch, the order, a second run; and input that is very short, silent or stereo."""

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

from codec_bench.codecs.adapt import decode, encode, recode, sentence
from codec_bench.codecs.checks import finding
from codec_bench.codecs.checks.batching import (
    WAVE_TOLERANCE,
    Batched,
    batches_of,
    disagreeing,
    is_repeated,
    one_by_one,
    try_batches,
)
from codec_bench.codecs.checks.rates_and_channels import both_ends, future, wide
from codec_bench.codecs.checks.signals import count_of, rms
from codec_bench.process_state import preserved_torch_state
from codec_bench.types import Audio, Sent

SHORT = (1, 7, 160, 801)  # samples
_QUIET_DB = -50.0
_LISTS: list[list[tuple[str, bool]]] = []


def probe(codec: Any, clips: Sequence[Audio]) -> list[dict[str, Any]]:
    """Findings for every rate and channel count that is declared, for silence, for two runs of one input, and for
    batches.

    Args:
        codec: the codec. clips: some speech as the codec takes it, of two seconds or so.
    """
    clip = clips[0]
    unsteady = finding("causal label", "not applicable", "the same input does not give the same output")
    together = _settled(codec, disagreeing(clips, codec.info.frame_rate_hz))
    steady = any(f["check"] == "repeatable" and f["state"] == "ok" for f in together)
    listed = [
        tried("length", lambda: _lengths(codec, clip)),
        *wide(codec, clips, steady=steady),
        *_ends(codec, clip),
        tried("causal label", lambda: future(codec, clip) if steady else unsteady),
        tried("file", lambda: _files(codec, clip)),
        tried("digital silence", lambda: _silence(codec, clip)),
        *together,
    ]
    return without_consequences(listed)


def without_consequences(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The findings without those that only follow from another one."""
    wrong = {f["check"] for f in findings if f["state"] == "suspect"}
    drop: set[str] = set()
    if wrong & {"first frame", "last frame", "dropouts", "repeatable", "thread"}:
        drop |= {"length of clips"}
    if "silence" in wrong:
        drop |= {"first frame", "last frame"}
    if "batch" in wrong:
        drop |= {"length of clips", "loudness of clips", "dropouts", "first frame", "last frame"}
    return [f for f in findings if f["state"] != "suspect" or f["check"] not in drop]


def _ends(codec: Any, clip: Audio) -> list[dict[str, Any]]:
    try:
        return both_ends(codec, clip)
    except MemoryError:
        raise
    except Exception as error:
        return [finding("last frame", "failed", sentence(error))]


def _settled(codec: Any, clips: Sequence[Audio]) -> list[dict[str, Any]]:
    try:
        alone = one_by_one(codec, clips)
    except MemoryError:
        raise
    except Exception as error:
        return [finding("batch", "failed", sentence(error))]
    return settled(codec, clips, alone, batches_of([clip.num_samples for clip in clips]))


def settled(
    codec: Any, clips: Sequence[Audio], alone: Sequence[tuple[Sent, Audio]], batches: Sequence[Sequence[int]]
) -> list[dict[str, Any]]:
    """The findings of what becomes of the input, of two runs of one input, and of batches.

    Args:
        codec: the codec. clips: as it takes them, chosen to disagree. alone: what `one_by_one` gave for them.
        batches: the places of the clips in each batch.
    """
    unchanged = tried("input", lambda: _check_input(codec, clips))
    again = tried("repeatable", lambda: _repeated(codec, clips, alone))
    if again["state"] != "ok":
        return [unchanged, again, finding("batch", "not applicable", "the same input does not give the same output")]
    together = tried("batch", lambda: _batch(codec, clips, alone, batches))
    if together["check"] == "repeatable":
        return [unchanged, together, finding("batch", "not applicable", "the same batch does not give the same output")]
    return [unchanged, again, together]


@contextmanager
def opened_files() -> Iterator[list[tuple[str, bool]]]:
    """The files that Python opens inside, and whether to write to them. Other languages' files are not seen."""
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


def tried(check: str, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The finding of a check; `failed` with the reason if the codec raises an exception."""
    try:
        return look()
    except MemoryError:
        raise
    except Exception as error:  # a codec of the caller's own may raise anything
        return finding(check, "failed", sentence(error))


def _lengths(codec: Any, clip: Audio) -> dict[str, Any]:
    info = codec.info
    kinds = [(rate, channels) for rate in sorted(set(info.sample_rates_hz)) for channels in info.channels]
    for rate, channels in kinds:
        for length in SHORT:
            samples = np.resize(clip.samples[:1, : max(SHORT)], (channels, length))
            try:
                recode(codec, [Audio(samples, rate)])
            except Exception as error:
                of = f"{count_of(length, 'sample')} of {count_of(channels, 'channel')} at {rate} Hz"
                return finding("length", "failed", f"{of}: {sentence(error)}")
    lengths = ", ".join(map(str, SHORT))
    text = f"output is as long as input, at its rate and with its channels, for {lengths} samples and every clip"
    return finding("length", "ok", text)


def _files(codec: Any, clip: Audio) -> dict[str, Any]:
    """Whether `decode` opens a file that `encode` has written."""
    segment = Audio(0.9 * clip.samples[:, : clip.num_samples // 3 + 1], clip.sample_rate_hz)  # not coded before
    with opened_files() as files:
        codes = encode(codec, [segment])
    written = {path for path, writes in files if writes}
    with opened_files() as files:
        decode(codec, codes, [segment])
    both = written & {path for path, _ in files}
    passed = sorted(path for path in both if os.path.isfile(path) or not os.path.exists(path))  # not /dev/null
    if passed:
        return finding("file", "suspect", f"encode writes the file '{passed[0]}', and decode opens it")
    return finding("file", "ok", "decode opens no file that encode has written")


def _silence(codec: Any, clip: Audio) -> dict[str, Any]:
    (out,) = recode(codec, [Audio(np.zeros_like(clip.samples), clip.sample_rate_hz)])[1]
    level = rms(out.samples)
    db = 20 * np.log10(max(level, 1e-10))
    if db > _QUIET_DB:
        (before,) = recode(codec, [clip])[1]
        if rms(before.samples - out.samples) < 0.01 * level:
            text = "silence comes back as other sound of the same length: what was coded before is kept by its length"
            return finding("repeatable", "suspect", text, float(db))
    text = f"silence comes back at {db:.0f} dB of full scale" if level > 0 else "silence comes back as silence"
    return finding("digital silence", "suspect" if db > _QUIET_DB else "ok", text, float(db))


def _check_input(codec: Any, clips: Sequence[Audio]) -> dict[str, Any]:
    """Whether the codec leaves the audio that it is given as it is."""
    clip = max(clips, key=lambda clip: clip.num_samples)
    passed = deepcopy(clip)
    with preserved_torch_state(codec):
        codec.encode([passed])
    if not np.array_equal(passed.samples, clip.samples):
        worst = float(np.abs(passed.samples - clip.samples).max())
        does = f"encode writes into the audio that it is given, and changes it by up to {worst:.2g}"
        return finding("input", "suspect", f"{does}; it is given copies here, so no other row changes", worst)
    return finding("input", "ok", "encode leaves the audio that it is given as it is", 0.0)


def _repeated(codec: Any, clips: Sequence[Audio], alone: Sequence[tuple[Sent, Audio]]) -> dict[str, Any]:
    """Whether every clip alone gives the same once more, in the opposite order and another thread."""

    def differing(places: Sequence[int]) -> Batched:
        again = Batched()
        for index, now in zip(places, one_by_one(codec, [clips[index] for index in places])):
            again.add(index, alone[index], now)
        return again

    order = range(len(clips))
    with ThreadPoolExecutor(1) as other:
        elsewhere = other.submit(differing, list(reversed(order))).result()
    clips_of = count_of(len(clips), "clip")
    if elsewhere.exact:
        text = f"differs by up to {elsewhere.wave:.2g}" if elsewhere.wave else "gives the same output"
        detail = f"each of {clips_of} {text} the second time, in the opposite order and another thread"
        return finding("repeatable", "ok", detail, elsewhere.wave)
    here = differing(order)
    if here.exact:
        text = f"the same input in another thread differs {_differs(elsewhere)}"
        return finding("thread", "suspect", text, elsewhere.wave)
    count = max(len(elsewhere.differing), len(here.differing))
    text = f"{count} of {clips_of} differ the second time {_differs(here)}"
    return finding("repeatable", "suspect", text, here.wave)


def _differs(comparison: Batched) -> str:
    codes = f"in {comparison.flips} of {comparison.frames} frames of codes" if comparison.flips else ""
    wave = f"by up to {comparison.wave:.2g} (allowed: {WAVE_TOLERANCE:g})" if comparison.wave > WAVE_TOLERANCE else ""
    return " and ".join(filter(None, (codes, wave)))


def _batch(
    codec: Any, clips: Sequence[Audio], alone: Sequence[tuple[Sent, Audio]], batches: Sequence[Sequence[int]]
) -> dict[str, Any]:
    comparison = try_batches(codec, clips, alone, batches)
    compared = f"{count_of(len(clips), 'clip')} in {len(batches)} batches of unequal lengths"
    if comparison.exact or (comparison.flips == 1 and comparison.wave <= WAVE_TOLERANCE):
        flips = f", and in {count_of(comparison.flips, 'frame')} of codes" if comparison.flips else ""
        allowed = f"(allowed: {WAVE_TOLERANCE:g}){flips}"
        text = f"{compared} differ from the same clips alone by at most {comparison.wave:.2g} {allowed}"
        return finding("batch", "ok", text, comparison.wave)
    if not _is_repeated(codec, clips, comparison, alone):
        again = "and neither the batch nor the clip alone comes back the same again"
        text = f"{compared} differ {_differs(comparison)}, {again}"
        return finding("repeatable", "suspect", text, comparison.wave)
    index = comparison.worst or 0
    worst = f"the clip of {clips[index].duration_s:.3f} s differs most"
    text = f"{len(comparison.differing)} of {compared} differ from the same clips alone {_differs(comparison)}; {worst}"
    return finding(
        "batch", "suspect", text, comparison.wave if comparison.wave > WAVE_TOLERANCE else float(comparison.flips)
    )


def _is_repeated(codec: Any, clips: Sequence[Audio], comparison: Batched, alone: Sequence[tuple[Sent, Audio]]) -> bool:
    """Whether the clip that differs most gives the same again, alone and in its batch."""
    if comparison.worst is None or comparison.worst_item is None:
        return True
    batch = [clips[index] for index in comparison.worst_batch]
    return is_repeated(codec, [clips[comparison.worst]], 0, alone[comparison.worst]) and is_repeated(
        codec, batch, list(comparison.worst_batch).index(comparison.worst), comparison.worst_item
    )
