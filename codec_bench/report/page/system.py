"""The systems and the columns of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(slots=True)
class System:
    """A system of a run: one row of the page's tables."""

    run: int
    name: str
    label: str
    facts: Mapping[str, Any]


class Column(NamedTuple):
    """What the numbers of one column have in common: the metric, its protocol, and the data if the runs have several."""

    metric: str
    protocol: str
    data: str
