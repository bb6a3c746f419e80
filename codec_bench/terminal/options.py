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
    float, typer.Option("--time-limit", min=1.0, help="Time limit of one call of a codec, in seconds.")
]
MemoryGib = Annotated[
    float | None, typer.Option(min=0.1, help="Memory limit of a codec's process. Default: nine tenths of what is free.")
]
