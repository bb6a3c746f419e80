"""The plots of lines that a page has: one function for each measurement that people would rather look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.apps.profiling.robust_rows import kept_figures, loss_figures, rounded_figures
from codec_bench.apps.profiling.stability_rows import noise_figures

_MAKERS = (loss_figures, noise_figures, kept_figures, rounded_figures)


def figures(profile: Mapping[str, Any], labels: Sequence[str]) -> list[dict[str, Any]]:
    """All plots of a profile, each as `figures.js` draws it.

    Args:
        labels: what the codecs are called, in the order of the profile.
    """
    return [figure for make in _MAKERS for figure in make(profile, labels)]
