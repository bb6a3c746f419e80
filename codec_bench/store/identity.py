"""Identity of a run's benchmark: data, rows, prompt, reading, options, precision.

Unrecorded parts are None and are not compared. Scoring is part of a metric's protocol.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codec_bench.store.answers import has_answers
from codec_bench.store.controls import ANOTHER, control_of
from codec_bench.store.draws import AS_WRITTEN
from codec_bench.store.record import Run, recorded_request

_OF_DATA = ("data", "fields", "language", "wants", "too_long", "windows")
_ELSEWHERE = ("revision",)
"""The source of data, not their content; `rows` covers that."""
HALF = "half precision"
_HALVES = ("float16", "bfloat16")
_QUESTIONS = (
    "SELECT COALESCE(q.draw_of, p.id), q.fields, q.expected FROM questions q JOIN samples p ON p.number = q.number "
    "WHERE COALESCE(q.draw, 0) = 0 ORDER BY 1"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The parts that make two benchmarks the same; each is a hash, or None if unknown.

    Args:
        data: the data of the columns.
        rows: questions with expected answers.
        prompt: with its wording.
        reading: how answers are read.
        choices: order of options.
        control: in words, or "".
    """

    data: str | None = None
    rows: str | None = None
    prompt: str | None = None
    reading: str | None = None
    choices: str | None = None
    precision: str | None = None
    control: str | None = None

    def differences(self, other: Identity, *, rows: bool = True) -> list[str]:
        """List differences from another benchmark, in words such as `other prompt`.

        Args:
            rows: whether to compare questions, which parts of unequal size never share.
        """
        different = [
            name
            for name in ("data", "rows", "prompt", "reading", "choices", "precision", "control")
            if (rows or name != "rows")
            and None not in (getattr(self, name), getattr(other, name))
            and getattr(self, name) != getattr(other, name)
        ]
        words = {
            "rows": "other data",
            "choices": "other order of options",
            "precision": self.precision or "other precision",
            "control": f"control: {self.control or other.control}",
        }
        return list(dict.fromkeys(words.get(name, f"other {name}") for name in different))


def identity_of(run: Run) -> Identity:
    """Identity of the benchmark, or of the data, of a run."""
    requested, scored = recorded_request(run.meta), (run.meta.get("fingerprint") or {}).get("scored")
    scored = scored if isinstance(scored, Mapping) else {}
    if not has_answers(run):
        return Identity(rows=hashed(sorted([s.id, s.text, s.language] for s in run.samples())))
    options = ((run.meta.get("config") or {}).get("options") or {}).values()
    half = any(isinstance(of, Mapping) and of.get("dtype") in _HALVES for of in options)
    shuffled = requested.get("choices", AS_WRITTEN) != AS_WRITTEN
    control = control_of(run)
    other_texts = shuffled or (control is not None and control.sound == ANOTHER)
    return Identity(
        data=data_hash(requested) if "data" in requested else None,
        # Options in another order are other texts of the same questions, and the sounds of other items are named in
        # them.
        rows=None if other_texts else hashed([list(row) for row in run.query(_QUESTIONS)]),
        prompt=hashed(requested["prompt"]) if "prompt" in requested else None,
        reading=hashed(scored["postprocess"]) if "postprocess" in scored else None,
        choices=hashed(requested.get("choices", AS_WRITTEN)) if requested else None,
        precision=HALF if half else "",
        control=None if control is None else control.words,
    )


def question_hashes(run: Run) -> dict[str, str]:
    """Hash of each question of a run with its expected answer, by id."""
    return {id: hashed([fields, expected]) for id, fields, expected in run.query(_QUESTIONS)}


def data_hash(facts: Mapping[str, Any]) -> str:
    """Hash of the data source that a benchmark's definition or a record names."""
    held = {name: facts.get(name) for name in _OF_DATA}
    data = {name: value for name, value in (held.pop("data") or {}).items() if name not in _ELSEWHERE}
    # The revision of a user's file is a hash of its content; on the hub it names the origin of the rows.
    return hashed([data, held, facts.get("revision") if data.get("path") else None])


def hashed(value: Any) -> str:
    """Return a short hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
