"""How a voice changes after an event, against what Full-Duplex-Bench 1.5's own script gives on tracks of the embedded
speech.
"""

from __future__ import annotations

import json
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from codec_bench.apps.conversation import api
from codec_bench.apps.conversation import voice as voices
from codec_bench.apps.conversation.full_duplex import WORDS
from codec_bench.apps.conversation.measures import OFFICIAL_15, PARTS, VOICE
from codec_bench.apps.conversation.script import Conversation
from codec_bench.apps.conversation.session import Session
from codec_bench.audio.resample import to_signal
from codec_bench.data import open_source
from codec_bench.messages.errors import UserError
from codec_bench.store.files import write_json
from codec_bench.types import Audio

RATE_HZ = 16_000
GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "full_duplex_bench.json").read_text())


@pytest.fixture(scope="module")
def sounds():
    return {sample.id: to_signal(Audio.read(sample.audio), RATE_HZ) for sample in open_source("embedded")}


def track(sounds, parts):
    """Sounds by their ids and silences by their seconds, 16 bits."""
    joined = [np.zeros(round(one * RATE_HZ), np.float32) if isinstance(one, float) else sounds[one] for one in parts]
    return np.rint(np.concatenate(joined) * 32767).astype(np.int16)


def held(folder, name, samples, words):
    position = folder / name
    position.mkdir()
    chunks = [{"text": "w", "timestamp": word} for word in words]
    (position / WORDS).write_text(json.dumps({"text": "", "chunks": chunks}))
    return Session(name, RATE_HZ, RATE_HZ, output=samples, user=np.zeros_like(samples))


@pytest.mark.parametrize("number", range(len(GOLDEN["voice"])))
def test_their_script_gives_the_same(sounds, tmp_path, monkeypatch, number):
    """All but UTMOSv2. Theirs has a pitch of 0 where nothing is voiced, and here there is none."""
    pytest.importorskip("parselmouth")
    monkeypatch.setattr(voices, "_mos", lambda speech: "not here")
    case = GOLDEN["voice"][number]
    actual = held(tmp_path, "a", track(sounds, case["track"]), case["words"])
    clean = held(tmp_path, "a-clean", track(sounds, case["clean_track"]), case["clean_words"])
    text = [{"begin_s": 0, "end_s": 0.1}, {"begin_s": 0.1, "end_s": case["event_s"]}]
    talk = Conversation(id="a", recording="x.wav", said=text, clean="a-clean")
    values = list(voices.voice(actual, tmp_path / "a", talk, {"a": actual, "a-clean": clean}))
    assert len(values) == len(PARTS) * len(VOICE)
    assert all(value.at_s == pytest.approx(case["cut_s"], abs=1e-3) for value in values)
    for value in values:
        item, name = value.measure.removeprefix(f"{OFFICIAL_15}/").split("/")
        theirs = case[item].get(name) or (0.0 if name == "wpm" and case[item] else None)
        assert value.value == (None if theirs is None else pytest.approx(theirs, rel=1e-3)), (item, name)
        assert (value.value is None) == bool(value.reason)


def test_the_mean_over_sessions_is_theirs():
    for case in GOLDEN["trimmed"]:
        assert voices.trimmed_mean(case["values"]) == pytest.approx(case["mean"], abs=1e-5)


def test_what_is_too_short_and_what_no_package_measures(monkeypatch):
    short = np.full(100, 0.1, np.float32)
    assert voices.intensity(short) == "it is too short for Praat"
    assert voices.pitch(np.zeros(RATE_HZ, np.float32)) == "nothing in it is voiced"
    monkeypatch.setattr(voices, "_mos", lambda speech: "not here")
    monkeypatch.setitem(sys.modules, "parselmouth", None)
    measured = voices._measure_part(np.zeros(RATE_HZ, np.float32), [(0.0, 0.5), (0.5, 1.0)])
    assert (
        measured["wpm"] == 120
        and "praat-parselmouth" in measured["mean_pitch"]
        and "praat-parselmouth" in measured["std_intensity"]
    )


def test_the_sessions_of_a_run_share_utmosv2_which_is_released_after_them(tmp_path, monkeypatch):
    class Network:
        def load(self):
            outputs.append(weakref.ref(self))

        def compute(self, signals):
            return [{"mos": 3.5}] * len(signals)

    outputs = []
    monkeypatch.setattr(voices, "load_feature", lambda name: Network())
    script = {"version": 1, "title": "t", "conversations": [{"id": "a", "silence_s": 1.0}]}
    write_json(tmp_path / "run.json", {"script": script, "systems": ["x", "y"], "conversations": ["a"]})
    monkeypatch.setattr(
        api, "read_session", lambda folder: Session("a", RATE_HZ, RATE_HZ, output=np.zeros(9, np.int16))
    )
    monkeypatch.setattr(api, "summarise", lambda sessions, values: {})
    requests = []

    def values(*options):
        requests.append(voices._mos(np.zeros(9, np.float32)))
        if len(requests) == 3:
            raise UserError("stopped")
        return []

    monkeypatch.setattr(api, "_values", values)
    options = {"words": None, "judge": None, "page": False, "notify": print}
    api._remeasure(tmp_path, **options)
    (tmp_path / "summary.json").unlink()  # it says of which sessions it was made, and there are none
    with pytest.raises(UserError, match="stopped"):
        api._remeasure(tmp_path, **options)
    assert requests == [3.5] * 3 and len(outputs) == 2 and not any(network() for network in outputs)
