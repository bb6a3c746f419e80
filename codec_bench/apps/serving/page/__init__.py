"""The page at `/` of the service: load, throughput, latency, the latest errors. It loads nothing and has no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.report.page.markup import SHARED, Layout, render

_LAYOUT = Layout((__package__, "serving.html.j2"), ((SHARED, "style.css"), (SHARED, "tables.css")), ())


def service_page(
    scorer: Any,
    up_s: float,
    requests: Mapping[str, int],
    latencies_s: Sequence[float],
    errors: Sequence[tuple[str, str]],
) -> str:
    """The page as text.

    Args:
        scorer: of the service. up_s: seconds since its start. requests: how many by status.
        latencies_s: of the latest items. errors: the latest, as code and message.
    """
    seconds = np.array(latencies_s or [0.0])
    facts = {
        "Up": f"{up_s:,.0f} s",
        "Items": f"{scorer.finished:,} ({scorer.failed:,} failed)",
        "Waiting": f"{scorer.waiting:,}",
        "Workers replaced": f"{scorer.replaced:,}",
        "Audio": f"{scorer.audio_s:,.0f} s",
        "Items a second": f"{scorer.finished / up_s if up_s else 0:.2f}",
        "Latency": f"median {np.median(seconds):.3f} s, 95 % {np.quantile(seconds, 0.95):.3f} s",
    }
    arrows = {True: "higher is better", False: "lower is better", None: ""}
    metrics = [(name, p, arrows[scorer.higher_is_better[name]]) for name, p in scorer.protocols.items()]
    variables = {
        "title": "Warm scorer", "facts": facts, "metrics": metrics,
        "requests": sorted(requests.items()), "errors": errors[::-1],
    }  # fmt: skip
    return render(_LAYOUT, variables, {}, [])
