"""Make the embedded speech and the digits of listening tests, as FLAC.

Free 16 kHz voices read sentences of the project. Speech has manifests.

Run it with Debian's `flite`, `festival`, `festvox-kdlpc16k`, `festlex-cmu` and `festlex-poslex`, and with the Python
package `py-nanotts`. These programs have no random state, so the same versions give the same samples on every run. The
FLAC encoder is lossless, and two versions of it may pack the same samples into different bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path

from codec_bench import Audio
from codec_bench.audio.encode import write_flac

FOLDER = Path(__file__).resolve().parent.parent / "codec_bench" / "data" / "embedded"
VOICES_FOLDER = FOLDER.parent / "embedded_voices"
DIGITS_FOLDER = FOLDER.parent.parent / "apps" / "listening" / "spoken_digits"
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGITS_VOICE = "slt"
RATE_HZ = 16_000

# Written for this project, so that no rights of others are touched. Between them they hold every consonant and vowel of
# American English; words are common ones, so that a small recogniser has a chance and its errors tell codecs apart.
SENTENCES = {
    "awb": (
        "The farmer put seven white eggs in a round basket.",
        "A cold wind blew across the river before the morning came.",
        "She asked the young doctor to look at her left shoulder.",
        "Both brothers took the early train to the coast on Friday.",
        "Fresh bread and butter were waiting on the kitchen table.",
        "The judge thought about the question for a very long time.",
        "Nobody could hear the music over the noise of the engine.",
        "Our teacher wrote the answer in large letters on the wall.",
    ),
    "kal16": (
        "The small boat turned slowly and went back to the shore.",
        "Please leave the keys with my neighbor when you go out.",
        "He paid twelve dollars for a book about the old railroad.",
        "Gray smoke was rising from the chimney of the yellow house.",
        "The children played in the garden until it was dark.",
        "A good map would have saved us an hour on the road.",
        "They measured the length of the bridge with a piece of string.",
        "Every winter the birds fly south in search of food.",
    ),
    "rms": (
        "The captain gave the order and the ship began to move.",
        "There is a green field on the other side of this hill.",
        "Mary joined the band because she loved to play the drums.",
        "It was just after eight when the phone rang in the office.",
        "The heavy box fell from the shelf and broke into pieces.",
        "You should drink more water when the weather is this hot.",
        "His father built the whole cabin without any machine.",
        "We watched the bright moon shine through the open window.",
    ),
    "slt": (
        "The new student was too shy to speak to anyone at lunch.",
        "An old dog was sleeping under the bench near the church.",
        "I usually choose the blue cup and leave the others alone.",
        "The price of oil has gone up again since last month.",
        "Put the clean shirts in the drawer and close the door.",
        "A strange voice called my name from the top of the stairs.",
        "The baker sold forty cakes on the first day of the fair.",
        "Sunlight warmed the rough stones at the edge of the lake.",
    ),
}
# Sentences of the demo. PocketSphinx transcribes each of them without an error before it is coded.
VOICE_SENTENCES = {
    "awb": ("The road was wet after the rain.", "It began to rain before noon."),
    "kal16": ("We need some milk and fresh bread.", "There was a strong wind from the north."),
    "ked": ("The water in the lake is cold.", "They built a new school last year."),
    "pico-gb": ("The church bells rang for an hour.", "Nobody knows what happened to the money."),
    "pico-us": ("The bridge was closed for the winter.", "Can you help me move this table?"),
    "rms": ("She found the letter under the bed.", "There is enough water for the horses."),
    "slt": ("We should leave before it gets dark.", "Our teacher asked a difficult question."),
}
PICO = {"pico-gb": "en-GB", "pico-us": "en-US"}
PICO_VOLUME = 0.6  # at 1 it clips


def flite_version() -> str:
    """What `flite --version` calls itself."""
    version = subprocess.run(["flite", "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"flite-\S+ \w+ \d{4}", version.stdout + version.stderr)
    if match is None:
        raise SystemExit("`flite --version` did not name a version")
    return match[0]


def make(folder: Path, read: Mapping[str, Sequence[str]] = SENTENCES) -> float:
    """Write each voice's clips and the manifest; return the seconds of speech."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, seconds = [], 0.0
    for speaker, sentences in read.items():
        for number, text in enumerate(sentences, 1):
            name = f"{speaker}_{number:02d}"
            seconds += speak(speaker, text, folder / f"{name}.flac")
            rows.append({"id": name, "audio": f"{name}.flac", "text": text, "speaker": speaker, "language": "en"})
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (folder / "manifest.jsonl").write_text("".join(lines), "utf-8")
    return seconds


def speak(voice: str, text: str, path: Path) -> float:
    """Writes what a voice says as FLAC; returns its seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        path_wav = Path(scratch) / "said.wav"
        if voice in PICO:
            _speak_with_pico(voice, text, path_wav)
        elif voice == "ked":
            command = ["text2wave", "-eval", "(voice_ked_diphone)", "-o", str(path_wav)]
            subprocess.run(command, input=text.encode(), check=True)
        else:
            subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(path_wav)], check=True)
        audio = Audio.read(path_wav)
    if audio.sample_rate_hz != RATE_HZ or audio.channels != 1:
        raise SystemExit(f"voice {voice} gave {audio.channels} channels at {audio.sample_rate_hz} Hz")
    write_flac(path, audio)
    return audio.duration_s


def _speak_with_pico(voice: str, text: str, path: Path) -> None:
    from py_nanotts import NanoTTS

    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
        file.writeframes(NanoTTS().speak(text, voice=PICO[voice], volume=PICO_VOLUME))


def make_digits(folder: Path) -> None:
    """Writes the digits of the check of hearing into `folder`, named 0 to 9."""
    folder.mkdir(parents=True, exist_ok=True)
    for digit, word in enumerate(DIGITS):
        speak(DIGITS_VOICE, f"{word}.", folder / f"{digit}.flac")


def main() -> None:
    """Parses the command line and makes the speech."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder to write (default: the package's own)")
    parser.add_argument(
        "--digits", type=Path, default=DIGITS_FOLDER, help="folder of the digits (default: the package's own)"
    )
    parser.add_argument(
        "--voices", type=Path, default=VOICES_FOLDER, help="folder of the demo's speech (default: the package's own)"
    )
    arguments = parser.parse_args()
    make_digits(arguments.digits)
    for folder, read in ((arguments.out, SENTENCES), (arguments.voices, VOICE_SENTENCES)):
        seconds = make(folder, read)
        sys.stderr.write(
            f"{flite_version()}: {sum(map(len, read.values()))} utterances, {seconds:.1f} s, in {folder}\n"
        )


if __name__ == "__main__":
    main()
