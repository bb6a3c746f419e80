"""Ratings by people in a CSV file, possibly edited by hand.

Columns: `id` (of the sample), `rater` and `score` are required; `system` names the rated system, `other` the second one
of a preference, `choice` the option (default: `score`), `subset` a group, `benchmark` the run. Of `codec-bench listen
import`'s columns, `kind`, `status` (`used` rows count) and `scale` (`overall` counts) are read.
Scores: `rating` a number; `preference` `A` or the name in `system`, `B` or that in `other`, or `tie`, also 1, 0 and
0.5; `option` a letter or text. Unusable rows become a `RatingProblem` with their lines. Equal repetitions count once;
contradictory ones do not count.
"""

from __future__ import annotations

import csv
import io
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from codec_bench.data.columns import number_of
from codec_bench.messages.errors import UserError
from codec_bench.store.export import without_apostrophe

Kind = Literal["rating", "preference", "option"]
KINDS: tuple[Kind, ...] = ("rating", "preference", "option")
REQUIRED = ("id", "rater", "score")
COLUMNS = (*REQUIRED, "system", "other", "choice", "subset", "benchmark", "kind", "status", "scale")
EXAMPLES = 5

EMPTY = "empty cell"
WIDTH = "more cells than columns"
NO_NUMBER = "not a number"
OUT_OF_RANGE = "out of range"
NO_PREFERENCE = "not a preference"
TWICE = "rated twice, differently"
ALIKE = "rated twice, alike"
NOT_USED = "does not count by its status"
OTHER_SCALE, OVERALL = "of another scale than overall", "overall"
UNKNOWN_ID = "unknown id"
UNKNOWN_SYSTEM = "unknown system"
UNCLEAR = "id of several runs"
_KIND_OF: Mapping[str, Kind] = {
    **dict.fromkeys(("rating", "mushra", "bs1116", "dcr", "ccr", "p835", "p804"), "rating"),
    **{"preference": "preference", "options": "option", "option": "option"},
}
_ENDS = {
    "mushra": (0.0, 100.0), "bs1116": (-4.0, 4.0), "ccr": (-3.0, 3.0),
    **dict.fromkeys(("dcr", "p835", "p804"), (1.0, 5.0)),
}  # fmt: skip
_TIED = ("tie", "tied", "equal", "same", "=", "0.5", "none")
_FIRST, _SECOND = ("a", "1", "1.0"), ("b", "0", "0.0")


@dataclass(frozen=True, slots=True)
class RatingProblem:
    """A kind of unusable ratings: count, examples with lines, and rater if only one."""

    what: str
    count: int
    examples: tuple[str, ...] = ()
    rater: str = ""


@dataclass(frozen=True, slots=True)
class RatingRow:
    """One rating.

    Args:
        line: of the file. Cells are empty if missing.
        value: a rating, or a preference as 1 (`system`), 0 (tie) or -1 (`other`); None for an option.
    """

    line: int
    id: str
    rater: str
    system: str = ""
    other: str = ""
    subset: str = ""
    benchmark: str = ""
    score: str = ""
    choice: str = ""
    value: float | None = None

    @property
    def chosen(self) -> str:
        """The option that was chosen."""
        return self.choice or self.score

    @property
    def key(self) -> tuple[str, ...]:
        """Rater and rated item, which identify repeats of a rating."""
        return self.rater, self.benchmark, self.id, *sorted((self.system, self.other))


@dataclass(slots=True)
class Problems:
    """Problems of ratings, counted while reading."""

    _examples: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, kind: str, example: str = "", *, rater: str = "", count: int = 1) -> None:
        """Count `count` ratings with a problem, which `kind` describes."""
        key = (kind, rater)
        self._counts[key] = self._counts.get(key, 0) + count
        shown = self._examples.setdefault(key, [])
        if example and len(shown) < EXAMPLES:
            shown.append(example)

    def all(self) -> tuple[RatingProblem, ...]:
        """Return every problem with its count, in order of appearance."""
        return tuple(
            RatingProblem(kind, count, tuple(self._examples[kind, rater]), rater)
            for (kind, rater), count in self._counts.items()
        )

    @property
    def summary(self) -> str:
        """Describe every kind of problem in one line, with an example."""
        return in_words(self.all())


def in_words(problems: Iterable[RatingProblem]) -> str:
    """Describe the problems of ratings in one line, with counts and examples."""
    counts: dict[str, int] = {}
    examples: dict[str, str] = {}
    for one in problems:
        counts[one.what] = counts.get(one.what, 0) + one.count
        if one.examples:
            examples.setdefault(one.what, one.examples[0])
    return "; ".join(f"{counts[kind]:,} {kind} (such as {example})" for kind, example in examples.items())


@dataclass(frozen=True, slots=True)
class Ratings:
    """The ratings of a file; `scale` is the lowest and the highest rating, or None."""

    rows: tuple[RatingRow, ...]
    kind: Kind
    problems: Problems
    raters: tuple[str, ...]
    scale: tuple[float, float] | None = None


def read_ratings(
    path: str | os.PathLike[str],
    *,
    kind: Kind | None = None,
    scale: tuple[float, float] | None = None,
    otherwise: tuple[float, float] | None = None,
) -> Ratings:
    """Read a file of ratings.

    Args:
        path: the CSV file, in UTF-8, with commas, semicolons or tabs.
        kind: None detects it: the column `kind`, or else preferences with a column `other`, ratings if any score is a
            number, options otherwise.
        scale: the lowest and the highest rating; None for that of the column `kind`, or else `otherwise`.
        otherwise: the default scale; None for any number.

    Raises:
        UserError: the file cannot be read, is no CSV, lacks a column, or holds no rating at all.
    """
    problems = Problems()
    declared, rows = _rows(Path(path), problems)
    if scale is None:
        scale = _ENDS.get(declared or "", otherwise)
    rating_kind: Kind = kind or (_KIND_OF[declared] if declared else _infer_kind(rows))
    spelt: dict[str, str] = {}
    rater_of = lambda row: spelt.setdefault(row.rater.casefold(), row.rater)  # noqa: E731
    valued = [
        replace(row, rater=rater_of(row), value=v) for row, v in _parse_values(rows, rating_kind, scale, problems)
    ]
    return Ratings(tuple(_drop_repeats(valued, problems)), rating_kind, problems, tuple(spelt.values()), scale)


def _rows(path: Path, problems: Problems) -> tuple[str | None, list[RatingRow]]:
    """Return the kind of rating that the file declares, or None, and the usable rows.

    Other rows become problems; raises UserError for several kinds, or no row.
    """
    rows: list[RatingRow] = []
    kinds: set[str] = set()
    for line, cells in _cells(path, problems):
        kinds.add(cells["kind"].lower())
        if cells["status"].lower() not in ("", "used"):
            problems.add(NOT_USED, f"line {line}: {cells['status']}")
            continue
        if cells["scale"] not in ("", OVERALL):
            problems.add(OTHER_SCALE, f"line {line}: {cells['scale']}")
            continue
        empty = [name for name in ("id", "rater") if not cells[name]]
        if not (cells["score"] or cells["choice"]):
            empty.append("score")
        if empty:
            problems.add(EMPTY, f"line {line}: {' and '.join(empty)}", rater=cells["rater"])
            continue
        held: dict[str, Any] = {name: cells[name] for name in COLUMNS if name not in ("kind", "status", "scale")}
        rows.append(RatingRow(line, **held))
    kinds.discard("")
    unknown = kinds - _KIND_OF.keys()
    named = {_KIND_OF[kind] for kind in kinds - unknown}
    if unknown or len(named) > 1:
        raise UserError(
            "ratings_of_kinds",
            path=path,
            kinds=", ".join(sorted(kinds)),
            known=", ".join(KINDS),
            hint="put each kind into a separate file",
        )
    if not rows and not problems.all():
        raise UserError(
            "file_without_ratings", path=path, hint="one line for each rating, below the names of the columns"
        )
    return next(iter(kinds if len(kinds) == 1 else named), None), rows


def _cells(path: Path, problems: Problems) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the number and the cells of each line; absent columns are empty texts.

    Raises:
        UserError: the file cannot be read or is no CSV.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError("ratings_not_utf8", path=path, cause=error.reason, hint="save it as CSV in UTF-8") from error
    except OSError as error:
        raise UserError("file_not_readable", path=path, cause=error.strerror) from error
    head = text.partition("\n")[0]
    separator = next((mark for mark in (",", ";", "\t") if mark in head), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        _check_head(path, names)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if any(cell.strip() for cell in cells[len(names) :]):
                problems.add(WIDTH, f"line {reader.line_num}: {len(cells)} cells for {len(names)} columns")
                continue
            by_name = dict(zip(names, (without_apostrophe(cell.strip()) for cell in cells)))
            score = by_name.get("score", "")
            if separator == ";" and "." not in score:  # where cells are parted by semicolons, 3,5 is three and a half
                by_name["score"] = score.replace(",", ".")
            yield reader.line_num, {name: by_name.get(name, "") for name in COLUMNS}
    except csv.Error as error:
        raise UserError(
            "ratings_line",
            path=path,
            line=reader.line_num,
            cause=error,
            hint="a quotation mark that is not closed, or a damaged file",
        ) from error


def _check_head(path: Path, names: Sequence[str]) -> None:
    """Raise UserError if a required column is missing, or a known one occurs twice."""
    missing = [name for name in REQUIRED if name not in names and not (name == "score" and "choice" in names)]
    if missing:
        got = ", ".join(filter(None, names)) or "nothing"
        raise UserError(
            "ratings_lack_columns",
            path=path,
            columns=", ".join(missing),
            header=got[:200],
            hint=f"the first line names the columns: {', '.join(REQUIRED)}, and where needed system, other, choice, "
            f"subset",
        )
    twice = sorted({name for name in names if name in COLUMNS and names.count(name) > 1})
    if twice:
        raise UserError("ratings_repeat_columns", path=path, columns=", ".join(twice))


def _infer_kind(rows: Sequence[RatingRow]) -> Kind:
    if any(row.other for row in rows):
        return "preference"
    if any(number_of(row.score) is not None for row in rows):
        return "rating"
    return "option" if rows else "rating"


def _parse_values(
    rows: Sequence[RatingRow], kind: Kind, scale: tuple[float, float] | None, problems: Problems
) -> Iterator[tuple[RatingRow, float | None]]:
    """Yield each row with its rating or preference; unusable rows become problems."""
    for row in rows:
        where = f"line {row.line}: {row.score[:40]}"
        if kind == "option":
            yield row, None
        elif kind == "preference":
            value = _preference(row)
            if value is None:
                problems.add(NO_PREFERENCE, where, rater=row.rater)
            else:
                yield row, value
        else:
            value = number_of(row.score)
            if value is None:
                problems.add(NO_NUMBER if row.score else EMPTY, where, rater=row.rater)
            elif scale is not None and not scale[0] <= value <= scale[1]:
                problems.add(OUT_OF_RANGE, f"{where} is not from {scale[0]:g} to {scale[1]:g}", rater=row.rater)
            else:
                yield row, value


def _preference(row: RatingRow) -> float | None:
    """Return 1 if the first system is preferred, -1 if the second is, 0 for neither.

    None if the row names no two systems, or another choice.
    """
    choice = row.score.casefold() or row.choice.casefold()
    if not (row.system and row.other) or row.system == row.other:
        return None
    names = {row.system.casefold(): 1.0, row.other.casefold(): -1.0}
    if choice in names:
        return names[choice]
    return 0.0 if choice in _TIED else 1.0 if choice in _FIRST else -1.0 if choice in _SECOND else None


def _drop_repeats(rows: Sequence[RatingRow], problems: Problems) -> Iterator[RatingRow]:
    """Yield one row per rater and item; repeats that differ are dropped as problems."""
    together: dict[tuple[str, ...], list[RatingRow]] = defaultdict(list)
    for row in rows:
        together[row.key].append(row)
    for several in together.values():
        first, *more = several
        if not more:
            yield first
            continue
        lines = f"{first.id}: lines {', '.join(str(row.line) for row in several)}"
        if len({_meant(row, first) for row in several}) == 1:
            problems.add(ALIKE, lines, rater=first.rater, count=len(more))
            yield first
        else:
            problems.add(TWICE, lines, rater=first.rater, count=len(several))


def _meant(row: RatingRow, first: RatingRow) -> str | float:
    if row.value is None:
        return row.chosen.casefold()
    return row.value if row.system == first.system else -row.value
