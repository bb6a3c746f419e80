"""The heavy batched models, each computed once per signal and shared by every metric that needs it."""

from __future__ import annotations

import inspect
from typing import Any

from codec_bench.features.base import Feature, Result, Unavailable
from codec_bench.registry import Registry, Spec, call_with_known

TABLE = {
    "dnsmos": "codec_bench.features.dnsmos:Dnsmos",
    "ge2e": "codec_bench.features.ge2e:Ge2e",
    "pocketsphinx": "codec_bench.features.pocketsphinx:Pocketsphinx",
}
REGISTRY = Registry("feature", "FEATURES", TABLE)


def load_feature(text: str, *, device: str = "cpu", weights: str | None = None) -> Feature:
    """Builds a feature from its name, such as `ge2e`, `dnsmos[all-windows]` or `utmos@bfloat16`.

    A class that stands in the table under several names is told which by its argument `model`.

    Raises:
        UnknownName: no such feature. MissingExtra: its package is not installed.
    """
    spec = Spec.parse(text)
    options: dict[str, Any] = {"device": device, "weights": weights}
    if spec.argument is not None:
        options["variant"] = spec.argument
    if spec.point is not None:
        options["point"] = spec.point
    feature = REGISTRY.resolve(spec.name)
    if "model" in inspect.signature(feature).parameters:
        options["model"] = spec.name
    return call_with_known(feature, options)


__all__ = ["REGISTRY", "Feature", "Result", "Unavailable", "load_feature"]
