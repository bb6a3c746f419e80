"""Scores audio that exists already: the function behind `codec-bench score`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from codec_bench.api.executors import carried_out, shown_to_caller
from codec_bench.api.metric_groups import metrics_for
from codec_bench.api.recorded_arguments import recorded_arguments
from codec_bench.config.option import documented
from codec_bench.config.request import ScoreRequest
from codec_bench.data import Source, broken_down, data_name, match_estimates, open_source, sameness, with_trials
from codec_bench.engine.evaluation import Evaluation
from codec_bench.engine.extend import in_begun_order
from codec_bench.engine.running import Progress, Running, chosen_running
from codec_bench.engine.systems import System, read_generated
from codec_bench.errors import Note, UserError
from codec_bench.metrics import chosen_metrics
from codec_bench.report.open_run import Run


@documented(ScoreRequest)
def score(
    *,
    generated: Any,
    data: Any,
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
    allow_same: bool = False,
    **how: Any,
) -> Run:
    """Scores audio that exists already, such as that of speech synthesis, voice conversion or another program's codec.

    Args:
        progress, running: as for `evaluate`.

    Returns:
        The finished run with one row for each system. A system without a name of its own is called `generated`.

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
    arguments = recorded_arguments(ScoreRequest, locals(), chosen_running(running, how))
    running = chosen_running(running, how)
    what: dict[str, Any] = {
        "generated": generated, "data": data, "metrics": metrics, "preset": preset, "seed": seed, "limit": limit,
        "options": options, "trials": trials, "by": by, "allow_same": allow_same, "out": out,
        "arguments": arguments,
    }  # fmt: skip
    with shown_to_caller(running, progress) as running:
        begun = out if running.on_ray is None else None
        return carried_out(partial(prepared, **what, begun=begun), shard, out, running)


def prepared(
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
    allow_same: bool = False,
    out: str | os.PathLike[str] | None = None,
    begun: str | os.PathLike[str] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Reads the arguments of `score`, and opens the data and the generated audio.

    Args:
        begun: `out` if the run may grow. arguments: all of them, for the record.
    """
    named = chosen_metrics(metrics, preset)
    given = read_generated(generated)
    source = open_source(data, limit=limit, seed=seed if limit is not None else None, require_audio=False)
    if trials is not None:
        source = with_trials(source, Path(trials))
    source = in_begun_order(source, begun, limit=limit, seed=seed)
    if len(given) == 1:
        (system, audio) = given[0]
        source, systems = match_estimates(source, audio), [system]
        told: Any = {system.name: data_name(audio)} if system.titled else data_name(audio)
    else:
        systems = [replace(system, made=_matched(system, source, audio)) for system, audio in given]
        told = {system.name: data_name(audio) for system, audio in given}
    matched = [(system, system.made or source) for system in systems]
    for system, pairs in matched:
        _report(system, pairs, allow_same)
    taken = {system.asked: pairs.taken for system, pairs in matched if pairs.taken}
    chosen, groups = metrics_for(named, source, out, coded=False, options=options)
    request: dict[str, Any] = {
        "command": "score",
        "data": data_name(data),
        "generated": told,
        "seed": seed,
        "limit": limit,
        **groups,
    }
    if trials is not None:
        request["trials"] = str(trials)
    if allow_same:
        request["allow_same"] = True
    about = {
        **broken_down(by, source.samples, source.name),
        "arguments": dict(arguments or {}),
        **({"taken": taken} if taken else {}),
    }
    return Evaluation(systems, chosen, source, request, dict(options or {}), about)


def _report(system: System, matched: Source, allow_same: bool) -> None:
    """Says where the audio of a system was taken from, and refuses audio that is the reference's.

    Raises:
        UserError: the estimates are the references.
    """
    if matched.taken:
        warnings.warn(f"the generated audio of '{system.asked}' is {matched.taken}", Note, stacklevel=3)
    same = None if allow_same else sameness(matched.samples)
    if same is not None:
        raise UserError(
            f"'{system.asked}' is the reference audio: {same}",
            hint="name the folder of the generated audio; for a lossless system add --allow-same (allow_same=True)",
        )


def _matched(system: System, source: Source, audio: Any) -> Source:
    """The samples with the audio of one of several systems; what is wrong with it is said with the system's name."""
    try:
        return match_estimates(source, audio)
    except UserError as error:
        raise UserError(f"'{system.name}': {error.message}", hint=error.hint) from error
