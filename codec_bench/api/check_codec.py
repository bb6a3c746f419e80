"""Checks one codec for mistakes, in a process of its own: what `codec-bench validate` says of a codec."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codec_bench.codecs import require_codec
from codec_bench.codecs.checks import finding
from codec_bench.data import open_source
from codec_bench.engine.device import resolve_devices
from codec_bench.profiling import isolate
from codec_bench.profiling.settings import Settings
from codec_bench.profiling.steps import CHECKED, NEEDED, STEPS, Request
from codec_bench.profiling.together import gather_findings

CLIPS = 5


def check_codec(
    *,
    codec: str,
    device: str = "cpu",
    options: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> list[dict[str, Any]]:
    """Checks a codec on embedded speech; a codec that ends its process, hangs or takes all memory is a finding too.

    Args:
        codec: a name, own code included. device: `auto`, `cpu` or `cuda:0`. options: further arguments of its class.
        settings: how long one call of the codec may take, how much memory, and how many threads.

    Returns:
        The findings, each with `check`, `state` (`ok`, `suspect`, `failed` or `not applicable`), `found` and `value`. A codec
        that cannot be loaded or breaks the contract has that finding alone.

    Raises:
        UserError: there is no such codec, operating point or file.
    """
    require_codec(codec)
    files = tuple((s.id, s.audio) for s in list(open_source("embedded"))[:CLIPS] if s.audio is not None)
    request = Request(
        codec, files, resolve_devices(device)[0], settings or Settings(), CHECKED, options=dict(options or {})
    )
    with tempfile.TemporaryDirectory() as folder:
        sections = isolate.measure(request, Path(folder) / "output.log", lambda step: None)
    for step in NEEDED:
        for name in STEPS[step]:
            if sections[name]["state"] == "failed":
                return [finding(step, "failed", sections[name]["reason"])]
    gather_findings(sections)
    faults = [s["reason"] for s in (sections["rate"], sections["findings"]) if s["state"] == "failed"]
    contract = finding("contract", "failed", faults[0]) if faults else finding("contract", "ok", _CONTRACT)
    return [contract, *sections["findings"]["findings"]]


_CONTRACT = "codes are in range; samples are finite, as many as were given, at their rate and with their channels"
