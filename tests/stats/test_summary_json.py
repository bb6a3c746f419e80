"""Parts of a summary are written as JSON at any depth, and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from codec_bench.messages import Diagnostic
from codec_bench.stats.summary_json import SummaryPart


@dataclass(frozen=True, slots=True)
class Inner(SummaryPart):
    value: float
    note: Diagnostic | None = None


@dataclass(frozen=True, slots=True)
class Outer(SummaryPart):
    groups: Mapping[str, Mapping[str, Inner]]
    rows: Mapping[str, list[Inner]]


def test_parts_in_mappings_of_mappings_and_lists_are_read_back():
    noted = Inner(1.0, Diagnostic("all_equal"))
    outer = Outer({"level": {"a": noted, "b": Inner(0.5)}}, {"all": [Inner(0.25), noted]})
    held = json.loads(json.dumps(outer.as_dict()))
    assert held["groups"]["level"]["a"]["note_code"] == {"code": "all_equal"}
    assert held["rows"]["all"][0]["value"] == 0.25
    assert Outer.from_dict(held) == outer
