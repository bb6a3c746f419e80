"""The page and its key: what the page holds, that it tells nothing of the systems, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil

import pytest
from refusals import Containing, refuses

import codec_bench
from codec_bench.apps.listening.key import REFERENCE, find_key, read_key
from codec_bench.apps.listening.sound import scramble
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

NAMES = ("zebra", "quagga", "unprocessed", "narwhal", "aardvark", "speaker 1", "3.5k", "7k anchor")


def parts(page):
    """The data of the page, its clips as they are in the file, and everything else as text."""
    text = page.read_text("utf-8")
    clips = re.findall(r'<script type="text/plain" id="clip-\d+">(.*?)</script>', text)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    return data, [base64.b64decode(clip) for clip in clips], re.sub(r'(id="clip-\d+">).*?<', r"\1<", text)


@pytest.fixture(scope="module")
def mushra(codec_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sheets")
    return codec_bench.export_listening(
        runs=codec_run, kind="mushra", out=folder / "test.html", items=4, training=1, repeats=1, seed=3
    )


@pytest.mark.parametrize("kind", ["mushra", "rating", "preference"])
def test_nothing_in_the_page_tells_which_system_is_which(codec_run, tmp_path, kind):
    built = codec_bench.export_listening(runs=codec_run, kind=kind, out=tmp_path / "t.html", items=3, seed=1)
    data, clips, rest = parts(built.page)
    assert clips and [name for name in NAMES if name in rest.lower()] == []
    for trial in data["trials"]:
        placed = [trial["open"], *(one["clip"] for one in trial["stimuli"])]
        sizes = {len(clips[n]) for n in placed if n is not None}
        assert len(sizes) == 1
        assert [one["id"] for one in trial["stimuli"]] == sorted(one["id"] for one in trial["stimuli"])
    assert len({hashlib.sha256(clip).digest() for clip in clips}) == len(clips), "equal sounds look different"
    # Ids are given after shuffling: a system is now here and now there.
    key = read_key(built.key)
    places = {tuple(one.system for one in trial.stimuli) for trial in key.trials}
    assert len(places) > 1


def test_a_mushra_trial_has_reference_anchors_and_systems(mushra):
    data, clips, _ = parts(mushra.page)
    key = read_key(mushra.key)
    assert (mushra.items, mushra.training, mushra.repeats, mushra.trials) == (4, 1, 1, 6)
    assert [trial["id"] for trial in data["trials"]] == [trial.id for trial in key.trials]
    for trial, shown in zip(key.trials, data["trials"]):
        assert {one.system for one in trial.stimuli} == {
            "zebra-codec",
            "quagga-codec",
            REFERENCE,
            "(3.5k anchor)",
            "(7k anchor)",
        }
        hidden = next(one.id for one in trial.stimuli if one.system == REFERENCE)
        clip = next(one["clip"] for one in shown["stimuli"] if one["id"] == hidden)
        assert scramble(clips[clip], clip) == scramble(clips[shown["open"]], shown["open"])
        assert scramble(clips[clip], clip).startswith(b"fLaC")
    again = next(trial for trial in key.trials if trial.repeat_of is not None)
    assert again.item == next(trial.item for trial in key.trials if trial.id == again.repeat_of)
    assert mushra.left_out == {Diagnostic("no_audio_of", systems="quagga-codec"): 1}
    assert 0 < mushra.sound_mb < mushra.page_mb == mushra.page.stat().st_size / 1e6


def test_the_same_call_writes_the_same_page(codec_run, mushra, tmp_path):
    same = codec_bench.export_listening(
        runs=codec_run, kind="mushra", out=tmp_path / "again.html", items=4, training=1, repeats=1, seed=3
    )
    assert same.page.read_bytes() == mushra.page.read_bytes() and same.sheet == mushra.sheet
    key = read_key(mushra.key)
    assert key.page_sha256 == hashlib.sha256(mushra.page.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind,trials", [("options", 3), ("rating", 3), ("review", 4)])
def test_texts_of_a_benchmark_are_escaped(answer_run, tmp_path, kind, trials):
    built = codec_bench.export_listening(runs=answer_run, kind=kind, out=tmp_path / "t.html", items=9)
    data, _, rest = parts(built.page)
    assert built.items == built.trials == trials and "<img" not in rest and "49" not in rest.split("owned")[1][:60]
    assert [name for name in ("zebra", "narwhal", "aardvark") if name in rest] == []
    texts = [text for trial in data["trials"] for text in json.dumps(trial).split("Which town")]
    assert len(texts) > trials
    expected = [dict(trial["texts"]).get("Expected answer") for trial in data["trials"]]
    assert expected == [None if kind in ("options", "review") else "B"] * trials
    if kind == "review":
        assert dict(data["trials"][0]["edit"])["Expected answer"] == "B"


def test_sounds_beyond_the_limit_are_refused_with_what_fits(codec_run, tmp_path):
    with pytest.raises(UserError) as caught:
        codec_bench.export_listening(runs=codec_run, kind="mushra", out=tmp_path / "t.html", items=7, sound_mb=0.35)
    fits = int(re.search(r"--items (\d+)", caught.value.hint)[1])
    assert 0 < fits < 7 and not (tmp_path / "t.html").exists()
    built = codec_bench.export_listening(
        runs=codec_run, kind="mushra", out=tmp_path / "t.html", items=fits, sound_mb=0.35
    )
    assert built.sound_mb <= 0.35


@pytest.mark.parametrize(
    "requests,message",
    [
        ({"kind": "abcx"}, {"code": "unknown_name", "kind": "listening_kind", "name": "abcx"}),
        (
            {"kind": "p835", "scale": "0-5"},
            {"code": "scale_of_other_kind", "kind": "p835", "scale_of_kind": "has the scale 1 to 5"},
        ),
        ({"kind": "ccr", "reference": True}, {"code": "kind_without_reference", "kind": "ccr"}),
        ({"kind": "dcr", "reference": False}, {"code": "kind_needs_reference", "kind": "dcr"}),
        ({"kind": "abx", "traps": 1}, {"code": "gold_needs_scale"}),
        ({"kind": "rating", "checks": "eyes"}, {"code": "unknown_name", "kind": "rater_check", "name": "eyes"}),
        ({"kind": "rating", "session": 0}, {"code": "listening_count", "name": "session", "value": 0}),
        (
            {"kind": "rating", "session_minutes": 0.0},
            {"code": "listening_count", "name": "session_minutes", "value": 0.0},
        ),
        (
            {"kind": "rating", "checks": "hearing", "digits": "nowhere"},
            {"code": "digit_files", "folder": "nowhere", "count": 0, "digit": 0},
        ),
        ({"kind": "rating", "loudness_lufs": 3.0}, {"code": "loudness_out_of_range", "value": 3.0}),
        (
            {"kind": "rating", "screening": "gould"},
            {"code": "unknown_name", "kind": "screening_rule", "name": "gould"},
        ),
        ({"kind": "mushra", "form": "webmushra", "checks": "hearing"}, {"code": "webmushra_without_checks"}),
        ({"kind": "options"}, {"code": "not_a_benchmark_run"}),
        ({"kind": "preference", "systems": "zebra-codec"}, {"code": "kind_needs_two_systems", "kind": "preference"}),
        ({"kind": "rating", "scale": "0-10"}, {"code": "scale_unknown", "scale": "0-10"}),
        ({"kind": "mushra", "anchors": "2k"}, {"code": "unknown_name", "kind": "anchor", "name": "2k"}),
        (
            {"kind": "mushra", "longest_s": 0.2},
            {
                "code": "no_item_for_sheet",
                "reasons": {"code": "times_excluded", "cause": Containing("longer than 0.2 s")},
            },
        ),
        ({"kind": "mushra", "items": 0}, {"code": "listening_count", "name": "items", "value": 0}),
        ({"kind": "rating", "form": "webmushra"}, {"code": "webmushra_kind"}),
        ({"kind": "mushra", "reference": False}, {"code": "kind_needs_reference"}),
    ],
)
def test_what_cannot_be_computed_is_refused(codec_run, tmp_path, requests, message):
    with refuses(**message):
        codec_bench.export_listening(runs=codec_run, out=tmp_path / "t.html", **requests)


def test_too_few_items_are_reported(codec_run, tmp_path):
    built = codec_bench.export_listening(
        runs=codec_run, kind="rating", out=tmp_path / "t.html", items=50, systems="zebra-codec"
    )
    assert built.items == 8 and "50 items are requested, and 8 are usable" in built.notes[0]


def test_a_key_that_was_changed_is_refused(mushra, tmp_path):
    changed = tmp_path / "test.key.json"
    changed.write_text(mushra.key.read_text("utf-8").replace("zebra-codec", "quagga-codex"), encoding="utf-8")
    with refuses("key_changed"):
        read_key(changed)
    for text, message in (("{}", "not_a_key"), ("[", "not_json")):
        changed.write_text(text)
        with refuses(message):
            read_key(changed)


def test_a_key_is_located_in_its_run(mushra, tmp_path):
    (tmp_path / "run" / "listening").mkdir(parents=True)
    shutil.copy(mushra.key, tmp_path / "run" / "listening" / "a.key.json")
    assert find_key(tmp_path / "run", [mushra.sheet]).name == "a.key.json"
    with refuses("no_key_in_run", sheets=["0123"]):
        find_key(tmp_path / "run", ["0123"])
