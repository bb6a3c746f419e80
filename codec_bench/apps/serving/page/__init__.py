"""The static page at `/`: load, throughput, latency, latest errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from time import monotonic
from typing import Any

import numpy as np

from codec_bench.report.numbers import duration
from codec_bench.report.page.markup import SHARED, PageFiles, render

_LAYOUT = PageFiles((__package__, "serving.html.j2"), ((SHARED, "style.css"), (SHARED, "tables.css")), ())


RECENT_S = 60.0
LATENCIES = 10_000
"""Number of latest items behind the page."""
ARROWS = {True: " ↑", False: " ↓", None: ""}


def service_page(
    scorer: Any,
    started: float,
    requests: Mapping[str, int],
    latencies: Sequence[tuple[float, float]],
    errors: Sequence[tuple[float, str, str]],
) -> str:
    """Render the service's status page as HTML.

    Args:
        started: time of the start, by the monotonic clock.
        requests: counts by HTTP status.
        latencies: of the latest items, as the time of the answer and seconds.
        errors: the latest, as time, code and message.
    """
    now = monotonic()
    recent = [latency_s for at, latency_s in latencies if at > now - RECENT_S]
    seconds = np.array(recent or [np.nan])
    since = max(started, now - RECENT_S, latencies[0][0] if len(recent) == LATENCIES else 0.0)
    facts = {
        "Up": duration(now - started),
        "Waiting": f"{scorer.waiting:,} of {scorer.queue:,}",
        "Items a second": f"{len(recent) / max(now - since, 1.0):.2f}",
        "Median latency": f"{np.median(seconds):.3f} s" if recent else "–",
        "95th percentile": f"{np.quantile(seconds, 0.95):.3f} s" if recent else "–",
        "Items": f"{scorer.finished:,} ({scorer.failed:,} failed)",
        "Audio": duration(scorer.audio_s),
        "Workers replaced": f"{scorer.replaced:,}",
    }
    variables = {
        "title": "Warm scorer", "facts": facts,
        "metrics": [(name + ARROWS[scorer.higher_is_better[name]], p) for name, p in scorer.protocols.items()],
        "requests": [(status, _phrase(int(status)), count) for status, count in sorted(requests.items())],
        "errors": [(duration(now - at), code, message) for at, code, message in errors[::-1]],
    }  # fmt: skip
    return render(_LAYOUT, variables, {}, [])


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "the client went away"
