"""Scores audio that exists already: the function behind `codec-bench score`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codec_bench.api.progress import shown_to_caller
from codec_bench.data import Source, broken_down, data_name, match_estimates, open_source
from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.running import Progress, Running, chosen_running
from codec_bench.engine.systems import System, read_generated
from codec_bench.errors import UserError
from codec_bench.metrics import chosen_metrics
from codec_bench.report.results import write_results
from codec_bench.store.folders import mark_finished
from codec_bench.store.record import Run


def score(
    *,
    generated: Any,
    data: Any,
    metrics: str | Sequence[str] | None = None,
    preset: str | None = None,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    progress: bool | Progress | None = None,
    running: Running | None = None,
    **how: Any,
) -> Run:
    """Scores audio that exists already, such as that of speech synthesis, voice conversion or another program's codec.

    Args:
        generated: a folder or a manifest. A file belongs to the sample of `data` whose id is the file's stem. Several
            systems are scored in one run as `{"name": folder, "other": folder}` or `name=FOLDER,other=FOLDER`.
        data: what the audio is compared with: transcripts, reference audio, speakers. A sample without a generated file
            fails for that system, with that as the reason.
        metrics, preset, out, seed, limit, options, by, progress, running: as for `evaluate`. Pair metrics need reference audio in
            `data`.

    Returns:
        The finished run with one row for each system. A system without a name of its own is called `generated`.

    Raises:
        UserError: as for `evaluate`; or two systems have one name or are one folder.
    """
    running = chosen_running(running, how)
    chosen = chosen_metrics(metrics, preset)
    given = read_generated(generated)
    source = open_source(data, limit=limit, seed=seed if limit is not None else None, require_audio=False)
    if len(given) == 1:
        (system, audio) = given[0]
        source, systems = match_estimates(source, audio), [system]
        told: Any = {system.name: data_name(audio)} if system.titled else data_name(audio)
    else:
        systems = [replace(system, made=_matched(system, source, audio)) for system, audio in given]
        told = {system.name: data_name(audio) for system, audio in given}
    request = {"command": "score", "data": data_name(data), "generated": told, "seed": seed, "limit": limit}
    asked = Evaluation(systems, chosen, source, request, dict(options or {}), broken_down(by, source))
    with shown_to_caller(running, progress) as running:
        run = execute(asked, out, running)
        write_results(run, page=running.page)
        mark_finished(run.folder)
    return run


def _matched(system: System, source: Source, audio: Any) -> Source:
    """The samples with the audio of one of several systems; what is wrong with it is said with the system's name."""
    try:
        return match_estimates(source, audio)
    except UserError as error:
        raise UserError(f"'{system.name}': {error.message}", hint=error.hint) from error
