"""Tables and JSON lines: audiofolder, Common Voice, NeMo, Lhotse, tar files.

Formats: https://huggingface.co/docs/datasets/audio_dataset, https://commonvoice.mozilla.org/datasets,
    https://docs.nvidia.com/nemo-framework/user-guide/latest/nemotoolkit/asr/datasets.html,
    https://lhotse.readthedocs.io/en/latest/corpus.html, https://github.com/webdataset/webdataset.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codec_bench.data.layouts.base import LayoutResult
from codec_bench.data.layouts.tree import NO_SOUND, Tree, Unclear, segment_of
from codec_bench.data.manifest import read_manifest
from codec_bench.data.rows import ALIASES, NOTHING, Position, Row, parse_json, without_suffix
from codec_bench.data.tars import tar_rows
from codec_bench.decoding.span import SLACK_S
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

_FILE_NAMES = ("file_name", "audio_file_name")
_COMMON_VOICE = ("validated.tsv", "train.tsv", "dev.tsv", "test.tsv")
_SPLITS = dict.fromkeys(("train", "training"), "train") | dict.fromkeys(
    ("valid", "validation", "val", "dev"), "validation"
)
_SPLITS |= dict.fromkeys(("test", "testing", "eval", "evaluation"), "test")


def _first_object(tree: Tree, file: str) -> Mapping[str, Any]:
    """The object in the first line of JSON lines; empty if there is none."""
    try:
        item = parse_json(tree.first_line(file))
    except (ValueError, RecursionError):
        return {}
    return item if isinstance(item, dict) else {}


def _columns(tree: Tree, file: str) -> list[str]:
    """The columns of a table's header, or the keys of the first line of JSON lines."""
    kind = posixpath.splitext(file)[1].lower()
    if kind == ".jsonl":
        return list(_first_object(tree, file))
    if kind == ".parquet":
        import pyarrow
        import pyarrow.parquet as pq

        try:
            return list(pq.read_schema(tree.path(file)).names)
        except (OSError, pyarrow.ArrowException):
            return []
    return [name.strip().strip('"') for name in tree.first_line(file).split("\t" if kind == ".tsv" else ",")]


def _split_of(folder: str) -> str | None:
    """The split in a folder's name, as the `datasets` library reads it."""
    return next((split for component in folder.lower().split("/") if (split := _SPLITS.get(component))), None)


def claims_audiofolder(tree: Tree, file: str) -> bool:
    """Whether the table has a column `file_name`."""
    return any(name in _columns(tree, file) for name in _FILE_NAMES)


def read_audiofolder(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read tables with the column `file_name`, paths relative to the table's folder."""

    def rows() -> Iterator[Row]:
        count = 0
        for file in files:
            folder, split = posixpath.dirname(file), _split_of(posixpath.dirname(file))
            for row in read_manifest(tree.path(file), require_audio=True):
                count += 1
                where = Position("line", row.number, posixpath.basename(file))
                extra = {**row.extra, "split": split} if split and "split" not in row.extra else row.extra
                yield _inside(tree, row, folder, where)._replace(number=count, extra=extra)

    return LayoutResult(rows(), files)


def _inside(tree: Tree, row: Row, folder: str, where: Position) -> Row:
    """Require a row's sound to be in the folder; otherwise the row gets a problem."""
    if row.problem is not None or row.name is None or row.audio is None or not os.path.isabs(row.audio):
        return row
    name = os.path.relpath(row.audio, tree.path(folder)).replace(os.sep, "/")
    try:
        file = tree.find_sound(name, folder)
    except Unclear as error:
        problem = where.problem(error.problem)
        return row._replace(audio=None, problem=problem, lacks_sound=error.problem.code == NO_SOUND)
    return row._replace(name=file, audio=tree.path(file))


def claims_common_voice(tree: Tree, file: str) -> bool:
    """Whether the table has the columns of Common Voice."""
    return {"client_id", "path", "sentence"} <= set(_columns(tree, file))


def read_common_voice(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read the named file, `validated.tsv`, or train, dev, test; sounds in `clips`."""
    named = {posixpath.basename(file): file for file in files}
    chosen = [named[name] for name in _COMMON_VOICE if name in named]
    chosen = chosen[:1] if chosen and posixpath.basename(chosen[0]) == _COMMON_VOICE[0] else chosen
    chosen = chosen if chosen and len(files) > 1 else list(files)

    def rows() -> Iterator[Row]:
        count = 0
        for file in chosen:
            clips = posixpath.join(posixpath.dirname(file), "clips")
            for row in read_manifest(tree.path(file), require_audio=True, folder=tree.path(clips)):
                count += 1
                name = posixpath.splitext(posixpath.basename(file))[0]
                extra = {key: value for key, value in row.extra.items() if value not in ("", None)}
                extra |= {"split": name} if len(chosen) > 1 else {}
                where = Position("line", row.number, posixpath.basename(file))
                yield _inside(tree, row, clips, where)._replace(number=count, extra=extra)

    return LayoutResult(rows(), chosen)


def claims_nemo(tree: Tree, file: str) -> bool:
    """Whether the first line is an object with `audio_filepath`."""
    return "audio_filepath" in _first_object(tree, file)


def read_nemo(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read JSON lines; with an `offset`, the sound is a segment of `duration` seconds."""
    (file,) = files

    def rows() -> Iterator[Row]:
        for row in read_manifest(tree.path(file), require_audio=True, kind=".jsonl"):
            extra = {key: value for key, value in row.extra.items() if key not in ("offset", "duration")}
            yield _nemo_segment(row, Position("line", row.number, posixpath.basename(file)))._replace(extra=extra)

    return LayoutResult(rows(), files)


def _nemo_segment(row: Row, where: Position) -> Row:
    """Cut a NeMo row's audio by its `offset` and `duration` in seconds."""
    offset, duration = row.extra.get("offset"), row.extra.get("duration")
    if row.problem is not None or row.audio is None:
        return row
    if os.path.isabs(row.audio) and not os.path.isfile(row.audio):
        problem = where.problem(Diagnostic(NO_SOUND, name=row.name))
        return row._replace(audio=None, problem=problem, lacks_sound=True)
    if offset is None:
        return row
    try:
        begin, end = float(offset), float(offset) + float(duration)  # type: ignore[arg-type]
        audio = segment_of(row.audio, begin, end, where)
    except (TypeError, ValueError):
        cause = Diagnostic("segment_times", offset=offset, duration=duration)
        return row._replace(problem=where.problem(cause))
    except Unclear as error:
        return row._replace(problem=error.problem)
    base = without_suffix(row.name or "")
    return row._replace(audio=audio, name=f"{base}-{round(begin * 1000):07d}-{round(end * 1000):07d}.wav")


def _lhotse_kind(item: Mapping[str, Any]) -> str | None:
    """`recordings`, `supervisions` or `cuts`, by a Lhotse object's keys, or None."""
    if {"id", "recording_id", "start", "duration"} <= item.keys():
        return "supervisions"
    if {"id", "sources", "sampling_rate"} <= item.keys():
        return "recordings"
    return "cuts" if {"id", "start", "duration", "type"} <= item.keys() or "tracks" in item else None


def kind_of_lhotse(tree: Tree, file: str) -> str | None:
    """Return `recordings`, `supervisions` or `cuts` by a file's first line, or None."""
    return _lhotse_kind(_first_object(tree, file))


def claims_lhotse(tree: Tree, file: str) -> bool:
    """Whether the first line is a recording, a supervision or a cut."""
    return kind_of_lhotse(tree, file) is not None


def read_lhotse(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read cuts, or supervisions with recordings, each a segment of one."""
    kinds: dict[str, list[str]] = {}
    for file in files:
        kinds.setdefault(kind_of_lhotse(tree, file) or "", []).append(file)
    if "cuts" not in kinds and "recordings" not in kinds:
        raise UserError("supervisions_without_recordings", path=files[0])
    used = kinds["cuts"] if "cuts" in kinds else [*kinds["recordings"], *kinds.get("supervisions", [])]
    rows = _cut_rows(tree, used) if "cuts" in kinds else _supervision_rows(tree, kinds)
    return LayoutResult((row._replace(number=at) for at, row in enumerate(rows, 1)), used)


def _objects(tree: Tree, file: str) -> Iterator[tuple[Position, Any]]:
    """Yield the JSON value of each line, or its problem, with the line's name."""
    name = posixpath.basename(file)
    for number, line in tree.read_lines(file):
        where = Position("line", number, name)
        try:
            yield where, parse_json(line)
        except (ValueError, RecursionError) as error:
            yield where, where.problem(Diagnostic("row_not_json", cause=error))


def _supervision_rows(tree: Tree, kinds: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Join Lhotse supervisions with their recordings to rows."""
    objects = [one for file in kinds["recordings"] for one in _objects(tree, file)]
    recordings = {item["id"]: item for _, item in objects if isinstance(item, dict) and "id" in item}
    yield from (Row(0, None, problem=item) for _, item in objects if isinstance(item, Diagnostic))
    if "supervisions" not in kinds:
        for where, item in objects:
            yield _lhotse_row(tree, where, item, item, {})
        return
    for file in kinds["supervisions"]:
        for where, item in _objects(tree, file):
            recording = recordings.get(item.get("recording_id")) if isinstance(item, dict) else None
            yield _lhotse_row(tree, where, item, recording, item)


def _cut_rows(tree: Tree, files: Sequence[str]) -> Iterator[Row]:
    """Convert Lhotse cuts to rows; texts of several supervisions are joined."""
    for file in files:
        for where, item in _objects(tree, file):
            held = item.get("supervisions") or [] if isinstance(item, dict) else []
            one = held[0] if isinstance(held, list) and held and isinstance(held[0], dict) else {}
            if isinstance(held, list) and len(held) > 1:
                texts = [str(segment.get("text") or "") for segment in held if isinstance(segment, dict)]
                one = {**one, "text": " ".join(filter(None, texts))}
            if isinstance(held, list) and not all(_is_inside(segment, item) for segment in held):
                one = {name: value for name, value in one.items() if name != "text"}
            recording = item.get("recording") if isinstance(item, dict) else None
            yield _lhotse_row(tree, where, item, recording, one)


def _is_inside(supervision: Any, cut: Mapping[str, Any]) -> bool:
    """Whether a supervision is in its cut; its times count from the cut's begin."""
    try:
        start, end = float(supervision["start"]), float(supervision["start"]) + float(supervision["duration"])
        return start >= -SLACK_S and end <= float(cut["duration"]) + SLACK_S
    except (KeyError, TypeError, ValueError):
        return True


def _lhotse_row(tree: Tree, where: Position, item: Any, recording: Any, annotation: Mapping[str, Any]) -> Row:
    """Build the row of a recording, supervision or cut.

    Args:
        where: of the object, for messages.
        item: has the id and the times.
        recording: the object of its recording, or None.
        annotation: has the text and the speaker.
    """
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        no_id = where.problem(Diagnostic("row_without_id"))
        return Row(0, None, problem=item if isinstance(item, Diagnostic) else no_id)
    fields = {name: value for name in ("text", "speaker", "language") if isinstance(value := annotation.get(name), str)}
    try:
        audio = _lhotse_sound(tree, where, item, recording)
    except Unclear as error:
        return Row(0, item["id"], problem=error.problem, lacks_sound=True, **fields)  # type: ignore[arg-type]
    custom = annotation.get("custom")
    reserved = {name for names in ALIASES.values() for name in names}
    plain = (
        {k: v for k, v in custom.items() if isinstance(v, (str, int, float)) and k not in reserved}
        if isinstance(custom, dict)
        else NOTHING
    )
    return Row(0, item["id"], item["id"], audio, extra=plain, **fields)  # type: ignore[arg-type]


def _lhotse_sound(tree: Tree, where: Position, item: Mapping[str, Any], recording: Any) -> str:
    """The path of a Lhotse recording, or of its segment for a cut; raises Unclear."""
    if item.get("type") not in (None, "MonoCut", "MultiCut", "Cut") or "tracks" in item:
        raise Unclear(where.problem(Diagnostic("cut_type", type=item.get("type"))))
    if not isinstance(recording, dict):
        raise Unclear(where.problem(Diagnostic("recording_unknown", recording=item.get("recording_id"))))
    sources = recording.get("sources")
    source = sources[0] if isinstance(sources, list) and sources and isinstance(sources[0], dict) else {}
    if source.get("type") == "url":
        path = str(source.get("source"))
    elif source.get("type") != "file" or recording.get("transforms"):
        kind = "is changed when it is read" if recording.get("transforms") else f"is a {source.get('type')}"
        raise Unclear(where.problem(Diagnostic("recording_kind", kind=kind)))
    else:
        named = str(source.get("source"))
        folders = [tree.root, os.getcwd(), os.path.dirname(tree.root)]
        sound_path = next((file for one in folders if os.path.isfile(file := os.path.join(one, named))), None)
        if sound_path is None:
            raise Unclear(where.problem(Diagnostic(NO_SOUND, name=named)))
        path = os.path.abspath(sound_path)
    if item is recording:
        return path
    try:
        begin, end = float(item["start"]), float(item["start"]) + float(item["duration"])
        length = float(recording["duration"])
    except (KeyError, TypeError, ValueError):
        raise Unclear(where.problem(Diagnostic("cut_times"))) from None
    channel, channels = item.get("channel"), recording.get("channel_ids") or source.get("channels") or [0]
    alone = channel if isinstance(channel, int) and len(channels) > 1 else None
    if begin == 0 and abs(end - length) < 1e-6 and alone is None:
        return path
    return segment_of(path, begin, end, where, alone)


def read_tars(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read the samples of all tar files of a folder, in the order of their names."""

    def rows() -> Iterator[Row]:
        count = 0
        for file in files:
            for row in tar_rows(tree.path(file), require_audio=False):
                count += 1
                yield row._replace(number=count)

    return LayoutResult(rows(), files)
