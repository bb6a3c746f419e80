"""Common forms of speech with its texts, recognised by the files in a folder.

Which file to open
    `base.py`     the class of a layout. `tree.py` is the folder and its lines. The table `LAYOUTS` is here.
    `lists.py`    one utterance a line; `tables.py` tables and JSON lines; `sidecars.py` texts in files next to sounds;
                  `saved.py` Arrow files of the `datasets` library. `words.py` describes what was recognised.
    `benchmarks.py`  the layouts that definitions of benchmarks name; `benchmark_files.py`, `benchmark_pairs.py` and
                  `benchmark_styles.py` read them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from codec_bench.data.folder import read_folder
from codec_bench.data.layouts import lists, saved, sidecars, tables
from codec_bench.data.layouts.base import LayoutResult, Report, Role, TextLayout
from codec_bench.data.layouts.tree import Tree
from codec_bench.data.rows import Row
from codec_bench.messages.errors import UserError, first_of

__all__ = ["FOLDER", "LAYOUTS", "Report", "Role", "TextLayout", "Tree", "find_layout", "read_layout_rows"]

FOLDER = "folder of sounds"
_MOST_NAMED = 3
_MOST_TRIED = 1000


def _layout(
    name: str,
    form: str,
    pattern: str,
    claims: Callable[[Tree, str], bool],
    read: Callable[[Tree, Sequence[str]], LayoutResult],
    several: bool = False,
    preferred: str = "",
) -> TextLayout:
    return TextLayout(
        name, form, re.compile(rf"(?:.*/)?(?:{pattern})", re.IGNORECASE), claims, read, several, preferred
    )


LAYOUTS = (
    _layout("LJSpeech", "`metadata.csv` with `ID|TEXT|NORMALISED TEXT`, `wavs/ID.wav`",
            r"metadata[^/]*\.(?:csv|txt)", lists.claims_ljspeech, lists.read_ljspeech, preferred="metadata.csv"),
    _layout("LibriSpeech", "`SPEAKER/CHAPTER/SPEAKER-CHAPTER.trans.txt` next to FLAC files",
            r"[^/]*\.trans\.txt", lists.claims_librispeech, lists.read_librispeech, several=True),
    _layout("LibriTTS", "`ID.wav` with `ID.original.txt` and `ID.normalized.txt`",
            r"[^/]*\.(?:original|normalized)\.txt", sidecars.claims_libritts, sidecars.read_libritts, several=True),
    _layout("VCTK", "`txt/SPEAKER/ID.txt` and `wav*/SPEAKER/ID.wav` (or `ID_mic1.flac`)",
            r"[^/]*\.txt", sidecars.claims_vctk, sidecars.read_vctk, several=True),
    _layout("sound with text files", "`ID.wav` with `ID.txt` or `ID.lab` next to it",
            r"[^/]*\.(?:txt|lab)", sidecars.claims_sidecar, sidecars.read_sidecars, several=True),
    _layout("Common Voice", "`validated.tsv`, or `train.tsv`, `dev.tsv` and `test.tsv`, with `clips/`",
            r"[^/]*\.tsv", tables.claims_common_voice, tables.read_common_voice, several=True),
    _layout("Kaldi and ESPnet", "`wav.scp` with `text`, `utt2spk`, `utt2lang`, `segments`; commands are not run",
            r"wav\.scp", lists.claims_always, lists.read_kaldi),
    _layout("NeMo", "JSON lines with `audio_filepath`, `text` and perhaps `duration` and `offset`",
            r"[^/]*\.jsonl?", tables.claims_nemo, tables.read_nemo),
    _layout("Lhotse", "`recordings*.jsonl.gz` and `supervisions*.jsonl.gz`, or `cuts*.jsonl.gz`",
            r"[^/]*\.jsonl(?:\.gz)?", tables.claims_lhotse, tables.read_lhotse, several=True),
    _layout("Seed-TTS", "`meta.lst` with `NAME|PROMPT TEXT|PROMPT WAV|TEXT` and perhaps `|RECORDING`",
            r"[^/]*\.lst", lists.claims_seed_tts, lists.read_seed_tts, preferred="meta.lst"),
    _layout("ESD", "`0011/0011.txt` with `ID<tab>TEXT<tab>EMOTION`, `0011/EMOTION/ID.wav`",
            r"\d{4}\.txt", lists.claims_esd, lists.read_esd, several=True),
    _layout("audiofolder", "`metadata.csv`, `.jsonl` or `.parquet` with a column `file_name`; folders of splits",
            r"metadata\.(?:csv|tsv|jsonl|parquet)", tables.claims_audiofolder, tables.read_audiofolder, several=True),
    _layout("datasets.save_to_disk", "`state.json` and Arrow files, also in folders of splits",
            r"state\.json", saved.claims_saved, saved.read_saved, several=True),
    _layout("WebDataset", "`*.tar` with `ID.wav`, `ID.txt`, `ID.json`",
            r"[^/]*\.tar", lists.claims_always, tables.read_tars, several=True),
)  # fmt: skip
"""Every layout. The first that claims a text file wins; special ones precede general ones."""


def find_layout(tree: Tree, named: str | None = None) -> tuple[TextLayout, list[str]] | None:
    """Recognise the layout of a folder of speech data, or of the named file in it.

    Returns:
        The layout and its text files, or None if no layout matches.

    Raises:
        UserError: the folder has several layouts, or several lists of a single-list layout.
    """
    if named is not None:
        recognised = next((one for one in LAYOUTS if one.pattern.fullmatch(named) and one.claims(tree, named)), None)
        if recognised is None and lists.claims_ljspeech(tree, named) and named.endswith((".csv", ".txt")):
            recognised = LAYOUTS[0]
        return None if recognised is None else (recognised, _siblings(tree, recognised, named))
    there = {}
    for layout in LAYOUTS:
        files = [file for file in tree.others if layout.pattern.fullmatch(file)]
        claimed = next((file for file in islice(files, _MOST_TRIED) if layout.claims(tree, file)), None)
        if claimed is not None:
            there[layout.name] = (layout, claimed, files)
    if "VCTK" in there or "LibriTTS" in there:
        there.pop("sound with text files", None)
    if len(there) > 1:
        both = " and ".join(f"{name} ({claimed})" for name, (_, claimed, _) in list(there.items())[:2])
        raise UserError("two_layouts", folder=tree.root, layouts=both, hint="name the file to be read")
    if not there:
        return None
    ((layout, _, files),) = there.values()
    return layout, (files if layout.several else [_one_list(tree, layout, files)])


def _siblings(tree: Tree, layout: TextLayout, named: str) -> list[str]:
    """The named file and those that it needs: Lhotse supervisions with recordings."""
    if layout.name != "Lhotse":
        return [named]
    candidates = sorted(name for name in os.listdir(tree.root) if layout.pattern.fullmatch(name) and name != named)
    mine = tables.kind_of_lhotse(tree, named)
    others = {"supervisions": "recordings", "recordings": "supervisions"}
    return [named, *(name for name in candidates if tables.kind_of_lhotse(tree, name) == others.get(mine or ""))]


def _one_list(tree: Tree, layout: TextLayout, files: Sequence[str]) -> str:
    """Select the list nearest to the root; UserError if several are equally near."""
    claimed = [file for file in files if layout.claims(tree, file)]
    least = min(file.count("/") for file in claimed)
    nearest = [file for file in claimed if file.count("/") == least]
    preferred = [file for file in nearest if posixpath.basename(file) == layout.preferred]
    if len(nearest) > 1 and len(preferred) != 1:
        raise UserError(
            "several_lists",
            folder=tree.root,
            count=len(nearest),
            layout=layout.name,
            lists=first_of(nearest, _MOST_NAMED),
            hint=f"name one, such as {tree.path(nearest[0])}",
        )
    return (preferred or nearest)[0]


def read_layout_rows(
    tree: Tree, layout: tuple[TextLayout, list[str]] | None, *, require_audio: bool
) -> tuple[list[Row], Report]:
    """Return the rows of a folder, and a report of its layout and ignored files.

    Args:
        layout: the layout with its files, as `find_layout` gives it; None for a folder of sounds alone.
        require_audio: whether a row without a sound is a problem.
    """
    if layout is None:
        reading = LayoutResult(read_folder(tree.root, tree.sounds), lists_sounds=False)
    else:
        reading = layout[0].read(tree, layout[1])
    report = Report(FOLDER if layout is None else layout[0].name, list(reading.used), role=reading.role)
    rows, used, without_text = [], {*reading.used, *reading.known}, []
    for row in _with_words(tree, reading.rows, used):
        if row.lacks_sound and row.problem is not None:
            report.absent.append(row.id or row.name or row.problem)
            if not require_audio and row.text is not None:
                row = row._replace(problem=None, audio=None)
        elif row.problem is None and row.text is None and (name := row.name or row.id):
            without_text.append(name)
        rows.append(row)
    if layout is not None and (not reading.lists_sounds or any(row.text is not None for row in rows)):
        report.unlisted = without_text
    inside = os.path.join(tree.root, "")
    if reading.lists_sounds and all(row.audio is None or row.audio.startswith(inside) for row in rows):
        files = {row.audio.removeprefix(inside).split("#t=")[0] for row in rows if row.audio is not None}
        report.unlisted += [sound for sound in tree.sounds if sound not in files]
    report.unread = [file for file in tree.texts if file not in used] if tree.sounds or layout is not None else []
    return rows, report


def _with_words(tree: Tree, rows: Iterable[Row], used: set[str]) -> Iterator[Row]:
    """Add each row's text from the file next to its audio; `used` collects these."""
    for row in rows:
        row, file = sidecars.add_words(tree, row)
        if file is not None:
            used.add(file)
        yield row
