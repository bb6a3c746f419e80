"""Turn rows of data into questions with a benchmark's own names, lazily.

An invalid row becomes a question with a `problem` and is counted. A question without a reference is sent; its metrics
report the missing reference. No sound is decoded here. A limit applies before rows are fetched.
"""

from __future__ import annotations

import ast
import hashlib
import heapq
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.joined_tables import JoinedRows, joined
from codec_bench.benchmark.definition.schema import Data, Speaker
from codec_bench.data.cells import SOUND_TYPE, cell_of
from codec_bench.data.hub import MIRROR_VARIABLE
from codec_bench.data.rows import rank
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.store.answers import SOUNDS
from codec_bench.text.language import base_language, script_language

if TYPE_CHECKING:
    from codec_bench.data.table import Table

SPEAKER = "speaker"
NOBODY = frozenset(("", "-", "n/a", "na", "nan", "none", "null", "unknown"))
"""Placeholders for an unknown speaker in data, in lower case."""
_LONGEST_SPEAKER = 1_000
SPLIT = "split"
"""Name of the subsets that several splits form."""
_LISTS = ("choices", "criteria", "reference")
"""Names that may hold lists. Some tables write a list as text."""
_LONGEST_LIST = 20_000


class Opened(NamedTuple):
    """Rows to read as `(key, row)`, their split, and their columns (None if unknown)."""

    rows: Any
    split: str | None
    columns: tuple[str, ...] | None


class _ConfigRows:
    """The rows of one of several configurations; its name prefixes the keys."""

    def __init__(self, config: str, rows: Table | JoinedRows) -> None:
        self._config, self._rows = config, rows
        self.name, self.revision, self.types, self.total = rows.name, rows.revision, rows.types, rows.total

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        return ((f"{self._config}/{key}", row) for key, row in self._rows)


class QuestionStream:
    """The questions of a benchmark, read lazily. Each iteration starts from the first.

    Args:
        constants: fields that every question has.
        demanded: names that need a value; a row without one of them is invalid.
        subsets: a name from the definition for each kind of subset, by the name of the subsets.
        limit: the highest number of questions; None for all.
        seed: with a limit, take a random part that this seed determines; None takes the first questions.
        mirror: a folder that is used instead of the hub.
        texts: whether the questions of a table are read without their sounds.
        folder: folder of the definition, for relative paths.

    Attributes:
        total: the number of questions; None if it is unknown before they are read.
        revision: revision of the data, or None.
        types: the type of each column of a table in words, `audio` for sounds; empty where the data declare none.

    Raises:
        UserError: the data cannot be found, or a column is missing; the message names the columns that exist.
    """

    def __init__(
        self,
        name: str,
        data: Data,
        *,
        constants: Mapping[str, Any],
        demanded: frozenset[str],
        subsets: Mapping[str, str],
        language: str | None = None,
        limit: int | None = None,
        seed: int | None = None,
        mirror: str | os.PathLike[str] | None = None,
        texts: bool = False,
        folder: str | os.PathLike[str] = ".",
    ) -> None:
        if limit is not None and limit < 1:
            raise UserError("limit_too_low", limit=limit)
        self.name, self._data, self._constants, self._demanded = name, data, dict(constants), demanded
        self._subsets, self._language, self._limit, self._seed = dict(subsets), language, limit, seed
        self._texts = texts
        self._each = len(data.expand.columns) if data.expand else 1
        # A layout selects its own rows; those of a table are selected while they are read.
        leaves_out = data.join is not None and data.join.unmatched == "leave-out"
        self._chooses = ((data.where or data.unless) is not None or leaves_out) and data.layout == "table"
        self._opened = list(self._open(limit, seed, mirror, folder))
        for opened in self._opened:
            self._check_columns(opened)
        totals = [opened.rows.total for opened in self._opened]
        # A row may lack some of its possible questions, which cannot be counted before reading.
        known = None if self._each > 1 or self._chooses or None in totals else sum(totals)
        self.types: Mapping[str, str] = next((getattr(opened.rows, "types", {}) for opened in self._opened), {})
        self.total = known if known is None or limit is None else min(known, limit)
        self.revision = next((opened.rows.revision for opened in self._opened if opened.rows.revision), None)
        if self.revision is None and data.path is not None:
            self.revision = _content(os.path.join(folder, data.path))

    def __iter__(self) -> Iterator[Question]:
        return itertools.islice(self._questions(), self._limit)

    def _open(
        self, limit: int | None, seed: int | None, mirror: Any, folder: str | os.PathLike[str]
    ) -> Iterator[Opened]:
        """Open the tables or files of every configuration and split of the data."""
        from codec_bench.data.table import open_table

        data = self._data
        _check_local_data(self.name, data, mirror)
        where = f"hf:{data.repository}" if data.repository else os.path.join(folder, data.path or "")
        splits: Sequence[str | None] = data.splits or [data.split]
        rows = None if limit is None or self._chooses else -(-limit // self._each)
        if rows is not None and seed is None:
            rows = -(-rows // len(splits))  # an equal share of every split
        if data.configs and seed is not None:
            rows = None  # configurations share keys: the part is drawn over all of them
        table_options: dict[str, Any] = {"revision": data.revision, "mirror": mirror, "limit": rows, "seed": seed}
        if data.layout == "table":
            table_options |= {"data_dir": data.data_dir, "sounds": data.sounds, "in_place": self._texts}
            for config in data.configs if data.configs is not None else [data.config]:
                for split in splits:
                    table = open_table(where, config=config, split=split, **table_options)
                    narrowed = table.narrowed(text_columns(data, table)) if self._texts else table
                    rows_of = narrowed if data.join is None else joined(narrowed, data, split, mirror)
                    columns = table.columns if data.join is None else (*table.columns, *data.join.columns)
                    yield Opened(_ConfigRows(str(config), rows_of) if data.configs else rows_of, split, columns)
            return
        from codec_bench.data.layouts.benchmark_files import repository_of
        from codec_bench.data.layouts.benchmarks import BENCHMARK_LAYOUTS, BenchmarkData

        repository = repository_of(where, data.revision, mirror)
        sounds = tuple(column for name in SOUNDS for column in _listed(data.columns.get(name, [])))
        table_options |= {"split": data.split, "limit": None, "seed": None}
        layout_columns = BenchmarkData(
            data.config or "",
            data.language or "",
            data.sounds,
            sounds,
            self._is_selected,
            partial(open_table, where, **table_options),
        )
        read = BENCHMARK_LAYOUTS[data.layout](repository, layout_columns)
        yield Opened(read.select(rows, seed), None, read.columns)

    def _is_selected(self, row: Mapping[str, Any]) -> bool:
        """Whether a row passes `where` and `unless` of the definition.

        An unreadable row passes.
        """
        from codec_bench.data.table import row_problem

        if row_problem(row) is not None:
            return True
        return all(self._has(row, name, texts) for name, texts in (self._data.where or {}).items()) and not any(
            self._has(row, name, texts) for name, texts in (self._data.unless or {}).items()
        )

    def _has(self, row: Mapping[str, Any], name: str, texts: str | list[str]) -> bool:
        column = self._data.columns.get(name, name)
        value = cell_of(row, column) if isinstance(column, str) else None
        return value is not None and _text(value) in _listed(texts)

    def _check_columns(self, opened: Opened) -> None:
        """Raise UserError for empty data, or for a column that the data lack."""
        if opened.columns is not None and not opened.columns:
            raise UserError("benchmark_data_empty", data=opened.rows.name, benchmark=self.name)
        for name, column, setting in absent_columns(self._data, opened.columns):
            raise UserError(
                "benchmark_column_missing",
                name=self.name,
                field=name,
                column=column,
                data=opened.rows.name,
                hint=between_others(opened.columns)
                or f"its columns are {', '.join(opened.columns or ())}; --set {self.name}.data.{setting}=COLUMN",
            )

    def _questions(self) -> Iterator[Question]:
        """Yield the questions of the selected rows; raise UserError if there are none."""
        seen: set[str] = set()
        drawn, chosen = self._drawn(), False
        for opened in self._opened:
            for key, row in opened.rows:
                if (drawn is not None and key not in drawn) or (self._chooses and not self._is_selected(row)):
                    continue
                chosen = True
                for question in self._of_row(key, row, opened.split):
                    if self._data.id is not None:  # a key is unique, but a column's value may occur twice
                        if question.id in seen:
                            question = replace(question, id=f"{question.id}#{key}")
                        seen.add(question.id)
                    yield question
        if self._chooses and not chosen:
            conditions = [f"{name}: {', '.join(_listed(texts))}" for name, texts in (self._data.where or {}).items()]
            conditions += [
                f"not {name}: {', '.join(_listed(texts))}" for name, texts in (self._data.unless or {}).items()
            ]
            raise UserError(
                "no_row_of_benchmark",
                name=self.name,
                hint=f"it takes rows with {'; '.join(conditions) or 'a row that they are joined with'}",
            )

    def _drawn(self) -> set[str] | None:
        """Draw the keys of a random selection; None if the tables select rows themselves."""
        if self._limit is None or self._seed is None or (len(self._opened) == 1 and not self._chooses):
            return None
        rows = (entry for opened in self._opened for entry in opened.rows)
        keys = (key for key, row in rows if not self._chooses or self._is_selected(row))
        return set(heapq.nsmallest(-(-self._limit // self._each), keys, key=partial(rank, self._seed)))

    def _of_row(self, key: str, row: Mapping[str, Any], split: str | None) -> Iterator[Question]:
        """Convert a row to its questions; an unusable row becomes one with a `problem`.

        Args:
            key: the row's key in the table, which is the id unless a column has one.
            split: the row's split, or None.
        """
        from codec_bench.data.table import row_problem

        data = self._data
        name = key if data.id is None or _blank(row.get(data.id)) else str(row[data.id])
        if split is not None and data.splits and name != key:  # a key names its split already
            name = f"{split}/{name}"
        fields = {our: _value(row, our, column) for our, column in data.columns.items()}
        for our, words in data.values.items():
            row_text = None if fields.get(our) is None else _text(fields[our])
            fields[our] = words.get(row_text, fields[our]) if row_text is not None else None
        fields = {**self._constants, **{k: v for k, v in fields.items() if v is not None or k not in data.optional}}
        if data.splits and split is not None:
            fields[SPLIT] = split
        reason = row_problem(row)
        if reason is not None:
            yield Question(name, fields, language=self._language, problem=reason)
            return
        fields |= self._kind(fields)
        written = {our: fields.get(name) for our, name in data.scripts.items()}
        fields |= {
            our: script_language(text) for our, text in written.items() if isinstance(text, str) and text.strip()
        }
        if data.answer_among_choices:
            fields["choices"] = _choices_with_answer(name, fields)
        speaker = _speaker(row, data.speaker)
        if data.expand is None:
            yield self._question(name, fields, speaker)
            return
        for subset_name, column in data.expand.columns.items():
            value = row.get(column)
            if _blank(value):
                continue  # this row does not have this question
            subset = {data.expand.subset: subset_name} if data.expand.subset else {}
            yield self._question(f"{name}-{subset_name}", {**fields, data.expand.field: value, **subset}, speaker)

    def _question(self, name: str, fields: dict[str, Any], speaker: str | None) -> Question:
        """Build a question; `fields` has its reference, which is removed from it."""
        references = _references(fields.pop("reference", None))
        language = fields.get("language") or self._language
        subsets = {name: str(fields[field]) for name, field in self._subsets.items() if fields.get(field) is not None}
        audio = fields.get("audio")
        if isinstance(audio, list):  # the first of several sounds identifies the question
            audio = next(iter(audio), None)
        return Question(
            name,
            {our: value for our, value in fields.items() if our != "language"},
            references,
            audio if isinstance(audio, Clip) else None,
            base_language(language) if language else None,
            speaker,
            subsets,
            self._problem(fields),
        )

    def _kind(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that `data.kinds` sets by the row's question type."""
        kinds = self._data.kinds
        if kinds is None:
            return {}
        value = str(fields.get(kinds.column) or "")
        kind = next((name for name in kinds.names if name in value), None)
        return {} if kind is None else {kinds.field: kind, **kinds.names[kind]}

    def _problem(self, fields: Mapping[str, Any]) -> Diagnostic | None:
        """Return why a question cannot be sent: a required field is missing."""
        for name in sorted(self._demanded - {"reference", "language"}):
            value = fields.get(name)
            if isinstance(value, list) and any(isinstance(one, Clip) for one in value):
                value = next((one for one in value if not isinstance(one, Clip)), value[0])
            if name in SOUNDS and not isinstance(value, Clip):
                return Diagnostic("row_without_sound", field=name, path=value if isinstance(value, str) else "")
            if _blank(value):
                return Diagnostic("row_without_value", field=name)
        return None


def _check_local_data(name: str, data: Data, mirror: str | os.PathLike[str] | None) -> None:
    """Raise unless data that users must download themselves are in the mirror folder.

    Args:
        name: of the benchmark, for the message.
        mirror: the folder; None for that of the environment.
    """
    if data.obtain is None:
        return
    named = os.environ.get(MIRROR_VARIABLE) if mirror is None else os.fspath(mirror)
    there = named or "FOLDER"
    folder = os.path.join(os.path.expanduser(there), str(data.repository))
    if not named or not os.path.isdir(folder):
        folder_path = os.path.join(there, str(data.repository))
        raise UserError(
            "data_not_obtained",
            name=name,
            folder=folder if named else "",
            hint=f"{data.obtain.rstrip('.')}. Put them into {folder_path} and give --data {there}",
        )


def between_others(columns: Sequence[str] | None) -> str | None:
    """A hint if a separator other than a comma leaves all column names in one."""
    marks = [mark for mark in ";|\t" if len(columns or ()) == 1 and mark in (columns or ("",))[0]]
    return f"its columns are separated by {marks[0]!r}; expected commas in a .csv, or tabs in a .tsv" if marks else None


def absent_columns(data: Data, columns: Sequence[str] | None) -> list[tuple[str, str, str]]:
    """The columns that a definition needs and the data lack.

    Args:
        columns: those of the data; None if unknown, which lacks nothing.

    Returns:
        (name in the definition, column, setting that names the column) of each.
    """
    if columns is None:
        return []
    required: list[tuple[str, str, str]] = []
    for name, of in data.columns.items():
        missing = [column for column in _listed(of) if not _has_column(columns, column)]
        # For an optional list some columns may be missing. If all are missing, the data has another layout.
        if name not in data.optional or (isinstance(of, list) and len(missing) == len(of)):
            required += [(name, column, f"columns.{name}") for column in missing]
    parts = data.expand.columns if data.expand else {}
    required += [(name, column, f"expand.columns.{name}") for name, column in parts.items()]
    if data.id is not None:
        required.append(("id", data.id, "id"))
    if data.join is not None:
        required.append(("join.key", data.join.key, "join.key"))
    if data.speaker is not None and SPEAKER not in data.optional:
        required.append((SPEAKER, data.speaker.column, SPEAKER))
    return [one for one in required if not _has_column(columns, one[1])]


def text_columns(data: Data, table: Table) -> list[str]:
    """The columns of a table that a definition reads, without those of audio."""
    read = [column for name, of in data.columns.items() if name not in SOUNDS for column in _listed(of)]
    read += data.expand.columns.values() if data.expand else ()
    keys = (data.id, data.speaker.column if data.speaker else None, data.join.key if data.join else None)
    read += [column for column in keys if column is not None]
    columns = {column if column in table.columns else column.partition(".")[0] for column in read}
    return [column for column in table.columns if column in columns and table.types.get(column) != SOUND_TYPE]


def _value(row: Mapping[str, Any], our: str, column: str | list[str]) -> Any:
    """Read the field `our` from one column, or a list from several."""
    if isinstance(column, str):
        value = cell_of(row, column)
        if our in SOUNDS and isinstance(value, list) and len(value) == 1:
            return value[0]
        return _parse_list(value) if our in _LISTS else value
    held = [cell_of(row, name) for name in column]
    while held and _blank(held[-1]):
        held.pop()
    # A missing sound between others stays: without it the third round would count as the second.
    return held if our in SOUNDS else [value for value in held if not _blank(value)]


def _has_column(columns: Sequence[str], column: str) -> bool:
    return column in columns or ("." in column and column.partition(".")[0] in columns)


def _parse_list(value: Any) -> Any:
    """Parse a list stored as JSON or Python text; return other values unchanged."""
    if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]") and len(value) < _LONGEST_LIST):
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            listed = read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(listed, list):
            return listed
    return value


def _speaker(row: Mapping[str, Any], spec: Speaker | None) -> str | None:
    """Return the speaker of a row, cut out by the pattern if there is one."""
    value = None if spec is None else row.get(spec.column)
    if spec is None or not isinstance(value, (str, int, float)):
        return None
    text = _text(value).strip()
    if spec.pattern is not None:
        match = re.search(spec.pattern, text[-_LONGEST_SPEAKER:])
        text = (match[1] or "") if match is not None else ""
    return None if text.lower() in NOBODY else text[:_LONGEST_SPEAKER]


def _choices_with_answer(name: str, fields: Mapping[str, Any]) -> list[Any]:
    """Join wrong choices and the right one, in an order fixed by the question's id."""
    wrong, answer = fields.get("choices"), fields.get("reference")
    all_of_them = [*(wrong if isinstance(wrong, list) else []), *([] if _blank(answer) else [answer])]
    return sorted(all_of_them, key=partial(rank, name))


def _listed(columns: str | list[str]) -> list[str]:
    return [columns] if isinstance(columns, str) else columns


def _blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, list) and not value)


def _references(value: Any) -> tuple[str, ...]:
    """Convert the expected answers to texts; `("",)` means that silence is expected."""
    if isinstance(value, str) and not value.strip():
        return ("",)
    values = value if isinstance(value, (list, tuple)) else [value]
    return tuple(_text(one) for one in values if not _blank(one))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    # A table may hold a whole number as a float; it is written without a point: 3, not 3.0.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _content(path: str) -> str:
    """A 160-bit hash of a local file's content, or of names and sizes in a folder."""
    digest = hashlib.blake2b(digest_size=20)
    if os.path.isfile(path):
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    for here, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file_path = os.path.join(here, name)
            digest.update(f"{os.path.relpath(file_path, path)}:{os.path.getsize(file_path)}\n".encode())
    return digest.hexdigest()
