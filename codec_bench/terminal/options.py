"""The parameters that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_bench.config.request import EvalRequest
from codec_bench.terminal.request import typed

Out = Annotated[Path | None, typed(EvalRequest, "out")]
Limit = Annotated[int | None, typed(EvalRequest, "limit")]
Seed = Annotated[int, typed(EvalRequest, "seed")]
Device = Annotated[str, typed(EvalRequest, "device")]
Workers = Annotated[int | None, typed(EvalRequest, "workers")]
Cache = Annotated[bool, typed(EvalRequest, "cache")]
Set = Annotated[list[str] | None, typed(EvalRequest, "set")]
By = Annotated[list[str] | None, typed(EvalRequest, "by")]
Timings = Annotated[bool, typed(EvalRequest, "timings")]
Json = Annotated[bool, typed(EvalRequest, "json")]
CallLimit = Annotated[
    float,
    typer.Option(
        "--time-limit", min=1.0, help="Seconds that one call of a codec may take before it counts as hanging."
    ),
]
MemoryGib = Annotated[
    float | None,
    typer.Option(
        "--memory-gib",
        min=0.1,
        help="Memory that the process of a codec may take. Default: nine tenths of what is free.",
    ),
]
