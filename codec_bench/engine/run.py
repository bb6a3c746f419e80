"""Run a plan: one event loop that follows every item to its record.

A worker reads the sample (`reading.py`); its reference goes to every codec. Features are computed once per signal, a
metric runs when its inputs are ready, and an item is written when every metric has a score. `batch.py` handles faults.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from time import perf_counter
from typing import Any

from codec_bench.audio.level_checks import SILENT
from codec_bench.audio.resample import resampled_length
from codec_bench.engine.arena import Arena
from codec_bench.engine.batch import Dispatcher
from codec_bench.engine.cache import FeatureCache, FeatureMemory
from codec_bench.engine.checks import RunChecks
from codec_bench.engine.feed import Feed, Loaded
from codec_bench.engine.loading import load_stages
from codec_bench.engine.plan import SIGNAL_METRICS, FeaturePlan, Plan
from codec_bench.engine.pool import Pool
from codec_bench.engine.reading import Signal
from codec_bench.engine.score_cache import key_of, name_scores, pack_scores, unpack_scores
from codec_bench.engine.stage import CodecResult, CodecWork, Fault, FeatureWork, MetricWork, StageSpec, compute_scores
from codec_bench.engine.systems import System
from codec_bench.engine.timings import Spent, describe_phase, estimate_left_s, sum_timings
from codec_bench.features.base import seed_of
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import NOT_COMPARED, ComparedLevels, compare_levels, flag_doubtful, inputs_or_score
from codec_bench.store.rows import ItemRecord, Results
from codec_bench.store.statuses import FAILURES
from codec_bench.text.language import base_language
from codec_bench.types import ESTIMATE_WORDS, SPOKEN, TRIALS, WORDS, Sample, Score

WRITE_ITEMS = 256
WRITE_S = 1.0
SLOW_S, LOOK_S, SHORT_S = 1.0, 0.1, 2.0
"""All spare workers start if a batch takes `SLOW_S`; before, one for each `SHORT_S` of work left."""
FETCHED_S = 0.02  # how often it is looked for sound that was fetched
_READ_AT_FIRST = 8
SOUND_DIGITS = 16  # 64 bits of a hash: of a million sounds, two that differ share them once in forty million runs
_RECENT = 64  # over so many samples, about, the mean size of a sample is taken


@dataclass(slots=True, eq=False)
class _Item:
    loaded: Loaded
    open_systems: int
    held_bytes: int
    sounds: dict[str, str] = field(default_factory=dict)
    """Hash of each estimate that is not silent, by system: files at once, codecs as they finish."""


@dataclass(slots=True, eq=False)
class _Outcome:
    item: _Item
    system: System
    estimate: Signal | None = None
    bits: float | None = None
    no_bits: str | None = None
    audio: str | None = None
    comparison: ComparedLevels = NOT_COMPARED
    of_another: str | None = None
    scores: dict[str, Score] = field(default_factory=dict)
    features_missing: int = 0


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Options of a run that do not affect its scores.

    Args:
        batch_s: padded seconds per batch; None for each stage's own budget.
        time_limit_s: seconds per batch; None for the default of `batch.py`, 600 s or more.
        look_ahead: limits of (bytes of audio in shared memory, samples in progress).
        keep: numbers of the samples whose audio is saved.
    """

    batch_s: float | None = None
    time_limit_s: float | None = None
    look_ahead: tuple[int, int] = (128 << 20, 512)
    keep: frozenset[int] = frozenset()
    check: bool = False
    impatient: bool = False


class Engine:
    """Executes a plan for a data set and writes the record.

    Attributes:
        plan: has the final names of the systems once the codecs are loaded.
    """

    checks: RunChecks

    def __init__(
        self, plan: Plan, settings: EngineSettings, pool: Pool, cache: FeatureCache | FeatureMemory, log: str
    ) -> None:
        self.plan, self._settings, self._pool, self._cache = plan, settings, pool, cache
        self._arena = Arena()
        limit_s, impatient = settings.time_limit_s, settings.impatient
        self._dispatcher = Dispatcher(pool, settings.batch_s, limit_s, log, self._arena, impatient)
        self._writer: Results
        self._progress: Callable[[str, int, int, float], None]
        self._last_progress: tuple[str, int] = ("", -1)
        self._in_flight = self._held_bytes = self._admitted = 0
        self._mean_bytes = 0.0  # of a sample that was read
        self._records: list[tuple[int, ItemRecord]] = []
        self._done: dict[int, set[str]] = {}  # by sample that is being read, the systems that an earlier call finished
        self._last_write = perf_counter()
        self._failed = self._recorded = 0
        self._spent = Spent()
        self._scores_id = name_scores(plan) if isinstance(cache, FeatureCache) else None

    @property
    def first_item_at(self) -> float | None:
        """When the first item was finished, by `perf_counter`, or None."""
        return self._spent.first_item_at

    def load_codecs(self) -> dict[str, dict[str, Any]]:
        """Load every codec, name the systems, and return the codecs' facts by system."""
        self.plan, facts = load_stages(self.plan, self._pool, self._dispatcher)
        return facts

    def run(
        self,
        samples: Sequence[Sample],
        writer: Results,
        finished: set[tuple[int, int]],
        progress: Callable[[str, int, int, float], None],
        checked: Collection[str] = (),
        numbers: Sequence[int] | None = None,
        clips: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Run everything that is not finished and return the timings; `load_codecs` first.

        Args:
            numbers: of the samples, in rising order; None numbers them from 0.
            finished: (system, sample) numbers of items that are not run again.
            progress: called with (phase, items finished, failed, seconds of audio finished) when one changes.
            checked: names of the systems whose codecs need no check.
            clips: sound for the checks of the others.

        Raises:
            UserError: the record cannot be written, or workers keep ending.
        """
        start, start_cpu = perf_counter(), os.times()
        self._writer, self._progress = writer, progress
        feed = Feed(
            self._dispatcher,
            self._arena,
            self._unfinished_samples(zip(numbers or range(len(samples)), samples), finished),
            self._settings.keep,
            writer.folder,
            self._admit,
            len(self._pool.workers_for("cpu")) + self._pool.spare,
        )
        check_clips = clips if self._settings.check else ()
        self.checks = RunChecks(self._dispatcher, self._pool, self.plan.systems, check_clips, writer.folder, checked)
        try:
            while feed.has_more or self._in_flight or self.checks.has_open:
                at_once = feed.request(self._has_room)
                if self._pool.spare:
                    items = len(samples) * len(self.plan.systems) - len(finished)
                    self._pool.start_spare(self._count_due_workers(items))
                self._dispatcher.fill()
                at_once = self._dispatcher.run_here() or at_once
                self._write(force=False)
                self._report_progress()
                if not feed.has_more and not self._in_flight:
                    self.checks.finish()
                    self._dispatcher.fill()
                if feed.has_more or self._in_flight or self.checks.has_open:
                    waits_s = FETCHED_S if feed.is_downloading else LOOK_S if self._pool.spare else 1.0
                    for event in self._pool.events(0.0 if at_once else waits_s):
                        self._dispatcher.handle(event)
                    self._pool.detach(self._arena.trim())
            self._write(force=True)
            self._report_progress()
        except BaseException:
            with suppress(UserError):  # if the record cannot be written, that error is being raised already
                self._write(force=True)  # finished items are recorded, whatever ended the run
            raise
        finally:
            feed.close()
            closed = self._arena.close()
        self._pool.detach(closed)  # the workers may be there for another run
        now = os.times()
        main_cpu_s = now.user + now.system - start_cpu.user - start_cpu.system
        workers, stages = len(self._pool.workers), self._dispatcher.stages
        return sum_timings(perf_counter() - start, main_cpu_s, workers, self._spent, self.plan, stages, self._cache)

    def _count_due_workers(self, items: int) -> int:
        """Return how many spare workers are worth their start."""
        if self._pool.longest_batch_s > SLOW_S:
            return self._pool.spare
        left_s = estimate_left_s(self._dispatcher.stages, items, len(self.plan.systems))
        return min(max(0, int(left_s / SHORT_S) + 1 - len(self._pool.workers)), self._pool.spare)

    def _unfinished_samples(
        self, samples: Iterable[tuple[int, Sample]], finished: set[tuple[int, int]]
    ) -> Iterator[tuple[int, Sample, list[System]]]:
        """Yield each unfinished sample with its number and unfinished systems."""
        for number, sample in samples:
            done = {s.name for k, s in enumerate(self.plan.systems) if (k, number) in finished}
            if len(done) < len(self.plan.systems):
                # Files of systems that are done are read once more, so that equal sound is found in a continued run
                # too.
                self._done[number] = done
                yield number, sample, [s for s in self.plan.systems if s.kind == "files" or s.name not in done]

    def _has_room(self, reading: int) -> bool:
        """Return whether another sample fits the limits of `look_ahead`."""
        busy, (most_bytes, most_samples) = self._in_flight + reading, self._settings.look_ahead
        if not self._admitted:  # nothing is known of the size of the samples
            return reading < _READ_AT_FIRST
        nbytes = self._held_bytes + reading * self._mean_bytes
        return busy == 0 or (nbytes < most_bytes and busy < most_samples)

    # ---- from samples to estimates ----

    def _admit(self, loaded: Loaded, read: list[System]) -> None:
        """Start the work of every system for a sample whose audio has been read."""
        done = self._done.pop(loaded.number)
        systems = [system for system in read if system.name not in done]
        estimates = {name: s for name, s in loaded.estimates.items() if isinstance(s, Signal)}
        for name in done & estimates.keys():
            estimates[name].holders = 1
            estimates[name].release(self._arena)
        signals = [s for name, s in estimates.items() if name not in done]
        if loaded.reference is not None:
            signals.append(loaded.reference)
        item = _Item(loaded, len(systems), sum(s.nbytes for s in signals))
        item.sounds.update({name: s.content_hash for name, s in estimates.items() if SILENT not in s.notes})
        self._in_flight += 1
        self._held_bytes += item.held_bytes
        self._mean_bytes += (item.held_bytes - self._mean_bytes) / min(self._admitted + 1, _RECENT)
        self._admitted += 1
        for signal in signals:
            signal.holders = 1
        for system in systems:
            outcome = _Outcome(item, system)
            if loaded.reason is not None:
                self._no_estimate(outcome, loaded.reason)
            elif system.kind == "files":
                outcome.audio = self._copy_path(system, loaded.number)
                estimate = loaded.estimates[system.name]
                if isinstance(estimate, Diagnostic):
                    self._no_estimate(outcome, estimate)
                else:
                    self._on_estimate(outcome, estimate)
            elif system.kind == "unprocessed":
                outcome.audio = self._copy_path(system, loaded.number)
                assert loaded.reference is not None  # or there would be a reason
                loaded.reference.holders += 1
                self._on_estimate(outcome, loaded.reference)
            else:
                self._send_to_codec(outcome)

    def _copy_path(self, system: System, number: int) -> str | None:
        return f"audio/{system.folder}/{number:07d}.flac" if number in self._settings.keep else None

    def _send_to_codec(self, outcome: _Outcome) -> None:
        """Queue a reference for a codec, with shared memory for the estimate."""
        reference, stage = outcome.item.loaded.reference, outcome.system.stage
        assert reference is not None and reference.audio is not None and stage is not None  # this system is a codec
        rate = reference.sample_rate_hz
        lengths = {r: resampled_length(reference.num_samples, rate, r) for r in self.plan.rates("estimate", rate)}
        regions = {r: self._arena.allocate((n,)) for r, n in lengths.items()}
        nbytes = sum(region.nbytes for region in regions.values())
        outcome.item.held_bytes += nbytes
        self._held_bytes += nbytes
        outcome.audio = self._copy_path(outcome.system, outcome.item.loaded.number)
        keep = os.path.abspath(self._writer.folder / outcome.audio) if outcome.audio else None

        def take_estimate(result: CodecResult | Fault) -> None:
            """Take the codec's output as the estimate, or fail the item."""
            estimate = Signal(regions, rate, reference.num_samples, "", holders=1)
            if isinstance(result, Fault):
                estimate.release(self._arena)
                self._no_estimate(outcome, result.reason)
                return
            estimate.content_hash, estimate.notes = result.content_hash, result.notes
            outcome.bits, outcome.no_bits = result.bits, result.no_bits
            self._on_estimate(outcome, estimate)

        work = CodecWork(reference.audio, rate, regions, keep)
        self._dispatcher.put(stage.key, work, reference.duration_s, take_estimate)

    def _no_estimate(self, outcome: _Outcome, reason: Diagnostic) -> None:
        for name, metric in self.plan.metrics.items():
            outcome.scores[name] = Score.failed(reason, metric.protocol)
        outcome.audio = None
        self._finish(outcome, reason)

    # ---- from estimates to scores ----

    def _on_estimate(self, outcome: _Outcome, estimate: Signal) -> None:
        """Queue the metrics of the signals, and the features, of an estimate."""
        outcome.estimate = estimate
        reference = outcome.item.loaded.reference
        if reference is not estimate:
            outcome.of_another = _system_with_same_audio(outcome, estimate)
        if reference is not None and reference is not estimate and not outcome.system.is_prompted:
            self._compare(outcome, reference, estimate)
        self._send_to_metrics(outcome, estimate, self.plan.signal_stages, self._metric_work(outcome, estimate))
        of_estimate, of_reference = self._features_of(outcome)
        for name in of_estimate:
            self._request_feature(estimate, self.plan.features[name], outcome)
        if reference is not None:
            for name in of_reference:
                self._request_feature(reference, self.plan.features[name], outcome)
        if outcome.features_missing == 0:
            self._on_features(outcome, estimate)

    def _compare(self, outcome: _Outcome, reference: Signal, estimate: Signal) -> None:
        """Compare the levels of estimate and reference at their lowest common rate."""
        shared = estimate.rates.keys() & reference.rates.keys()
        if not shared:  # no metric hears the estimate
            return
        rate = min(shared)
        sounds = self._arena.view(reference.rates[rate]), self._arena.view(estimate.rates[rate])
        levels = [signal.levels if rate == min(signal.rates) else None for signal in (reference, estimate)]
        generated = outcome.system.kind == "files"
        outcome.comparison = compare_levels(*sounds, rate, generated=generated, measured=(levels[0], levels[1]))

    def _features_of(self, outcome: _Outcome) -> tuple[list[str], list[str]]:
        """Return the features that the metrics need of estimate and reference."""
        loaded = outcome.item.loaded
        sides: tuple[dict[str, None], dict[str, None]] = {}, {}
        for metric in self.plan.metrics.values():
            if metric.refusal(text=loaded.sample.text, language=loaded.sample.language) is None:
                for names, required in zip(sides, metric.features_of(loaded.sample.language)):
                    names.update(dict.fromkeys(required))
        return list(sides[0]), list(sides[1]) if loaded.reference is not None else []

    def _metric_work(self, outcome: _Outcome, estimate: Signal) -> MetricWork:
        """Collect the inputs of an item's metrics: audio, texts, labels and bits."""
        loaded = outcome.item.loaded
        reference = loaded.reference
        return MetricWork(
            estimate=estimate.rates,
            reference=reference.rates if reference is not None else {},
            native_rate_hz=(reference or estimate).sample_rate_hz,
            known={
                "id": loaded.sample.id,
                "text": loaded.sample.text,
                "spoken": loaded.sample.extra.get(SPOKEN),
                "words": loaded.sample.extra.get(WORDS),
                "estimate_words": loaded.sample.extra.get(ESTIMATE_WORDS),
                "trials": loaded.sample.extra.get(TRIALS),
                "language": loaded.sample.language,
                "speaker": loaded.sample.speaker,
                "bits": outcome.bits,
                "no_bits": outcome.no_bits,
                "duration_s": estimate.duration_s,
            },
        )

    def _request_feature(self, signal: Signal, feature: FeaturePlan, outcome: _Outcome) -> None:
        """Schedule a feature for which an item waits, unless it is computed or cached."""
        state = signal.features.get(feature.name)
        if isinstance(state, list):
            if outcome not in state:
                state.append(outcome)
                outcome.features_missing += 1
            return
        if state is not None:
            return
        sample = outcome.item.loaded.sample
        language = base_language(sample.language) if feature.reads_language and sample.language else None
        key = f"{signal.content_hash}|{feature.cache_id}" if feature.cache_id is not None else None
        if key is not None and feature.reads_language:
            key += f"|{language or 'detected'}"
        seed = None if feature.seed is None else seed_of(feature.seed, sample.id)
        if key is not None and seed is not None:
            key += f"|{seed}"
        stored = self._cache.get(key) if key is not None else None
        if stored is not None:
            signal.features[feature.name] = stored
            return
        signal.features[feature.name] = [outcome]
        outcome.features_missing += 1
        signal.holders += 1

        def take_feature(result: dict[str, Any] | Fault) -> None:
            """Cache the feature, and continue the items that waited for it."""
            waiting = signal.features[feature.name]
            signal.features[feature.name] = result
            if key is not None and not isinstance(result, Fault):
                self._cache.put(key, result)
            signal.release(self._arena)
            for waiter in waiting:
                waiter.features_missing -= 1
                if waiter.features_missing == 0:
                    self._on_features(waiter, waiter.estimate)

        work = FeatureWork(signal.rates[feature.rate_hz], language, seed)
        self._dispatcher.put(feature.stage.key, work, signal.duration_s, take_feature)

    def _on_features(self, outcome: _Outcome, estimate: Signal) -> None:
        """Compute or queue the metrics that read features, now that all are there."""
        plan, reference = self.plan, outcome.item.loaded.reference
        of_estimate, of_reference = self._features_of(outcome)
        work = self._metric_work(outcome, estimate).with_features(
            {f: estimate.features[f] for f in of_estimate},
            {f: reference.features[f] for f in of_reference} if reference is not None else {},
        )
        for name in plan.inline_metrics:
            metric = plan.metrics[name]
            ready = inputs_or_score(metric, **work.known, rate_hz=work.native_rate_hz)
            outcome.scores[name] = ready if isinstance(ready, Score) else compute_scores(metric, [ready])[0]
        self._send_to_metrics(outcome, estimate, plan.feature_stages, work)
        self._finish_if_scored(outcome)

    def _send_to_metrics(
        self, outcome: _Outcome, estimate: Signal, stages: Iterable[StageSpec], work: MetricWork
    ) -> None:
        """Queue one job per metric stage, or take its scores from the cache."""

        def take_scores(spec: StageSpec, key: str | None, result: dict[str, Score] | Fault) -> None:
            """Cache the scores of a stage, and finish the item with the last ones."""
            if isinstance(result, Fault):
                result = {n: Score.failed(result.reason, self.plan.metrics[n].protocol) for n in spec.names}
            elif key is not None and (packed := pack_scores(result)) is not None:
                self._cache.put(key, packed)
            outcome.scores.update(result)
            self._finish_if_scored(outcome)

        for spec in stages:
            key = self._scores_key(outcome, estimate, work) if spec.key == SIGNAL_METRICS else None
            stored = self._cache.get(key) if key is not None else None
            if stored is not None:
                outcome.scores.update(unpack_scores(stored))
            else:
                self._dispatcher.put(spec.key, work, estimate.duration_s, partial(take_scores, spec, key))

    def _scores_key(self, outcome: _Outcome, estimate: Signal, work: MetricWork) -> str | None:
        """Return the cache key of an estimate's scores; None without a score cache."""
        if self._scores_id is None:
            return None
        reference = outcome.item.loaded.reference
        of_reference = None if reference is None else reference.content_hash
        return key_of(self._scores_id, estimate.content_hash, of_reference, work.known)

    # ---- from scores to the record ----

    def _finish_if_scored(self, outcome: _Outcome) -> None:
        if len(outcome.scores) == len(self.plan.metrics):
            self._finish(outcome, None)

    def _finish(self, outcome: _Outcome, reason: Diagnostic | None) -> None:
        """Build an item's record from its scores and release its audio."""
        item, estimate = outcome.item, outcome.estimate
        loaded, reference = item.loaded, item.loaded.reference
        shown = reference or estimate
        record = ItemRecord(
            system=outcome.system.name,
            sample=loaded.sample.id,
            status="ok" if reason is None else "failed",
            reason=reason,
            scores={name: self._score_to_record(outcome, name) for name in self.plan.metrics},
            bits=outcome.bits,
            audio=outcome.audio,
            notes=_notes(outcome),
            duration_s=shown.duration_s if shown is not None else None,
            sample_rate_hz=shown.sample_rate_hz if shown is not None else None,
            channels=None if shown is None else 1 if reference is None else reference.channels,
            sound=reference.content_hash[:SOUND_DIGITS] if reference is not None else None,
            estimate_sound=(
                estimate.content_hash[:SOUND_DIGITS]
                if estimate is not None and outcome.system.kind == "files"
                else None
            ),
            estimate_s=estimate.duration_s if estimate is not None else None,
        )
        self._records.append((loaded.number, record))
        self._spent.items += 1
        self._spent.first_item_at = self._spent.first_item_at or perf_counter()
        self._failed += reason is not None or any(s.status in FAILURES for s in record.scores.values())
        self._spent.audio_s += record.estimate_s or record.duration_s or 0.0
        if estimate is not None:
            estimate.release(self._arena)
        item.open_systems -= 1
        if item.open_systems == 0:
            self._in_flight -= 1
            self._held_bytes -= item.held_bytes
            if reference is not None:
                reference.release(self._arena)

    def _score_to_record(self, outcome: _Outcome, name: str) -> Score:
        """Flag a suspect score of the metric `name`; give a failure its worst counts.

        They are in `detail["wrong"]`. An undefined score of a silent estimate with an audible reference is a failure.
        """
        metric, score, sample = self.plan.metrics[name], outcome.scores[name], outcome.item.loaded.sample
        silent, quiet = (s is not None and SILENT in s.notes for s in (outcome.estimate, outcome.item.loaded.reference))
        score = flag_doubtful(
            metric, score, estimate_silent=silent, reference_silent=quiet, comparison=outcome.comparison
        )
        if score.status == "undefined" and silent and not quiet:
            score = replace(score, detail={**score.detail, "wrong": []})  # a failure, also without a worst value
        elif score.status not in FAILURES:
            return score
        return score.counting_wrong(metric.worst(text=sample.text, language=sample.language))

    def _write(self, force: bool) -> None:
        """Write finished records if enough have gathered, enough time passed, or by force."""
        now = perf_counter()
        due = force or len(self._records) >= WRITE_ITEMS or now - self._last_write >= WRITE_S
        if not (self._records and due):
            return
        self._writer.write(self._records)
        self._records = []
        self._last_write = perf_counter()
        self._spent.write_s += self._last_write - now
        self._recorded = self._spent.items

    def _report_progress(self) -> None:
        """Call the progress function if the phase or the count has changed."""
        loading, busy = self._pool.loading, self._pool.busy
        now = (describe_phase(self.plan, loading, busy, self._recorded, self._failed), self._recorded)
        if now != self._last_progress:
            self._last_progress = now
            self._progress(*now, self._failed, self._spent.audio_s)


def _notes(outcome: _Outcome) -> tuple[Diagnostic, ...]:
    """Notes on an item's signals. A silent reference is no fault of the item."""
    estimate, reference, is_generated = outcome.estimate, outcome.item.loaded.reference, outcome.system.kind == "files"
    if estimate is None:
        return ()
    if reference is estimate:
        return estimate.notes
    another = () if outcome.of_another is None else (Diagnostic("same_as_system", system=outcome.of_another),)
    if reference is None or outcome.system.is_prompted:
        return (*another, *estimate.notes)
    difference = outcome.comparison.lacks if is_generated else outcome.comparison.mismatch
    same = SILENT not in estimate.notes and estimate.content_hash == reference.content_hash
    return (
        *((Diagnostic("same_as_reference"),) if same else another),
        *((difference,) if difference and SILENT not in estimate.notes else ()),
        *(_note_other_rate(estimate, reference) if is_generated else ()),
        # The narrow band of a codec's output is the codec's doing, and no fact of the data.
        *(note for note in estimate.notes if is_generated or note.code != "empty_band"),
        *(Diagnostic("reference", note=note) for note in reference.notes if note != SILENT),
    )


def _note_other_rate(estimate: Signal, reference: Signal) -> tuple[Diagnostic, ...]:
    """A note on a file with its reference's number of samples at another rate."""
    rate, right = estimate.sample_rate_hz, reference.sample_rate_hz
    if (
        abs(rate - right) < 0.05 * right
        or abs(estimate.num_samples - reference.num_samples) > 0.005 * reference.num_samples
    ):
        return ()
    at = {"rate_khz": float(f"{rate / 1000:g}"), "reference_khz": float(f"{right / 1000:g}")}
    return (Diagnostic("other_rate", **at),)


def _system_with_same_audio(outcome: _Outcome, estimate: Signal) -> str | None:
    """The name of an earlier system with the same estimate of this item, or None.

    Silent estimates do not count, nor a codec's output that equals its reference. A codec's hash is kept for later
    ones.
    """
    sounds, name, reference = outcome.item.sounds, outcome.system.name, outcome.item.loaded.reference
    if SILENT in estimate.notes:
        return None
    before: Iterator[str]
    if outcome.system.kind == "files":
        before = takewhile(lambda other: other != name, sounds)
    elif reference is not None and reference.content_hash == estimate.content_hash:
        return None
    else:
        before = iter([*sounds])
        sounds[name] = estimate.content_hash
    return next((other for other in before if sounds[other] == estimate.content_hash), None)
