"""Full-Duplex-Bench's layout, and its definitions that rest on stretches of speech, against its own scripts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench import converse
from codec_bench.apps.conversation.full_duplex import backchannels, divergence, script_of, timing
from codec_bench.apps.conversation.measures import OFFICIAL, OFFICIAL_15
from codec_bench.data import open_source
from codec_bench.types import Audio

from .server import Plan

MODEL = "gpt-realtime-2.1"
GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "full_duplex_bench.json").read_text())


def test_their_backchannels_are_the_same():
    assert len(GOLDEN["backchannels"]) == 60
    for case in GOLDEN["backchannels"]:
        words = [(begin, begin if end is None else end) for begin, end in case["words"]]
        takes, result = backchannels([tuple(one) for one in case["speech"]], words)
        assert takes == bool(case["takes"]), case
        assert len(result) / case["length_s"] == pytest.approx(case["per_s"], abs=1e-12)
        assert divergence(result, case["people"], case["length_s"]) == pytest.approx(case["divergence"], abs=1e-9)


def test_their_timing_is_the_same():
    assert len(GOLDEN["timing"]) == 60 and sum(bool(case["stop"]) for case in GOLDEN["timing"]) > 30
    for case in GOLDEN["timing"]:
        stops, gaps = timing([tuple(one) for one in case["user"]], [tuple(one) for one in case["model"]])
        assert [[round(a, 3), round(b, 3)] for a, b in stops] == case["stop"], case
        assert [[round(a, 3), round(b, 3)] for a, b in gaps] == case["response"], case


@pytest.fixture
def layout(tmp_path):
    """One sample of each kind, in the published layout, with real speech: 2 s, silence to 6 s, and 1 s from 3 s on
    where there is an event.
    """
    first, second = (Audio.read(sample.audio).samples[0] for sample, _ in zip(open_source("embedded"), range(2)))

    def sound(path, event=False):
        track = np.zeros(16_000 * 6, np.float32)
        track[:32_000] = first[:32_000]
        if event:
            track[48_000:64_000] = second[:16_000]
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, track, 16_000)

    folder = tmp_path / "bench"
    marks = {
        "v1_0/candor_turn_taking/1/turn_taking.json": [{"text": "[TURN-TAKING]", "timestamp": [2.0, 2.4]}],
        "v1_0/candor_pause_handling/1/pause.json": [{"text": "[PAUSE]", "timestamp": [0.9, 1.3]}],
        "v1_0/synthetic_user_interruption/1/interrupt.json": [{"context": "a", "interrupt": "b",
            "timestamp": [2.9, 4.1]}],
        "v1_0/icc_backchannel/1/transcription.json": [],
        **{
            f"v1_5/{kind}/1/metadata.json": {"context_text": "a", "current_turn_text": "b", "timestamps": [2.9, 4.1]}
            for kind in ("user_interruption", "user_backchannel", "talking_to_other", "background_speech")
        },
    }  # fmt: skip
    for name, held in marks.items():
        position = folder / name
        sound(position.parent / "input.wav", event="interrupt" in name or "v1_5" in name)
        if "v1_5" in name:
            sound(position.parent / "clean_input.wav")
        position.write_text(json.dumps(held))
    (folder / "icc_gt_distribution.json").write_text(json.dumps({"1": [0.1, 0.4, 0.4, 0.1]}))
    return folder


def test_a_folder_is_a_script(layout):
    talks = {talk.id: talk for talk in script_of(layout).conversations}
    assert len(talks) == 12
    assert [one.kind for one in talks["v1_5-user_interruption-1"].said] == ["turn", "interruption"]
    assert [one.kind for one in talks["v1_5-talking_to_other-1"].said] == ["turn", "non_directed"]
    assert talks["v1_0-candor_pause_handling-1"].said[0].pauses == ((0.9, 1.3),)
    assert talks["v1_0-icc_backchannel-1"].backchannels == (0.1, 0.4, 0.4, 0.1)
    assert talks["v1_0-candor_turn_taking-1"].said[0].end_s == 2.0
    assert talks["v1_5-background_speech-1-clean"].recording.endswith("clean_input.wav")


def test_it_runs(layout, service, tmp_path):
    """The server answers 0.6 s after speech with 1 s of a tone, which silero-vad does not take for speech: by energy it
    is an answer.
    """
    options, _ = service({"": Plan(answer_s=1.0)})
    requests = {"model": MODEL, "scripts": layout, "out": tmp_path / "run", "options": {MODEL: options}, "at_once": 12}
    built = converse(**requests, words="pocketsphinx", page=False)
    held = {one.id: one for one in built.sessions[MODEL]}
    assert {one.status for one in held.values()} == {"ok"} and len(held) == 12
    assert {one.user.size for one in held.values()} == {6 * 24_000}
    values = built.values[MODEL]
    parameters = {v.session: v.value for v in values if v.measure == "turn_taken" and v.index == 0}
    assert set(parameters.values()) == {1.0}
    assert {v.session for v in values if v.measure == f"{OFFICIAL}/backchannel_divergence"} == {
        "v1_0-icc_backchannel-1"
    }
    assert {v.value for v in values if v.measure == f"{OFFICIAL}/backchannel_divergence"} == {
        1.0
    }  # no speech, no backchannel
    assert [v.session for v in values if v.measure == "backchannel_divergence"] == ["v1_0-icc_backchannel-1"]
    assert not [v for v in values if v.measure == f"{OFFICIAL_15}/stop_latency_s"]
    assert (tmp_path / "run" / "sessions" / MODEL / "v1_0-icc_backchannel-1" / "output.json").exists()


def test_what_is_no_layout(tmp_path):
    with refuses("no_full_duplex_sample"):
        script_of(tmp_path)
    path = tmp_path / "other" / "1"
    path.mkdir(parents=True)
    (path / "input.wav").touch()
    (path / "metadata.json").write_text("{}")
    with refuses("full_duplex_kind", folder="other"):
        script_of(tmp_path)
    (path / "metadata.json").rename(path / "pause.json")
    (path / "pause.json").write_text("[")
    with refuses("not_json"):
        script_of(tmp_path)
