"""Check one codec in its own process (`codec-bench validate`)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codec_bench.codecs import require_codec
from codec_bench.codecs.checks import finding, mask_training_checks
from codec_bench.codecs.checks.steps import NEEDED, CheckJob, gather_findings
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL
from codec_bench.config.limits import Limits
from codec_bench.data import open_source
from codec_bench.engine.codec_worker import measure
from codec_bench.engine.device import resolve_devices
from codec_bench.messages import Diagnostic

CLIPS = 5
_APART = 7  # clips of one voice follow one another


def check_codec(
    *,
    codec: str,
    device: str = "cpu",
    options: Mapping[str, Any] | None = None,
    settings: Limits | None = None,
) -> list[dict[str, Any]]:
    """Check a codec on embedded speech; crashes and hangs are findings too.

    Args:
        codec: a name, custom code included.
        device: `auto`, `cpu` or `cuda:0`.
        options: further arguments of its class.
        settings: time limit of one call, memory limit, and number of threads.

    Returns:
        The findings, each with `check`, `state` (`ok`, `suspect`, `failed` or `not applicable`), `found` (a
        `Diagnostic`) and `value`. A codec that cannot be loaded or breaks the contract has that finding alone.

    Raises:
        UserError: there is no such codec, operating point or file.
    """
    require_codec(codec)
    steps, limits = tuple(CheckJob.SECTIONS), settings or Limits()
    request = CheckJob(codec, select_clips(), resolve_devices(device)[0], limits, steps, dict(options or {}))
    with tempfile.TemporaryDirectory() as folder:
        sections = measure(request, Path(folder) / "output.log")
    for step in NEEDED:
        for name in CheckJob.SECTIONS[step]:
            if sections[name]["state"] == "failed":
                return [finding(step, "failed", sections[name]["reason"])]
    gather_findings(sections)
    section = sections["findings"]
    contract = finding("contract", "ok", Diagnostic("contract_kept"))
    if section["state"] == "failed":
        contract = finding("contract", "failed", section["reason"])
    findings = [contract, *section["findings"]]
    return mask_training_checks(findings) if sections["info"].get("weights") in (RANDOM, RANDOM_FULL) else findings


def select_clips() -> tuple[tuple[str, str], ...]:
    """The id and path of each clip for the checks."""
    return tuple((s.id, s.audio) for s in list(open_source("embedded"))[::_APART][:CLIPS] if s.audio is not None)
