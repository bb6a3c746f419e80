"""Probes of codes by small classifiers: the section `probes` of a profile.

Tasks: `speaker` of a clip (folds by clip), and with folds by speaker `emotion` of a clip (column `emotion`), `phone` at
the middle of a frame (alignments), `pitch` as a fifth of all voiced frames (Boersma's method). Features are one-hot
codes of all codebooks, averaged over a clip; slower streams and codes sent once are repeated to the highest frame rate.
The baseline is an 80-band log-mel spectrogram. Classifiers (`classifiers.py`) have fixed settings.
`chance` is the mean accuracy of the linear probe on permuted codes. Intervals of 95 % are over speakers (over clips for
`speaker`). At most `MOST_CLIPS` clips and `MOST_FRAMES` frames are drawn by a seed.
References: G. Alain and Y. Bengio, arXiv 1610.01644; P. Mousavi et al., "DASB", arXiv 2406.14294.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codec_bench.apps.profiling import classifiers
from codec_bench.apps.profiling.abx import NO_SPEECH
from codec_bench.apps.profiling.token_model import TokenCorpus
from codec_bench.audio.resample import to_signal
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment
from codec_bench.messages import Diagnostic
from codec_bench.stats.intervals import interval
from codec_bench.types import Audio

FOLDS = 5
MOST_CLIPS = 500
MOST_FRAMES = 1_000
DRAWS = 5
FEWEST = 10
"""Frames of a phone."""
TASKS = ("speaker", "emotion", "phone", "pitch")
PROBES = {"linear": 0, "hidden": classifiers.HIDDEN}
_RATE_HZ, _HOP_S, _BANDS, _FIFTHS = 16_000, 0.01, 80, 5


@dataclass(frozen=True, slots=True)
class Labels:
    """Speakers, emotions and alignments by clip id; each may be empty."""

    speakers: Mapping[str, str] = field(default_factory=dict)
    emotions: Mapping[str, str] = field(default_factory=dict)
    alignments: Mapping[str, Alignment] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class ProbeClip:
    """One clip as the probes see it.

    Args:
        codes: the column of each code, int64 `(frames, codebooks)`.
        mel: float `(frames, bands)` at the middles of these frames.
        f0_hz: `(frames,)`, 0 where unvoiced.
    """

    name: str
    codes: np.ndarray
    mel: np.ndarray
    f0_hz: np.ndarray
    middles_s: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class _ProbeItems:
    """The features, classes, folds and interval units of one probe."""

    codes: Any
    mel: np.ndarray
    classes: np.ndarray
    folds: np.ndarray
    units: list[str]


def measure(
    corpus: TokenCorpus,
    labels: Labels,
    sounds: Iterable[tuple[str, Audio]],
    *,
    seed: int,
    alive: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Run all probes, and return accuracies as JSON values, or a reason for each.

    Args:
        sounds: the encoded clips, by id.
        seed: decides the frames and the hidden layer.

    Raises:
        NotApplicable: there are no codes over time.
    """
    from threadpoolctl import threadpool_limits

    clips = _clips(corpus, sounds, alive)
    tasks: dict[str, Any] = {}
    for task in TASKS:
        alive()
        try:
            with threadpool_limits(1):  # so that the numbers do not depend on how many there are
                tasks[task] = {"state": "ok", **_run_probe(_TASKS[task](clips, labels, seed), seed, alive)}
        except NotApplicable as reason:
            tasks[task] = {"state": "not applicable", "reason": reason.reason}
    return {"clips": len(clips), "tasks": tasks}


def _clips(corpus: TokenCorpus, sounds: Iterable[tuple[str, Audio]], alive: Callable[[], None]) -> list[ProbeClip]:
    """Analyse up to `MOST_CLIPS` clips, chosen and ordered by a hash of their ids."""
    frames = _columns(corpus)
    selected = set(sorted(frames, key=_key)[:MOST_CLIPS])
    clips = []
    for name, audio in sounds:
        if name in selected:
            alive()
            clips.append(_analyse_clip(name, *frames[name], audio))
    return sorted(clips, key=lambda clip: _key(clip.name))


def _key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _columns(corpus: TokenCorpus) -> dict[str, tuple[np.ndarray, float]]:
    """Return each clip's one-hot column indices `(frames, codebooks)` and frame rate.

    Slower streams, and codes sent once, are repeated. Only the first channel counts.
    """
    streams = corpus.streams
    rate_hz = max(stream.frame_rate_hz for stream in streams)
    parts: dict[str, list[np.ndarray]] = {}
    width = 0
    for stream in streams:
        seen = set()
        for name, values in stream.sequences:
            if name not in seen and values.shape[1]:
                seen.add(name)
                offsets = width + stream.cardinality * np.arange(stream.codebooks)
                parts.setdefault(name, []).append(_hold_codes(values.T + offsets, stream.frame_rate_hz, rate_hz))
        width += stream.codebooks * stream.cardinality
    for name, once in corpus.once.items():
        offset = width
        for codes, cardinality in once if name in parts else ():
            columns = offset + cardinality * np.arange(codes.size) + codes.ravel()
            parts[name].append(np.tile(columns, (len(parts[name][0]), 1)))
            offset += cardinality * codes.size
    by_clip = {}
    for name, streams_of_clip in parts.items():
        length = min(map(len, streams_of_clip))
        by_clip[name] = np.concatenate([array[:length] for array in streams_of_clip], axis=1), rate_hz
    return by_clip


def _hold_codes(codes: np.ndarray, rate_hz: float, target_hz: float) -> np.ndarray:
    """Repeat codes `(frames, codebooks)` to the highest frame rate."""
    count = round(len(codes) * target_hz / rate_hz)
    return codes[np.minimum(len(codes) - 1, (np.arange(count) * rate_hz / target_hz + 1e-9).astype(int))]


def _analyse_clip(name: str, codes: np.ndarray, rate_hz: float, audio: Audio) -> ProbeClip:
    """Compute log-mel and F0 of a clip at the middles of its code frames."""
    from codec_bench.kernels.pitch.cpu import track
    from codec_bench.networks.log_mel import log_mels

    signal = to_signal(audio, _RATE_HZ)
    mel = log_mels([signal], _BANDS)[0].numpy(force=True)
    f0 = track(signal)
    middles = (np.arange(len(codes)) + 0.5) / rate_hz
    at = lambda values: values[np.minimum(len(values) - 1, np.round(middles / _HOP_S).astype(int))]  # noqa: E731
    return ProbeClip(name, codes, at(mel).astype(np.float64), at(f0) if len(f0) else np.zeros(len(codes)), middles)


def _of_clips(clips: list[ProbeClip], classes: list[str], folds: np.ndarray, units: list[str]) -> _ProbeItems:
    """Build one item per clip; `units` are the clusters of the confidence interval."""
    rows = [np.full(clip.codes.size, n) for n, clip in enumerate(clips)]
    shares = [np.full(clip.codes.size, 1 / len(clip.codes)) for clip in clips]
    columns = np.concatenate([clip.codes.ravel() for clip in clips])
    codes = _sparse(np.concatenate(shares), np.concatenate(rows), columns, len(clips))
    mel = np.stack([np.concatenate([clip.mel.mean(axis=0), clip.mel.std(axis=0)]) for clip in clips])
    return _ProbeItems(codes, mel, np.unique(classes, return_inverse=True)[1], folds, units)


def _of_frames(
    clips: list[ProbeClip], chosen: list[tuple[int, int]], classes: np.ndarray, labels: Labels
) -> _ProbeItems:
    """Build one item per (clip, frame), with folds by speaker; `classes` are labels."""
    codes = np.stack([clips[clip].codes[frame] for clip, frame in chosen])
    rows = np.repeat(np.arange(len(chosen)), codes.shape[1])
    speakers = [labels.speakers[clips[clip].name] for clip, _ in chosen]
    return _ProbeItems(
        _sparse(np.ones(codes.size), rows, codes.ravel(), len(chosen)),
        np.stack([clips[clip].mel[frame] for clip, frame in chosen]), classes, _by_speaker(speakers), speakers,
    )  # fmt: skip


def _sparse(values: np.ndarray, rows: np.ndarray, columns: np.ndarray, items: int) -> Any:
    """Build a CSR matrix `(items, used columns)` with a mean squared row length of 1.

    Args:
        values, rows, columns: the entries; those at one place add up.
    """
    from scipy.sparse import csr_array

    used, places = np.unique(columns, return_inverse=True)
    sparse = csr_array((values, (rows, places)), (items, len(used)))
    sparse.sum_duplicates()
    return sparse / np.sqrt((sparse.data**2).sum() / items)


def _by_speaker(speakers: list[str]) -> np.ndarray:
    """Assign each item the cross-validation fold of its speaker.

    Raises:
        NotApplicable: there is only one speaker.
    """
    names = sorted(set(speakers), key=_key)
    if len(names) < 2:
        raise NotApplicable(Diagnostic("too_few_speakers", speakers=len(names)))
    fold_of = {name: number % FOLDS for number, name in enumerate(names)}
    return np.array([fold_of[name] for name in speakers])


def _speaker(clips: list[ProbeClip], labels: Labels, seed: int) -> _ProbeItems:
    """Build the speaker task: one item per clip of speakers with two or more clips."""
    labelled = [clip for clip in clips if clip.name in labels.speakers]
    counts = Counter(labels.speakers[clip.name] for clip in labelled)
    labelled = [clip for clip in labelled if counts[labels.speakers[clip.name]] > 1]
    classes = [labels.speakers[clip.name] for clip in labelled]
    if len(set(classes)) < 2:
        raise NotApplicable(Diagnostic("too_few_clips_of_speakers"))
    folds = [classes[:index].count(name) % FOLDS for index, name in enumerate(classes)]
    return _of_clips(labelled, classes, np.array(folds), [clip.name for clip in labelled])


def _emotion(clips: list[ProbeClip], labels: Labels, seed: int) -> _ProbeItems:
    """Build the emotion task: one item per labelled clip, folds by speaker."""
    labelled = [clip for clip in clips if clip.name in labels.emotions and clip.name in labels.speakers]
    classes = [labels.emotions[clip.name] for clip in labelled]
    if len(set(classes)) < 2:
        raise NotApplicable(Diagnostic("too_few_emotions"))
    speakers = [labels.speakers[clip.name] for clip in labelled]
    return _of_clips(labelled, classes, _by_speaker(speakers), speakers)


def _phone(clips: list[ProbeClip], labels: Labels, seed: int) -> _ProbeItems:
    """Build the phone task: one item per aligned frame of a frequent phone."""
    frames = []
    for number, clip in enumerate(clips):
        alignment = labels.alignments.get(clip.name)
        if alignment is not None and clip.name in labels.speakers:
            for frame, phone_index in enumerate(alignment.at(clip.middles_s).tolist()):
                if phone_index >= 0 and alignment.phones[phone_index].lower() not in NO_SPEECH:
                    frames.append((number, frame, alignment.phones[phone_index]))
    if not frames:
        raise NotApplicable(Diagnostic("no_aligned_speakers"))
    frames = _subsample(frames, seed)
    names, counts = np.unique([phone for *_, phone in frames], return_counts=True)
    often = set(names[counts >= FEWEST].tolist())
    frames = [one for one in frames if one[2] in often]
    if len(often) < 2:
        raise NotApplicable(Diagnostic("too_few_phones", frames=FEWEST))
    classes = np.unique([phone for *_, phone in frames], return_inverse=True)[1]
    return _of_frames(clips, [(clip, frame) for clip, frame, _ in frames], classes, labels)


def _pitch(clips: list[ProbeClip], labels: Labels, seed: int) -> _ProbeItems:
    """Build the pitch task: classify voiced frames into fifths of F0."""
    frames = [
        (number, frame) for number, clip in enumerate(clips) if clip.name in labels.speakers
        for frame in np.flatnonzero(clip.f0_hz > 0).tolist()
    ]  # fmt: skip
    if len(frames) < FEWEST * _FIFTHS:
        raise NotApplicable(Diagnostic("too_few_voiced"))
    frames = _subsample(frames, seed)
    f0 = np.array([clips[clip].f0_hz[frame] for clip, frame in frames])
    edges = np.quantile(f0, np.arange(1, _FIFTHS) / _FIFTHS)
    return _of_frames(clips, frames, np.searchsorted(edges, f0), labels)


def _subsample(items: list[Any], seed: int) -> list[Any]:
    if len(items) <= MOST_FRAMES:
        return items
    places = np.random.default_rng(seed).choice(len(items), MOST_FRAMES, replace=False)
    return [items[index] for index in sorted(places.tolist())]


_TASKS: Mapping[str, Callable[[list[ProbeClip], Labels, int], _ProbeItems]] = {
    "speaker": _speaker, "emotion": _emotion, "phone": _phone, "pitch": _pitch,
}  # fmt: skip


def _run_probe(task: _ProbeItems, seed: int, alive: Callable[[], None]) -> dict[str, Any]:
    """Cross-validate each probe on codes and log-mel: accuracies, intervals, chance."""
    counts = np.bincount(task.classes)
    results: dict[str, Any] = {
        "items": len(task.classes), "classes": int((counts > 0).sum()), "folds": len(np.unique(task.folds)),
        "units": len(set(task.units)), "chance": _chance_accuracy(task, seed, alive), "chance_draws": DRAWS,
    }  # fmt: skip
    for name, features in (("codes", task.codes), ("mel", _spread_out(task.mel))):
        results[name] = {}
        for probe, hidden in PROBES.items():
            alive()
            right = classifiers.predict_correct(features, task.classes, task.folds, hidden=hidden, seed=seed)
            accuracy = interval(right.astype(float), clusters=task.units)
            results[name][probe] = {"accuracy": float(right.mean()), "ci95": accuracy.ends, "note": accuracy.note}
    return results


def _chance_accuracy(task: _ProbeItems, seed: int, alive: Callable[[], None]) -> float:
    """Estimate the accuracy of a linear probe on permuted codes."""
    rng, shares = np.random.default_rng(seed), []
    for _ in range(DRAWS):
        alive()
        exchanged = task.codes[rng.permutation(len(task.classes))]
        right = classifiers.predict_correct(exchanged, task.classes, task.folds, hidden=0, seed=seed)
        shares.append(float(right.mean()))
    return float(np.mean(shares))


def _spread_out(mel: np.ndarray) -> np.ndarray:
    """Standardise each column, then scale rows to a mean squared length of 1."""
    return (mel - mel.mean(axis=0)) / np.maximum(mel.std(axis=0), 1e-9) / np.sqrt(mel.shape[1])
