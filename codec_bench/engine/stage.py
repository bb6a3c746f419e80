"""The work of workers: a codec, a feature or metrics over a batch of items.

A `StageSpec` is sent to the workers; the worker that runs a stage builds its model. A batch gives a result or a
`Fault` per item, in order. A fault of one item does not affect the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from codec_bench.audio.encode import write_flac
from codec_bench.audio.hash import content_hash
from codec_bench.audio.level_checks import (
    SILENT,
    all_silent,
    channel_peaks,
    find_cancellation,
    is_folded,
    loudest_levels,
)
from codec_bench.audio.resample import cut, fit_length, to_signal
from codec_bench.config.registry import is_foreign, lent, load_attribute
from codec_bench.engine.arena import Region, Segments
from codec_bench.features.base import PreparedFeature
from codec_bench.machine.process_state import end_if_forked, preserved_torch_state
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Score, json_value

if TYPE_CHECKING:
    from codec_bench.codecs.adapt import Coded
    from codec_bench.codecs.checks.serialised_codes import SerialisedCodes
    from codec_bench.metrics.base import SharedResults


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage.

    Args:
        key: unique in the run, shown in the table of timings.
        kind: `steps` are those of a codec that has the worker for itself.
        names: the registered name, the names of all metrics of the stage, or the key of a check's codec stage.
        owner: name of foreign code, whose workers run nothing else; empty for our code.
    """

    key: str
    kind: Literal["read", "codec", "feature", "metrics", "check", "steps"]
    names: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an item has no result; `undefined` if there is nothing to compute."""

    reason: Diagnostic
    status: Literal["failed", "undefined"] = "failed"


@dataclass(frozen=True, slots=True)
class CodecWork:
    """Audio `(channels, samples)` to code, and the memory regions of its estimate."""

    audio: Region
    sample_rate_hz: int
    outputs: Mapping[int, Region]
    keep: str | None = None


@dataclass(frozen=True, slots=True)
class CodecResult:
    """Result of a codec for an item; its signals are in the regions of `CodecWork`."""

    bits: float | None
    no_bits: str | None
    content_hash: str
    notes: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class CheckWork:
    """Input of a codec's check.

    Args:
        codes_path: file with codes for another process. A message could fill the pipe of a worker that hangs.
        clips: audio files; empty to decode the file.
    """

    codes_path: str
    clips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a check.

    Args:
        findings: as in `codecs.checks`.
        sent: whether there are serialised codes for another process.
        load_s: of the codec.
    """

    findings: tuple[Mapping[str, Any], ...]
    sent: bool
    process: int
    load_s: float


@dataclass(frozen=True, slots=True)
class StepWork:
    """A step of a codec's checks; `serialised`: codes of another process to decode."""

    step: str
    serialised: SerialisedCodes | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """Sections of a step's results; `serialised`: codes for another process to decode."""

    sections: dict[str, dict[str, Any]]
    serialised: SerialisedCodes | None


@dataclass(frozen=True, slots=True)
class FeatureWork:
    """A signal `(samples,)` to compute a feature of, with language and seed if read."""

    signal: Region
    language: str | None = None
    seed: int | None = None


class MetricWork(NamedTuple):
    """One item for metrics.

    Args:
        estimate, reference: signals per rate.
        native_rate_hz: for metrics without a fixed rate.
        known: the other arguments of `metrics.base.Inputs`.
    """

    estimate: Mapping[int, Region]
    reference: Mapping[int, Region]
    native_rate_hz: int
    known: Mapping[str, Any]

    def with_features(self, of_estimate: Mapping[str, Any], of_reference: Mapping[str, Any]) -> MetricWork:
        """The same item with its features."""
        features = {"estimate_features": of_estimate, "reference_features": of_reference}
        return self._replace(known={**self.known, **features})


class CodecStage:
    """Reconstructs audio at every rate of the run; `live` is a codec of this process."""

    def __init__(self, spec: StageSpec, device: str, live: Any = None) -> None:
        from codec_bench.codecs import build_codec, load_codec

        start, self._process = perf_counter(), os.getpid()
        if live is None:
            self.codec = load_codec(spec.names[0], device=device, **spec.options)
        else:
            self.codec = build_codec(live, spec.key, device=device, **spec.options)
        self.facts = codec_facts(self.codec)
        self.load_s = perf_counter() - start

    def prepare(self, works: Sequence[CodecWork], segments: Segments) -> Any:
        """The audio at one of the codec's rates, channel by channel if the codec is mono."""
        from codec_bench.codecs.adapt import PreparedBatch

        return PreparedBatch.of(self.codec.info, [Audio(segments.view(w.audio), w.sample_rate_hz) for w in works])

    def run(
        self, works: Sequence[CodecWork], segments: Segments, prepared: Any = None
    ) -> tuple[list[Any], dict[str, float]]:
        """Return one `CodecResult` or `Fault` per work, and seconds per step."""
        from codec_bench.codecs.adapt import reconstruct_prepared

        coded = reconstruct_prepared(self.codec, self.prepare(works, segments) if prepared is None else prepared)
        end_if_forked(self._process)  # before anything is written to the memory that all processes share
        start = perf_counter()
        results = [self._finish(w, c, segments) for w, c in zip(works, coded.items)]
        return results, {"encode": coded.encode_s, "decode": coded.decode_s, "prepare": perf_counter() - start}

    @staticmethod
    def _finish(work: CodecWork, coded: Coded, segments: Segments) -> CodecResult:
        """Copy an estimate to shared memory at every rate, hash it and note faults."""
        estimate = coded.estimate
        for rate, region in work.outputs.items():
            segments.view(region)[...] = fit_length(to_signal(estimate, rate), region.shape[-1])
        if work.keep is not None:
            write_audio_file(work.keep, estimate)
        hashed = content_hash(estimate.samples, estimate.sample_rate_hz)
        peaks = channel_peaks(estimate.samples)
        notes = signal_notes(estimate, loudest_levels(estimate, peaks), peaks)
        if is_folded(segments.view(work.audio), estimate.samples):
            notes = (*notes, Diagnostic("folded_channels", channels=estimate.channels))
        return CodecResult(coded.bits, coded.no_bits, hashed, notes)


class CheckStage:
    """Checks the codec of another stage of this process."""

    def __init__(self, of: CodecStage) -> None:
        self._codec, self._load_s = of.codec, of.load_s
        self.facts: dict[str, Any] = {}

    def run(self, works: Sequence[CheckWork], segments: Segments) -> tuple[list[Any], dict[str, float]]:
        """Return one `CheckResult` per work."""
        return [self._check(work) for work in works], {}

    def _check(self, work: CheckWork) -> CheckResult:
        """Check a codec on clips, or decode items that another process encoded."""
        from codec_bench.codecs.checks import finding
        from codec_bench.codecs.checks.quick import quick_check
        from codec_bench.codecs.checks.serialised_codes import SerialisedCodes, unpack, unserialised_finding

        result = partial(CheckResult, process=os.getpid(), load_s=self._load_s)
        if not work.clips:
            return result((unpack(self._codec, SerialisedCodes.read(work.codes_path)),), False)
        clips = []
        for path in work.clips:
            with suppress(UserError):  # the item of this file says why it cannot be read
                clips.append(Audio.read(path))
        if not clips:
            nothing = finding("contract", "not applicable", Diagnostic("first_files_unreadable"))
            return result((nothing,), False)
        findings, sent = quick_check(self._codec, clips)
        if isinstance(sent, Diagnostic):
            return result((*findings, unserialised_finding(sent)), False)
        sent.write(work.codes_path)
        return result(tuple(findings), True)


class StepStage:
    """Runs the steps of a codec (`codecs/checks/steps.py`); announces each call."""

    def __init__(self, spec: StageSpec, announce: Callable[[], None]) -> None:
        request = spec.options["request"]
        self._program = load_attribute(request.PROGRAM)(request, announce)

    def run(self, works: Sequence[StepWork], segments: Segments) -> tuple[list[Any], dict[str, float]]:
        """Return one `StepResult` per work."""
        return [self._do(work) for work in works], {}

    def _do(self, work: StepWork) -> StepResult:
        if work.serialised is not None:
            self._program.serialised = work.serialised
        return StepResult(self._program.sections(work.step), self._program.serialised)


class FeatureStage:
    """Computes one feature of a batch of signals."""

    def __init__(self, spec: StageSpec, device: str) -> None:
        from codec_bench.features import load_feature

        self.feature = load_feature(spec.names[0], device=device, **spec.options)
        self.feature.load()
        self.facts: dict[str, Any] = {}

    def prepare(self, works: Sequence[FeatureWork], segments: Segments) -> Any:
        """Output of the feature's `prepare` if it has one, else the signals."""
        signals = [cut(segments.view(w.signal)) for w in works]
        if not isinstance(self.feature, PreparedFeature):
            return signals
        languages, seeds = [w.language for w in works], [w.seed for w in works]
        return call_feature(self.feature, self.feature.prepare, signals, languages, seeds)

    def run(
        self, works: Sequence[FeatureWork], segments: Segments, batch: Any = None
    ) -> tuple[list[Any], dict[str, float]]:
        """Return one feature result or `Fault` per signal, and no timings.

        Args:
            batch: the output of `prepare`; None to call it here.
        """
        batch = self.prepare(works, segments) if batch is None else batch
        if isinstance(self.feature, PreparedFeature):
            results = self.feature.compute_prepared(batch)
        else:
            languages, seeds = [w.language for w in works], [w.seed for w in works]
            results = call_feature(self.feature, self.feature.compute, batch, languages, seeds)
        if len(results) != len(works):
            raise RuntimeError(f"{self.feature.name} returned {len(results)} results for {len(works)} signals")
        return [self._check_result(result) for result in results], {}

    def _check_result(self, result: Any) -> Any:
        """A result, or the `Fault` of an item without one; of a custom feature as the cache stores it."""
        if isinstance(result, Exception):
            return Fault(of_error(result, with_type=False), "undefined")
        if not is_foreign(self.feature):
            return result
        try:
            if not isinstance(result, Mapping):
                name = type(result).__name__
                raise TypeError(f"{self.feature.name} returned {name}; expected a dict of numbers, texts and arrays")
            return {str(name): _plain_value(value) for name, value in result.items()}
        except (TypeError, ValueError) as error:
            return Fault(of_error(error))


def _plain_value(value: Any) -> Any:
    """A value of a feature's result: tensors become arrays, arrays hold numbers or texts."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value
    return json_value(value)


def compute_feature(feature: Any, signals: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[Any]:
    """Compute one feature of each signal, with languages if the feature uses them."""
    return call_feature(feature, feature.compute, signals, languages)


def call_feature(
    feature: Any, method: Any, signals: Sequence[np.ndarray], languages: Sequence[str | None], seeds: Any = None
) -> Any:
    """Call a feature's method, with languages and seeds if the feature reads them."""
    signals = lent(feature, signals)
    more: dict[str, Any] = {"languages": languages} if feature.reads_language else {}
    if getattr(feature, "reads_seed", False):
        more["seeds"] = seeds
    with preserved_torch_state(feature):
        return method(signals, **more)


class MetricStage:
    """Computes several metrics of a batch of items."""

    def __init__(self, spec: StageSpec, device: str) -> None:
        from codec_bench.metrics import build_metric

        self.metrics = {name: build_metric(name) for name in spec.names}
        self.facts: dict[str, Any] = {}
        self._foreign = bool(spec.owner)

    def run(self, works: Sequence[MetricWork], segments: Segments) -> tuple[list[Any], dict[str, float]]:
        """Return a dictionary of scores per item, and seconds per metric."""
        from codec_bench.metrics.base import SharedResults

        scores: list[dict[str, Score]] = []
        seconds = dict.fromkeys(self.metrics, 0.0)
        # Our metrics score item by item: the results that they share are of one item at a time.
        for batch in [works] if self._foreign else [[work] for work in works]:
            shared = [SharedResults() for _ in batch]
            rows: list[dict[str, Score]] = [{} for _ in batch]
            for name, metric in self.metrics.items():
                start = perf_counter()
                for row, score in zip(rows, score_batch(metric, batch, segments, shared)):
                    row[name] = score
                seconds[name] += perf_counter() - start
            scores += rows
        return scores, seconds


def score_batch(
    metric: Any, works: Sequence[MetricWork], segments: Segments, shared: Sequence[SharedResults]
) -> list[Score]:
    """Score every item; a metric that raises for the batch is called item by item."""
    from codec_bench.metrics.base import inputs_or_score

    ready: list[Any] = []
    for work, results in zip(works, shared):
        rate = metric.rate_hz or work.native_rate_hz
        signals = {
            role: metric.prepare_signal(segments.view(rates[rate])) if metric.signals and rate in rates else None
            for role, rates in (("estimate", work.estimate), ("reference", work.reference))
        }
        known = {**work.known, "shared": results.of(metric, rate)}
        ready.append(inputs_or_score(metric, **known, rate_hz=rate, **signals))
    places = [k for k, r in enumerate(ready) if not isinstance(r, Score)]
    for index, score in zip(places, compute_scores(metric, [ready[k] for k in places])):
        ready[index] = score
    return ready


def compute_scores(metric: Any, batch: Sequence[Any]) -> list[Score]:
    """Call `metric.compute`. If it raises, only the items that raise alone fail."""
    if not batch:
        return []
    try:
        with preserved_torch_state(metric):
            scores = metric.compute(lent(metric, batch))
        if len(scores) != len(batch):
            raise RuntimeError(f"{metric.name} returned {len(scores)} scores for {len(batch)} items")
        return [Score.of_result(s, metric.protocol) for s in scores] if is_foreign(metric) else list(scores)
    except MemoryError:
        raise
    except Exception as error:  # a metric may raise anything; the item fails with it as the reason
        if len(batch) == 1:
            return [Score.failed(of_error(error), metric.protocol)]
        return [compute_scores(metric, [item])[0] for item in batch]


def codec_facts(codec: Any) -> dict[str, Any]:
    """Facts of a codec as JSON values: its `info`, `where` and `batch_s`."""
    declared = {name: value.item() if hasattr(value, "item") else value for name, value in asdict(codec.info).items()}
    return {**declared, "where": getattr(codec, "where", "device"), "batch_s": getattr(codec, "batch_s", 60.0)}


def write_audio_file(path: str, audio: Audio) -> None:
    """Write a FLAC file atomically."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(f".{os.getpid()}.part")
    write_flac(temporary, audio)
    os.replace(temporary, target)


def signal_notes(audio: Audio, levels: np.ndarray, peaks: Sequence[tuple[float, float]]) -> tuple[Diagnostic, ...]:
    """Notes on silence, on channels that cancel out, and on samples beyond full scale.

    Args:
        levels, peaks: by `level_checks.loudest_levels` and `channel_peaks`.
    """
    if all_silent(levels):
        return (SILENT,)
    notes: list[Diagnostic] = []
    if (cancelled := find_cancellation(audio, levels)) is not None:
        lower_db = round(cancelled.lower_db, 1)
        notes += [SILENT] if cancelled.is_silent else []
        notes.append(Diagnostic("cancelled_channels", channels=audio.channels, lower_db=lower_db))
    if any(lowest < -1.0 or highest > 1.0 for lowest, highest in peaks):
        notes.append(Diagnostic("clipped", samples=int(np.count_nonzero(np.abs(audio.samples) > 1.0))))
    return tuple(notes)
