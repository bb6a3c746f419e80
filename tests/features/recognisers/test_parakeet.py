"""Parakeet against transformers' own classes and processor, one signal at a time, on small seeded networks."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from refusals import refuses
from tiny_recognisers import write_parakeet

from codec_bench.features import Unavailable, load_feature
from codec_bench.features.recognisers import parakeet, pieces
from codec_bench.messages import Diagnostic

RATE = pieces.RATE_HZ
MODELS = {"ctc": "parakeet-ctc-0.6b", "tdt": "parakeet-tdt-0.6b-v2"}


def reference(folder, kind, signals):
    """Transcripts by transformers alone, one signal at a time."""
    import torch
    import transformers

    tokenizer = transformers.ParakeetTokenizer.from_pretrained(folder)
    extractor = transformers.ParakeetFeatureExtractor.from_pretrained(folder)
    processor = transformers.ParakeetProcessor(extractor, tokenizer, decoder_type=kind)
    model = getattr(transformers, parakeet.CLASSES[f"parakeet_{kind}"]).from_pretrained(folder).eval()
    texts = []
    with torch.inference_mode():
        for signal in signals:
            generated = model.generate(**processor(signal, sampling_rate=RATE))
            texts += processor.batch_decode(getattr(generated, "sequences", generated), skip_special_tokens=True)
    return [text.strip() for text in texts]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("parakeet")
    return {kind: write_parakeet(root / kind, kind) for kind in MODELS}


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(4)
    lengths = [321, 1_280, 1_281, 16_000, *rng.integers(2_000, 4 * RATE, 5)]
    return [
        (np.repeat(rng.uniform(0.01, 1, size // 800 + 1), 800)[:size] * rng.normal(0, 0.3, size)).astype(np.float32)
        for size in lengths
    ]


def load(folder, kind, **options):
    return load_feature(MODELS[kind], weights=str(folder), **options)


def texts_of(results):
    assert not any("fault" in result for result in results)
    return [result["transcript"] for result in results]


@pytest.mark.compares("parakeet-*", weights="stand-in")
@pytest.mark.parametrize("kind", MODELS)
def test_a_batch_equals_transformers_one_by_one(folders, signals, kind):
    expected = reference(folders[kind], kind, signals)
    assert len(set(expected)) > len(expected) // 2  # else the comparison would prove little
    feature = load(folders[kind], kind)
    feature.load()
    together = feature.transcribe(signals, [None] * len(signals))
    assert [item.text for item in together] == expected
    assert texts_of(feature.compute(signals)) == expected
    order = np.random.default_rng(0).permutation(len(signals))
    assert texts_of(feature.compute([signals[k] for k in order])) == [expected[k] for k in order]


def test_the_times_of_a_transducers_words_are_those_of_transformers(folders, signals):
    """Its processor gives the times of tokens as NeMo does; a word begins with a token that begins with a space."""
    import torch
    import transformers

    tokenizer = transformers.ParakeetTokenizer.from_pretrained(folders["tdt"])
    extractor = transformers.ParakeetFeatureExtractor.from_pretrained(folders["tdt"])
    processor = transformers.ParakeetProcessor(extractor, tokenizer, decoder_type="tdt")
    model = transformers.ParakeetForTDT.from_pretrained(folders["tdt"]).eval()
    feature = load(folders["tdt"], "tdt")
    several = 0
    for signal in signals[3:]:
        with torch.inference_mode():
            generated = model.generate(**processor(signal, sampling_rate=RATE), return_dict_in_generate=True)
        _, (tokens,) = processor.decode(generated.sequences, durations=generated.durations, skip_special_tokens=True)
        words = []
        for token in tokens:
            if not words or token["token"].startswith(" "):
                words.append([])
            words[-1].append(token)
        spoken = [[one for one in word if one["token"].strip()] for word in words]
        expected = [(mine[0]["start"], mine[-1]["end"]) for mine in spoken if mine]
        result = feature.timed(signal)
        several += len(result) > 1
        assert [(begin, end) for _, begin, end in result] == [pytest.approx(times, abs=1e-3) for times in expected]
        assert " ".join(word for word, _, _ in result) == feature.compute([signal])[0]["transcript"]
    assert several > 1


def test_the_times_of_words_by_frames(folders, signals):
    """Token by token from the logits, with the repeats that CTC takes for one."""
    feature = load(folders["ctc"], "ctc")
    signal = signals[-1]
    result = feature.timed(signal)
    logits, (count,) = feature.logits([signal])
    best = logits[0, :count].argmax(-1).tolist()
    loud = [at for at, token in enumerate(best) if token != feature._net.config.pad_token_id]
    assert result[0][1] == pytest.approx(0.08 * loud[0], abs=1e-3)
    assert result[-1][2] == pytest.approx(0.08 * (loud[-1] + 1), abs=1e-3)
    assert " ".join(word for word, _, _ in result) == feature.compute([signal])[0]["transcript"]
    assert all(begin < end for _, begin, end in result) and len(result) > 1


def test_logits_of_a_batch_are_those_of_one_by_one(folders, signals):
    feature = load(folders["ctc"], "ctc")
    feature.load()
    together, frames = feature.logits(signals)
    for result, count, signal in zip(together.numpy(), frames, signals):
        (alone,), (actual,) = feature.logits([signal])
        assert actual == count
        np.testing.assert_allclose(result[:count], alone.numpy()[:count], atol=1e-5 * np.abs(alone.numpy()).max())


def test_a_transducer_that_does_not_go_on_is_a_fault_however_long_the_others_are(folders, signals):
    """The head is made to write a letter for ever, without going on by a frame."""
    import torch

    feature = load(folders["tdt"], "tdt")
    feature.load()
    head = feature._net.joint.head
    with torch.no_grad():
        head.weight.zero_()
        head.bias.zero_()
        head.bias[4] = 1.0  # a letter, and the first number of frames, which is none
        head.bias[feature._net.config.vocab_size] = 1.0
    alone = feature.compute([signals[2]])
    assert alone[0]["fault"].code == "frames_not_read"
    assert feature.compute([signals[2], signals[3]])[0] == alone[0]


def test_unusable_audio_is_unavailable_and_harms_nobody(folders, signals):
    feature = load(folders["tdt"], "tdt")
    broken = signals[3].copy()
    broken[7] = np.nan
    none, short, not_finite, usable = feature.compute([signals[3][:0], signals[3][:319], broken, signals[3]])
    for result in (none, short, not_finite):
        assert isinstance(result, Unavailable)
    assert short.args[0] == Diagnostic("signal_short", samples=319, model="parakeet-tdt-0.6b-v2", needed=320)
    assert usable == feature.compute([signals[3]])[0]


def test_long_signals_are_transcribed_in_pieces(folders, signals, monkeypatch):
    monkeypatch.setattr(pieces.PiecewiseRecogniser, "whole_s", 31.0)
    long = np.tile(signals[-1], 40)[: 64 * RATE]
    cuts = list(pieces.windows(long))
    expected = reference(folders["ctc"], "ctc", [long[start:end] for start, end in cuts])
    assert texts_of(load(folders["ctc"], "ctc").compute([long])) == [" ".join(filter(None, expected))]


def test_protocols_languages_and_precisions():
    assert parakeet.Parakeet.protocol_id("parakeet-tdt-0.6b-v3") == "parakeet-tdt-0.6b-v3/greedy/whole-to-60s"
    assert parakeet.Parakeet.protocol_id("parakeet-ctc-1.1b", "bfloat16").endswith("/bfloat16")
    assert len(parakeet.Parakeet.languages_of("parakeet-tdt-0.6b-v3")) == 25
    assert parakeet.Parakeet.languages_of("parakeet-tdt-0.6b-v2") == ("en",)
    with refuses("no_point_of_metric", point="float16"):
        parakeet.Parakeet.protocol_id("parakeet-ctc-1.1b", "float16")
    with refuses("unknown_name", name="parakeet-tdt-0.6b", hint="parakeet-tdt-0.6b-v2"):
        parakeet.Parakeet.protocol_id("parakeet-tdt-0.6b")


def test_folders_of_something_else_are_one_sentence(folders, tmp_path):
    with refuses("weights_kind", kind="parakeet_tdt", expected="parakeet_ctc"):
        load(folders["tdt"], "ctc").load()
    other = shutil.copytree(folders["ctc"], tmp_path / "bands")
    settings = json.loads((other / "preprocessor_config.json").read_text("utf-8"))
    (other / "preprocessor_config.json").write_text(json.dumps({**settings, "feature_size": 80}), "utf-8")
    with refuses("mel_bands", folder="bands", bands=80, expected=16):
        load(other, "ctc").load()
    with refuses("no_such_weights"):
        load(tmp_path / "nothing", "ctc")
