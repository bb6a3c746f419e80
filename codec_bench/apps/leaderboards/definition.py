"""The validated definition of a leaderboard from its YAML file."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codec_bench.apps.leaderboards.board import Column, Variant, View


class BoardDefinition(BaseModel):
    """A leaderboard.

    Args:
        version: of this file format.
        source: of its published rows. published: their file next to it.
        like: another board whose columns and rows it has.
        means: the groups whose means are shown.
        views: columns of a further mean, by its name.
        averages: whether there is an average. one: its unit.
        notes: by row. variants: further ways to run its benchmarks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    summary: str
    source: str = ""
    like: str | None = None
    published: str | None = None
    columns: tuple[Column, ...] = Field(min_length=1)
    means: tuple[str, ...] = ()
    views: dict[str, tuple[str, ...]] = {}
    averages: bool = True
    one: Literal["group", "sample"] = "group"
    notes: dict[str, str] = {}
    variants: tuple[Variant, ...] = ()

    @model_validator(mode="after")
    def _names_fit(self) -> BoardDefinition:
        names = [column.name for column in self.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two columns have the name {', '.join(twice)}")
        groups = {column.group or column.name for column in self.columns}
        for group in self.means:
            if group not in groups:
                raise ValueError(f"means names the group '{group}', which no column is in")
        of = {column.name: column for column in self.columns}
        for name, members in self.views.items():
            unknown = [member for member in members if member not in of]
            if unknown or not members:
                raise ValueError(f"the view '{name}' names no column {', '.join(unknown)}".rstrip())
            if len({(of[member].unit, of[member].counts) for member in members}) > 1:
                raise ValueError(f"the view '{name}' takes the mean of columns in different units")
        return self

    @property
    def board_variants(self) -> list[Variant]:
        """The variants; the first one has no name."""
        return [Variant(""), *self.variants]

    @property
    def board_views(self) -> tuple[View, ...]:
        """The further means."""
        return tuple(View(name, members) for name, members in self.views.items())
