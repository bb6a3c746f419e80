"""Canary against transformers' own class and processor, one signal at a time, on a small seeded network."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses
from tiny_recognisers import write_canary

from codec_bench.features import Unavailable, load_feature
from codec_bench.features.recognisers import canary, pieces
from codec_bench.messages import Diagnostic, of_error


def reference(folder, signals, languages):
    """Transcripts by transformers alone, one signal at a time."""
    import torch
    from transformers import AutoTokenizer, CanaryForConditionalGeneration, CanaryProcessor, ParakeetFeatureExtractor

    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = CanaryProcessor(
        ParakeetFeatureExtractor.from_pretrained(folder), tokenizer, chat_template=tokenizer.chat_template
    )
    model = CanaryForConditionalGeneration.from_pretrained(folder).eval()
    start = model.config.decoder_start_token_id
    model.generation_config.update(
        do_sample=False, temperature=None, top_p=None, repetition_penalty=None, decoder_start_token_id=start
    )
    texts = []
    with torch.inference_mode():
        for signal, language in zip(signals, languages):
            inputs = processor.apply_transcription_request(signal, source_language=language)
            generated = model.generate(**inputs, max_new_tokens=canary.MAX_TOKENS)
            written = generated[:, inputs["decoder_input_ids"].shape[1] :]
            texts += tokenizer.batch_decode(written, skip_special_tokens=True)
    return [text.strip() for text in texts]


@pytest.fixture(autouse=True)
def _few_tokens(monkeypatch):
    """Networks of noise seldom come to an end."""
    monkeypatch.setattr(canary, "MAX_TOKENS", 48)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_canary(tmp_path_factory.mktemp("canary") / "canary")


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(7)
    sizes = [400, 7_999, 16_000, 16_001, *rng.integers(4_000, 6 * pieces.RATE_HZ, 4)]
    return [
        (np.repeat(rng.uniform(0.01, 1, size // 800 + 1), 800)[:size] * rng.normal(0, 0.3, size)).astype(np.float32)
        for size in sizes
    ]


@pytest.mark.compares("canary-1b-v2", weights="stand-in")
def test_a_batch_equals_transformers_one_by_one(folder, signals):
    languages = ["en", "de", "fr", "en", "es", "it", "de", "en"]
    expected = reference(folder, signals, languages)
    assert len(set(expected)) > len(expected) // 2  # else the comparison would prove little
    feature = load_feature("canary-1b-v2", weights=str(folder))
    feature.load()
    assert [item.text for item in feature.transcribe(signals, languages)] == expected
    results = feature.compute(signals, languages)
    assert [result["transcript"] for result in results] == expected
    assert [result["language"] for result in results] == languages


def test_it_needs_a_language_that_it_knows(folder, signals):
    feature = load_feature("canary-1b-v2", weights=str(folder))
    no_language, unknown, usable = feature.compute([signals[2]] * 3, [None, "zh", "en"])
    assert isinstance(no_language, Unavailable) and of_error(no_language).code == "recogniser_needs_language"
    assert isinstance(unknown, Unavailable) and of_error(unknown).parameters["language"] == "zh"
    assert usable["language"] == "en"


def test_a_text_that_does_not_end_is_a_fault(folder, signals, monkeypatch):
    monkeypatch.setattr(canary, "MAX_TOKENS", 1)
    (result,) = load_feature("canary-1b-v2", weights=str(folder)).compute([signals[2]], ["en"])
    assert result["fault"] == Diagnostic("text_endless", tokens=1)


def test_protocols():
    assert canary.Canary.protocol_id("canary-1b-v2", "tf32") == "canary-1b-v2/greedy/whole-to-40s/tf32"
    with refuses("unknown_name", name="canary-1b", hint="canary-1b-v2"):
        canary.Canary.protocol_id("canary-1b")
