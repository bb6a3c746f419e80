"""The page at `/` of the service: load, throughput, latency, the latest errors. It loads nothing and has no script."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from codec_bench.report.page.markup import SHARED, Layout, render

if TYPE_CHECKING:
    from codec_bench.apps.serving.server import Service

_LAYOUT = Layout((__package__, "serving.html.j2"), ((SHARED, "style.css"), (SHARED, "tables.css")), ())


def service_page(service: Service) -> str:
    """The page as text."""
    scorer, up_s = service.scorer, monotonic() - service.started
    seconds = np.array(service.seconds or [0.0])
    facts = {
        "Up": f"{up_s:,.0f} s",
        "Items": f"{scorer.finished:,} ({scorer.failed:,} failed)",
        "Waiting": f"{scorer.waiting:,}",
        "Audio": f"{scorer.audio_s:,.0f} s",
        "Items a second": f"{scorer.finished / up_s if up_s else 0:.2f}",
        "Latency": f"median {np.median(seconds):.3f} s, 95 % {np.quantile(seconds, 0.95):.3f} s",
    }
    arrows = {True: "higher is better", False: "lower is better", None: ""}
    metrics = [(name, p, arrows[scorer.higher_is_better[name]]) for name, p in scorer.protocols.items()]
    variables = {
        "title": "Warm scorer", "facts": facts, "metrics": metrics,
        "requests": sorted(service.requests.items()), "errors": list(service.errors)[::-1],
    }  # fmt: skip
    return render(_LAYOUT, variables, {}, [])
