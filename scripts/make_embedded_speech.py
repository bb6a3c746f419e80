"""Makes the embedded speech: our own sentences read by Flite's free 16 kHz voices, as FLAC with a manifest; and the
digits of listening tests.

Run it where Debian's `flite` is installed (`apt install flite`): `python scripts/make_embedded_speech.py`. Flite has no
random state, so the same version of Flite gives the same samples on every run; the FLAC encoder is lossless, and two
versions of it may pack the same samples into different bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from codec_bench import Audio
from codec_bench.audio.encode import write_flac

FOLDER = Path(__file__).resolve().parent.parent / "codec_bench" / "data" / "embedded"
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


def flite_version() -> str:
    """What `flite --version` calls itself."""
    said = subprocess.run(["flite", "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"flite-\S+ \w+ \d{4}", said.stdout + said.stderr)
    if match is None:
        raise SystemExit("`flite --version` did not name a version")
    return match[0]


def make(folder: Path) -> float:
    """Writes every utterance and the manifest into `folder`; returns the seconds of speech."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, seconds = [], 0.0
    for speaker, sentences in SENTENCES.items():
        for number, text in enumerate(sentences, 1):
            name = f"{speaker}_{number:02d}"
            seconds += say(speaker, text, folder / f"{name}.flac")
            rows.append({"id": name, "audio": f"{name}.flac", "text": text, "speaker": speaker, "language": "en"})
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (folder / "manifest.jsonl").write_text("".join(lines), "utf-8")
    return seconds


def say(voice: str, text: str, path: Path) -> float:
    """Writes what a voice says as FLAC; returns its seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        wave = Path(scratch) / "said.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(wave)], check=True)
        audio = Audio.read(wave)
    if audio.sample_rate_hz != RATE_HZ or audio.channels != 1:
        raise SystemExit(f"voice {voice} gave {audio.channels} channels at {audio.sample_rate_hz} Hz")
    write_flac(path, audio)
    return audio.duration_s


def make_digits(folder: Path) -> None:
    """Writes the digits of the check of hearing into `folder`, named 0 to 9."""
    folder.mkdir(parents=True, exist_ok=True)
    for digit, word in enumerate(DIGITS):
        say(DIGITS_VOICE, f"{word}.", folder / f"{digit}.flac")


def main() -> None:
    """Parses the command line and makes the speech."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder to write (default: the package's own)")
    parser.add_argument(
        "--digits", type=Path, default=DIGITS_FOLDER, help="folder of the digits (default: the package's own)"
    )
    given = parser.parse_args()
    out, seconds = given.out, make(given.out)
    make_digits(given.digits)
    sys.stderr.write(f"{flite_version()}: {sum(map(len, SENTENCES.values()))} utterances, {seconds:.1f} s, in {out}\n")


if __name__ == "__main__":
    main()
