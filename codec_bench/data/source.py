"""Sources of samples: `open_source` opens every kind of data set.

A source is a list of samples with unique ids and absolute paths. No sound file is opened or decoded. An unusable row
stays as a sample without audio and counts; `problem_of` returns the reason.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import posixpath
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.config.file_content import file_hash
from codec_bench.data.columns import recorded_columns
from codec_bench.data.folder import RECORD, read_folder
from codec_bench.data.hub import PREFIX
from codec_bench.data.layouts import LAYOUTS, Report, TextLayout, Tree, find_layout, read_layout_rows
from codec_bench.data.layouts.words import ignored_lines
from codec_bench.data.manifest import NAMES, read_manifest, unit_of
from codec_bench.data.remote import fetched, joined, read_listing
from codec_bench.data.rows import PROBLEM, Row, random_part, to_samples
from codec_bench.data.shard import Shard, place_of
from codec_bench.data.tars import names_tars, tar_rows
from codec_bench.decoding.decode import SUFFIXES
from codec_bench.decoding.read import file_of, find_member
from codec_bench.decoding.remote import is_url, shown
from codec_bench.decoding.span import find_span
from codec_bench.decoding.table import find_locator
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import Note, UserError
from codec_bench.types import MEASURED_BY, Sample

_HERE = Path(__file__).resolve().parent
REGISTERED: Mapping[str, Path] = {"embedded": _HERE / "embedded", "embedded-voices": _HERE / "embedded_voices"}

_FRONT = 16
"""How many sounds `Source.front` has at most."""


def data_name(data: Any) -> str:
    """The data's name in a record: path or name, or `samples` for a list."""
    return shown(str(data)) if isinstance(data, (str, os.PathLike)) else "samples"


def problem_of(sample: Sample) -> Diagnostic | None:
    """Why a sample cannot be used, or None."""
    return as_reason(sample.extra.get(PROBLEM), "unusable_row")


class Source:
    """The samples of one data set, in a fixed order.

    Args:
        name: short, for tables, without the folder of the data.
        samples: with unique ids.
        unmatched: generated files that belong to no sample (see `match_estimates`).
        complete: whether these are all samples of the data set; False if a limit may have excluded some.

    Attributes:
        origin: where a folder's generated audio was read from, if there was a choice (see `match_estimates`); else
            empty.
        shard: which part of the data set these samples are; None for all of it.
        numbers: the position of each sample in the whole data set, from 0.
        full_size: how many samples the whole data set has.
        columns: the further columns for a record of these samples; None for those of `recorded_columns`.
        report: what was recognised and ignored in a folder; None for other data.
    """

    origin: Diagnostic | None = None
    report: Report | None = None
    shard: Shard | None = None
    columns: Sequence[str] | None = None

    def __init__(self, name: str, samples: list[Sample], unmatched: Sequence[str] = (), complete: bool = True) -> None:
        self.name, self.samples, self.unmatched, self.complete = name, samples, tuple(unmatched), complete
        self.numbers: Sequence[int] = range(len(samples))
        self.full_size = len(samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {len(self)} samples, {len(self.problems)} with a problem)"

    @cached_property
    def languages(self) -> set[str | None]:
        """The languages of the whole data set: they decide which metrics apply."""
        return {sample.language for sample in self.samples}

    @cached_property
    def front(self) -> tuple[str, ...]:
        """The first usable sounds of the whole data: all shards check alike."""
        usable = (sample.audio for sample in self.samples if sample.audio is not None and problem_of(sample) is None)
        return tuple(islice(usable, _FRONT))

    @cached_property
    def places(self) -> np.ndarray:
        """The shard hash of each sample's id, uint64 `(samples,)`."""
        return np.fromiter((place_of(sample.id) for sample in self.samples), np.uint64, len(self.samples))

    @cached_property
    def own_columns(self) -> list[str]:
        """The columns of `recorded_columns` for these samples."""
        return recorded_columns(self.samples)

    @cached_property
    def problems(self) -> dict[str, Diagnostic]:
        """The reason of each unusable sample, by id."""
        return {sample.id: reason for sample in self.samples if (reason := problem_of(sample)) is not None}

    @cached_property
    def fingerprint(self) -> str:
        """A 160-bit hash of the content of the data set, in hexadecimal.

        Covers ids, texts, speakers, languages, problems, the columns that a metric reads (`MEASURED_BY`) and the sizes
        of the sound files, whose first access stats every file. Independent of the samples' order and of the folder.
        """
        digest = hashlib.blake2b(digest_size=20)
        for sample in sorted(self.samples, key=lambda s: s.id):
            fields: tuple[str | int | None, ...] = (
                sample.id, _size(sample.audio), sample.text, sample.speaker, sample.language, _size(sample.estimate),
                None if (problem := problem_of(sample)) is None else json.dumps(problem.as_dict(), sort_keys=True),
            )  # fmt: skip
            if sample.extra:
                fields += tuple(f"{name}:{sample.extra[name]}" for name in MEASURED_BY if name in sample.extra)
            for field in fields:
                encoded = b"-" if field is None else f"{field}".encode()
                digest.update(b"%d:%b" % (len(encoded) if field is not None else -1, encoded))
        return digest.hexdigest()

    @cached_property
    def content_hash(self) -> str:
        """A 160-bit hash of the fingerprint and of the content of every local sound file."""
        samples = sorted(self.samples, key=lambda sample: sample.id)
        paths = [path for sample in samples for path in (sample.audio, sample.estimate) if path is not None]
        digest = hashlib.blake2b(self.fingerprint.encode(), digest_size=20)
        for file in dict.fromkeys(file_of(path) for path in paths if not is_url(path)):
            try:
                digest.update(file_hash(file).encode())
            except (OSError, ValueError):
                digest.update(b"missing")
        return digest.hexdigest()

    def first(self, count: int) -> Source:
        """The first samples alone."""
        return Source(self.name, self.samples[:count])


def _size(path: str | None) -> int | str | None:
    """What a fingerprint uses of a sound: bytes of its file, -1 if it is missing.

    For a part of a file the size comes with its position, and for a URL it is the file's name.
    """
    if path is None:
        return None
    if (span := find_span(path)) is not None:
        return f"{_size(span.file)}{str(span).removeprefix(span.file)}"
    if (member := find_member(path)) is not None:
        return member.size
    if is_url(path):  # a request for the size takes as long as reading a short sound
        return posixpath.basename(shown(path))
    try:
        located = find_locator(path)
        return os.stat(path if located is None else located.file).st_size
    except (OSError, ValueError):
        return -1


def open_source(
    data: str | os.PathLike[str] | Sequence[Sample] | Source,
    *,
    limit: int | None = None,
    seed: int | None = None,
    require_audio: bool = True,
) -> Source:
    """Open a data set.

    Args:
        data: a registered name (`embedded`), a folder of sound files at any depth, a manifest, one sound file, or a URL
            of these; tar files in WebDataset's form (`s3://bucket/train-{0000..0099}.tar`); a data set of the Hugging
            Face hub (`hf:REPO[@REVISION][:CONFIG][:SPLIT]`), a folder of Parquet files in the hub's layout, or samples.
            A folder with a `manifest.jsonl`, `.csv`, `.tsv` or `.parquet` is read by that manifest.
        limit: take at most this many samples.
        seed: None takes the first samples. A number takes a random part, in the original order, which depends only on
            the seed and the ids (on the hub: on the rows' positions in their splits; only files with such rows are
            fetched).
        require_audio: whether a row without reference audio is a problem. Scoring generated speech against texts needs
            none.

    Raises:
        UserError: there is no such data set, it cannot be read, or none of its rows can be used.
    """
    if limit is not None and limit < 1:
        raise UserError("limit_too_low", limit=limit)
    front = limit if seed is None else None
    if isinstance(data, Source):
        source = Source(data.name, data.samples[:front], data.unmatched)
        source.report = data.report
    elif isinstance(data, (str, os.PathLike)):
        source = _open_path(os.fspath(data), limit, seed, require_audio)
    else:
        rows = (_row_of(number, sample, require_audio) for number, sample in enumerate(data, 1))
        source = Source("samples", to_samples(rows, "the samples", unit="sample", limit=front))
    if limit is not None and seed is not None:
        report, chosen = source.report, random_part(source.samples, lambda sample: sample.id, limit, seed)
        source = Source(source.name, chosen, source.unmatched)
        source.report = report
    complete = limit is None or len(source) < limit
    source.complete = complete and (not isinstance(data, Source) or data.complete)
    if source.report is not None and not isinstance(data, Source):
        for line in ignored_lines(source.report).values():
            warnings.warn(Note("ignored_in_data", data=source.name, cause=line), stacklevel=2)
    if len(source.problems) == len(source):
        label = f"'{data}'" if isinstance(data, (str, os.PathLike)) else source.name
        if not len(source):
            raise UserError("data_without_samples", label=label)
        reason = next(iter(source.problems.values()))
        raise UserError("no_usable_sample", count=len(source), label=label, reason=reason)
    return source


def _open_path(data: str, limit: int | None, seed: int | None, require_audio: bool) -> Source:
    """Open data by its path: a table, tar, URL, registered name, folder or file."""
    if data.startswith(PREFIX):
        return _open_table(data, limit, seed, require_audio)
    front = limit if seed is None else None
    if names_tars(data) and not os.path.isdir(data):
        name = os.path.basename(shown(data))
        return Source(
            name, to_samples(tar_rows(_absolute(data), require_audio=require_audio), name, unit="sample", limit=front)
        )
    if is_url(data):
        return _open_url(data, front, require_audio)
    path = os.path.abspath(os.path.expanduser(REGISTERED.get(data, data)))
    name = os.path.basename(path) or "root"
    if not os.path.exists(path):
        near = difflib.get_close_matches(data, REGISTERED, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"registered names: {', '.join(REGISTERED)}"
        raise UserError("no_data", path=data, hint=hint)
    if os.path.isdir(path):
        manifest = manifest_in(path)
        if manifest is None:
            return _open_folder(data, name, Tree(path), limit, seed, require_audio)
        path = manifest
    elif os.path.splitext(path)[1].lower() in SUFFIXES:
        row = Row(1, None, name, path)
        return Source(name, to_samples([row], name, unit="file", limit=front))
    else:
        tree = Tree(os.path.dirname(path))
        layout = find_layout(tree, name)
        if layout is not None:
            return _open_layout(name, tree, layout, front, require_audio)
        if os.path.splitext(name)[0] == "manifest":
            name = os.path.basename(os.path.dirname(path)) or name
    rows = read_manifest(path, require_audio=require_audio)
    return Source(name, to_samples(rows, os.path.basename(path), unit=unit_of(path), limit=front))


def _open_folder(data: str, name: str, tree: Tree, limit: int | None, seed: int | None, require_audio: bool) -> Source:
    """Open a folder without a manifest: a known layout, audio files, or hub tables."""
    layout = find_layout(tree)
    if layout is None and not tree.sounds:
        if any(file.endswith(".parquet") for file in tree.files):
            return _open_table(tree.root, limit, seed, require_audio)
        if os.path.isfile(os.path.join(tree.root, RECORD)):
            raise UserError("folder_of_run", folder=data, hint=f"name its saved audio: {data.rstrip('/')}/audio/SYSTEM")
        raise UserError(
            "folder_of_nothing",
            folder=data,
            known=", ".join(NAMES),
            hint=f"sound files end in {', '.join(sorted(SUFFIXES))}; "
            f"the layouts are {', '.join(one.name for one in LAYOUTS)}",
        )
    return _open_layout(name, tree, layout, limit if seed is None else None, require_audio)


def _open_layout(
    name: str, tree: Tree, layout: tuple[TextLayout, list[str]] | None, front: int | None, require_audio: bool
) -> Source:
    """Read the rows of a layout; the source's `report` names its files.

    Args:
        layout: as `find_layout` returns it; None for audio files alone.
        front: take so many samples from the front; None for all.
    """
    rows, report = read_layout_rows(tree, layout, require_audio=require_audio)
    unit, of = "file" if layout is None else "row", name
    if layout is not None and not layout[0].several and len(report.files) == 1:  # its numbers are those of lines
        unit, of = "line", os.path.basename(report.files[0])
    source = Source(name, to_samples(rows, of, unit=unit, limit=front))
    source.report = report
    return source


def _absolute(path: str) -> str:
    return path if is_url(path) else os.path.abspath(os.path.expanduser(path))


def _open_url(url: str, front: int | None, require_audio: bool) -> Source:
    """Open a manifest, a sound file or a folder behind a URL.

    Args:
        front: take so many samples from the front; None for all.
    """
    path = shown(url).rstrip("/")
    name, kind = posixpath.basename(path), posixpath.splitext(path)[1].lower()
    if kind in SUFFIXES:
        return Source(name, to_samples([Row(1, None, name, url)], name, unit="file", limit=front))
    if f"manifest{kind}" in NAMES:
        rows = read_manifest(fetched(url), require_audio=require_audio, folder=posixpath.dirname(path))
        if name in NAMES:
            name, folder = posixpath.basename(posixpath.dirname(path)), name
            return Source(name, to_samples(rows, folder, unit=unit_of(path), limit=front))
        return Source(name, to_samples(rows, name, unit=unit_of(path), limit=front))
    samples = to_samples(read_listing(url), name, unit="file", limit=front)
    if not samples:
        raise UserError("no_sound_below", url=shown(url), hint=f"sound files end in {', '.join(sorted(SUFFIXES))}")
    return Source(name, samples)


def manifest_in(folder: str) -> str | None:
    """The manifest of a folder, or None."""
    return next((name for held in NAMES if os.path.isfile(name := os.path.join(folder, held))), None)


def sounds_in(folder: str) -> Source:
    """List the audio files of a folder and its subfolders, without its manifest."""
    path = os.path.abspath(os.path.expanduser(folder))
    name = os.path.basename(path) or "root"
    return Source(name, to_samples(read_folder(path), name, unit="file", limit=None))


def _open_table(data: str, limit: int | None, seed: int | None, require_audio: bool) -> Source:
    """Open a data set in the hub's layout; only the selected rows are fetched."""
    from codec_bench.data.table import open_table, table_rows  # a folder of sounds opens sooner without it

    table = open_table(data, limit=limit, seed=seed)
    rows = table_rows(table, require_audio=require_audio)
    return Source(table.name, to_samples(rows, table.name, unit="row", limit=None))


def _path_of(path: Any, id: str) -> str:
    """Validate the path of a sample's sound."""
    if not isinstance(path, str | os.PathLike):
        raise UserError(
            "sound_not_a_path",
            id=id,
            type=type(path).__name__,
            hint="write the sound to a file first, or score sounds in memory with load_metric(NAME)(estimate=[...])",
        )
    return os.fspath(path)


def _row_of(number: int, sample: Sample, require_audio: bool) -> Row:
    """Convert a sample of the caller to a row, with absolute paths."""
    audio, estimate = (
        None if path is None else joined(os.getcwd(), _path_of(path, sample.id))
        for path in (sample.audio, sample.estimate)
    )
    problem = problem_of(sample)
    if problem is None and audio is None and (require_audio or (estimate is None and sample.text is None)):
        problem = Diagnostic("sample_without_audio", number=number, id=sample.id)
    return Row(
        number, sample.id, None, audio, sample.text, sample.speaker, sample.language, estimate, sample.extra, problem
    )


def with_problem(sample: Sample, reason: str) -> Sample:
    """Mark a sample as unusable."""
    return replace(sample, audio=None, estimate=None, extra={**sample.extra, PROBLEM: reason})


def part_of(source: Source, shard: Shard | None) -> Source:
    """The samples of one shard; None for all.

    Positions, fingerprint, languages and recorded columns are those of the whole data set: the records of all shards
    can be merged, and a change of the data between two shards is detected.

    Raises:
        UserError: no sample is in this shard.
    """
    if shard is None:
        return source
    numbers = shard.among(source.places).tolist()
    if not numbers:
        raise UserError(
            "shard_without_samples", data=source.name, shard=shard, samples=len(source), hint="use fewer shards"
        )
    sharded = Source(source.name, [source.samples[number] for number in numbers], source.unmatched, source.complete)
    sharded.fingerprint, sharded.origin = source.fingerprint, source.origin
    sharded.shard, sharded.numbers, sharded.full_size = shard, numbers, len(source)
    sharded.languages, sharded.front = source.languages, source.front
    sharded.columns = source.own_columns
    return sharded
