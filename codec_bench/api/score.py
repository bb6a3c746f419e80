"""Score generated audio (`codec-bench score`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from codec_bench.api.executors import run_prepared
from codec_bench.api.metric_groups import expand_metrics
from codec_bench.config.option import documented
from codec_bench.config.request import ScoreRequest
from codec_bench.data import (
    Source,
    broken_down,
    data_name,
    match_estimates,
    open_source,
    problem_of,
    sameness,
    with_trials,
)
from codec_bench.data.layouts import Role
from codec_bench.data.roles import with_role
from codec_bench.engine.evaluation import Evaluation
from codec_bench.engine.extend import restore_sample_order
from codec_bench.engine.running import Progress, Running
from codec_bench.engine.systems import System, read_generated
from codec_bench.messages import to_codes
from codec_bench.messages.errors import Note, UserError, first_of
from codec_bench.metrics import build_metric, chosen_metrics, expand
from codec_bench.metrics.groups import needs_target
from codec_bench.report.open_run import Run
from codec_bench.store.folders import started_fingerprint
from codec_bench.types import Sample


@documented(ScoreRequest)
def score(
    *,
    generated: Any,
    data: Any = None,
    metrics: str | Sequence[str] | None = None,
    preset: str | None = None,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    trials: str | os.PathLike[str] | None = None,
    shard: str | tuple[int, int] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    progress: bool | Progress | None = None,
    running: Running | None = None,
    reference: str | None = None,
    allow_same: bool = False,
    **running_fields: Any,
) -> Run:
    """Score existing audio, such as that of a speech synthesizer or a codec.

    Args:
        progress, running: as for `evaluate`.

    Returns:
        The finished run with one row per system. A system without a name is called `generated`.

    Raises:
        UserError: as for `evaluate`; two systems have one name or are one folder; or estimates are the files of their
            own references, or more than half of them equal their references.

    Examples:
        >>> from pathlib import Path
        >>> import soundfile
        >>> from codec_bench import Audio, score
        >>> from codec_bench.data import open_source
        >>> samples = list(open_source("embedded"))[:2]
        >>> Path("quiet").mkdir(exist_ok=True)
        >>> for sample in samples:
        ...     clip = Audio.read(sample.audio)
        ...     soundfile.write(f"quiet/{sample.id}.wav", clip.samples.T / 2, clip.sample_rate_hz)
        >>> run = score(generated="quiet", data=samples, metrics="snr", out="runs/quiet")
        >>> round(run.summary()["systems"]["generated"]["metrics"]["snr"]["value"], 1)
        6.0
    """
    return run_prepared(ScoreRequest, prepare, locals())


def prepare(
    *,
    generated: Any,
    data: Any,
    metrics: str | Sequence[str] | None = None,
    preset: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    trials: str | os.PathLike[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    reference: str | None = None,
    allow_same: bool = False,
    out: str | os.PathLike[str] | None = None,
    growing: str | os.PathLike[str] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Convert the arguments of `score` to an evaluation; match audio to samples.

    Args:
        growing: the run folder to extend, in its order of samples and systems; None for a new run.
        arguments: all of them, for the record.
    """
    requested = chosen_metrics(metrics, preset)
    outputs = read_generated(generated)
    names_data = data is not None
    if data is None:
        data = _list_generated(outputs)
    source = open_source(data, limit=limit, seed=seed if limit is not None else None, require_audio=False)
    if trials is not None:
        source = with_trials(source, Path(trials))
    source, role = with_role(source, reference)
    source = restore_sample_order(source, growing, limit=limit, seed=seed)
    outputs = _order_recorded_first(outputs, growing)
    is_prompted = role == "prompt"
    systems = [
        replace(system, source=_match_system(system, source, audio, role), is_prompted=is_prompted)
        for system, audio in outputs
    ]
    alone = systems[0] if len(systems) == 1 and not systems[0].titled else None
    names: Any = data_name(outputs[0][1]) if alone else {system.name: data_name(audio) for system, audio in outputs}
    matched = [(system, system.source or source) for system in systems]
    for system, pairs in matched:
        _check_match(system, pairs, allow_same)
    choices = {system.spec: to_codes(pairs.origin) for system, pairs in matched if pairs.origin}
    chosen, groups = expand_metrics(requested, source, out, coded=False, options=options, prompted=is_prompted)
    if is_prompted:
        _check_needs(chosen)
    request: dict[str, Any] = {
        "command": "score", "data": data_name(data) if names_data else names, "generated": names,
        "seed": seed, "limit": limit, "reference": role, **groups,
    }  # fmt: skip
    if trials is not None:
        request["trials"] = str(trials)
    if allow_same:
        request["allow_same"] = True
    about = {**broken_down(by, source.samples, source.name), "arguments": dict(arguments or {})}
    about |= {"origins": choices} if choices else {}
    return Evaluation(systems, chosen, source, request, dict(options or {}), about)


def _list_generated(outputs: Sequence[tuple[System, Any]]) -> list[Sample]:
    """The generated samples of all systems; only a manifest names references."""
    samples: dict[str, Sample] = {}
    for _, audio in outputs:
        for sample in open_source(audio, require_audio=False):
            if sample.estimate is None and problem_of(sample) is None:
                sample = replace(sample, audio=None, estimate=sample.audio)
            samples.setdefault(sample.id, sample)
    return list(samples.values())


def _check_match(system: System, matched: Source, allow_same: bool) -> None:
    """Announce the origin of a system's audio; raise UserError if it is the reference.

    Args:
        allow_same: whether generated audio may equal the references.
    """
    if matched.origin:
        warnings.warn(Note("generated_audio_is", system=system.spec, origin=matched.origin), stacklevel=3)
    same = None if allow_same else sameness(matched.samples)
    if same is not None:
        raise UserError(
            "is_the_reference",
            system=system.spec,
            cause=same,
            hint="name the folder of the generated audio; for a lossless system add --allow-same (allow_same=True)",
        )


def _check_needs(chosen: Sequence[str]) -> None:
    """Raise UserError for metrics that need the same words, if the words differ."""
    metrics = [build_metric(name) for text in chosen for name in expand([text])]
    if unfit := [metric.name for metric in metrics if needs_target(metric)]:
        raise UserError(
            "same_words_needed",
            metrics=first_of(unfit, 5),
            hint="leave these metrics out, or give --reference target if the audio of the data has the same words",
        )


def _order_recorded_first(outputs: list[tuple[System, Any]], folder: Any) -> list[tuple[System, Any]]:
    """Sort systems by their order in a folder's record; new ones are last."""
    recorded = started_fingerprint(folder).get("systems") or () if folder is not None else ()
    rank = {name: index for index, name in enumerate(recorded)}
    return sorted(outputs, key=lambda output: rank.get(output[0].name, len(rank)))


def _match_system(system: System, source: Source, audio: Any, role: Role) -> Source:
    """Match generated audio to the samples; name the system in errors."""
    try:
        return match_estimates(source, audio, by_audio=role == "target")
    except UserError as error:
        if not system.titled:
            raise
        raise UserError("of_system", system=system.name, cause=error.message, hint=error.hint) from error
