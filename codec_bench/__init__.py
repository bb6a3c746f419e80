"""codec-bench: neural audio codecs and speech quality, measured right and fast.

The public API, loaded on first use so that `import codec_bench` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.api import evaluate, score
    from codec_bench.benchmarking import run_benchmark
    from codec_bench.codecs import load_codec
    from codec_bench.codecs.base import Codec, CodecInfo
    from codec_bench.comparison import compare
    from codec_bench.exactness import verify_batching
    from codec_bench.leaderboard import leaderboard
    from codec_bench.metrics.base import Inputs, Metric
    from codec_bench.profiling import profile
    from codec_bench.scoring import load_metric
    from codec_bench.store.record import open_run
    from codec_bench.text.error_rate import error_rate
    from codec_bench.types import Audio, Codes, CodeStream, Sample, Score

__version__ = "0.1.0"
__all__ = [
    "Audio",
    "CodeStream",
    "Codec",
    "CodecInfo",
    "Codes",
    "Inputs",
    "Metric",
    "Sample",
    "Score",
    "compare",
    "error_rate",
    "evaluate",
    "leaderboard",
    "load_codec",
    "load_metric",
    "open_run",
    "profile",
    "run_benchmark",
    "score",
    "verify_batching",
]

_HOMES = {
    "codec_bench.api": ("evaluate", "score"),
    "codec_bench.benchmarking": ("run_benchmark",),
    "codec_bench.codecs": ("load_codec",),
    "codec_bench.codecs.base": ("Codec", "CodecInfo"),
    "codec_bench.comparison": ("compare",),
    "codec_bench.exactness": ("verify_batching",),
    "codec_bench.leaderboard": ("leaderboard",),
    "codec_bench.metrics.base": ("Inputs", "Metric"),
    "codec_bench.profiling": ("profile",),
    "codec_bench.scoring": ("load_metric",),
    "codec_bench.store.record": ("open_run",),
    "codec_bench.text.error_rate": ("error_rate",),
    "codec_bench.types": ("Audio", "Codes", "CodeStream", "Sample", "Score"),
}
_HOME = {name: module for module, held in _HOMES.items() for name in held}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'codec_bench' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
