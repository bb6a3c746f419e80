"""Weights are found and named, wrong ones are refused before a run begins, and unused parts are not loaded."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import json
import shutil

import numpy as np
import pytest
import tiny_audio_models
from refusals import refuses
from tiny_questions import clip, request

from codec_bench.messages.errors import UserError
from codec_bench.models.base import ModelInfo
from codec_bench.models.in_process.transformers_model import TransformersModel
from codec_bench.types import Message, Request

REPO = "owner/tiny-audio"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "tiny"
    tiny_audio_models.write_qwen2_audio(path)
    return path


@pytest.fixture(scope="module")
def omni(tmp_path_factory):
    import torch

    path = tmp_path_factory.mktemp("weights") / "omni"
    tiny_audio_models.write_qwen25_omni(path)
    generator = torch.Generator().manual_seed(0)
    cond, mel = torch.randn(1, 8, generator=generator), torch.randn(1, 20, 8, generator=generator)
    torch.save({"Chelsie": {"bos_token": 5, "cond": cond, "ref_mel": mel}}, path / "spk_dict.pt")
    return path


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    for variable in ("HF_HUB_CACHE", "HF_HOME", "CODEC_BENCH_WEIGHTS", "MODELSCOPE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "nothing"))
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "nothing"))


def model(weights, name="tiny", **options):
    return TransformersModel(ModelInfo(name), weights=str(weights), **({"device": "cpu"} | options))


def copied(folder, to):
    shutil.copytree(folder, to)
    return to


def test_what_is_missing_is_named_with_the_command_that_fetches_it(no_cache):
    requested = model(REPO, revision="v2")
    with refuses("weights_not_on_machine", hint=f"hf download {REPO} --revision v2") as error:
        _ = requested.identity
    assert error.value.hint.endswith("--set tiny.weights=FOLDER")
    with refuses("weights_not_on_machine"):
        asyncio.run(requested.start())


def test_a_hub_id_is_located_in_the_folders_that_are_named(folder, tmp_path, monkeypatch, no_cache):
    copied(folder, tmp_path / "all" / REPO)
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path / "all"))
    assert model(REPO)._find_checkpoint().folder == tmp_path / "all" / REPO


def test_a_revision_is_that_revision(folder, tmp_path, monkeypatch, no_cache):
    cache = tmp_path / "hub" / f"models--{REPO.replace('/', '--')}"
    copied(folder, cache / "snapshots" / COMMIT)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(COMMIT)
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path / "hub"))
    for revision in (None, "main", COMMIT, COMMIT[:8]):
        assert model(REPO, revision=revision).identity["weights"].startswith(f"{REPO}@{COMMIT}:"), (
            "files that are no blobs count by content"
        )
    with refuses("weights_not_on_machine"):
        _ = model(REPO, revision="v2").identity


def test_an_interrupted_download_is_not_complete(folder, tmp_path):
    path = copied(folder, tmp_path / "part")
    (path / "model.safetensors").unlink()
    with refuses("model_weights_lack"):
        _ = model(path).identity
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    (path / "model-00001-of-00002.safetensors").write_bytes(b"x")
    with refuses("weights_incomplete", missing=1, files=2):
        _ = model(path).identity


@pytest.mark.parametrize("weights", ["nowhere", "./nowhere", "/no/where"])
def test_what_is_neither_a_folder_nor_a_hub_id_is_reported(weights):
    with refuses("no_weights_of_model"):
        _ = model(weights).identity


def test_broken_files_are_named_and_never_run(folder, tmp_path):
    path = copied(folder, tmp_path / "broken")
    (path / "model.safetensors").write_bytes(b"not tensors")
    with refuses("weights_not_loaded"):
        model(path).load()
    (path / "config.json").write_text("{}")
    with refuses("model_type_missing"):
        model(path).load()


def test_tensors_that_are_missing_are_not_invented(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    path = copied(folder, tmp_path / "less")
    state = load_file(path / "model.safetensors")
    del state[next(name for name in state if "q_proj.weight" in name)]
    save_file(state, path / "model.safetensors", metadata={"format": "pt"})
    with refuses("tensors_wrong", difference={"code": "tensors_missing", "tensors": 1}):
        model(path).load()


def test_code_in_a_checkpoint_is_not_run_unasked(folder, tmp_path):
    path = copied(folder, tmp_path / "own")
    config = json.loads((path / "config.json").read_text())
    config |= {"model_type": "own-kind", "auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Net"}}
    (path / "config.json").write_text(json.dumps(config))
    (path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: pass\nclass Net: pass\n")
    with pytest.raises(UserError):
        model(path).load()
    assert not (tmp_path / "ran").exists()
    assert model(path).identity["trust"] is False and model(path, trust_remote_code=True).identity["trust"] is True


def test_a_kind_that_transformers_does_not_know_is_named(folder, tmp_path):
    path = copied(folder, tmp_path / "wav2vec2")
    (path / "config.json").write_text(json.dumps({"model_type": "wav2vec2"}))
    with refuses("model_type_unknown", model_type="wav2vec2"):
        model(path).load()


@pytest.mark.skipif(importlib.util.find_spec("peft") is not None, reason="peft is installed")
def test_an_adapter_that_cannot_be_applied_is_not_omitted(tmp_path):
    tiny_audio_models.write_granite_speech(tmp_path / "granite")
    config = json.loads((tmp_path / "granite" / "config.json").read_text()) | {"has_lora_adapter": True}
    (tmp_path / "granite" / "config.json").write_text(json.dumps(config))
    with refuses("needs_peft", hint="pip install peft"):
        model(tmp_path / "granite").load()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int3"}, {"code": "model_dtype", "dtype": "int3"}),
        ({"device": "cuda:99"}, {"code": "model_device", "device": "cuda:99"}),
        ({"template": "jinja"}, {"code": "model_template", "template": "jinja"}),
        ({"batch_s": 0}, {"code": "model_batch_seconds", "value": 0}),
        ({"parameters": {"max_token": 3}}, {"code": "generation_unknown", "option": "max_token"}),
    ],
)
def test_options_without_a_meaning_are_refused(folder, options, message):
    with refuses(**message):
        _ = model(folder, **options).identity


def test_identity_tells_what_changes_an_answer(folder, tmp_path):
    first = model(folder).identity
    assert first == model(folder).identity and json.dumps(first)
    changed = [
        {"dtype": "bfloat16"}, {"parameters": {"max_tokens": 7}}, {"template": "plain"}, {"system": "x"},
        {"reasoning_end": "x"}
    ]  # fmt: skip
    assert all(model(folder, **options).identity != first for options in changed)
    assert model(folder, batch_s=9.0).identity == first  # answers do not depend on the batch
    other = copied(folder, tmp_path / "other")
    tiny_audio_models.write_qwen2_audio(other, seed=9)
    assert model(other).identity != first


def test_half_precision_answers_too(folder):
    half = model(folder, dtype="bfloat16", parameters={"max_tokens": 4})
    half.load()
    import torch

    assert half._family.net.dtype == torch.bfloat16
    assert {r.status for r in half.answer([request(k, 1.0) for k in range(3)])} == {"ok"}


# ---- models that speak ----


def speaking(omni, **options):
    loaded = TransformersModel(
        ModelInfo("speaks", outputs=("text", "audio")), weights=str(omni), device="cpu", parameters={"max_tokens": 6},
        **options
    )  # fmt: skip
    loaded.load()
    # The published ends of the talker's codes lie beyond the tiny one's vocabulary.
    loaded._family.net.generate = functools.partial(
        loaded._family.net.generate, talker_max_new_tokens=6, talker_eos_token_id=[61], token2wav_num_steps=3
    )
    return loaded


def test_a_talker_is_loaded_where_sound_is_requested_only(omni):
    writes = model(omni, parameters={"max_tokens": 6})
    writes.load()
    speaks = speaking(omni)
    assert not hasattr(writes._family.net, "talker") and hasattr(speaks._family.net, "talker")
    requests = [request(k, 1.5) for k in range(3)]
    assert [r.text for r in writes.answer(requests)] == [r.text for r in speaks.answer(requests)]


def test_it_says_what_it_writes_and_the_seed_decides_how(omni):
    speaks = speaking(omni, speaker="Chelsie")
    expected = [
        Request(str(k), (Message("user", (clip(1.5, k), "Hi")),), wants="audio", parameters={"seed": 3}) for k in (0, 1)
    ]
    answers = speaks.answer(expected)
    written = speaks.answer([Request(r.id, r.messages) for r in expected])
    assert [a.text for a in answers] == [w.text for w in written]
    assert all(a.audio.sample_rate_hz == 24_000 and a.audio.num_samples > 0 for a in answers)
    again = speaks.answer([expected[1]])[0]
    assert np.array_equal(again.audio.samples, answers[1].audio.samples)  # the same alone and in a batch


def test_a_checkpoint_without_voices_does_not_speak(omni, tmp_path):
    path = copied(omni, tmp_path / "mute")
    (path / "spk_dict.pt").unlink()
    with refuses("no_voice_table"):
        speaking(path)
