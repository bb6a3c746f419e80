"""The folders of ESD, the Emotional Speech Dataset, as rows: a sentence to be said with an emotion, and a recording of its speaker.

`SPEAKER/SPEAKER.txt` has a line `SPEAKER_NUMBER<tab>WORDS<tab>EMOTION` for each recording, which lies below `SPEAKER/EMOTION`, in some copies in a
folder `train`, `test` or `evaluation` of it. A speaker says the same 350 sentences with each of five emotions, and their numbers go on: sentence 21
is 21 without emotion, 371 angry, 721 happy, 1071 sad and 1421 surprised. Sentences 21 to 50 are the test part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.layouts import FileRows, text_of
from codec_bench.data.hub import Place
from codec_bench.errors import UserError

COLUMNS = ("id", "text", "emotion", "audio", "prompt_text", "speaker")
SPEAKERS = {"zh": range(1, 11), "en": range(11, 21)}
"""The numbers of the speakers of each language."""
TEST = range(21, 51)
"""The numbers of the sentences of the test part."""
_BEFORE = {"neutral": 0, "angry": 350, "happy": 700, "sad": 1050, "surprised": 1400}
"""How many recordings of a speaker come before those with an emotion."""


def open_esd(place: Place, *, language: str, voice: str) -> FileRows:
    """The test sentences with each emotion but none, and as voice the speaker's recording of the sentence after, with the same emotion or without.

    Ids begin with the emotion as emotion2vec+ calls it, such as `angry_0011_000371`. In place of a recording that is not there stands its name.

    Args:
        place: where the files are, a folder.
        language: `en` or `zh`. voice: `neutral`, or `emotional` for a voice with the emotion that is asked for.

    Raises:
        UserError: the data are no folder, hold no speaker or no test sentence of the language, or name one test sentence only with an emotion, so that no other
            recording can be its voice.
    """
    root = Path(place.root or "")
    speakers = [name for name in (f"{number:04d}" for number in SPEAKERS[language]) if (root / name).is_dir()]
    if place.root is None or not speakers:
        first, last = SPEAKERS[language][0], SPEAKERS[language][-1]
        raise UserError(f"'{place.name}' has no folder of a speaker from {first:04d} to {last:04d}")
    rows = [row for speaker in speakers for row in _of_speaker(place, root, speaker, voice)]
    if not rows:
        raise UserError(
            f"'{speakers[0]}/{speakers[0]}.txt' of '{place.name}' names no test recording with an emotion; expected lines of a name such as "
            f"{speakers[0]}_{_BEFORE['angry'] + TEST[0]:06d}, a tab, words, a tab and an emotion"
        )
    return FileRows(place, COLUMNS, rows)


def _of_speaker(place: Place, root: Path, speaker: str, voice: str) -> list[tuple[str, dict[str, Any]]]:
    lines = (line.split("\t") for line in text_of(place, f"{speaker}/{speaker}.txt").splitlines())
    words = {fields[0].strip(): fields[1].strip() for fields in lines if len(fields) > 1}
    sounds = {file.stem: file for file in sorted((root / speaker).rglob("*.wav"))}
    rows: list[tuple[str, dict[str, Any]]] = []
    for emotion, before in _BEFORE.items():
        names = [name for number in TEST if (name := f"{speaker}_{before + number:06d}") in words]
        if len(names) == 1 and emotion != "neutral":
            raise UserError(
                f"'{speaker}/{speaker}.txt' names one {emotion} recording of the test part, '{names[0]}'; expected two or more, as another is its voice"
            )
        for at, name in enumerate(names if emotion != "neutral" else ()):
            spoken = names[(at + 1) % len(names)]
            if voice == "neutral":
                spoken = f"{speaker}_{int(spoken.rpartition('_')[2]) - before:06d}"
            row = {
                "id": f"{emotion}_{name}",
                "text": words[name],
                "emotion": emotion,
                "audio": Clip(str(sounds[spoken])) if spoken in sounds else f"{spoken}.wav",
                "prompt_text": words.get(spoken),
                "speaker": speaker,
            }
            rows.append((name, row))
    return rows
