"""Codecs of `configs/codec/*.yaml`: families, variants and operating points.

`opus.yaml` declares the family `opus`. A variant such as `opus-12k` is a name with fixed options. A point is a bitrate
in kbps: `opus@12`, which the adapter gets as `bitrate_bps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from codec_bench.config import config_names, read_config
from codec_bench.config.registry import Spec
from codec_bench.messages.errors import UserError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Licence(_Strict):
    """SPDX names; `weights` is null where there are no weights."""

    code: str
    weights: str | None


class Range(_Strict):
    """Every bitrate from `lowest` to `highest`, in kbps."""

    lowest: float
    highest: float


class CodecFamily(_Strict):
    """One file of `configs/codec`.

    Args:
        version: of this file layout.
        adapter: key of the class in `codec_bench.codecs.TABLE`.
        summary: one line for `codec-bench list codecs`.
        source: the library or package that codes, `this project` for own networks.
        options: arguments of the adapter, for every variant and point.
        variants: names, each with further arguments of the adapter.
        points: bitrates in kbps that may follow the family's name after an `@`.
    """

    version: Literal[1]
    adapter: str
    summary: str
    source: str = ""
    licence: Licence
    paper: str
    options: dict[str, Any] = {}
    variants: dict[str, dict[str, Any]] = {}
    points: Annotated[tuple[float, ...] | Range, Field(union_mode="left_to_right")] = ()

    def points_text(self) -> str:
        """The allowed bitrates in kbps as text: `6 to 510` or `1.5, 3, 6`; empty if none."""
        if isinstance(self.points, Range):
            return f"{self.points.lowest:g} to {self.points.highest:g}"
        return ", ".join(f"{point:g}" for point in self.points)

    def has_point(self, kbps: float) -> bool:
        """Whether the family runs at this bitrate."""
        if isinstance(self.points, Range):
            return self.points.lowest <= kbps <= self.points.highest
        return kbps in self.points


@dataclass(frozen=True, slots=True)
class CodecEntry:
    """A catalogue entry: its name, its family, and the arguments of the adapter class."""

    name: str
    family: CodecFamily
    options: dict[str, Any]
    family_name: str


@cache
def families() -> dict[str, CodecFamily]:
    """Read every family of `configs/codec`, by name.

    Raises:
        UserError: a file does not fit the layout, or two files declare the same variant.
    """
    out = {name: read_config("codec", name, CodecFamily) for name in config_names("codec")}
    owner: dict[str, str] = {}
    for name, family in out.items():
        for variant in family.variants:
            if variant in owner:
                raise UserError("codec_declared_twice", variant=variant, one=owner[variant], other=name)
            owner[variant] = name
    return out


def names() -> list[str]:
    """List all variants; of families without variants, `FAMILY@KBPS` of each point."""
    out: list[str] = []
    for name, family in families().items():
        out += family.variants
        if not family.variants and not isinstance(family.points, Range):
            out += [f"{name}@{point:g}" for point in family.points]
    return out


def find(text: str) -> CodecEntry | None:
    """Find the entry of a variant (`opus-12k`) or a family with a point (`opus@12`).

    Returns:
        The entry; None if no file declares the name.

    Raises:
        UserError: a family without a point or with one that it does not have, or a variant with a point.
    """
    spec = Spec.parse(text)
    for name, family in families().items():
        if spec.name in family.variants:
            if spec.point is not None or spec.argument is not None:
                raise UserError("codec_has_one_point", name=spec.text, codec=spec.name, hint=f"write {spec.name}")
            return CodecEntry(spec.text, family, {**family.options, **family.variants[spec.name]}, name)
    if spec.name not in families():
        return None
    family = families()[spec.name]
    points = family.points_text()
    hint = f"{spec.name}@KBPS with {points}" if points else ""
    if family.variants:
        hint = ", ".join(family.variants) + (f", or {hint}" if hint else "")
    if spec.argument is not None or spec.point is None or not points:
        raise UserError("not_one_point", name=spec.text, codec=spec.name, hint=hint)
    try:
        kbps = float(spec.point)
    except ValueError:
        raise UserError("point_not_a_bitrate", name=spec.text, point=spec.point, hint=hint) from None
    if not family.has_point(kbps):
        raise UserError("codec_point", codec=spec.name, point=spec.point, hint=f"it has {points} kbps")
    return CodecEntry(spec.text, family, {**family.options, "bitrate_bps": round(kbps * 1000)}, spec.name)
