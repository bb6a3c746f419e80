"""Checks for codecs that are wrong: one list, for `validate` and `profile` in full, and for `eval` on a few items.

Which file to open
    `signals.py` compares what comes out with what went in: polarity, delay, level, clipping, silence. `behaviour.py`
    tries what must not matter: the batch, the order, a second run, very short input, silence. `labels.py` compares what
    a codec declares with the codes that it sends. `sent.py` decodes in another process. `quick.py` is the cheap form.

A check gives a finding: a dictionary with `check` (its name), `state`, `found` (one sentence with the numbers), and
`value` if there is one number. The state is `ok`, `suspect` (somebody should look at it; it may be intended), `failed` (a
fault), or `not applicable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

State = Literal["ok", "suspect", "failed", "not applicable"]


def finding(check: str, state: State, found: str, value: float | None = None) -> dict[str, Any]:
    """One finding; its keys are explained at the top of this module."""
    return {"check": check, "state": state, "found": found, "value": value}


def wrong(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The findings that somebody must look at: failed ones first, then suspect ones."""
    return [f for state in ("failed", "suspect") for f in findings if f["state"] == state]
