"""codec-bench: neural audio codecs and speech quality, measured right and fast.

This module is the public API. Each name is imported on first use, so that `import codec_bench` is quick.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.api.compare import compare
    from codec_bench.api.doctor import doctor
    from codec_bench.api.evaluate import evaluate
    from codec_bench.api.export import export
    from codec_bench.api.list_names import list_names
    from codec_bench.api.load_metric import load_metric
    from codec_bench.api.merge import merge
    from codec_bench.api.read_arguments import read_arguments
    from codec_bench.api.report import report
    from codec_bench.api.run_benchmark import run_benchmark
    from codec_bench.api.sample_size import sample_size
    from codec_bench.api.score import score
    from codec_bench.api.show import show
    from codec_bench.api.validate import validate
    from codec_bench.api.verify_batching import verify_batching
    from codec_bench.apps.agreement.api import agreement
    from codec_bench.apps.agreement.metrics_api import metric_agreement
    from codec_bench.apps.agreement.stability import metric_stability
    from codec_bench.apps.building.api import build
    from codec_bench.apps.conversation.api import converse
    from codec_bench.apps.gating.api import gate_calibrate, gate_check, gate_freeze
    from codec_bench.apps.judging.api import judge_check
    from codec_bench.apps.judging.compare import judge_compare
    from codec_bench.apps.judging.strengths import judge_strengths
    from codec_bench.apps.leaderboards.api import leaderboard
    from codec_bench.apps.listening.api import export_listening, import_listening
    from codec_bench.apps.profiling.api import profile
    from codec_bench.apps.serving.scorer import Scorer
    from codec_bench.apps.site.api import site
    from codec_bench.codecs import load_codec
    from codec_bench.codecs.base import Codec, CodecInfo, CodecStream, LatentCodec
    from codec_bench.metrics.base import Inputs, Metric
    from codec_bench.models.base import Model, ModelInfo
    from codec_bench.report.figures import write_figures
    from codec_bench.report.open_run import open_run
    from codec_bench.stats.intervals import interval
    from codec_bench.stats.paired import paired_test
    from codec_bench.text.error_rate import error_rate
    from codec_bench.types import Audio, Codes, CodeStream, Latents, Message, Request, Response, Sample, Score

__version__ = "0.1.0"
__all__ = [
    "Audio",
    "CodeStream",
    "Codec",
    "CodecInfo",
    "CodecStream",
    "Codes",
    "Inputs",
    "LatentCodec",
    "Latents",
    "Message",
    "Metric",
    "Model",
    "ModelInfo",
    "Request",
    "Response",
    "Sample",
    "Score",
    "Scorer",
    "agreement",
    "build",
    "compare",
    "converse",
    "doctor",
    "error_rate",
    "evaluate",
    "export",
    "export_listening",
    "gate_calibrate",
    "gate_check",
    "gate_freeze",
    "import_listening",
    "interval",
    "judge_check",
    "judge_compare",
    "judge_strengths",
    "leaderboard",
    "list_names",
    "load_codec",
    "load_metric",
    "merge",
    "metric_agreement",
    "metric_stability",
    "open_run",
    "paired_test",
    "profile",
    "read_arguments",
    "report",
    "run_benchmark",
    "sample_size",
    "score",
    "show",
    "site",
    "validate",
    "verify_batching",
    "write_figures",
]

_HOMES = {
    "codec_bench.codecs": ("load_codec",),
    "codec_bench.codecs.base": ("Codec", "CodecInfo", "CodecStream", "LatentCodec"),
    "codec_bench.metrics.base": ("Inputs", "Metric"),
    "codec_bench.models.base": ("Model", "ModelInfo"),
    "codec_bench.stats.intervals": ("interval",),
    "codec_bench.stats.paired": ("paired_test",),
    "codec_bench.report.figures": ("write_figures",),
    "codec_bench.report.open_run": ("open_run",),
    "codec_bench.text.error_rate": ("error_rate",),
    "codec_bench.types": tuple("Audio Codes CodeStream Latents Message Request Response Sample Score".split()),
}
_HOME = {name: module for module, held in _HOMES.items() for name in held}
_HOME |= {
    name: f"codec_bench.api.{name}"
    for name in "validate show report list_names export doctor evaluate score run_benchmark sample_size compare "
    "verify_batching read_arguments load_metric merge".split()
}


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None and name in __all__:
        from codec_bench.config.registry import added

        module = added("VERBS").get(name)
    if module is None:
        raise AttributeError(f"module 'codec_bench' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


class _Face(ModuleType):
    """The package; importing the room `report` does not replace the verb `report`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face


def __dir__() -> list[str]:
    return sorted(__all__)
