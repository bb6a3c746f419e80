"""codec-bench: neural audio codecs and speech quality, measured right and fast.

The public API, loaded on first use so that `import codec_bench` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.codecs.base import Codec, CodecInfo
    from codec_bench.metrics.base import Metric
    from codec_bench.types import Audio, Codes, CodeStream, Score

__version__ = "0.1.0"

_PUBLIC = {
    "Audio": "codec_bench.types",
    "Codes": "codec_bench.types",
    "CodeStream": "codec_bench.types",
    "Score": "codec_bench.types",
    "Codec": "codec_bench.codecs.base",
    "CodecInfo": "codec_bench.codecs.base",
    "Metric": "codec_bench.metrics.base",
}
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'codec_bench' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
