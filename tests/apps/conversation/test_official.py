"""Full-Duplex-Bench's definitions against what its own script gives, and in a session with words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refuses

from codec_bench.apps.conversation.full_duplex import WORDS, latency_s, official_values, read_words, takes_turn
from codec_bench.apps.conversation.measures import OFFICIAL

from .test_measures import event, written

CASES = json.loads((Path(__file__).parents[2] / "golden" / "full_duplex_bench.json").read_text())["cases"]


def test_their_script_gives_the_same():
    assert len(CASES) == 63 and {case["take_turn"] for case in CASES} == {0, 1}
    for case in CASES:
        words = [tuple(word) for word in case["words"]]
        assert takes_turn(words) == bool(case["take_turn"]), case
        assert latency_s(words, case["end_s"]) == pytest.approx(case["latency_s"], abs=1e-6), case


def test_the_words_of_a_session(tmp_path):
    """A short word in the pause, the answer 0.7 s after the turn, and a last word without an end."""
    words = [[2.4, 2.6], [4.7, 5.0], [5.0, 5.3], [5.4, 5.5], [5.8, None]]
    chunks = [{"text": "w", "timestamp": word} for word in words]
    (tmp_path / WORDS).write_text(json.dumps({"text": "", "chunks": chunks}))
    session = written([], [event("turn", (1.0, 2.0), (3.0, 4.0), pauses=[(2.0, 3.0)])])
    measured = {value.measure: value.value for value in official_values(session, read_words(tmp_path))}
    assert measured == {f"{OFFICIAL}/take_turn": 1, f"{OFFICIAL}/latency_s": 0, f"{OFFICIAL}/pause_take_turn": 0}
    session.events[0].speech[0] = (2.7, 2.9)  # what came before the turn began is not of it
    measured = {value.measure: value.value for value in official_values(session, read_words(tmp_path))}
    assert measured[f"{OFFICIAL}/latency_s"] == pytest.approx(0.7)


def test_no_words_and_wrong_words(tmp_path):
    assert read_words(tmp_path) is None and list(official_values(written([], []), None)) == []
    (tmp_path / WORDS).write_text("[]")
    with refuses("not_words"):
        read_words(tmp_path)
