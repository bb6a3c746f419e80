"""P.1401 figures as tables, notes, plots and CSV."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from codec_bench.apps.agreement.p1401 import Against, Fit, Mapped, Standard, shown_mapping
from codec_bench.apps.agreement.words import PLACES, Rows, coefficient_text
from codec_bench.report.numbers import number, plain
from codec_bench.store.export import write_csv

MAPPINGS = {"none": "none", "first": "line", "third": "cubic"}
_ENDS = ("", "_low", "_high")
_WIDTH, _HEIGHT, _LEFT, _BELOW = 340, 260, 34, 26


def fit_rows(standard: Standard) -> Rows:
    """Build one row per metric, level and mapping with figures."""
    heads = ["metric", "over", "n", "left out", "mapping", "RMSE", "RMSE*", "outlier ratio", "Pearson", "Spearman"]
    rows = [
        [
            plain(fit.metric), fit.level, f"{fit.n:,}", f"{fit.excluded:,}", MAPPINGS[one.mapping],
            coefficient_text(one.rmse),
            number(one.rmse_star, PLACES), coefficient_text(one.outlier_ratio), coefficient_text(one.pearson),
            coefficient_text(fit.spearman),
        ]
        for fit in standard.fits
        for one in fit.mapped
        if one.note is None
    ]  # fmt: skip
    return heads, rows


def against_rows(standard: Standard) -> Rows:
    """Build one row per pair and level, after the highest common mapping."""
    last = {(one.first, one.second, one.level): one for one in standard.compared}
    heads = ["metrics", "over", "n", "mapping", "RMSE", "RMSE*", "outlier ratio", "Pearson", "Pearson, same data"]
    rows = [
        [
            f"{plain(one.first)} and {plain(one.second)}", one.level, f"{one.n:,}", MAPPINGS[one.mapping],
            *(_p(p) for p in (one.p_rmse, one.p_rmse_star, one.p_outliers, one.p_pearson, one.p_dependent)),
        ]
        for one in last.values()
    ]  # fmt: skip
    return heads, rows


def standard_notes(standard: Standard) -> list[str]:
    """Explain missing figures, one sentence each."""
    notes: dict[str, list[str]] = {}
    for fit in standard.fits:
        for one in fit.mapped:
            if one.note:
                notes.setdefault(f"{MAPPINGS[one.mapping]} over {fit.level}: {one.note}", []).append(plain(fit.metric))
    turned = dict.fromkeys(plain(fit.metric) for fit in standard.fits if fit.turned)
    signs = [f"less is better, so the sign is turned before the mapping: {', '.join(turned)}"] if turned else []
    return [
        *(f"no figure for {', '.join(names)}; mapping {why}" for why, names in notes.items()),
        *signs,
        *standard.notes,
    ]


def _p(p: float | None) -> str:
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def standard_csv(standard: Standard) -> str:
    """Write one table of metrics and pairs; `second` is empty for a metric."""
    out = io.StringIO()
    tests = ("f_rmse", "p_rmse", "f_rmse_star", "p_rmse_star", "z_pearson", "p_pearson", "p_dependent", "p_outliers")
    figures = [f"{name}{end}" for name in ("rmse", "outlier_ratio", "pearson", "spearman") for end in _ENDS]
    heads = [
        "metric",
        "second",
        "level",
        "mapping",
        "n",
        "left_out",
        "rmse_star",
        *figures,
        "coefficients",
        "note",
        *tests,
    ]
    rows: list[list[Any]] = [_fit_line(fit, one) + [None] * len(tests) for fit in standard.fits for one in fit.mapped]
    rows += [_against_line(one, len(figures) + 4, tests) for one in standard.compared]
    write_csv(out, heads, rows)
    return out.getvalue()


def _fit_line(fit: Fit, one: Mapped) -> list[Any]:
    held = (one.rmse, one.outlier_ratio, one.pearson, fit.spearman)
    ends = [value for figure in held for value in (figure.value, figure.low, figure.high)]
    coefficients = " ".join(f"{value:.9g}" for value in one.coefficients)
    return [fit.metric, "", fit.level, one.mapping, fit.n, fit.excluded, one.rmse_star, *ends, coefficients, one.note]


def _against_line(one: Against, empty: int, tests: tuple[str, ...]) -> list[Any]:
    between: list[Any] = [None] * empty
    return [one.first, one.second, one.level, one.mapping, one.n, *between, *(getattr(one, name) for name in tests)]


def plots(standard: Standard) -> list[dict[str, Any]]:
    """Describe the plots of each metric and level, in units of the drawing."""
    return [_plot(fit, one) for fit in standard.fits if (one := shown_mapping(fit)).note is None]


def _plot(fit: Fit, one: Mapped) -> dict[str, Any]:
    points = fit.points
    left, right = float(points.value.min()), float(points.value.max())
    bottom = float((points.mos - points.ci).min())
    top = float((points.mos + points.ci).max())
    x = lambda value: _LEFT + 8 + (value - left) / (right - left) * (_WIDTH - _LEFT - 16)  # noqa: E731
    y = lambda mos: (_HEIGHT - _BELOW) * (1 - 0.03 - 0.94 * (mos - bottom) / max(top - bottom, 1e-9))  # noqa: E731
    over = np.linspace(left, right, 61)
    curve = np.polynomial.polynomial.polyval(over, one.coefficients)
    shown = -1.0 if fit.turned else 1.0
    return {
        "metric": fit.metric, "level": fit.level, "n": fit.n, "mapping": MAPPINGS[one.mapping], "turned": fit.turned,
        "figures": [("RMSE", coefficient_text(one.rmse)), ("RMSE*", number(one.rmse_star, PLACES)),
            ("outlier ratio", coefficient_text(one.outlier_ratio)),
                    ("Pearson", coefficient_text(one.pearson))],
        "width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "floor": _HEIGHT - _BELOW,
        "curve": " ".join(
            f"{x(a):.1f},{y(b):.1f}" for a, b in zip(over.tolist(), np.clip(curve, bottom, top).tolist())
        ),
        "points": [
            {
                "x": f"{x(value):.1f}", "y": f"{y(mos):.1f}", "low": f"{y(mos - ci):.1f}", "high": f"{y(mos + ci):.1f}",
                "words": f"{name}: {fit.metric} {shown * value:.4g}, votes {mos:.2f} ± {ci:.2f}",
            }
            for name, value, mos,
            ci in zip(points.names, points.value.tolist(), points.mos.tolist(), points.ci.tolist())
        ],
        "x_ticks": [(f"{x(v):.1f}", f"{shown * v:.3g}") for v in (left, (left + right) / 2, right)],
        "y_ticks": [(f"{y(v):.1f}", f"{v:.3g}") for v in np.linspace(bottom, top, 4).tolist()],
    }  # fmt: skip
