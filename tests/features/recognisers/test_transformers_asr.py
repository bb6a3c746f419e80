"""The recognisers of the table against transformers' own classes and processors, one signal at a time, on small seeded
networks.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tiny_recognisers
from refusals import refuses

from codec_bench.features import Unavailable, load_feature
from codec_bench.features.recognisers import transformers_asr
from codec_bench.messages import Diagnostic, of_error

MOST = 12
"""Tokens of an answer. Networks of noise seldom come to an end."""
LANGUAGES = {
    "cohere-transcribe-03-2026": ["en", "de", "fr", "en", "it"],
    "fun-asr-nano-2512": [None, "en", "zh", "ja", None],
    "granite-speech-5.0-470m-turboctc": [None, "en", None, None, "en"],
    "nemotron-speech-streaming-en-0.6b": [None, "en", None, None, "en"],
    "nemotron-3.5-asr-streaming-0.6b": [None, "en", "ja", "fr", None],
    "moss-transcribe-diarize": [None, "en", "zh", None, "de"],
    "vibevoice-asr": [None, "en", "zh", None, "de"],
    "kyutai-stt-2.6b-en": [None, "en", None, None, "en"],
    "voxtral-mini-4b-realtime-2602": [None, "en", "zh", None, "de"],
}


@pytest.fixture(autouse=True)
def _few_tokens(monkeypatch):
    """Networks of noise seldom come to an end."""
    monkeypatch.setattr(transformers_asr, "MAX_TOKENS", MOST)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    path = tmp_path_factory.mktemp("asked")
    return {name: str(write(path / name)) for name, write in tiny_recognisers.REQUESTED.items()}


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(7)
    sizes = [2_400, 7_999, 16_001, 24_000, 12_000]
    return [
        (np.repeat(rng.uniform(0.01, 1, size // 800 + 1), 800)[:size] * rng.normal(0, 0.3, size)).astype(np.float32)
        for size in sizes
    ]


def reference(name, folder, signals, languages):
    """Transcripts by transformers alone, one signal at a time, as the page of each class asks it."""
    import torch
    import transformers

    processor = transformers.AutoProcessor.from_pretrained(folder)
    net = getattr(transformers, transformers_asr.FAMILIES[name].net).from_pretrained(folder).eval()
    greedy = {"max_new_tokens": MOST, "do_sample": False, "repetition_penalty": 1.0, "top_p": None, "temperature": None}
    texts = []
    with torch.inference_mode():
        for signal, language in zip(signals, languages):
            if name.startswith("cohere"):
                inputs = processor(signal, language=language, sampling_rate=16_000)
                generated = net.generate(**inputs, **greedy)[:, inputs["decoder_input_ids"].shape[1] :]
                texts += processor.decode(generated, skip_special_tokens=True)
            elif name.startswith("fun"):
                inputs = processor.apply_transcription_request(signal, language=language)
                generated = net.generate(**inputs, **greedy)[:, inputs["input_ids"].shape[1] :]
                texts += processor.decode(generated, skip_special_tokens=True, strip_prefix=True)
            elif name.startswith(("moss", "vibevoice")):
                inputs = processor.apply_transcription_request(signal, return_tensors="pt")
                quiet = {"sample": False} if name == "vibevoice-asr" else {}  # no noise is drawn
                greedy["max_new_tokens"] = 2 * MOST
                generated = net.generate(**inputs, **quiet, **greedy)[:, inputs["input_ids"].shape[1] :]
                texts += processor.decode(generated, return_format="transcription_only")
            elif name.startswith("voxtral"):
                greedy.pop("max_new_tokens", None)
                generated = net.generate(**processor(signal, sampling_rate=16_000, return_tensors="pt"), **greedy)
                texts += processor.batch_decode(generated, skip_special_tokens=True)
            elif name.startswith("kyutai"):
                generated = net.generate(**processor(audio=signal, sampling_rate=24_000, return_tensors="pt"))
                texts += processor.batch_decode(generated, skip_special_tokens=True)
            elif name.startswith("nemotron"):
                options = {"language": {"ja": "ja-JP", None: "auto"}.get(language, language)} if "3.5" in name else {}
                generated = net.generate(**processor(signal, sampling_rate=16_000, **options)).sequences
                texts += processor.decode(generated, skip_special_tokens=True)
            else:
                generated = net.generate(**processor(signal, sampling_rate=16_000))
                texts += processor.batch_decode(generated, skip_special_tokens=True)
    return [text.strip() for text in texts]


@pytest.mark.compares(
    "cohere-transcribe-03-2026", "fun-asr-nano-2512", "granite-speech-5.0-470m-turboctc",
    "nemotron-speech-streaming-en-0.6b", "nemotron-3.5-asr-streaming-0.6b", "moss-transcribe-diarize", "vibevoice-asr",
    "kyutai-stt-2.6b-en", "kyutai-stt-1b-en-fr", "voxtral-mini-4b-realtime-2602", weights="stand-in",
)  # fmt: skip
@pytest.mark.parametrize("name", tiny_recognisers.REQUESTED)
def test_a_batch_equals_transformers_one_by_one(name, folders, signals):
    if (needs := transformers_asr.FAMILIES[name].needs) is not None:
        pytest.importorskip(needs[0].replace("-", "_"))
    languages = LANGUAGES[name]
    expected = reference(name, folders[name], signals, languages)
    assert len(set(expected)) > len(expected) // 2  # else the comparison would prove little
    feature = load_feature(name, weights=folders[name])
    feature.load()
    assert [item.text for item in feature.transcribe(signals, languages)] == expected
    results = feature.compute(signals, languages)
    assert [result["transcript"] for result in results] == expected
    assert [result.get("language") for result in results] == languages
    faults = [result.get("fault") for result in results if "fault" in result]
    most = MOST * transformers_asr.FAMILIES[name].longer
    assert set(faults) <= {Diagnostic("text_endless", tokens=most)}
    assert not (faults and transformers_asr.FAMILIES[name].writes != "text")


def test_what_a_recogniser_does_not_know_is_refused(folders, signals):
    cohere = load_feature("cohere-transcribe-03-2026", weights=folders["cohere-transcribe-03-2026"])
    cohere.load()
    assert cohere.refusal(signals[2], None).code == "recogniser_needs_language"
    assert cohere.refusal(signals[2], "sv").parameters["language"] == "sv"
    (short,) = cohere.compute([signals[0][:800]], ["en"])
    assert isinstance(short, Unavailable) and of_error(short).parameters["needed"] == 1600
    with refuses("weights_kind", kind="cohere_asr"):
        load_feature("granite-speech-5.0-470m-turboctc", weights=folders["cohere-transcribe-03-2026"]).load()


def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "mistral_common", None)
    feature = load_feature("voxtral-mini-4b-realtime-2602", weights=folders["voxtral-mini-4b-realtime-2602"])
    with refuses("package_not_installed", package="mistral-common") as raised:
        feature.load()
    assert raised.value.hint == "pip install 'codec-bench[audio-llm]'"


def test_a_long_signal_is_transcribed_in_pieces_that_are_joined_as_its_language_is_written(monkeypatch, folders):
    feature = load_feature("fun-asr-nano-2512", weights=folders["fun-asr-nano-2512"])
    feature.load()
    received = []

    def transcribe(pieces, languages):
        received.extend(segment.size for segment in pieces)
        return [transformers_asr.PieceTranscript("字", str(code)) for code in languages]

    monkeypatch.setattr(feature, "transcribe", transcribe)
    tone = np.full(31 * 16_000, 0.1, np.float32)
    assert [result["transcript"] for result in feature.compute([tone, tone], ["zh", "en"])] == ["字字", "字 字"]
    assert len(received) == 4 and sum(received) == 2 * tone.size and max(received) <= 30 * 16_000
    assert "fault" not in feature.compute([tone[: 16_000 * 30]], ["zh"])[0] and received[-1] == 16_000 * 30


def test_protocols():
    assert (
        transformers_asr.TransformersRecogniser.protocol_id("fun-asr-nano-2512", "bfloat16")
        == "fun-asr-nano-2512/greedy/whole-to-30s/bfloat16"
    )
    assert transformers_asr.TransformersRecogniser.languages_of("granite-speech-5.0-470m-turboctc") == ("en",)
    with refuses("unknown_name", name="cohere-transcribe", hint="cohere-transcribe-03-2026"):
        transformers_asr.TransformersRecogniser.protocol_id("cohere-transcribe")


def test_the_codec_of_a_recogniser_is_computed_in_float32_at_every_precision(folders, signals):
    import torch

    feature = load_feature("kyutai-stt-2.6b-en@bfloat16", weights=folders["kyutai-stt-2.6b-en"])
    feature.load()
    types = {"codec": [], "text": []}
    net = feature._net
    for name, item in (("codec", net.codec_model.encoder.downsample), ("text", net.model.layers[0].mlp.fc1)):
        item.register_forward_hook(lambda _, __, out, result=types[name]: result.append(out.dtype))
    feature.compute(signals[2:3])
    assert set(types["codec"]) == {torch.float32} and set(types["text"]) == {torch.bfloat16}


def test_a_signal_longer_than_the_windows_of_a_codec_is_transcribed_as_frame_by_frame(folders):
    signal = np.random.default_rng(1).normal(0, 0.3, 24_000 * 9).astype(np.float32) * np.repeat(
        np.linspace(1, 0, 9), 24_000
    )
    (expected,) = reference("kyutai-stt-2.6b-en", folders["kyutai-stt-2.6b-en"], [signal], [None])
    feature = load_feature("kyutai-stt-2.6b-en", weights=folders["kyutai-stt-2.6b-en"])
    assert len(expected) > 60 and feature.compute([signal])[0]["transcript"] == expected
