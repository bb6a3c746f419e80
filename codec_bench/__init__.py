"""codec-bench: neural audio codecs and speech quality, measured right and fast.

This module is the public API. Each name is imported on first use, so that `import codec_bench` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.api.agreement import agreement
    from codec_bench.api.build import build
    from codec_bench.api.compare import compare
    from codec_bench.api.evaluate import evaluate
    from codec_bench.api.leaderboard import leaderboard
    from codec_bench.api.listen import export_listening, import_listening
    from codec_bench.api.load_metric import load_metric
    from codec_bench.api.merge import merge
    from codec_bench.api.metric_agreement import metric_agreement
    from codec_bench.api.profile import profile
    from codec_bench.api.read_arguments import read_arguments
    from codec_bench.api.run_benchmark import run_benchmark
    from codec_bench.api.sample_size import sample_size
    from codec_bench.api.score import score
    from codec_bench.api.site import site
    from codec_bench.api.verify_batching import verify_batching
    from codec_bench.codecs import load_codec
    from codec_bench.codecs.base import Codec, CodecInfo
    from codec_bench.metrics.base import Inputs, Metric
    from codec_bench.report.figures import write_figures
    from codec_bench.stats.intervals import interval
    from codec_bench.stats.paired import paired_test
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
    "agreement",
    "build",
    "compare",
    "error_rate",
    "evaluate",
    "export_listening",
    "import_listening",
    "interval",
    "leaderboard",
    "load_codec",
    "load_metric",
    "merge",
    "metric_agreement",
    "open_run",
    "paired_test",
    "profile",
    "read_arguments",
    "run_benchmark",
    "sample_size",
    "score",
    "site",
    "verify_batching",
    "write_figures",
]

_HOMES = {
    "codec_bench.api.evaluate": ("evaluate",),
    "codec_bench.api.score": ("score",),
    "codec_bench.api.site": ("site",),
    "codec_bench.api.run_benchmark": ("run_benchmark",),
    "codec_bench.api.sample_size": ("sample_size",),
    "codec_bench.codecs": ("load_codec",),
    "codec_bench.codecs.base": ("Codec", "CodecInfo"),
    "codec_bench.api.agreement": ("agreement",),
    "codec_bench.api.build": ("build",),
    "codec_bench.api.compare": ("compare",),
    "codec_bench.api.verify_batching": ("verify_batching",),
    "codec_bench.api.leaderboard": ("leaderboard",),
    "codec_bench.api.listen": ("export_listening", "import_listening"),
    "codec_bench.metrics.base": ("Inputs", "Metric"),
    "codec_bench.api.profile": ("profile",),
    "codec_bench.api.read_arguments": ("read_arguments",),
    "codec_bench.api.load_metric": ("load_metric",),
    "codec_bench.api.merge": ("merge",),
    "codec_bench.api.metric_agreement": ("metric_agreement",),
    "codec_bench.stats.intervals": ("interval",),
    "codec_bench.stats.paired": ("paired_test",),
    "codec_bench.report.figures": ("write_figures",),
    "codec_bench.store.record": ("open_run",),
    "codec_bench.text.error_rate": ("error_rate",),
    # Not public names: `Audio.read`, `Run.summary` and `Run._repr_html_` ask for them here, because their modules stand
    # below the rooms that these are in.
    "codec_bench.audio.read": ("read_audio",),
    "codec_bench.stats.summary": ("summarise",),
    "codec_bench.report.paper": ("summary_html",),
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
