"""Finding the generated audio that belongs to each sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from unicodedata import normalize

from codec_bench.data.rows import stem
from codec_bench.data.source import Source, manifest_in, open_source, problem_of, sounds_in, with_problem
from codec_bench.decoding.table import find_locator
from codec_bench.errors import UserError, first_of
from codec_bench.types import Sample


def match_estimates(source: Source, generated: str | os.PathLike[str] | Sequence[Sample]) -> Source:
    """The samples of `source`, each with the path of the audio that was generated for it.

    A generated file belongs to the sample that has its id. The remaining files are matched by the last part of the
    sample's id, then by the stem of its audio. A stem counts only if exactly one file and one sample have it. Letters
    with accents may be composed in one and taken apart in the other, as some file systems do.

    A sample without a file becomes a problem. Files without a sample are in the result's `unmatched`. If a limit left
    samples out, `unmatched` is empty, because the files may belong to those samples.

    Args:
        source: the samples. Open it with `require_audio=False` if a text is enough.
        generated: a folder of sound files, or a manifest whose column `estimate` (else `audio`) names them. The
            manifest of a folder is used only if all files that it names lie in that folder: another one may be that of
            the references. The result's `taken` says which it was, if the folder holds a manifest.

    Raises:
        UserError: `generated` cannot be opened, or no file belongs to any sample.
    """
    opened = open_generated(generated)
    usable = [sample for sample in opened if problem_of(sample) is None]
    files = {sample.id: path for sample in usable if (path := sample.estimate or sample.audio) is not None}
    found: dict[str, str] = {}
    wanted = [sample for sample in source if problem_of(sample) is None]
    for sample in wanted:
        if sample.id in files:
            found[sample.id] = sample.id
    doubts: dict[str, str] = {}
    for key in (lambda s: stem_of_id(s.id), lambda s: _file_stem(s.audio)):
        _match_stems([s for s in wanted if s.id not in found], files, key, found, doubts)

    samples = []
    for sample in source:
        if problem_of(sample) is not None:
            samples.append(sample)
        elif sample.id in found:
            samples.append(replace(sample, estimate=files[found[sample.id]]))
        else:
            samples.append(
                with_problem(sample, doubts.get(sample.id, f"there is no generated audio for '{sample.id}'"))
            )
    if not found:
        here = first_of([f"'{id}'" for id in files], 3)
        there = first_of([f"'{sample.id}'" for sample in wanted], 3)
        doubt = next((f": {why}" for why in doubts.values()), "")
        raise UserError(
            f"none of the {len(files)} generated files belongs to one of the {len(wanted)} samples{doubt}",
            hint=f"files are matched by id or file stem; the files are {here or 'none'}, the samples {there or 'none'}",
        )
    used = {*found.values(), *source.problems}
    unmatched = sorted(id for id in files if id not in used) if source.complete else []
    matched = Source(source.name, samples, unmatched, source.complete)
    matched.taken = opened.taken
    return matched


def open_generated(generated: str | os.PathLike[str] | Sequence[Sample]) -> Source:
    """The generated audio that a folder, a manifest or samples name; see `match_estimates`.

    Raises:
        UserError: it cannot be opened; or a folder holds no sound file, and a manifest that names files elsewhere.
    """
    folder = generated if isinstance(generated, str | os.PathLike) and os.path.isdir(generated) else None
    manifest = manifest_in(os.fspath(folder)) if folder is not None else None
    if folder is None or manifest is None:
        return open_source(generated, require_audio=False)
    listed = open_source(manifest, require_audio=False)
    paths = [path for s in listed if (path := s.estimate or s.audio) is not None]
    elsewhere = next((path for path in paths if not _lies_in(path, os.fspath(folder))), None)
    name = os.path.basename(manifest)
    if elsewhere is None and any(map(_is_there, paths)):
        listed.taken = f"the files that its {name} names"
        return listed
    found = sounds_in(os.fspath(folder))
    why = f"names '{elsewhere}', which is not in the folder" if elsewhere else "names no file that is in the folder"
    if not len(found):
        raise UserError(
            f"the folder '{folder}' holds no sound file, and its {name} {why}",
            hint=f"if that is the generated audio, name the manifest itself: {manifest}",
        )
    found.taken = f"the sound files in the folder; its {name} was left out, since it {why}"
    return found


def _lies_in(path: str, folder: str) -> bool:
    located = find_locator(path)
    real = os.path.realpath(path if located is None else located.file)
    return real.startswith(os.path.join(os.path.realpath(folder), ""))


def _is_there(path: str) -> bool:
    located = find_locator(path)
    return os.path.isfile(path if located is None else located.file)


def stem_of_id(id: str) -> str:
    """The last part of an id: `a/b` gives `b`. An id has no suffix, so a dot in it stays."""
    return id.rpartition("/")[2]


def _file_stem(path: str | None) -> str | None:
    """The stem of a sound file; None for a sound in a table, because that file holds other sounds too."""
    return None if path is None or find_locator(path) is not None else stem(path)


def _match_stems(
    samples: list[Sample],
    files: dict[str, str],
    key: Callable[[Sample], str | None],
    found: dict[str, str],
    doubts: dict[str, str],
) -> None:
    """Adds to `found` each sample and file whose stem no other has, and to `doubts` why a sample has no certain file."""
    taken = set(found.values())
    by_stem: dict[str, list[str]] = {}
    for id, path in files.items():
        if id not in taken:
            by_stem.setdefault(normalize("NFC", _file_stem(path) or stem_of_id(id)), []).append(id)
    askers: dict[str, list[str]] = {}
    for sample in samples:
        if (name := normalize("NFC", key(sample) or "")) in by_stem:
            askers.setdefault(name, []).append(sample.id)
    for name, ids in askers.items():
        if len(ids) == 1 and len(by_stem[name]) == 1:
            found[ids[0]] = by_stem[name][0]
            continue
        for id in ids:
            several = " and ".join(f"'{file}'" for file in by_stem[name][:2])
            doubts[id] = (
                f"the generated files {several} could both belong to '{id}'"
                if len(by_stem[name]) > 1
                else f"the generated file {several} could belong to '{ids[0]}' or '{ids[1]}'"
            )
