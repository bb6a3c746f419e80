"""Qwen3-ASR against transformers' own class and processor, one signal at a time, on a small seeded network."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses
from tiny_recognisers import write_parakeet, write_qwen3_asr

from codec_bench.features import Unavailable, load_feature
from codec_bench.features.recognisers import pieces, qwen3_asr
from codec_bench.messages import Diagnostic, of_error

RATE = pieces.RATE_HZ


def reference(folder, signals, languages):
    """Transcripts and languages by transformers alone, one signal at a time."""
    import torch
    from transformers import (
        AutoTokenizer,
        Qwen3ASRFeatureExtractor,
        Qwen3ASRForConditionalGeneration,
        Qwen3ASRProcessor,
    )

    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = Qwen3ASRProcessor(
        Qwen3ASRFeatureExtractor.from_pretrained(folder), tokenizer, chat_template=tokenizer.chat_template
    )
    model = Qwen3ASRForConditionalGeneration.from_pretrained(folder).eval()
    model.generation_config.update(do_sample=False, temperature=None, top_p=None, repetition_penalty=None)
    texts = []
    with torch.inference_mode():
        for signal, language in zip(signals, languages):
            inputs = processor.apply_transcription_request(signal, language=language)
            generated = model.generate(**inputs, max_new_tokens=qwen3_asr.MAX_TOKENS)
            texts += processor.decode(generated[:, inputs["input_ids"].shape[1] :], return_format="transcription_only")
    return texts


@pytest.fixture(autouse=True)
def _few_tokens(monkeypatch):
    """Networks of noise seldom come to an end."""
    monkeypatch.setattr(qwen3_asr, "MAX_TOKENS", 48)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_qwen3_asr(tmp_path_factory.mktemp("qwen3") / "asr")


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(6)
    sizes = [160, 7_999, 16_000, 16_001, *rng.integers(4_000, 12 * RATE, 4)]
    return [
        (np.repeat(rng.uniform(0.01, 1, size // 800 + 1), 800)[:size] * rng.normal(0, 0.3, size)).astype(np.float32)
        for size in sizes
    ]


@pytest.mark.compares("qwen3-asr-*", weights="stand-in")
def test_a_batch_equals_transformers_one_by_one(folder, signals):
    languages = [None, "en", "zh", None, "yue", "en", None, "fr"]
    expected = reference(folder, signals, languages)
    assert len(set(expected)) > len(expected) // 2  # else the comparison would prove little
    feature = load_feature("qwen3-asr-0.6b", weights=str(folder))
    feature.load()
    together = feature.transcribe(signals, languages)
    assert [item.text for item in together] == expected
    results = feature.compute(signals, languages)
    assert [result["transcript"] for result in results] == expected
    assert [result["language"] for result in results] == [code or "" for code in languages]
    order = np.random.default_rng(0).permutation(len(signals))
    assert feature.compute([signals[k] for k in order], [languages[k] for k in order]) == [results[k] for k in order]


def test_a_text_that_does_not_end_is_a_fault(folder, signals, monkeypatch):
    monkeypatch.setattr(qwen3_asr, "MAX_TOKENS", 1)
    (result,) = load_feature("qwen3-asr-0.6b", weights=str(folder)).compute([signals[2]])
    assert result["fault"] == Diagnostic("text_endless", tokens=1)


def test_the_language_that_the_model_names_is_reported_as_a_code():
    feature = object.__new__(qwen3_asr.Qwen3Asr)
    written = {
        (1,): {"language": "Cantonese", "transcription": "a"},
        (2,): {"language": None, "transcription": ""},
    }
    feature._processor = type("Processor", (), {"decode": staticmethod(lambda ids, return_format: written[tuple(ids)])})
    transcript = [feature._transcript([one, 9], None, {9}) for one in (1, 2)]
    assert [item.language for item in transcript] == ["yue", ""]
    assert feature.result([transcript[1], transcript[0], pieces.PieceTranscript("b")], None) == {
        "transcript": "ab", "language": "yue", "language_detected": True,
    }  # fmt: skip


def test_unusable_audio_is_unavailable(folder, signals):
    feature = load_feature("qwen3-asr-0.6b", weights=str(folder))
    short, other, usable = feature.compute([signals[0][:159], signals[2], signals[2]], ["en", "xx", "en"])
    assert isinstance(short, Unavailable) and of_error(short).parameters["needed"] == 160
    assert isinstance(other, Unavailable) and of_error(other) == Diagnostic(
        "recogniser_language_unknown", name="qwen3-asr-0.6b", language="xx"
    )
    assert usable["language"] == "en" and not usable["language_detected"]


def test_protocols_and_folders_of_something_else(folder, tmp_path):
    assert qwen3_asr.Qwen3Asr.protocol_id("qwen3-asr-1.7b", "bfloat16") == "qwen3-asr-1.7b/greedy/whole-to-60s/bfloat16"
    with refuses("unknown_name", name="qwen3-asr", hint="qwen3-asr-1.7b"):
        qwen3_asr.Qwen3Asr.protocol_id("qwen3-asr")
    other = write_parakeet(tmp_path / "other", "ctc")
    for name in ("generation_config.json", "processor_config.json", "chat_template.jinja"):
        (other / name).write_bytes((folder / name).read_bytes())
    with refuses("weights_kind", kind="parakeet_ctc", expected="qwen3_asr"):
        load_feature("qwen3-asr-0.6b", weights=str(other)).load()
