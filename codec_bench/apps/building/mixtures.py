"""The maker of mixtures: drawn pairs, gaps and offsets, and measured answers.

Audio is one channel `(samples,)` of float32 at one rate. A gap is the loudness of the first sound less that of the
second, in LU. An offset is the start of the second less that of the first, in seconds. Both are scaled by measured
loudness, and together to avoid clipping.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.building.item import BuildItem, ItemMaker, TryError, make_rng, try_item, with_audio
from codec_bench.apps.building.recipe import MixtureRecipe, QuestionSpec
from codec_bench.apps.building.sources import LETTERS, read_recordings
from codec_bench.audio.clip import Clip, SharedSounds
from codec_bench.audio.hash import content_hash
from codec_bench.audio.loudness import PROTOCOL, loudness_lufs
from codec_bench.audio.resample import SIGNALS
from codec_bench.benchmark.definition.prompt import render_text, variables
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError
from codec_bench.types import Audio, Sample

LOWEST_LUFS = -60.0
"""Below this loudness, the gain would mostly raise noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Two sounds that were mixed.

    Args:
        first, second: the two sounds as scaled, each from its own beginning.
        first_lufs, second_lufs: measured after all scaling.
    """

    samples: np.ndarray
    first: np.ndarray
    second: np.ndarray
    first_lufs: float
    second_lufs: float
    offset_s: float
    overlap_s: float
    gains_db: tuple[float, float]

    @property
    def gap_db(self) -> float:
        """The measured loudness difference, first minus second, in LU."""
        return self.first_lufs - self.second_lufs


def excerpt(signal: np.ndarray, start: int, length: int, fade: int) -> np.ndarray:
    """Cut an excerpt with raised-cosine fades of `fade` samples."""
    segment = np.array(signal[start : start + length], np.float32)
    fade = min(fade, segment.size // 2)
    if fade:
        ramp = (0.5 - 0.5 * np.cos(np.pi * (np.arange(fade) + 0.5) / fade)).astype(np.float32)
        segment[:fade] *= ramp
        segment[-fade:] *= ramp[::-1]
    return segment


def mix(
    first: np.ndarray,
    second: np.ndarray,
    rate_hz: int,
    *,
    gap_db: float,
    offset_samples: int,
    mean_lufs: float,
    peak_dbfs: float,
) -> Mixture:
    """Mix two signals `(samples,)` at a loudness difference and an offset.

    Args:
        offset_samples: start of the second sound relative to the first; may be negative.
        mean_lufs: the mean of the two loudnesses, before the peak limit.
        peak_dbfs: a higher peak scales both sounds down together.
        gap_db: by how much the first sound is louder than the second, in LU.

    Raises:
        TryError: a sound has no loudness, or too little of it.
    """
    levels = [_level(sound, rate_hz, which) for sound, which in ((first, "first"), (second, "second"))]
    gains_db = [mean_lufs + gap_db / 2 - levels[0], mean_lufs - gap_db / 2 - levels[1]]
    begins = (max(0, -offset_samples), max(0, offset_samples))
    parts = [first * np.float32(_factor(gains_db[0])), second * np.float32(_factor(gains_db[1]))]
    mixed = np.zeros(max(begin + segment.size for begin, segment in zip(begins, parts)), np.float32)
    for begin, segment in zip(begins, parts):
        mixed[begin : begin + segment.size] += segment
    peak = float(np.abs(mixed).max())
    scale_db = min(0.0, peak_dbfs - 20 * math.log10(peak))
    scale = np.float32(_factor(scale_db))
    parts, mixed = [segment * scale for segment in parts], mixed * scale
    ends = [begin + segment.size for begin, segment in zip(begins, parts)]
    return Mixture(
        samples=mixed,
        first=parts[0],
        second=parts[1],
        first_lufs=_level(parts[0], rate_hz, "first"),
        second_lufs=_level(parts[1], rate_hz, "second"),
        offset_s=offset_samples / rate_hz,
        overlap_s=max(0, min(ends) - max(begins)) / rate_hz,
        gains_db=(gains_db[0] + scale_db, gains_db[1] + scale_db),
    )


def _factor(gain_db: float) -> float:
    return float(10 ** (gain_db / 20))


def _level(sound: np.ndarray, rate_hz: int, which: str) -> float:
    """Return the loudness in LUFS; raises TryError if it is too low."""
    level = loudness_lufs(Audio(sound, rate_hz))
    if level is None:
        raise TryError("loudness", Diagnostic("no_loudness"), Diagnostic("sound_of_mixture", which=which))
    if level < LOWEST_LUFS:
        detail = Diagnostic("loudness_of_sound", which=which, lufs=level)
        raise TryError("loudness", Diagnostic("too_quiet_to_raise"), detail)
    return level


def place_sounds(
    overlap: str, lengths: tuple[int, int], first_ahead: bool, random: np.random.Generator, pause: int
) -> int:
    """Draw the start of the second sound relative to the first, in samples.

    Args:
        overlap: `none`, `partial` or `full`.
        first_ahead: whether the first sound begins first. With `full`, the longer one does.
        pause: samples between sounds that do not overlap.

    Raises:
        TryError: the sounds are too short to overlap in part.
    """
    if overlap == "full":
        first_ahead = lengths[0] >= lengths[1]
    earlier, later = lengths if first_ahead else lengths[::-1]
    if overlap == "none":
        offset = earlier + pause
    elif overlap == "full":
        offset = int(random.integers(0, earlier - later + 1))
    else:
        # The later sound begins within the earlier one, and ends after it.
        low, high = max(1, earlier - later + 1), earlier - 1
        if low > high:
            raise TryError("overlap", Diagnostic("too_short_to_overlap"))
        offset = int(random.integers(low, high + 1))
    return offset if first_ahead else -offset


class Mixtures(ItemMaker):
    """Makes the mixtures of a recipe, whose paths are relative to `folder`.

    Raises:
        UserError: a source cannot be read or has no recording left, or a wording of a question is not a template.
    """

    steps = ("pair", "reading", "length", "overlap", "loudness", "question", "duplicate", "review")
    columns: Mapping[str, str] = {
        "question": "text", "choices": "texts", "answer": "text", "answer_text": "text", "about": "text",
        "reference": "text", "review": "text",
        "louder": "text", "gap_db": "number", "first_lufs": "number", "second_lufs": "number",
        "ahead": "text", "offset_s": "number", "overlap": "text", "overlap_s": "number", "duration_s": "number",
        "first_id": "text", "second_id": "text", "first_licence": "text", "second_licence": "text",
        "provenance": "text",
    }  # fmt: skip

    def __init__(self, recipe: MixtureRecipe, folder: Path) -> None:
        self.recipe, self.parallel = recipe, os.cpu_count() or 1
        for question in self._active_questions().values():
            for wording in question.wordings:
                variables(wording)
        least_s = recipe.excerpt.least_s
        self.sources = tuple(read_recordings(one, folder, least_s=least_s) for one in (recipe.first, recipe.second))
        self._shared = SharedSounds()

    def _active_questions(self) -> dict[str, QuestionSpec]:
        questions = self.recipe.questions
        named = {"louder": questions.louder, "ahead": questions.ahead}
        return {name: question for name, question in named.items() if question is not None}

    def keys(self) -> Sequence[str]:
        """`mixture-00000` and so on."""
        return [f"mixture-{number:05d}" for number in range(self.recipe.count)]

    def make(self, key: str) -> BuildItem:
        """Draw and mix a pair of sounds, up to as many times as the recipe allows."""
        groups = {"about": "none"}

        def attempt(number: int) -> tuple[dict[str, Any], Audio]:
            row, sound = self._try(key, number)
            groups.update(about=row["about"], overlap=row["overlap"])
            return row, sound

        return try_item(key, groups, self.recipe.retries + 1, attempt)

    def facts(self) -> Mapping[str, Any]:
        """The two sources, and the loudness measurement."""
        return {"sources": [source.facts() for source in self.sources], "loudness": PROTOCOL, "signals": SIGNALS}

    def nearness(self, row: Mapping[str, Any]) -> float:
        """Return the smallest difference for a question, as a share of this item's."""
        difference = row["gap_db"] if row["about"] == "louder" else row["offset_s"]
        return self._active_questions()[row["about"]].least / abs(difference)

    def _try(self, key: str, number: int) -> tuple[dict[str, Any], Audio]:
        """Draw and mix one pair: the row with its question, and the audio; raises TryError."""
        random = make_rng(self.recipe.seed, key, number)
        chosen = [source.samples[int(random.integers(len(source.samples)))] for source in self.sources]
        signals = [self._signal(sample) for sample in chosen]
        if chosen[0].audio == chosen[1].audio or np.array_equal(signals[0], signals[1]):
            raise TryError("pair", Diagnostic("mixed_with_itself"), chosen[0].id)
        parts = [self._excerpt(signal, sample, random) for signal, sample in zip(signals, chosen)]
        overlap = self.recipe.overlap[int(random.integers(len(self.recipe.overlap)))]
        mixture = self._mix([segment for segment, _ in parts], overlap, random)
        question = self._question(mixture, random)
        provenance = {"tries": number + 1, "gains_db": [round(gain, 3) for gain in mixture.gains_db]}
        row = {
            **question,
            **self._mixture_fields(mixture, overlap),
            **self._origin(chosen, parts, {**provenance, "seed": self.recipe.seed, "key": key}),
            "reference": self._reference(mixture, chosen),
            "review": "none",
        }
        return row, Audio(mixture.samples, self.recipe.rate_hz)

    def _signal(self, sample: Sample) -> np.ndarray:
        clip = self._shared.share(Clip(str(sample.audio)), sample.audio)
        try:
            return clip.fitted(self.recipe.rate_hz)[0].read().samples[0]
        except AudioError as error:
            raise TryError("reading", Diagnostic("recording_unreadable"), error.message) from error

    def _excerpt(self, signal: np.ndarray, sample: Sample, random: np.random.Generator) -> tuple[np.ndarray, int]:
        """Draw an excerpt with fades, and its start; TryError if the signal is too short."""
        limits, rate = self.recipe.excerpt, self.recipe.rate_hz
        least, most = round(limits.least_s * rate), min(round(limits.most_s * rate), signal.size)
        if most < least:
            detail = Diagnostic("recording_lasts", recording=sample.id, seconds=signal.size / rate)
            raise TryError("length", Diagnostic("shorter_than_excerpt"), detail)
        length = int(random.integers(least, most + 1))
        start = int(random.integers(0, signal.size - length + 1))
        return excerpt(signal, start, length, round(limits.fade_s * rate)), start

    def _mix(self, parts: Sequence[np.ndarray], overlap: str, random: np.random.Generator) -> Mixture:
        """Draw level difference and offset of two sounds, and mix them; raises TryError."""
        recipe = self.recipe
        gap_db, ahead = recipe.gap_db.sample(random), bool(random.integers(2))
        pause = max(0, round(recipe.pause_s.sample(random) * recipe.rate_hz))
        offset_samples = place_sounds(overlap, (parts[0].size, parts[1].size), ahead, random, pause)
        levels = recipe.level.model_dump()
        return mix(parts[0], parts[1], recipe.rate_hz, gap_db=gap_db, offset_samples=offset_samples, **levels)

    def _question(self, mixture: Mixture, random: np.random.Generator) -> dict[str, Any]:
        """Draw a question that listening can answer; TryError if no difference is large."""
        differences = {"louder": mixture.gap_db, "ahead": mixture.offset_s}
        askable = {name: one for name, one in self._active_questions().items() if abs(differences[name]) >= one.least}
        if not askable:
            detail = Diagnostic("differences_drawn", gap_db=mixture.gap_db, offset_s=mixture.offset_s)
            with with_audio(Audio(mixture.samples, self.recipe.rate_hz)):
                raise TryError("question", Diagnostic("differences_too_small"), detail)
        about = sorted(askable)[int(random.integers(len(askable)))]
        wordings = askable[about].wordings
        names = (self.recipe.first.is_what, self.recipe.second.is_what)
        wording = wordings[int(random.integers(len(wordings)))]
        text = render_text(wording, {"first": names[0], "second": names[1]}, f"a wording of '{about}'")
        right = names[0] if differences[about] > 0 else names[1]
        choices = list(names) if random.integers(2) else list(names[::-1])
        answer = LETTERS[choices.index(right)]
        return {"question": text, "choices": choices, "answer": answer, "answer_text": right, "about": about}

    def _mixture_fields(self, mixture: Mixture, overlap: str) -> dict[str, Any]:
        """Return the measured fields of a mixture: louder, gap, levels and offset."""
        first, second = self.recipe.first.is_what, self.recipe.second.is_what
        return {
            "louder": first if mixture.gap_db > 0 else second,
            "gap_db": round(mixture.gap_db, 3),
            "first_lufs": round(mixture.first_lufs, 3),
            "second_lufs": round(mixture.second_lufs, 3),
            "ahead": first if mixture.offset_s > 0 else second if mixture.offset_s < 0 else "neither",
            "offset_s": round(mixture.offset_s, 6),
            "overlap": overlap,
            "overlap_s": round(mixture.overlap_s, 6),
            "duration_s": round(mixture.samples.size / self.recipe.rate_hz, 6),
        }

    def _origin(
        self, chosen: Sequence[Sample], parts: Sequence[tuple[np.ndarray, int]], provenance: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the columns from which the mixture can be made again."""
        licences = [source.licences[sample.id] for source, sample in zip(self.sources, chosen)]
        excerpts = [
            {
                "source": source.name,
                "id": sample.id,
                "start_samples": start,
                "length_samples": segment.size,
                "hash": content_hash(segment, self.recipe.rate_hz),
            }
            for source, sample, (segment, start) in zip(self.sources, chosen, parts)
        ]
        return {
            "first_id": chosen[0].id,
            "second_id": chosen[1].id,
            "first_licence": licences[0],
            "second_licence": licences[1],
            "provenance": json.dumps({**provenance, "excerpts": excerpts}, sort_keys=True, ensure_ascii=False),
        }

    def _reference(self, mixture: Mixture, chosen: Sequence[Sample]) -> str:
        """Describe a mixture: transcripts, which sound is louder, which begins first."""
        names = (self.recipe.first.is_what, self.recipe.second.is_what)
        transcripts = [f"{_capital(name)}: {sample.text}" for name, sample in zip(names, chosen) if sample.text]
        # Differences too small for a question are not described either.
        least = {name: one.least for name, one in self._active_questions().items()}
        if abs(mixture.gap_db) >= least.get("louder", 0.0):
            louder = names[0] if mixture.gap_db > 0 else names[1]
            sentences = [f"{_capital(louder)} is louder by {abs(mixture.gap_db):.1f} dB."]
        else:
            sentences = ["Both sounds are about equally loud."]
        if mixture.offset_s and abs(mixture.offset_s) >= least.get("ahead", 0.0):
            ahead = names[0] if mixture.offset_s > 0 else names[1]
            sentences.append(f"{_capital(ahead)} begins first, {abs(mixture.offset_s):.2f} s before the other sound.")
        else:
            sentences.append("Both sounds begin at about the same time.")
        return "\n".join([*transcripts, " ".join(sentences)])


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
