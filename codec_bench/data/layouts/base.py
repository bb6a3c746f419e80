"""The class of a layout, and the result of reading one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from codec_bench.data.layouts.tree import Tree
from codec_bench.data.rows import Row

Role = Literal["prompt", "target", "none"]
"""Relation of a row's sound to generated speech: the recording of its voice, the same words, or none."""


@dataclass(frozen=True, slots=True, eq=False)
class LayoutResult:
    """The result of reading a layout.

    Args:
        used: the text files that were read, relative to the root.
        known: text files of the layout without texts.
        role: of the sounds; None if the layout does not say.
        lists_sounds: whether a list names the sounds; other sounds are then no rows.
    """

    rows: Iterable[Row]
    used: Sequence[str] = ()
    known: Sequence[str] = ()
    role: Role | None = None
    lists_sounds: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class TextLayout:
    """A common form of speech with its texts.

    Args:
        form: its files, in one line of the documentation.
        pattern: the end of a path of one of its text files, relative to the folder.
        claims: whether such a file is one of this layout.
        read: the rows, from the files of this layout.
        several: whether all such files are read; else the least deep one.
        preferred: which one counts if a folder holds several.
    """

    name: str
    form: str
    pattern: re.Pattern[str]
    claims: Callable[[Tree, str], bool]
    read: Callable[[Tree, Sequence[str]], LayoutResult]
    several: bool = False
    preferred: str = ""


@dataclass(slots=True, eq=False)
class Report:
    """Report on a folder: the recognised layout and the ignored files.

    Args:
        unread: text files next to the sound that were not read.
        unlisted: sound files without a text or outside the list.
        absent: names of texts without a sound.
    """

    layout: str
    files: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    role: Role | None = None
