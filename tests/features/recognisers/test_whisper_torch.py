"""Whisper in torch: the tokens are those of CTranslate2 on the same weights, in any batch."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import ct2_whisper
import numpy as np
import pytest
import tiny_whisper
from refusals import Containing, refuses

from codec_bench.audio.resample import prepare
from codec_bench.engine.plan import build_plan
from codec_bench.engine.systems import UNPROCESSED
from codec_bench.features import exact_name, load_feature
from codec_bench.features.recognisers import cublas, whisper_torch
from codec_bench.features.recognisers.whisper import WINDOW_S, Whisper, _Together
from codec_bench.weights import checkpoint

RATE = 16_000
LANGUAGES = ["en", "zh", None, "fr", "ja"]


def in_torch(folder, name, point="torch"):
    return Whisper(model=name, weights=f"{folder}-transformers", point=point)


@pytest.fixture(scope="module")
def clips(embedded):
    """Speech, noise and silence of 0.01 to 40 s."""
    speech = [prepare(audio, RATE) for _, audio in embedded[:4]]
    rng = np.random.default_rng(4)
    noises = [rng.normal(0, 0.1, n).astype(np.float32) for n in (160, 1_601, 30 * RATE, 30 * RATE + 160)]
    long = np.concatenate([*speech, *speech[::-1], *speech] * 2)
    assert long.size > 40 * RATE
    return [*speech, *noises, np.zeros(RATE, np.float32), long[: 40 * RATE]]


def spoken_in(name, clips):
    return [None if name.endswith(".en") else LANGUAGES[k % len(LANGUAGES)] for k in range(len(clips))]


def check_same(theirs, ours):
    for there, here in zip(theirs, ours, strict=True):
        assert there["tokens"].tolist() == here["tokens"].tolist()
        for key in ("transcript", "language", "language_detected", "windows", "seconds"):
            assert there[key] == here[key], key
        assert there.get("fault") == here.get("fault")
        assert there["avg_logprob"] == pytest.approx(here["avg_logprob"], abs=1e-4)
        assert there["no_speech_prob"] == pytest.approx(here["no_speech_prob"], rel=1e-3, abs=1e-6)


@pytest.fixture(scope="module")
def results_of_tiny(whispers, clips):
    """What the smallest network hears in the clips, in their order and in batches of the usual size."""
    return in_torch(whispers["whisper-tiny"], "whisper-tiny").compute(clips, spoken_in("whisper-tiny", clips))


@pytest.mark.parametrize("name", ["whisper-tiny", "whisper-large-v3", "whisper-tiny.en"])
def test_the_tokens_are_ctranslate2s(whispers, clips, name):
    languages = spoken_in(name, clips)
    expected = Whisper(model=name, weights=str(whispers[name])).compute(clips, languages)
    actual = in_torch(whispers[name], name).compute(clips, languages)
    check_same(actual, expected)
    assert len({len(result["tokens"]) for result in actual}) > 3, "the stand-in is worth testing on"


@pytest.mark.parametrize(("at_once", "looks"), [(1, 1), (3, 8)])
def test_it_does_not_depend_on_the_batch_nor_on_when_it_looks(
    whispers, clips, results_of_tiny, monkeypatch, at_once, looks
):
    monkeypatch.setitem(whisper_torch.BETWEEN_LOOKS, "cpu", looks)
    feature = in_torch(whispers["whisper-tiny"], "whisper-tiny")
    feature._together = _Together(at_once * WINDOW_S)
    order = np.random.default_rng(at_once).permutation(len(clips))[:6]
    languages = spoken_in("whisper-tiny", clips)
    results = feature.compute([clips[k] for k in order], [languages[k] for k in order])
    check_same(results, [results_of_tiny[k] for k in order])


@pytest.mark.parametrize("windows", ["28s", "vad"])
def test_other_windows_are_the_same_too(whispers, clips, windows):
    folder, some = whispers["whisper-tiny"], [clips[0], clips[-1]]
    expected = Whisper(model="whisper-tiny", weights=str(folder), point=windows).compute(some, ["en", "zh"])
    check_same(in_torch(folder, "whisper-tiny", f"torch+{windows}").compute(some, ["en", "zh"]), expected)


def test_a_loop_ends_at_the_same_bound(tmp_path, clips):
    folder = tiny_whisper.write_converted(tmp_path / "endless", end=-100.0)
    (result,) = in_torch(folder, "whisper-tiny").compute(clips[:1], ["en"])
    assert len(result["tokens"]) == 224 and "224 tokens" in result["fault"]


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_is_another_protocol(whispers, clips, kind):
    rough = in_torch(whispers["whisper-tiny"], "whisper-tiny", f"torch+{kind}")
    assert rough.protocol == f"whisper-tiny/greedy/30s/{kind}"
    exact = in_torch(whispers["whisper-tiny"], "whisper-tiny").compute(clips[:2], ["en", "en"])
    result = rough.compute(clips[:2], ["en", "en"])
    assert result[0]["avg_logprob"] != exact[0]["avg_logprob"]


def test_a_type_of_ctranslate2_alone_is_refused():
    with refuses(
        "compute_type_unsupported",
        name="whisper-tiny",
        compute_type="int8",
        device="torch",
        hint="float32, float16, bfloat16",
    ):
        Whisper.protocol_id("whisper-tiny", "torch+int8")


@pytest.fixture
def published(whispers, tmp_path, monkeypatch):
    """Puts whisper-tiny where published weights are looked for, in the layouts that are named;
    nothing else is there.
    """

    def put(*layouts):
        for variable in ("CODEC_BENCH_WEIGHTS", "CODEC_BENCH_CACHE", "HF_HUB_CACHE"):
            monkeypatch.setenv(variable, str(tmp_path))
        for layout in layouts:
            name, folder = {"torch": ("whisper-tiny-transformers", "-transformers"), "ct2": ("whisper-tiny", "")}[
                layout
            ]
            shutil.copytree(f"{whispers['whisper-tiny']}{folder}", tmp_path / checkpoint(name).hub)

    return put


@pytest.mark.parametrize(
    ("there", "device", "point", "expected"),
    [
        (("torch", "ct2"), "cpu", None, "ct2"),
        (("torch", "ct2"), "cuda:0", None, "torch"),
        (("torch", "ct2"), "cuda:1", "float16+28s", "torch"),
        (("torch", "ct2"), "cuda:0", "int8", "ct2"),
        (("torch", "ct2"), "cuda:0", "ct2+28s", "ct2"),
        (("torch", "ct2"), "cpu", "torch", "torch"),
        (("torch",), "cpu", None, "torch"),
        (("ct2",), "cuda:0", None, "ct2"),
    ],
)
def test_the_device_decides_what_computes_unless_the_name_or_what_is_here_does(
    published, there, device, point, expected
):
    published(*there)
    feature = Whisper(device, model="whisper-tiny", point=point)
    assert feature.by == expected
    assert ("transformers" in str(feature._folder) or "openai" in str(feature._folder)) == (expected == "torch")
    assert feature.protocol == Whisper.protocol_id("whisper-tiny", point)
    exact = exact_name("whisper-tiny" + (f"@{point}" if point else ""), gpu=device != "cpu")
    assert load_feature(exact).by == expected, "also on a CPU that takes over"
    assert load_feature(exact).protocol == feature.protocol


@pytest.mark.parametrize(("gpu", "name"), [(True, "whisper-tiny-transformers"), (False, "whisper-tiny")])
def test_weights_that_are_nowhere_are_requested_in_the_layout_of_the_device(published, gpu, name):
    published()
    with refuses("weights_missing", names=f"'{name}'"):
        Whisper("cuda:0" if gpu else "cpu", model="whisper-tiny")


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_the_layout_of_passed_weights_decides(whispers, device):
    folder = str(whispers["whisper-tiny"])
    for options, expected in (
        (folder, "ct2"),
        (f"{folder}/model.bin", "ct2"),
        (f"{folder}-transformers", "torch"),
        (f"{folder}-transformers/model.safetensors", "torch"),
    ):
        assert Whisper(device, options, model="whisper-tiny").by == expected
    with refuses("compute_type_unsupported", name="whisper-tiny", compute_type="int8", device="torch"):
        Whisper("cpu", f"{folder}-transformers", model="whisper-tiny", point="int8")


def test_a_plan_tells_every_worker_and_the_record_what_computes(published):
    published("torch", "ct2")
    for gpu, expected in ((False, "ct2"), (True, "torch")):
        plan = build_plan(UNPROCESSED, ["wer[whisper-tiny@28s]"], {}, gpu=gpu)
        feature = plan.features["whisper-tiny@28s"]
        assert feature.stage.names == (f"whisper-tiny@{expected}+28s",)
        assert f"|whisper-tiny/greedy/28s|{expected}|" in feature.cache_id
        assert plan.metrics["wer[whisper-tiny@28s]"].protocol == "wer/whisper-tiny/greedy/28s/by-language"


def test_published_weights_are_located_where_they_are(whispers, tmp_path, monkeypatch):
    where = tmp_path / "openai" / "whisper-tiny"
    shutil.copytree(f"{whispers['whisper-tiny']}-transformers", where)
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    feature = load_feature("whisper-tiny@torch")
    feature.load()
    assert feature._folder == where
    assert load_feature("whisper-tiny@torch", weights=str(where / "model.safetensors"))._folder == where


def test_weights_of_the_other_layout_are_refused_with_what_reads_them(whispers):
    folder = str(whispers["whisper-tiny"])
    with refuses(
        "weights_of_ctranslate2",
        weights="whisper-tiny",
        model="whisper-tiny",
        hint="codec-bench weights fetch whisper-tiny-transformers",
    ):
        load_feature("whisper-tiny@torch", weights=folder)
    with refuses("weights_not_converted", hint="or name whisper-tiny@torch"):
        load_feature("whisper-tiny@ct2", weights=f"{folder}-transformers")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (
            "whisper-tiny",
            "whisper-large-v3",
            {"code": "weights_of_another_model", "difference": Containing("take 128 mel bands")},
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
        in_torch(whispers[options], name).load()


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda f: (f / "model.safetensors").write_bytes(b"nothing of the kind"), {"code": "weights_not_read"}),
        (lambda f: (f / "config.json").write_text('{"model_type": "bart"}'), {"code": "weights_kind", "kind": "bart"}),
        (lambda f: (f / "config.json").write_text("{"), {"code": "weights_not_read"}),
        (lambda f: (f / "tokenizer.json").write_text("{"), {"code": "not_a_tokeniser"}),
    ],
)
def test_a_broken_checkpoint_is_one_sentence(whispers, tmp_path, edit, says):
    folder = Path(shutil.copytree(f"{whispers['whisper-tiny']}-transformers", tmp_path / "changed"))
    edit(folder)
    with refuses(**says) as caught:
        Whisper(model="whisper-tiny", weights=str(folder), point="torch").load()
    assert str(folder) in str(caught.value)


def edit_config(folder, name="config.json", **changes):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"activation_function": "relu"}, {"code": "weights_of_another_model"}),
        ({"scale_embedding": True}, {"code": "weights_of_another_model"}),
        ({"d_model": None}, {"code": "weights_not_read"}),
        (
            {"encoder_layers": 9},
            {"code": "tensors_wrong", "difference": {"code": "tensors_differ", "missing": Containing("model")}},
        ),
        (
            {"decoder_ffn_dim": 7},
            {"code": "tensors_wrong", "difference": {"code": "tensors_differ", "reshaped": Containing("(expected")}},
        ),
        (
            {"tie_word_embeddings": False},
            {
                "code": "tensors_wrong",
                "difference": {"code": "tensors_differ", "missing": Containing("proj_out.weight")},
            },
        ),
    ],
)
def test_another_config(whispers, tmp_path, changes, says):
    folder = Path(shutil.copytree(f"{whispers['whisper-tiny']}-transformers", tmp_path / "changed"))
    edit_config(folder, **changes)
    with refuses(**says):
        Whisper(model="whisper-tiny", weights=str(folder), point="torch").load()


def test_file_of_torch_without_transformers(whispers, tmp_path, clips, monkeypatch):
    """Its output layer repeats the table of tokens."""
    import torch
    from safetensors.torch import load_file

    monkeypatch.setitem(sys.modules, "transformers", None)
    folder = Path(shutil.copytree(f"{whispers['whisper-tiny']}-transformers", tmp_path / "bin"))
    results = [in_torch(whispers["whisper-tiny"], "whisper-tiny").compute(clips[:2], ["en", "en"])]
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({**state, "proj_out.weight": state["model.decoder.embed_tokens.weight"]}, folder / "pytorch_model.bin")
    results.append(Whisper(model="whisper-tiny", weights=str(folder), point="torch").compute(clips[:2], ["en", "en"]))
    check_same(*results)


def test_a_network_that_does_not_fit_into_memory_is_no_broken_checkpoint(whispers, monkeypatch):
    import torch

    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(whisper_torch, "load_tensors", full)
    with pytest.raises(MemoryError, match="whisper-tiny does not fit into the memory of 'cpu'"):
        in_torch(whispers["whisper-tiny"], "whisper-tiny").load()


def test_without_cublas_torch_is_named_as_the_way_out(whispers, monkeypatch):
    def missing(*_, **__):
        raise OSError

    monkeypatch.setattr(cublas.sys, "platform", "linux")
    monkeypatch.setattr(cublas.ctypes, "CDLL", missing)
    with refuses("package_not_installed", package="nvidia-cublas-cu12", hint="whisper-tiny@torch"):
        Whisper("cuda:0", str(whispers["whisper-tiny"]), model="whisper-tiny").load()


def test_a_converted_file_is_read_back_to_the_numbers_it_was_converted_from(whispers, tmp_path):
    from safetensors.numpy import load_file

    for name, folder in whispers.items():
        again = ct2_whisper.write_transformers(folder, tmp_path / name)
        there, here = (load_file(f"{where}/model.safetensors") for where in (f"{folder}-transformers", again))
        assert here.keys() == there.keys()
        for key, values in there.items():
            np.testing.assert_array_equal(here[key], values, key)
        facts = [json.loads(Path(f"{where}/config.json").read_text()) for where in (f"{folder}-transformers", again)]
        assert facts[1].items() <= facts[0].items()
