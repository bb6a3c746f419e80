"""The parameters that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_bench.config.request import EvalRequest
from codec_bench.terminal.request import option_parameter

Out = Annotated[Path | None, option_parameter(EvalRequest, "out")]
Limit = Annotated[int | None, option_parameter(EvalRequest, "limit")]
Seed = Annotated[int, option_parameter(EvalRequest, "seed")]
Device = Annotated[str, option_parameter(EvalRequest, "device")]
Workers = Annotated[int | None, option_parameter(EvalRequest, "workers")]
Cache = Annotated[bool, option_parameter(EvalRequest, "cache")]
Set = Annotated[list[str] | None, option_parameter(EvalRequest, "set")]
By = Annotated[list[str] | None, option_parameter(EvalRequest, "by")]
Timings = Annotated[bool, option_parameter(EvalRequest, "timings")]
Json = Annotated[bool, option_parameter(EvalRequest, "json")]
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
