"""Scores audio that exists already: the function behind `codec-bench score`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.data import broken_down, data_name, match_estimates, open_source
from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.plan import GENERATED
from codec_bench.engine.running import Running
from codec_bench.registry import names
from codec_bench.report.results import write_results
from codec_bench.store.record import Run


def score(
    *,
    generated: Any,
    data: Any,
    metrics: str | Sequence[str],
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    running: Running | None = None,
    **how: Any,
) -> Run:
    """Scores audio that exists already, such as that of speech synthesis, voice conversion or another program's codec.

    Args:
        generated: a folder or a manifest. A file belongs to the sample of `data` whose id is the file's stem.
        data: what the audio is compared with: transcripts, reference audio, speakers. A sample without a generated file
            fails, with that as the reason.
        metrics, out, seed, limit, options, by, running: as for `evaluate`. Pair metrics need reference audio in `data`.

    Returns:
        The finished run with one system, `generated`.

    Raises:
        UserError: as for `evaluate`.
    """
    source = open_source(data, limit=limit, seed=seed if limit is not None else None, require_audio=False)
    source = match_estimates(source, generated)
    request = {"command": "score", "data": data_name(data), "generated": str(generated), "seed": seed, "limit": limit}
    running = running or Running(**how)
    asked = Evaluation([GENERATED], names(metrics), source, request, dict(options or {}), broken_down(by, source))
    run = execute(asked, out, running)
    write_results(run, page=running.page)
    return run
