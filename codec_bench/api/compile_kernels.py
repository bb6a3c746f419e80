"""Compile every numba kernel of the installation (`codec-bench doctor --compile`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from codec_bench.api.finding import Finding
from codec_bench.messages import Diagnostic, of_error
from codec_bench.types import Audio

COMPILED_METRICS = ("stoi", "estoi", "f0_rmse", "visqol", "warpq", "dnsmos")
"""Metrics that together call every kernel of signals."""
_TEXTS = (["the ice cream van came"], ["the icecream man came"])


def compile_kernels(clip: Audio, report_progress: Callable[[str], None]) -> Finding:
    """Run each CPU kernel once on speech, so that its compiled code is on disk.

    Args:
        report_progress: called with the name of each group of kernels.
    """
    start, failed = perf_counter(), []
    for name, run in _calls(clip):
        report_progress(name)
        try:
            run()
        except Exception as error:  # a metric whose extra is not installed
            failed.append(Diagnostic("part_failed", name=name, cause=of_error(error)))
    seconds = perf_counter() - start
    if failed:
        return Finding("kernels are compiled", "note", Diagnostic("kernels_failed", seconds=seconds, failed=failed))
    return Finding("kernels are compiled", "ok", Diagnostic("kernels_compiled", seconds=seconds))


def _calls(clip: Audio) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each group of kernels with a call that compiles it."""
    quieter = Audio(clip.samples * np.float32(0.9), clip.sample_rate_hz)

    def measure(name: str) -> None:
        from codec_bench.api.load_metric import load_metric

        load_metric(name, device="cpu")(reference=[clip], estimate=[quieter])

    for metric in COMPILED_METRICS:
        yield metric, lambda metric=metric: measure(metric)  # type: ignore[misc]
    yield "error rates", _compare_texts
    yield "alignment", _align_frames


def _compare_texts() -> None:
    """Compile the kernels of error rates."""
    from codec_bench.kernels.edit_distance.cpu import align
    from codec_bench.kernels.edit_distance.words import number_words
    from codec_bench.text.error_rate import compound_error_rates

    items, offsets = np.arange(4, dtype=np.int32), np.array([0, 4], np.int64)
    align(items, offsets, items, offsets, 4, np.empty(0, np.uint8), 0)
    number_words(items, offsets, np.zeros(1, bool))
    compound_error_rates(reference=_TEXTS[0], estimate=_TEXTS[1])


def _align_frames() -> None:
    """Compile the kernels of dynamic time warping."""
    from codec_bench.kernels.dtw.cpu import fast_path, mean_costs_of_codes, mean_costs_of_vectors

    starts = np.array([0, 4], np.int64)
    vectors, codes = np.full((4, 4), 0.5), np.ones((4, 2), np.int64)
    fast_path(np.tile(vectors, (3, 1)), np.tile(vectors, (3, 1)))
    mean_costs_of_vectors(vectors, starts, vectors, starts)
    mean_costs_of_codes(codes, starts, codes, starts)
