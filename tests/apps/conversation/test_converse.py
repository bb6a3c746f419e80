"""The verb and the command over whole runs: what is kept, resumed, marked again, replayed and refused."""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest
import soundfile
import yaml
from refusals import refuses

from codec_bench import converse
from codec_bench.apps.conversation.distributions import sentences
from codec_bench.apps.conversation.session_files import content_hash, read_session
from codec_bench.apps.conversation.user import Sounds
from codec_bench.data import open_source
from codec_bench.messages.errors import DamagedRecord, UserError

from .conftest import MODEL
from .server import RATE_HZ, Plan, tone

OTHER = "gpt-realtime-2.1-mini"


@pytest.fixture
def script(tmp_path):
    """The path of a script of three conversations, and a function that writes another one."""

    def write(**changed):
        soundfile.write(tmp_path / "tone.wav", np.concatenate([tone(0.6, 200.0), tone(0.2, 1.0, level=0.0)]), RATE_HZ)
        turn = {"say": "tone.wav", "at_s": 0.3}
        cut = {"kind": "interruption", "say": "tone.wav", "into_answer_s": 0.5}
        talks = [
            {"id": "plain", "turns": [turn]},
            {"id": "cut", "turns": [turn, cut], "background": {"snr_db": 20}},
            {"id": "nobody", "silence_s": 1.0},
        ]
        document = {"version": 1, "title": "Three", "data": "", "ends_s": 0.5, "conversations": talks, **changed}
        (tmp_path / "script.yaml").write_text(yaml.safe_dump(document))
        return tmp_path / "script.yaml"

    return write


def test_a_run_is_stored_resumed_and_marked_again(script, service, tmp_path):
    options, logs = service({"": Plan(jitter_s=0.02)})
    requests = {
        "model": MODEL,
        "scripts": script(),
        "out": tmp_path / "run",
        "options": {MODEL: options},
        "page": False,
    }
    first = converse(**requests)
    assert not first.faults and [one.id for one in first.sessions[MODEL]] == ["plain", "cut", "nobody"]
    frames = logs[""].frames
    written = (first.folder / "events.jsonl").read_bytes()
    # One track is damaged: nothing is held again before somebody says so, and then that session alone.
    damaged = first.folder / "sessions" / MODEL / "plain" / "output.flac"
    damaged.write_bytes(damaged.read_bytes()[:-200])
    for call in (requests, {"remark": True, "out": tmp_path / "run", "page": False}):
        with pytest.raises(DamagedRecord):
            converse(**call)
    shutil.rmtree(damaged.parent)
    with pytest.raises(DamagedRecord):
        converse(**requests)
    assert logs[""].frames == frames
    (first.folder / "summary.json").unlink()
    again = converse(**requests)
    assert logs[""].frames - frames == len(again.sessions[MODEL][0].sent_s) < frames
    marked = converse(remark=True, out=tmp_path / "run", page=False)
    assert marked.summary == again.summary
    assert (
        again.summary.pop("generations")
        == {MODEL: {"plain": 3, "cut": 1, "nobody": 1}}
        != first.summary.pop("generations")
    )
    assert again.summary == first.summary  # the same seed gives the same numbers
    assert (first.folder / "events.jsonl").read_bytes() == written
    lines = [json.loads(line) for line in (first.folder / "events.jsonl").read_text().splitlines()]
    assert {"user turn", "user interruption", "model turn", "stop", "session", "value"} == {
        one["event"] for one in lines
    }
    with refuses("folder_of_other_run", folder="run", differences="script"):
        converse(**{**requests, "seed": 7})


def test_sessions_with_another_sound_of_the_user_are_held_again(script, service, tmp_path):
    options, logs = service({"": Plan()})
    requests = {
        "model": MODEL,
        "scripts": script(),
        "out": tmp_path / "run",
        "options": {MODEL: options},
        "page": False,
    }
    first = converse(**requests)
    frames = logs[""].frames
    converse(**requests)
    assert logs[""].frames == frames
    samples, _ = soundfile.read(tmp_path / "tone.wav")
    soundfile.write(tmp_path / "tone.wav", -samples, RATE_HZ)
    again = converse(**requests)
    assert logs[""].frames - frames == sum(len(one.sent_s) for one in again.sessions[MODEL] if one.id != "nobody")
    (before, after) = (np.abs(run.sessions[MODEL][0].clean) for run in (first, again))
    assert np.array_equal(before, after) and not np.array_equal(
        first.sessions[MODEL][0].clean, again.sessions[MODEL][0].clean
    )


def test_the_user_is_repeated_sample_by_sample(script, service, tmp_path):
    """The other model answers late and never stops; the user of the replay interrupts at the
    same samples all the same.
    """
    options, _ = service({"": Plan()})
    run = converse(model=MODEL, scripts=script(), out=tmp_path / "a", options={MODEL: options}, page=False)
    options, _ = service({"": Plan(answer_after_s=1.5, yields_after_s=None)})
    other = converse(
        model=OTHER, scripts=script(), out=tmp_path / "b", options={OTHER: options}, replay=run.folder, page=False
    )
    for before, after in zip(run.sessions[MODEL], other.sessions[OTHER]):
        assert before.user.tobytes() == after.user.tobytes() and before.events == after.events
        assert before.user.any() or before.id == "nobody"
    assert not np.array_equal(run.sessions[MODEL][1].output, other.sessions[OTHER][1].output)


def test_noise_lies_under_the_user_at_its_snr(script, service, tmp_path):
    options, _ = service({"": Plan()})
    run = converse(model=MODEL, scripts=script(), out=tmp_path / "a", options={MODEL: options}, page=False)
    session = run.sessions[MODEL][1]
    noise = session.user.astype(float) - session.clean
    speech = session.clean[round(0.3 * RATE_HZ) : round(0.9 * RATE_HZ)].astype(float)
    assert 10 * np.log10(np.mean(speech**2) / np.mean(noise**2)) == pytest.approx(20, abs=0.2)


def test_somebody_speaks_behind_the_user(service, tmp_path):
    """A recorded voice in place of noise: it is repeated for the whole session, at its SNR, and the user's own track is
    without it.
    """
    talk = {"id": "a", "turns": [{"say": "awb_01", "at_s": 0.3}], "background": {"sound": "slt_01", "snr_db": 10}}
    path = tmp_path / "script.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "title": "t", "ends_s": 0.5, "conversations": [talk]}))
    options, _ = service({"": Plan(deaf_s=9.0, barges_at_s=1.0, answer_after_s=None, yields_after_s=None)})
    (held,) = converse(model=MODEL, scripts=path, out=tmp_path / "a", options={MODEL: options}, page=False).sessions[
        MODEL
    ]
    behind = held.user.astype(float) - held.clean
    spoken = Sounds(open_source("embedded"), tmp_path, RATE_HZ).get("slt_01")
    one, again = behind[: spoken.size], behind[spoken.size : 2 * spoken.size]
    assert np.corrcoef(one, spoken)[0, 1] > 0.9999 and np.abs(one[: again.size] - again).max() <= 1
    actual = held.clean[np.abs(held.clean) > 0].astype(float)
    assert 10 * np.log10(np.mean(actual**2) / np.mean(behind**2)) == pytest.approx(
        10, abs=1.5
    )  # pauses are none of its power


def test_the_embedded_scripts(service, tmp_path, command):
    """Thirty sessions without a network, against the scripted server: the command, its table, and the same script for
    the same seed.
    """
    options, _ = service({"": Plan(answer_after_s=1.0, jitter_s=0.04)})
    typed = [f"--set={MODEL}.{name}={'null' if value is None else value}" for name, value in options.items()]
    code, out, err = command("converse", "--model", MODEL, "--out", tmp_path / "run", "--at-once", 30, *typed)
    assert code == 0, err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["systems"][MODEL]
    assert summary["sessions"] == {"ok": 30} and summary["lateness"]["p99_ms"] < 1
    measures = summary["measures"]
    assert measures["turn_taken"]["value"] == 1 and measures["silence_kept"]["value"] == 1
    assert measures["yielded"]["n"] == 6 and measures["kept_talking"]["n"] == 6 and measures["false_turn"]["n"] == 6
    # The server answers 1.0 to 1.06 s after the last frame that is louder than its own threshold, which is near the end
    # of speech.
    assert 0.7 <= measures["response_latency_s"]["median"]["value"] <= 1.1
    assert "response_latency" in out and "turn_taken" in out and MODEL in out and "30 ok" in err


def test_a_wrong_script_is_reported_with_its_field(script, tmp_path):
    for changed, text in (
        ({"conversations": [{"id": "a", "turns": [{"say": "none.wav", "at_s": 0}]}]},
            "neither an id of its data nor a file"),
        ({"conversations": [{"id": "a", "turns": [{"say": "tone.wav", "after_answer_s": 0}]}]},
            "has no answer before it"),
        ({"conversations": [{"id": "a", "turns": [{"say": "tone.wav"}]}]}, "expected one of 'at_s'"),
        ({"conversations": [{"id": "a"}]}, "expected one of 'turns', 'silence_s' and 'recording'"),
        ({"conversations": []}, "expected either 'conversations' or 'draw'"),
        ({"version": 2}, "version"),
    ):  # fmt: skip
        with pytest.raises(UserError) as caught:
            converse(model=MODEL, scripts=script(**changed), out=tmp_path / "out", page=False)
        assert text in str(caught.value), text


def test_what_does_not_converse(script, tmp_path):
    with refuses("takes_no_conversation_sound"):
        converse(model="tts-1", scripts=script(), out=tmp_path / "out")
    with refuses("no_model_named"):
        converse(scripts=script())
    with refuses("file_not_readable"):
        converse(remark=True, out=tmp_path / "nothing")


def test_a_session_is_whole_or_it_is_not_there(script, service, tmp_path):
    """Every state in which a kill can leave a folder: a file that is missing, cut, or of another session."""
    options, _ = service({"": Plan()})
    run = converse(model=MODEL, scripts=script(), out=tmp_path / "run", options={MODEL: options}, page=False)
    folder = run.folder / "sessions" / MODEL / "cut"
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["clean.flac", "discarded.flac", "output.flac", "session.json", "user.flac"]
    for file in files:
        complete = file.read_bytes()
        for damaged in (
            None,
            b"",
            complete[: len(complete) // 2],
            (folder.parent / "plain" / "output.flac").read_bytes(),
        ):
            file.unlink(missing_ok=True)
            if damaged is not None:
                file.write_bytes(damaged)
            if file.name == "session.json" and damaged is None:
                assert read_session(folder) is None
                continue
            with pytest.raises(DamagedRecord):
                read_session(folder)
        file.write_bytes(complete)
    assert read_session(folder).as_dict() == run.sessions[MODEL][1].as_dict()


PARTS = ("run.json", "summary.json", f"sessions/{MODEL}/plain", f"sessions/{MODEL}/cut", f"sessions/{MODEL}/nobody")


@pytest.fixture
def moments(script, service, tmp_path):
    """A run at two moments, and its command: first two conversations that failed, then all three."""
    options, _ = service({"": Plan(drops_at_s=0.7)})
    requests = {
        "model": MODEL,
        "scripts": script(),
        "out": tmp_path / "run",
        "options": {MODEL: options},
        "page": False,
    }
    first = converse(limit=2, **requests)
    assert len(first.faults) == 2
    shutil.copytree(tmp_path / "run", tmp_path / "middle")
    _, logs = service({"": Plan()})
    complete = converse(**requests)
    assert not complete.faults
    shutil.copytree(tmp_path / "run", tmp_path / "finished")
    return requests, logs, complete


def test_files_of_two_moments_give_the_same_numbers_or_one_sentence(moments, tmp_path):
    requests, logs, complete = moments
    frames, refused = logs[""].frames, 0
    for number, choice in enumerate(itertools.product(("middle", "finished"), repeat=len(PARTS))):
        out = tmp_path / f"mixed{number}"
        for item, moment in zip(PARTS, choice):
            source = tmp_path / moment / item
            if source.is_dir():
                shutil.copytree(source, out / item)
            elif source.exists():
                (out / item).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, out / item)
        before = (out / "summary.json").read_bytes()
        try:
            result = converse(remark=True, out=out, page=False).summary
        except DamagedRecord as error:
            refused += 1
            assert error.hint and "middle" in choice and "finished" in choice
            with pytest.raises(DamagedRecord):
                converse(**{**requests, "out": out})
            assert (out / "summary.json").read_bytes() == before
            continue
        if choice[1] == "finished":
            assert result == complete.summary
        else:
            assert choice[0] == "finished" or "finished" not in choice, "what is newer than run.json is seen"
    assert refused and logs[""].frames == frames, "no session is held again"


@pytest.mark.usefixtures("moments")
def test_words_of_another_session_are_refused(tmp_path):
    held = tmp_path / "finished" / "sessions" / MODEL / "plain"
    words = {"recogniser": "x/1", "session": content_hash(held / "session.json"), "text": "", "chunks": []}
    (held / "output.json").write_text(json.dumps(words))
    converse(remark=True, out=tmp_path / "finished", page=False)
    (held / "output.json").write_text(json.dumps({**words, "session": content_hash(tmp_path / "middle" / "run.json")}))
    with pytest.raises(DamagedRecord):
        converse(remark=True, out=tmp_path / "finished", page=False)


def test_a_second_model_joins_the_first(script, service, tmp_path):
    options, _ = service({"": Plan()})
    requests = {"scripts": script(), "out": tmp_path / "run", "page": False}
    converse(model=MODEL, options={MODEL: options}, limit=1, **requests)
    options, _ = service({"": Plan(answer_after_s=1.0)})
    both = converse(model=OTHER, options={OTHER: options}, **requests)
    assert list(both.summary["systems"]) == [MODEL, OTHER]
    assert [len(held) for held in both.sessions.values()] == [1, 3] and both.summary["missing"] == 2


def test_a_session_that_failed_is_held_again(script, service, tmp_path):
    options, _ = service({"": Plan(drops_at_s=0.7)})
    requests = {
        "model": MODEL,
        "scripts": script(),
        "out": tmp_path / "run",
        "options": {MODEL: options},
        "page": False,
    }
    broken = converse(**requests)
    assert len(broken.faults) == 3 and "closed the connection" in broken.faults[f"{MODEL}/plain"]
    assert broken.summary["systems"][MODEL]["measures"]["response_latency_s"]["n"] == 0
    service({"": Plan()})
    assert not converse(**requests).faults
    shutil.rmtree(tmp_path / "run" / "sessions" / MODEL / "cut")
    with pytest.raises(DamagedRecord):
        converse(remark=True, out=tmp_path / "run", page=False)
    (tmp_path / "run" / "summary.json").unlink()
    assert converse(remark=True, out=tmp_path / "run", page=False).summary["missing"] == 1


def test_prices_before_and_after(script, service, tmp_path):
    """The server counts 10 tokens of input and 20 of output an answer, which may be sound or text: 32 or 4, and 64 or
    24 USD a million.
    """
    options, _ = service({"": Plan()})
    prices = {
        "input": 4,
        "output": 24,
        "audio_input": 32,
        "audio_output": 64,
        "audio_tokens_s": 10,
        "date": "2026-11-22",
    }
    messages = []
    requests = {
        "model": MODEL,
        "scripts": script(),
        "out": tmp_path / "run",
        "options": {MODEL: {**options, "prices": prices}},
    }
    held = converse(**requests, page=False, on_estimate=messages.append)
    (before,) = messages
    assert before.startswith(f"{MODEL}: 3 sessions with at least ") and before.endswith(
        "not known: how long answers are"
    )
    seconds = float(before.split("at least ")[1].split(" s")[0])
    usd = float(before.split("cost at least ")[1].split(" USD")[0])
    assert usd == pytest.approx(seconds * 10 * 32 / 1e6, rel=0.1) and seconds > 2
    system = held.summary["systems"][MODEL]
    answers = system["usage"]["output_tokens"] / 20
    # The service counted nothing for the session without an answer.
    assert system["priced"] == 2 and system["usage"]["cost_usd"] == pytest.approx(answers * (10 * 32 + 20 * 64) / 1e6)
    assert system["usage"]["cost_unsure_usd"] == pytest.approx(answers * (10 * 28 + 20 * 40) / 1e6)
    assert any("2 of 3 sessions cost" in sentence for sentence in sentences(held.summary))
