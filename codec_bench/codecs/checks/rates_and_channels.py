"""Five seconds of audio at every declared rate and channel count.

The audio is speech at full scale, a chirp with clicks, other speech, and the first piece again, with gaps of 0.1 s.
With two channels, the first piece is in the first, the other speech in the second, the rest in both. The same batch has
a part of the first piece alone, and again at -30 dB, to detect codecs that treat short, long, loud or quiet clips
differently. A check that fails for several kinds is reported once, for the first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from codec_bench.audio.resample import to_rate
from codec_bench.codecs.adapt import fault_of, recode
from codec_bench.codecs.checks import State, finding
from codec_bench.codecs.checks.alignment import DelayEstimate, align_coherent, align_waves
from codec_bench.codecs.checks.batching import BatchingCheck, is_repeated
from codec_bench.codecs.checks.dropouts import Dropouts, find_dropouts
from codec_bench.codecs.checks.signals import (
    AGREE_SAMPLES,
    COHERENT,
    CORRELATED,
    TURNED_OVER,
    agreeing,
    count_wraps,
    dropout_parameters,
    flat_top,
    least_delay,
    level_db,
    loudest,
    loudest_at,
    rms,
)  # fmt: skip
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

_SPEECH, _TONES, _BOTH = (0, 2, 3), 1, 3
"""Indices of the pieces of speech, of the chirp, and of the piece with one sound in all channels."""
_FULL, _QUIET_DB = 0.97, -30.0
_SPEECH_S, _TONES_S, _GAP_S, _SHORT_S = 1.4, 0.7, 0.1, 0.9
_CLICKS = 4
_CLOCK_S = 0.001
"""A drift over about four seconds; delays of codecs at low bitrates vary less between pieces."""
_SILENT_DB = -50.0
_SNR_DB, _SNR_CAP_DB = 20.0, 100.0
_LONGEST_DELAY_S = 0.05
_LEAKS_DB, _FOLDS_DB = -15.0, -6.0
_PARAMETRIC_BPS = 16_000.0
"""Below this bitrate per channel, codecs such as Opus may send one sound for both."""
_LOUDER_DB, _BALANCE_DB = 12.0, 6.0
"""Largest gain of a piece at -30 dB, and of a channel over another with the same sound."""
_FRAMES, _PARTS, _LONG_S = 10, (0.37, 0.81), (0.7, 1.0, 1.3)
"""Clips for the end of the sound: whole frames up to this number, parts of a frame, and seconds."""
_DROP_DB = -20.0


def check_formats(codec: Any, clips: Sequence[Audio], *, steady: bool = True) -> list[dict[str, Any]]:
    """Test a codec at every declared rate and channel count.

    Args:
        clips: speech.
        steady: whether the codec repeats its output on the same input, so that batches can be compared.

    Returns:
        One finding for each check that fails; a single `ok` if none does.
    """
    info = codec.info
    by_check: dict[str, dict[str, Any]] = {}
    unknown_delays: list[str] = []
    folded: list[str] = []
    kinds = [(rate, channels) for channels in info.channels for rate in sorted(set(info.sample_rates_hz))]
    for rate, channels in kinds:
        signal_format = {"rate_hz": rate, "channels": channels}
        first = steady and (rate, channels) == kinds[0]
        looked = _check_format(codec, clips, rate, channels, unknown_delays, folded, alone=first)
        try:
            for check, diagnostic, value in looked:
                of_format = Diagnostic("at_format", **signal_format, finding=diagnostic)
                by_check.setdefault(check, finding(check, "suspect", of_format, value))
        except MemoryError:
            raise
        except Exception as error:  # a codec of the caller's own may raise anything
            of_format = Diagnostic("at_format", **signal_format, finding=fault_of(error))
            by_check.setdefault("every rate", finding("every rate", "failed", of_format))
    notes = []
    if folded and "channels" not in by_check:
        notes = [finding("channels", "not applicable", Diagnostic("folded_below", kinds=folded))]
    if by_check:
        return [*by_check.values(), *notes]
    return [
        finding("every rate", "ok", Diagnostic("every_rate", kinds=len(kinds), delay_unknown=unknown_delays)),
        *notes,
    ]


def _check_format(
    codec: Any,
    clips: Sequence[Audio],
    rate: int,
    channels: int,
    unknown_delays: list[str],
    folded: list[str],
    *,
    alone: bool,
) -> Iterator[tuple[str, Diagnostic, float]]:
    """Code the test signal at one rate and channel count; yield the faults found.

    Args:
        unknown_delays: this format is appended if its delay cannot be determined.
        folded: the rate is appended if channels leak into each other at a bitrate low enough to allow it.
        alone: whether to compare the long clip alone with the same clip in a batch.

    Yields:
        The check's name, diagnostic and value.
    """
    sound, places = _make_test_signal(clips, rate, channels)
    length = round(_SHORT_S * rate)
    start = max(0, min(int(np.abs(sound[0, : places[0][1]]).argmax()) - length // 2, places[0][1] - length))
    short = sound[:, start : start + length]
    tried = [Audio(x, rate) for x in (sound, short, short * 10 ** (_QUIET_DB / 20))]
    codes, outputs = recode(codec, tried)
    if alone:
        together = BatchingCheck()
        by_itself = recode(codec, tried[:1])
        item = by_itself[0][0], by_itself[1][0]
        in_batch = codes[0], outputs[0]
        together.add(0, item, in_batch)
        if not together.exact:
            if is_repeated(codec, tried[:1], 0, item) and is_repeated(codec, tried, 0, in_batch):
                yield "batch", Diagnostic("long_clip_in_batch"), together.wave
            else:
                yield "repeatable", Diagnostic("long_clip_unsteady"), together.wave
    pieces = [(sound[:, a:b], outputs[0].samples[:, a:b]) for a, b in places]
    quiet = tried[2].samples, outputs[2].samples
    silent = list(_find_silent_segments([*pieces, quiet]))
    yield from silent
    spoken = sound.copy()
    spoken[:, slice(*places[_TONES])] = 0
    if not silent and (dropouts := find_dropouts(spoken, outputs[0].samples, rate)) != Dropouts():
        dropped_s = dropouts.start_s + dropouts.inside_s + dropouts.end_s
        yield "dropouts", Diagnostic("long_clip_loses", **dropout_parameters(dropouts)), dropped_s
    if not (yield from _find_delays([*pieces, quiet], places, rate)):
        unknown_delays.append(f"{rate} Hz, {channels} channel{'' if channels == 1 else 's'}")
    yield from _find_level_changes([pieces[0], quiet], rate)
    if channels > 1:
        yield from _between_channels(*pieces[_BOTH], rate)
    tops = [flat_top(*pieces[index]) for index in _SPEECH]
    if any(tops):
        yield "clipping", Diagnostic("piece_cut", level=max(tops)), max(tops)
    if jumps := sum(count_wraps(*pieces[index]) for index in _SPEECH):
        yield "clipping", Diagnostic("wraps", samples=jumps), float(jumps)
    if channels == 2:
        crossed = list(_find_crosstalk(pieces))
        if (codes[0].bits or np.inf) / codes[0].duration_s >= channels * _PARAMETRIC_BPS:
            yield from crossed
        elif crossed and crossed[0][2] > _FOLDS_DB:
            folded.append(f"{rate} Hz")
    in_long = short, outputs[0].samples[:, start : start + length]
    yield from _find_mismatches(in_long, *[(a.samples, b.samples) for a, b in zip(tried[1:], outputs[1:])])


def _make_test_signal(clips: Sequence[Audio], rate: int, channels: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Build a test signal `(channels, samples)`, and its segments' (start, end).

    In stereo its four segments are speech on the left, tones and clicks on both sides, speech on the right, on both.
    """
    resampled = [to_rate(Audio(clip.samples[:1], clip.sample_rate_hz), rate) for clip in (clips[0], clips[-1])]
    speech = [np.resize(loudest(clip, _SPEECH_S).samples[0], round(_SPEECH_S * rate)) for clip in resampled]
    one, other = (_FULL * x / max(1e-6, float(np.abs(x).max())) for x in speech)
    t = np.arange(round(_TONES_S * rate)) / rate
    tones = 0.3 * np.sin(2 * np.pi * (100 * t + (0.4 * rate - 100) * t**2 / (2 * _TONES_S)))
    tones[:: len(tones) // _CLICKS] = _FULL
    gap = np.zeros(round(_GAP_S * rate))
    parts = [(one, (1, 0)), (tones, (1, 1)), (other, (0, 1)), (one, (1, 1))]
    chunks, places, at = [], [], 0
    for chunk, where in parts:
        chunks += [np.outer(where if channels == 2 else np.ones(channels), chunk), np.outer(np.ones(channels), gap)]
        places.append((at, at + len(chunk)))
        at += len(chunk) + len(gap)
    return np.concatenate(chunks, axis=1).astype(np.float32), places


def _find_silent_segments(pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> Iterator[tuple[str, Diagnostic, float]]:
    """Find segments whose output is silent."""
    for number, (a, b) in enumerate(pieces):
        if _db(rms(b), rms(a)) < _SILENT_DB:
            yield "silence", Diagnostic("piece_silent", piece=_NAMES[number]), float(number)


_NAMES = (
    "speech at full scale", "a chirp", "speech after 2.3 s", "speech after 3.8 s", f"speech at {_QUIET_DB:.0f} dB",
)  # fmt: skip


def _find_delays(
    pieces: Sequence[tuple[np.ndarray, np.ndarray]], places: Sequence[tuple[int, int]], rate: int
) -> Generator[tuple[str, Diagnostic, float], None, bool]:
    """Find inverted, late or drifting speech; return whether all delays are known.

    Args:
        pieces: (reference, estimate) of the four segments, then of the quiet clip.
        places: (start, end) samples of the four segments.
    """
    short = round(0.4 * rate)
    alignments = []
    for number in (*_SPEECH, len(pieces) - 1):
        a, b = pieces[number]
        loud = loudest_at(a, short)
        alignments.append(_align(a, b, rate))
        if alignments[-1].correlation == 0.0:
            alignments[-1] = _align(a[:, loud : loud + short], b[:, loud : loud + short], rate)
    lags = [one.delay_samples for one in alignments if one.correlation]
    if len(lags) < len(alignments):
        return False
    drift = lags[2] - lags[0]
    between = (places[2][0] - places[0][0]) / (places[3][0] - places[0][0])
    drifts = abs(drift) > _CLOCK_S * rate and abs(lags[1] - lags[0] - between * drift) < _CLOCK_S * rate
    if drifts:
        per_second = drift / (places[3][0] - places[0][0])
        yield "clock", Diagnostic("clock", percent=100 * per_second, samples=drift), per_second
    lag, least = float(np.median(lags)), max(1.0, least_delay(alignments, rate))
    if not drifts and len(agreeing(alignments)) == len(alignments) and abs(lag) >= least:
        yield "hidden delay", Diagnostic("pieces_late", samples=lag, pieces=len(lags)), lag
    turned = [(number, one) for number, one in enumerate(alignments) if one.correlation <= -COHERENT]
    agreed = agreeing([one for _, one in turned])
    if len(agreed) == 1:  # the two halves of the piece must say the same
        number, one = next(each for each in turned if each[1] is agreed[0])
        a, b = pieces[(*_SPEECH, len(pieces) - 1)[number]]
        half = a.shape[1] // 2
        halves = [_align(a[:, section], b[:, section], rate) for section in (slice(half), slice(half, None))]
        agreed = agreed if len(agreeing([h for h in (one, *halves) if h.correlation < 0])) == 3 else []
    if agreed:
        worst = min(one.correlation for one in agreed)
        yield "polarity", Diagnostic("pieces_turned", turned=len(agreed), pieces=len(alignments)), worst
    return True


def _find_level_changes(
    pieces: Sequence[tuple[np.ndarray, np.ndarray]], rate: int
) -> Iterator[tuple[str, Diagnostic, float]]:
    """Find speech at -30 dB that comes out with a far higher gain than loud speech.

    A lower gain is allowed: codebooks of absolute values map quiet frames to their smallest vector.

    Args:
        pieces: (reference, estimate) of the loud speech, then of the quiet speech.
    """
    if any(_db(rms(b), rms(a)) < _SILENT_DB for a, b in pieces):
        return
    loud, quiet = (level_db(a, b, rate) for a, b in pieces)
    change = quiet - loud
    if change > _LOUDER_DB:
        yield "loudness of clips", Diagnostic("quiet_louder", at_db=_QUIET_DB, quiet_db=quiet, loud_db=loud), change


def _between_channels(a: np.ndarray, b: np.ndarray, rate: int) -> Iterator[tuple[str, Diagnostic, float]]:
    """Find differences in sign, delay or level between channels with the same input."""
    half = a.shape[1] // 2
    for channel in range(1, len(b)):
        change = _db(rms(b[channel]), rms(b[0])) - _db(rms(a[channel]), rms(a[0]))
        if abs(change) > _BALANCE_DB:
            yield "channels", Diagnostic("channel_level", channel=channel + 1, change_db=change), change
            continue
        alignments = [
            align_waves(b[:1, section], b[channel : channel + 1, section], rate, round(_LONGEST_DELAY_S * rate))
            for section in (slice(half), slice(half, None))
        ]
        lags = [one.delay_samples for one in alignments]
        if abs(lags[0] - lags[1]) > AGREE_SAMPLES or min(abs(one.correlation) for one in alignments) < TURNED_OVER:
            continue
        if all(one.correlation < 0 for one in alignments):
            diagnostic = Diagnostic("channel_turned", channel=channel + 1)
            yield "polarity", diagnostic, float(np.mean([one.correlation for one in alignments]))
        elif abs(np.mean(lags)) >= least_delay(alignments, rate):
            lag = float(np.mean(lags))
            yield "hidden delay", Diagnostic("channel_late", channel=channel + 1, samples=lag), lag


def _align(a: np.ndarray, b: np.ndarray, rate: int) -> DelayEstimate:
    """Estimate the delay of a segment; the correlation is 0 if it is unknown."""
    near = align_coherent(a, b, rate, 0.0)
    if abs(near.correlation) >= COHERENT:
        return near
    wave = align_waves(a, b, rate, round(_LONGEST_DELAY_S * rate))
    return wave if abs(wave.correlation) >= CORRELATED else DelayEstimate(0.0, 0.0)


def _find_crosstalk(pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> Iterator[tuple[str, Diagnostic, float]]:
    """Find sound of one stereo input channel in the other output channel.

    The first pair (reference, estimate) has sound on the left only, the third on the right only.
    """
    sides = ((pieces[0][1][1], pieces[0][1][0]), (pieces[2][1][0], pieces[2][1][1]))
    worst = max(_db(rms(leak), rms(sound)) for leak, sound in sides)
    if worst > -_FOLDS_DB:
        yield "channels", Diagnostic("crossed_over"), worst
    elif worst > _FOLDS_DB:
        yield "channels", Diagnostic("crossed_both", level_db=worst), worst
    elif worst > _LEAKS_DB:
        yield "channels", Diagnostic("crossed_leak", level_db=worst), worst


def _find_mismatches(*same: tuple[np.ndarray, np.ndarray]) -> Iterator[tuple[str, Diagnostic, float]]:
    """Find SNRs of one sound that depend on the clip's length or level.

    Args:
        same: (reference, estimate) of the sound in a long clip, alone, and quiet.
    """
    in_long, alone, quiet = (min(_SNR_CAP_DB, _db(rms(a), rms(a - b))) for a, b in same)
    if abs(alone - in_long) > _SNR_DB:
        diagnostic = Diagnostic("length_matters", long_db=in_long, short_db=alone, short_s=_SHORT_S)
        yield "length of clips", diagnostic, alone - in_long
    if quiet - alone > _SNR_DB:
        diagnostic = Diagnostic("level_matters", long_db=in_long, quiet_db=quiet, at_db=_QUIET_DB)
        yield "loudness of clips", diagnostic, quiet - alone


def _db(one: float, other: float) -> float:
    return 20 * float(np.log10(max(one, 1e-9) / max(other, 1e-9)))


def check_clip_ends(codec: Any, clip: Audio) -> list[dict[str, Any]]:
    """Check that loud clips of several lengths, cut from a clip, keep their ends.

    Returns:
        The finding of the last frames, after that of the first frame if its start is lost.
    """
    rate = clip.sample_rate_hz
    hop = max(2, round(rate / (codec.info.frame_rate_hz or 50.0)))
    lengths = [k * hop for k in range(1, _FRAMES + 1)]
    lengths += [round((k + share) * hop) for k in (2, 5) for share in _PARTS] + [round(s * rate) for s in _LONG_S]
    loudest_frame = loudest_at(clip.samples, hop)
    clips = [_from(clip, loudest_frame + hop - length, length) for length in sorted(set(lengths))]
    clips.append(_from(clip, loudest_frame, _FRAMES * hop))
    outputs = recode(codec, clips)[1]
    gains_db = [_db(rms(b.samples), rms(a.samples)) for a, b in zip(clips, outputs)]
    usual = float(np.clip(np.median(gains_db), _DROP_DB, 0.0))
    at_start = find_dropouts(clips[-1].samples, outputs[-1].samples, rate).start_s
    cut: list[tuple[float, float]] = []
    for a, b in zip(clips[:-1], outputs):
        tail = a.num_samples % hop or min(hop, a.num_samples)
        dropped_s = find_dropouts(a.samples, b.samples, rate).end_s
        quieter = _db(rms(b.samples[:, -tail:]), rms(a.samples[:, -tail:])) - usual
        is_silent = dropped_s >= a.duration_s and a.num_samples > hop  # that is a matter of the check `silence`
        if (dropped_s or quieter < _DROP_DB) and a.duration_s > at_start and not is_silent:
            cut.append((a.duration_s, max(dropped_s, tail / rate)))
    count, longest_s = len(clips) - 1, max(lengths) / rate
    listed = []
    if at_start:
        listed.append(finding("first frame", "suspect", Diagnostic("start_lost", ms=1000 * at_start), at_start))
    if cut:
        length_s, worst_s = max(cut, key=lambda one: one[1])
        diagnostic = Diagnostic("end_lost", cut=len(cut), clips=count, ms=1000 * worst_s, length_s=length_s)
        return [*listed, finding("last frame", "suspect", diagnostic, worst_s)]
    diagnostic = Diagnostic("ends_kept", clips=count, shortest_s=hop / rate, longest_s=longest_s)
    return [*listed, finding("last frame", "ok", diagnostic)]


def _from(clip: Audio, start: int, length: int) -> Audio:
    """Cut `length` samples from a start; short clips are repeated."""
    places = np.arange(start, start + length)
    return Audio(np.take(clip.samples, places, axis=1, mode="wrap"), clip.sample_rate_hz)


def check_causality(codec: Any, clip: Audio) -> dict[str, Any]:
    """Check that the output of a codec declared causal depends on no later input."""
    info, rate = codec.info, clip.sample_rate_hz
    if not info.causal:
        return finding("causal label", "not applicable", Diagnostic("not_declared_causal"))
    before = loudest(clip, 1.0).samples
    before = 0.3 * before / max(1e-6, float(np.abs(before).max()))
    change = round(0.7 * before.shape[1])
    after = before.copy()
    after[:, change:] = np.where(before[:, change:] > 0, -0.9, 0.9)
    plain, changed = (recode(codec, [Audio(x, rate)])[1][0].samples for x in (before, after))
    differs = np.flatnonzero(np.abs(plain - changed).max(axis=0) > 1e-3 * float(np.abs(plain).max()))
    ahead = change - int(differs[0]) if len(differs) else 0
    allowed = (1 / info.frame_rate_hz if info.frame_rate_hz else 0.02) + (info.lookahead_s or 0.0) + 0.003
    diagnostic = Diagnostic("change_before", ahead_ms=1000 * max(0, ahead) / rate, allowed_ms=1000 * allowed)
    state: State = "suspect" if ahead > allowed * rate else "ok"
    return finding("causal label", state, diagnostic, float(ahead))
