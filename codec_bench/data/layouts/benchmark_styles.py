"""Sentences in several styles: a text to speak, and a recording as voice.

`esd` reads the folders of ESD, the Emotional Speech Dataset: `SPEAKER/SPEAKER.txt` has a line
`SPEAKER_NUMBER<tab>WORDS<tab>EMOTION` for each recording below `SPEAKER/EMOTION`. Each of five emotions has the same
350 sentences with consecutive numbers: sentence 21 is 21 neutral, 371 angry, 721 happy, 1071 sad and 1421 surprised.
Sentences 21 to 50 are the test part.

`expresso` reads the table of Expresso's read speech, with the columns `id`, `text` and `audio`. Each of seven styles
has the same 380 sentences, with ids such as `ex01_sad_00345`. Other ids (stressed words, long texts, songs) are
ignored. Sentences 345 to 380 are read: their happy, sad and neutral recordings are not in the authors' training part.
Marks such as `*stressed*` and `<laugh>` are removed from the text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codec_bench.audio.clip import Clip
from codec_bench.data.hub import Repository
from codec_bench.data.layouts.benchmark_files import FileRows, text_of
from codec_bench.data.layouts.lists import ESD_SPEAKERS, esd_words
from codec_bench.messages.errors import UserError
from codec_bench.text.tags import without_tags

if TYPE_CHECKING:
    from codec_bench.data.table import Table

COLUMNS = ("id", "text", "emotion", "audio", "prompt_text", "speaker")
NEUTRAL = "neutral"
TEST = range(21, 51)
"""The numbers of the sentences of ESD's test part."""
_BEFORE = {NEUTRAL: 0, "angry": 350, "happy": 700, "sad": 1050, "surprised": 1400}
"""By emotion, the number of a speaker's recordings before it in ESD."""
EXPRESSO_COLUMNS = ("id", "text", "audio")
EXPRESSO_TEST = range(345, 381)
"""The numbers of the sentences to read of Expresso."""
_EXPRESSO = {NEUTRAL: "default"} | {
    style: style for style in ("confused", "enunciated", "happy", "laughing", "sad", "whisper")
}
"""Expresso's word for each style in an id."""
_EXPRESSO_ID = re.compile(r"(?P<speaker>ex\d+)_(?P<style>[a-z]+)_(?P<number>\d+)")
VOICE_WORDS = 8
"""The fewest words of an Expresso recording for a voice: some of its sentences are a single word."""


@dataclass(frozen=True, slots=True)
class _Speaker:
    """The recordings of one speaker.

    Args:
        where: the name of the recordings in messages.
        words, sounds: by the recording's name.
        named: the name of the recording of a sentence in a style.
    """

    name: str
    where: str
    words: Mapping[str, str]
    sounds: Mapping[str, Clip]
    named: Callable[[str, int], str]

    def rows(
        self, styles: Iterable[str], numbers: range, voice: str, fewest_words: int = 0
    ) -> list[tuple[str, dict[str, Any]]]:
        """The rows of all sentences in every style except neutral, with their voices.

        The voice is the next sentence of enough words (cyclically), in the same style or, if `voice` is neutral,
        neutral.

        Args:
            numbers: of the sentences.
            fewest_words: that a sentence of the voice has.

        Returns:
            (recording's name, row) of each.
        """
        rows: list[tuple[str, dict[str, Any]]] = []
        for style in (style for style in styles if style != NEUTRAL):
            utterances = {number: name for number in numbers if (name := self.named(style, number)) in self.words}
            of_voice = NEUTRAL if voice == NEUTRAL else style
            names = {number: self.named(of_voice, number) for number in utterances}
            voices = [number for number in names if len(self.words.get(names[number], "").split()) >= fewest_words]
            for number, name in utterances.items():
                others = [other for other in voices if other != number]
                if not others:
                    length = f" of {fewest_words} words or more" if fewest_words else ""
                    raise UserError("no_voice_recording", listed=self.where, style=of_voice, name=name, words=length)
                spoken = names[min(others, key=lambda other: (other < number, other))]
                row = {
                    "id": f"{style}_{name}",
                    "text": self.words[name],
                    "emotion": style,
                    "audio": self.sounds.get(spoken, f"{spoken}.wav"),
                    "prompt_text": self.words.get(spoken),
                    "speaker": self.name,
                }
                rows.append((name, row))
        return rows


def open_esd(repository: Repository, *, language: str, voice: str) -> FileRows:
    """Read ESD's test sentences by emotion, each with a recording of the voice.

    That is the speaker's next sentence, in the same emotion or neutral. Ids begin with the emotion's name in
    emotion2vec+, such as `angry_0011_000371`. The name of a missing recording replaces it.

    Args:
        language: `en` or `zh`.
        voice: `neutral`, or `emotional` for a voice with the requested emotion.

    Raises:
        UserError: the data are no folder, have no speaker or test sentence of the language, or no recording for a
            voice.
    """
    root = Path(repository.root or "")
    speakers = [name for name in (f"{number:04d}" for number in ESD_SPEAKERS[language]) if (root / name).is_dir()]
    if repository.root is None or not speakers:
        first, last = ESD_SPEAKERS[language][0], ESD_SPEAKERS[language][-1]
        raise UserError("no_speaker_folder", name=repository.name, first=first, last=last)
    rows = [
        row for speaker in speakers for row in _read_esd_speaker(repository, root, speaker).rows(_BEFORE, TEST, voice)
    ]
    if not rows:
        raise UserError(
            "no_emotional_recording", speaker=speakers[0], name=repository.name, first=_BEFORE["angry"] + TEST[0]
        )
    return FileRows(repository, COLUMNS, rows)


def _read_esd_speaker(repository: Repository, root: Path, speaker: str) -> _Speaker:
    """Collect the texts and recordings of one ESD speaker."""
    listed = f"{speaker}/{speaker}.txt"
    lines = enumerate(text_of(repository, listed).split("\n"), 1)
    words = {name: text for _, name, text, _ in esd_words(lines) if text is not None}
    sounds = {file.stem: Clip(str(file)) for file in sorted((root / speaker).rglob("*.wav"))}
    return _Speaker(
        speaker,
        f"'{listed}' of '{repository.name}'",
        words,
        sounds,
        lambda style, number: f"{speaker}_{_BEFORE[style] + number:06d}",
    )


def open_expresso(
    repository: Repository, table: Table, *, voice: str, keep: Callable[[Mapping[str, Any]], bool]
) -> FileRows:
    """Read Expresso's test sentences by style, each with a recording of the voice.

    That is the speaker's next sentence of eight or more words. Ids begin with the style, such as `sad_ex01_sad_00345`.

    Args:
        table: its rows, with `EXPRESSO_COLUMNS`.
        voice: `neutral`, or `emotional` for a voice in the requested style.
        keep: whether the definition reads a row.

    Raises:
        UserError: no row is a recording of a test sentence, or there is no voice for one.
    """
    words: defaultdict[str, dict[str, str]] = defaultdict(dict)
    sounds: dict[str, Clip] = {}
    for _, row in table:
        name = str(row.get("id"))
        match = _EXPRESSO_ID.fullmatch(name)
        if match is None or int(match["number"]) not in EXPRESSO_TEST:
            continue
        words[match["speaker"]][name] = without_tags(str(row["text"] or "").replace("*", ""))[0].strip()
        if row["audio"] is not None:
            sounds[name] = row["audio"]
    speakers = [
        _Speaker(name, f"'{repository.name}'", words[name], sounds, partial(_expresso_name, name))
        for name in sorted(words)
    ]
    rows = [row for speaker in speakers for row in speaker.rows(_EXPRESSO, EXPRESSO_TEST, voice, VOICE_WORDS)]
    if not rows:
        expected = f"expected ids such as ex01_sad_{EXPRESSO_TEST[0]:05d}"
        raise UserError("no_test_recording", name=repository.name, expected=expected)
    return FileRows(repository, COLUMNS, [(key, row) for key, row in rows if keep(row)])


def _expresso_name(speaker: str, style: str, number: int) -> str:
    return f"{speaker}_{_EXPRESSO[style]}_{number:05d}"
