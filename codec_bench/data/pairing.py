"""Match generated audio to samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from unicodedata import normalize

from codec_bench.data.layouts import FOLDER
from codec_bench.data.rows import stem
from codec_bench.data.source import Source, manifest_in, open_source, problem_of, sounds_in, with_problem
from codec_bench.decoding.read import file_of
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, first_of
from codec_bench.types import Sample


def match_estimates(
    source: Source, generated: str | os.PathLike[str] | Sequence[Sample], *, by_audio: bool = True
) -> Source:
    """Assign generated audio to the samples of `source` by name.

    A file matches by the sample's id, then by the last part of the id, then by the stem of its audio. A stem counts
    only if exactly one file and one sample have it. Accented letters match in composed and decomposed form.

    A sample without a file becomes a problem. Files without a sample go into the result's `unmatched`, unless a limit
    excluded samples.

    Args:
        source: the samples. Open it with `require_audio=False` if a text is enough.
        generated: a folder of sound files, or a manifest whose column `estimate` (else `audio`) names them. A folder's
            manifest counts only if all of its files are in that folder; another may be that of the references. The
            result's `origin` names the choice.
        by_audio: whether the stem of a sample's audio names its generated file, unlike that of a prompt.

    Raises:
        UserError: `generated` cannot be opened, or no file belongs to any sample.
    """
    opened = open_generated(generated)
    usable = [sample for sample in opened if problem_of(sample) is None]
    files = {sample.id: path for sample in usable if (path := sample.estimate or sample.audio) is not None}
    matches: dict[str, str] = {}
    references = [sample for sample in source if problem_of(sample) is None]
    matches |= {sample.id: sample.id for sample in references if sample.id in files}
    doubts: dict[str, Diagnostic] = {}
    keys: list[Callable[[Sample], str | None]] = [lambda s: stem_of_id(s.id)]
    keys += [lambda s: _file_stem(s.audio)] if by_audio else []
    for key in keys:
        _match_stems([s for s in references if s.id not in matches], files, key, matches, doubts)

    samples = []
    for sample in source:
        if problem_of(sample) is not None:
            samples.append(sample)
        elif sample.id in matches:
            samples.append(replace(sample, estimate=files[matches[sample.id]]))
        else:
            samples.append(with_problem(sample, doubts.get(sample.id, Diagnostic("no_generated_audio"))))
    if not matches:
        here = first_of([f"'{id}'" for id in files], 3)
        there = first_of([f"'{sample.id}'" for sample in references], 3)
        reason = next((f": {why}" for why in doubts.values()), "")
        raise UserError(
            "no_file_belongs",
            files=len(files),
            samples=len(references),
            reason=reason,
            hint=f"files are matched by id or file stem; the files are {here or 'none'}, the samples {there or 'none'}",
        )
    used = {*matches.values(), *source.problems}
    unmatched = sorted(id for id in files if id not in used) if source.complete else []
    matched = Source(source.name, samples, unmatched, source.complete)
    matched.origin = opened.origin
    return matched


def open_generated(generated: str | os.PathLike[str] | Sequence[Sample]) -> Source:
    """Open generated audio from a folder, a manifest or samples.

    A folder's manifest or list is read if it names audio in the folder. Otherwise the audio files of the folder are the
    samples, and the source's `origin` says why. `match_estimates` assigns them to the samples of a run.

    Raises:
        UserError: it cannot be opened; or a folder has no audio file, and a manifest that names files elsewhere.
    """
    if not (isinstance(generated, str | os.PathLike) and os.path.isdir(generated)):
        return open_source(generated, require_audio=False)
    folder = os.fspath(generated)
    try:
        listed = open_source(folder, require_audio=False)
    except UserError:
        if manifest_in(folder) is not None or not len(sounds := sounds_in(folder)):
            raise
        return sounds  # a folder of two layouts, where the names of the sounds are enough
    report = listed.report
    if report is not None and report.layout == FOLDER:
        return listed
    sounds = sounds_in(folder)
    name = _list_name(folder, listed)
    paths = [path for s in listed if (path := s.estimate or s.audio) is not None]
    elsewhere = next((path for path in paths if not _lies_in(path, folder)), None)
    if report is not None and report.role == "prompt":
        why = Diagnostic("list_of_voices")
    elif elsewhere is None and any(os.path.isfile(file_of(path)) for path in paths):
        return _with_others(listed, sounds, Diagnostic("files_of_list", name=name))
    else:
        why = Diagnostic("list_names_other", path=elsewhere) if elsewhere else Diagnostic("list_names_none")
        if not len(sounds) and report is not None and paths:
            return listed
    if not len(sounds):
        raise UserError(
            "list_without_sounds",
            folder=folder,
            name=name,
            reason=why,
            hint=f"if that is the generated audio, name the file itself: {os.path.join(folder, name)}",
        )
    sounds.origin = Diagnostic("files_of_folder", name=name, cause=why)
    return sounds


def _with_others(listed: Source, sounds: Source, origin: Diagnostic) -> Source:
    """The samples of a list; with a known layout, also audio that its list lacks.

    Args:
        sounds: all audio files of the folder.
        origin: the description of the choice, for the result.
    """
    files = {file_of(path) for s in listed if (path := s.estimate or s.audio) is not None}
    more = [sample for sample in sounds if sample.audio not in files] if listed.report is not None else []
    source = Source(listed.name, [*listed.samples, *more], listed.unmatched, listed.complete)
    source.origin = origin
    return source


def _list_name(folder: str, listed: Source) -> str:
    """The name of a folder's manifest, or of the first file of its layout."""
    manifest = manifest_in(folder)
    if manifest is not None:
        return os.path.basename(manifest)
    return listed.report.files[0] if listed.report is not None and listed.report.files else "layout"


def _lies_in(path: str, folder: str) -> bool:
    return os.path.realpath(file_of(path)).startswith(os.path.join(os.path.realpath(folder), ""))


def stem_of_id(id: str) -> str:
    """An id's last part: `a/b` gives `b`. An id has no suffix; dots stay."""
    return id.rpartition("/")[2]


def _file_stem(path: str | None) -> str | None:
    """The stem of a sound file; None for a part of a file with other sounds."""
    return None if path is None or file_of(path) != path else stem(path)


def _match_stems(
    samples: list[Sample],
    files: dict[str, str],
    key: Callable[[Sample], str | None],
    matches: dict[str, str],
    doubts: dict[str, Diagnostic],
) -> None:
    """Match samples to files whose stem is unique among both.

    Args:
        files: paths by id.
        key: the stem that a sample looks for.
        matches: file ids by sample id; it gets the new matches.
        doubts: gets why a sample has no certain file.
    """
    matched = set(matches.values())
    by_stem: dict[str, list[str]] = {}
    for id, path in files.items():
        if id not in matched:
            by_stem.setdefault(normalize("NFC", _file_stem(path) or stem_of_id(id)), []).append(id)
    askers: dict[str, list[str]] = {}
    for sample in samples:
        if (name := normalize("NFC", key(sample) or "")) in by_stem:
            askers.setdefault(name, []).append(sample.id)
    for name, ids in askers.items():
        if len(ids) == 1 and len(by_stem[name]) == 1:
            matches[ids[0]] = by_stem[name][0]
            continue
        for id in ids:
            if len(by_stem[name]) > 1:
                doubts[id] = Diagnostic("several_generated", files=by_stem[name][:2])
            else:
                doubts[id] = Diagnostic("several_samples", file=by_stem[name][0], samples=ids[:2])
