"""Profiles of codecs: what is measured of one codec, and what only several of them show together.

Which file to open
    `steps.py`       the measurements of one codec in their order. Each codec has a worker of its own (`engine/own_worker.py`).
    `settings.py`    how thoroughly is measured; `codecs/checks/material.py` says on which audio.
    `together.py`    one profile of several codecs; `curves.py` has their curves and delta rates.
    `quality.py`     the run of the engine that gives the metrics.
    `rate.py`        bitrates and the use of codebooks (`codebook_use.py`).
    `speed.py`, `complexity.py`, `latency.py`, `streaming.py`, `stability.py`   one measurement each.
    `content.py`     what codes say of phones: how much they tell (`phones.py`, `phone_information.py`), and ABX error rates (`abx.py`,
                     `abx_error.py`).
    `rows.py`        the rows that terminal and page share; `table.py` prints them, and `page/` shows them.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "profile": Command(
        "Measure",
        "Profile codecs: bitrate, codebooks, speed, size, latency, stability, quality curves, and checks for common mistakes.",
        "codec_bench.apps.profiling.command:profile",
        common=True,
    ),
}
