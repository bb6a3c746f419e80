"""What a layout is, and what reading one gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from codec_bench.data.layouts.tree import Tree
from codec_bench.data.rows import Row

Role = Literal["prompt", "target", "none"]
"""What the sound of a row is to generated speech: the recording of its voice, the same words, or not there."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a layout gives.

    Args:
        rows: of the data set.
        used: the text files that were read, relative to the root.
        known: text files of the layout that hold no texts.
        role: what the sounds are; None where the layout does not say.
        lists_sounds: whether a list names the sounds; sounds that it does not name are then no rows.
    """

    rows: Iterable[Row]
    used: Sequence[str] = ()
    known: Sequence[str] = ()
    role: Role | None = None
    lists_sounds: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A form in which toolkits and publishers leave speech with its texts.

    Args:
        name: for people.
        form: its files, in one line of the documentation.
        pattern: what a path of one of its text files, relative to the folder, must end with.
        claims: whether such a file is one of this layout.
        read: the rows, from the files of this layout.
        several: whether all such files are read; else one, in the folder that is the least deep.
        preferred: which one is taken if a folder holds several.
    """

    name: str
    form: str
    pattern: re.Pattern[str]
    claims: Callable[[Tree, str], bool]
    read: Callable[[Tree, Sequence[str]], Reading]
    several: bool = False
    preferred: str = ""


@dataclass(slots=True, eq=False)
class Report:
    """What was recognised in a folder, and what was ignored.

    Args:
        layout: its name. files: the text files that were read.
        unread: text files next to the sound that were not read.
        unlisted: sound files that no list names, or that have no text. absent: names of texts without a sound.
        role: what the sounds are, where the layout says it.
    """

    layout: str
    files: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    role: Role | None = None
