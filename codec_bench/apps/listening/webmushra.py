"""webMUSHRA (audiolabs/webMUSHRA): configurations with audio, and results.

`configs/SHEET.yaml` has one `mushra` page per trial, `configs/resources/SHEET/` the audio; conditions are named by test
ids. webMUSHRA adds the hidden reference; anchors are ours, as conditions. Audio is 16-bit WAV of 48 kHz, since
webMUSHRA refuses rates other than the computer's. Results are `results/SHEET/mushra.csv`: `session_test_id`, the
questionnaire, `session_uuid` (not in old versions), `trial_id`, `rating_stimulus`, `rating_score`, `rating_time` (ms)
and `rating_comment`.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.listening.key import REFERENCE, REFERENCE_ROLE, SUFFIX, Key, Trial, anchor_name, write_key
from codec_bench.apps.listening.material import Material
from codec_bench.apps.listening.sheet import ListeningPlan, ListeningSheet, make_key, name_trials, select, written_sheet
from codec_bench.audio.clip import wav_bytes
from codec_bench.messages.errors import UserError, on_disk

RATE_HZ = 48_000
HIDDEN = "reference"
"""webMUSHRA's name of the hidden reference."""
_OWN_ANCHORS = {"anchor35": "3.5k", "anchor70": "7k"}
"""Names of webMUSHRA's anchors."""
_NEEDED = ("session_test_id", "trial_id", "rating_stimulus", "rating_score")
_RATER = "rater"

_INTEGER = re.compile(r"-?[0-9]{1,9}")

Row = tuple[str, str, Any, float | None]


def write_webmushra(material: Material, plan: ListeningPlan, folder: Path) -> ListeningSheet:
    """Write a MUSHRA test for webMUSHRA into a folder, and its key next to the folder."""
    if plan.kind.name != "mushra":
        raise UserError("webmushra_kind", kind=plan.kind.name, hint="write the page of this project with --format page")
    if plan.checks or plan.gold or plan.traps or plan.session or plan.session_minutes:
        raise UserError(
            "webmushra_without_checks", hint="write the page of this project with --format page, or leave them out"
        )
    selection = select(
        material, plan, lambda sounds: {name: wav_bytes(sound) for name, sound in sounds.items()}, rate_hz=RATE_HZ
    )
    key = make_key(material, plan, name_trials(selection, plan))
    sounds = Path("configs", "resources", key.sheet)
    pages, size = [], 0
    with on_disk("file_not_writable", path=folder):
        (folder / sounds).mkdir(parents=True, exist_ok=True)
        for trial, drawn in zip(key.trials, selection.trials):
            files = selection.files[drawn.item.id]
            placed = {f"{trial.id}_{HIDDEN}": files[REFERENCE]}
            placed |= {one.id: files[one.system] for one in trial.stimuli if one.role != REFERENCE_ROLE}
            for name, content in placed.items():
                (folder / sounds / f"{name}.wav").write_bytes(content)
                size += len(content)
            pages.append(_trial_page(trial.id, list(placed), sounds, training=trial.training))
        config = folder / "configs" / f"{key.sheet}.yaml"
        config.write_text(_config(key, plan, pages), encoding="utf-8")
    key_path = folder.with_name(folder.name + SUFFIX)
    write_key(key, key_path)
    return written_sheet(folder, key_path, key, selection, ("16-bit WAV", size / 1e6, size / 1e6))


def _trial_page(id: str, files: Sequence[str], sounds: Path, *, training: bool) -> dict[str, Any]:
    """Build a page of webMUSHRA from a trial's files."""
    reference, *stimuli = files
    return {
        "type": "mushra",
        "id": id,
        "name": "Practice" if training else "Trial",
        "content": "",
        "showWaveform": True,
        "enableLooping": True,
        "reference": f"{sounds.as_posix()}/{reference}.wav",
        "createAnchor35": False,
        "createAnchor70": False,
        "randomize": True,
        "showConditionNames": False,
        "stimuli": {name: f"{sounds.as_posix()}/{name}.wav" for name in stimuli},
    }


def _config(key: Key, plan: ListeningPlan, pages: Sequence[Mapping[str, Any]]) -> str:
    """Format webMUSHRA's YAML configuration, with practice first, others shuffled."""
    import yaml

    # webMUSHRA inserts contents as markup.
    instructions = "".join(f"<p>{html.escape(text)}</p>" for text in plan.instructions)
    practice = sum(trial.training for trial in key.trials)
    content = {
        "testname": html.escape(plan.title),
        "testId": key.sheet,
        "bufferSize": 2048,
        "stopOnErrors": True,
        "showButtonPreviousPage": True,
        "remoteService": "service/write.php",
        "pages": [
            {"type": "generic", "id": "instructions", "name": html.escape(plan.title), "content": instructions},
            *pages[:practice],
            ["random", *pages[practice:]],
            {
                "type": "finish",
                "name": "Thank you",
                "content": "Please write your name and send the results.",
                "showResults": False,
                "writeResults": True,
                "questionnaire": [{"type": "text", "label": "Your name", "name": _RATER}],
            },
        ],
    }
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))


def read_results(path: Path) -> list[tuple[str, str, list[Row]]]:
    """Read the results of webMUSHRA's MUSHRA pages.

    Returns:
        For each session test id, rater, and ratings as (trial, stimulus, score, seconds). The rater is the
        questionnaire's field `rater`, else its first field, else the session id.

    Raises:
        UserError: the file cannot be read, or is no such table.
    """
    with on_disk("file_not_readable", path=path):
        text = path.read_bytes().decode("utf-8-sig")
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise UserError("not_csv", path=path, cause=error) from error
    head = lines[0] if lines else []
    lacking = [name for name in _NEEDED if name not in head]
    if lacking:
        raise UserError("not_a_webmushra_table", path=path, columns=", ".join(lacking))
    sessions: dict[tuple[str, str, str], list[Row]] = {}
    for line in lines[1:]:
        if not line:
            continue
        row = dict(zip(head, line))
        rater = _rater_name(row, head)
        session = (row.get("session_test_id", ""), rater, row.get("session_uuid", ""))
        sessions.setdefault(session, []).append(_rating(row))
    return [(sheet, rater, rows) for (sheet, rater, _), rows in sessions.items()]


def _rater_name(row: Mapping[str, str], head: Sequence[str]) -> str:
    """Return a row's rater: the first filled field, or the session id."""
    columns = head[1 : head.index("session_uuid" if "session_uuid" in head else "trial_id")]
    for name in (_RATER, *columns, "session_uuid"):
        rater_name = " ".join(row.get(name, "").split())
        if rater_name:
            return rater_name
    return "(no name)"


def _rating(row: Mapping[str, str]) -> Row:
    """Return (trial, stimulus, score, seconds) of a line; malformed scores stay text."""
    score, time = row.get("rating_score", "").strip(), row.get("rating_time", "").strip()
    value = int(score) if _INTEGER.fullmatch(score) else score
    seconds = abs(int(time)) / 1000 if _INTEGER.fullmatch(time) else None
    return row.get("trial_id", ""), row.get("rating_stimulus", ""), value, seconds


def own_id(stimulus: str, trial: Trial) -> str:
    """Return the id of a stimulus that webMUSHRA names itself."""
    system = REFERENCE if stimulus == HIDDEN else anchor_name(_OWN_ANCHORS.get(stimulus, ""))
    return next((one.id for one in trial.stimuli if one.system == system), stimulus)
