"""How long services serve their models: recorded dates with source and check day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

WARNS = timedelta(days=60)


class Served(BaseModel):
    """Where and how long a service serves a model.

    Args:
        at: the host of the service. At any other address the model may be served forever.
        since: the first day; None if unknown.
        until: the day of the shutdown; None if none is announced.
        successor: the config of the model that its service recommends instead, or None.
        routed_to: the service's name of the model that silently answers after `until`, or None.
        source: the announcement.
        looked_up: the day on which it was read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    at: str = Field(min_length=1)
    since: date | None = Field(None, alias="from")
    until: date | None = None
    successor: str | None = None
    routed_to: str | None = None
    source: str = Field(min_length=1)
    looked_up: date

    def is_gone(self, today: date) -> bool:
        """Whether the service has shut the model down."""
        return self.until is not None and today >= self.until

    def is_ending_soon(self, today: date) -> bool:
        """Whether the service shuts the model down within 60 days."""
        return self.until is not None and today < self.until <= today + WARNS

    def words(self, today: date) -> str:
        """Describe when the service shuts the model down; empty if no date is known."""
        if self.until is None:
            return ""
        status = f"shut down on {self.until}" if self.is_gone(today) else f"shuts down on {self.until}"
        instead = f"; its successor is {self.successor}" if self.successor else ""
        routed = f"; {self.routed_to} answers in its place" if self.routed_to and self.is_gone(today) else ""
        return status + routed + instead

    def facts(self) -> dict[str, Any]:
        """Return the known facts as JSON values."""
        known: Mapping[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dict(known)


class LookedUp(BaseModel):
    """Where and on which day the facts of a config were read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(min_length=1)
    looked_up: date
