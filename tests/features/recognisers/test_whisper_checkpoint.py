"""Whisper's checkpoints: what their names mean, where they are looked for, and what is said of
a broken or another one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from refusals import Containing, refuses

from codec_bench.audio.resample import prepare
from codec_bench.features import REGISTRY, load_feature
from codec_bench.features.recognisers import speech_windows, whisper_checkpoint
from codec_bench.features.recognisers.whisper import Whisper
from codec_bench.features.recognisers.whisper_checkpoint import MODELS, languages_of, protocol_id


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (None, "30s"),
        ("30s", "30s"),
        ("torch", "30s"),
        ("ct2", "30s"),
        ("vad+torch+float16", "vad-silero-v6/float16"),
        ("28s", "28s"),
        ("vad", "vad-silero-v6"),
        ("float16", "30s/float16"),
        ("28s+int8_float16", "28s/int8_float16"),
        ("bfloat16+vad", "vad-silero-v6/bfloat16"),
        ("30s+float32", "30s"),
    ],
)
def test_protocols_name_windows_and_compute_type_and_not_what_computes(point, expected):
    assert protocol_id("whisper-large-v3", point) == f"whisper-large-v3/greedy/{expected}"
    assert Whisper.protocol_id("whisper-tiny.en", point) == f"whisper-tiny.en/greedy/{expected}"


@pytest.mark.parametrize("point", ["", "29s", "28s+30s", "float16+int8", "28s,float16", "28s+", "float64", "torch+ct2"])
def test_unknown_points_are_refused_with_those_there_are(point):
    types = ", ".join(whisper_checkpoint.COMPUTE_TYPES["ct2"])
    known = f"ct2 or torch; windows {', '.join(speech_windows.WINDOWS)}; compute types {types}"
    with refuses("no_point_of_metric", name="whisper-tiny", hint=known):
        protocol_id("whisper-tiny", point)


def test_a_feature_has_the_protocol_of_its_name(whispers):
    folder = str(whispers["whisper-tiny"])
    feature = load_feature("whisper-tiny@28s+int8", weights=folder)
    assert (feature.name, feature.protocol) == ("whisper-tiny", "whisper-tiny/greedy/28s/int8")


def test_languages_of_the_models():
    assert languages_of("whisper-tiny.en") == languages_of("whisper-distil-large-v3") == ("en",)
    first, last = set(languages_of("whisper-large-v2")), set(languages_of("whisper-large-v3"))
    assert last - first == {"yue"}
    assert len(first - set(whisper_checkpoint.ALIASES)) == 99


def test_language_codes_are_faster_whispers():
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    assert sorted([*whisper_checkpoint.LANGUAGES, "yue"]) == sorted(_LANGUAGE_CODES)


def test_every_model_is_registered():
    assert {model: REGISTRY.resolve(model) for model in MODELS} == dict.fromkeys(MODELS, Whisper)


def test_every_model_is_in_the_catalogue_under_faster_whispers_repository():
    from faster_whisper.utils import _MODELS

    from codec_bench.weights import checkpoint

    for model in MODELS:
        assert checkpoint(model).hub == _MODELS[model.removeprefix("whisper-")]
        assert {file.path for file in checkpoint(model).files} >= {"model.bin", "config.json", "tokenizer.json"}


def test_published_weights_are_located_where_they_are(whispers, tmp_path, monkeypatch, embedded):
    from codec_bench.weights import checkpoint

    where = tmp_path / checkpoint("whisper-tiny").hub
    where.parent.mkdir(parents=True)
    shutil.copytree(whispers["whisper-tiny"], where)
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    (result,) = Whisper(model="whisper-tiny").compute([prepare(embedded[0][1], 16_000)], ["en"])
    assert result["windows"] == 1


def test_missing_weights_are_named_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with refuses("weights_missing", hint="codec-bench weights fetch whisper-small.en"):
        Whisper(model="whisper-small.en")


def test_a_checkpoint_of_transformers_is_refused_with_the_command(whispers):
    source = Path(f"{whispers['whisper-tiny']}-transformers")
    assert (source / "model.safetensors").is_file()
    with refuses("weights_not_converted", hint=f"ct2-transformers-converter --model {source}"):
        Whisper(model="whisper-tiny", weights=str(source), point="ct2")
    with refuses("weights_single_file"):
        Whisper(model="whisper-tiny", weights=str(source / "model.safetensors"), point="ct2")


def test_a_converted_file_stands_for_its_folder(whispers):
    folder = whispers["whisper-tiny"]
    assert Whisper(model="whisper-tiny", weights=str(folder / "model.bin"))._folder == folder


def change(whispers, tmp_path, name="whisper-tiny"):
    return Path(shutil.copytree(whispers[name], tmp_path / "changed"))


def cut_short(folder):
    complete = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(complete[: len(complete) // 2])


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda f: (f / "tokenizer.json").unlink(), {"code": "weights_folder_lacks", "names": "tokenizer.json"}),
        (
            lambda f: (f / "vocabulary.json").unlink(),
            {"code": "weights_folder_lacks", "names": Containing("vocabulary")},
        ),
        (lambda f: (f / "config.json").unlink(), {"code": "weights_folder_lacks", "names": "config.json"}),
    ],
)
def test_a_missing_file_is_named(whispers, tmp_path, edit, says):
    folder = change(whispers, tmp_path)
    edit(folder)
    with refuses(**says):
        Whisper(model="whisper-tiny", weights=str(folder))


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (cut_short, {"code": "weights_not_loaded"}),
        (lambda f: (f / "model.bin").write_bytes(b"nothing of the kind"), {"code": "weights_not_loaded"}),
        (lambda f: (f / "tokenizer.json").write_text("{"), {"code": "not_a_tokeniser"}),
        (lambda f: (f / "tokenizer.json").write_text(json.dumps({"version": "1.0"})), {"code": "not_a_tokeniser"}),
        (
            lambda f: (f / "preprocessor_config.json").write_text('{"feature_size": 128}'),
            {"code": "weights_of_another_model", "difference": Containing("says 128 mel bands")},
        ),
        (lambda f: (f / "preprocessor_config.json").write_text("["), {"code": "file_not_readable"}),
    ],
)
def test_a_broken_checkpoint_is_one_sentence(whispers, tmp_path, edit, says):
    folder = change(whispers, tmp_path)
    edit(folder)
    with refuses(**says) as caught:
        Whisper(model="whisper-tiny", weights=str(folder)).load()
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (
            "whisper-tiny",
            "whisper-large-v3",
            {"code": "weights_of_another_model", "difference": Containing("take 128 mel bands")},
        ),
        (
            "whisper-large-v3",
            "whisper-tiny",
            {"code": "weights_of_another_model", "difference": Containing("take 80 mel bands")},
        ),
        (
            "whisper-tiny",
            "whisper-tiny.en",
            {"code": "weights_of_another_model", "difference": Containing("know English only")},
        ),
        (
            "whisper-tiny.en",
            "whisper-tiny",
            {"code": "weights_of_another_model", "difference": Containing("know several languages")},
        ),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(whispers, name, options, says):
    with refuses(**says):
        Whisper(model=name, weights=str(whispers[options])).load()


def test_a_checkpoint_without_preprocessor_config_is_whole(whispers, tmp_path):
    folder = change(whispers, tmp_path)
    (folder / "preprocessor_config.json").unlink()
    Whisper(model="whisper-tiny", weights=str(folder)).load()


def test_unknown_models_are_refused_with_those_there_are():
    with refuses("unknown_name", name="whisper-huge", hint="whisper-large-v3-turbo"):
        Whisper(model="whisper-huge")
