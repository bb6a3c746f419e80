"""SenseVoice against FunASR itself, one file at a time, on the published architecture with random weights."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import re

import numpy as np
import pytest
import tiny_funasr
import torch
from refusals import refuses

from codec_bench.features.base import Unavailable
from codec_bench.features.recognisers.sensevoice import SenseVoice

pytest.importorskip("sentencepiece", reason="SentencePiece is not installed")
pytestmark = pytest.mark.skipif(importlib.util.find_spec("funasr") is None, reason="FunASR is not installed")
RATE_HZ = 16_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_funasr.write_sensevoice(tmp_path_factory.mktemp("weights") / "sensevoice")


@pytest.fixture(scope="module")
def signals(embedded):
    """Speech of many lengths, among them one of a single frame, and digital silence."""
    speech = np.concatenate([audio.samples[0] for _, audio in embedded[:8]])
    lengths = [int(seconds * RATE_HZ) for seconds in (3.1, 0.7, 6.03, 1.9, 9.0)]
    pieces = [speech[n * RATE_HZ : n * RATE_HZ + length].copy() for n, length in enumerate(lengths)]
    return [*pieces, speech[:400].copy(), np.zeros(RATE_HZ, np.float32)]


@pytest.fixture(scope="module")
def reference(folder):
    """FunASR's AutoModel: the text and the log-probabilities of one signal."""
    from funasr import AutoModel

    threads, level, handlers = torch.get_num_threads(), logging.root.level, list(logging.root.handlers)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        model = AutoModel(model=str(folder), device="cpu", disable_update=True, disable_pbar=True, ncpu=1)
    torch.set_num_threads(threads)
    logging.root.setLevel(level)
    logging.root.handlers[:] = handlers
    retained = []
    log_softmax = model.model.ctc.log_softmax
    model.model.ctc.log_softmax = lambda hidden: retained.append(log_softmax(hidden)) or retained[-1]

    def recognise(signal, language):
        retained.clear()
        torch.manual_seed(0)
        return model.generate(input=signal.copy(), language=language)[0]["text"], retained[0][0]

    return recognise


LANGUAGES = [None, "zh", "en", "yue", "fr", "ja", "ko"]


@pytest.mark.compares("sensevoice-small", weights="stand-in")
def test_a_batch_is_what_funasr_gives_one_by_one(folder, signals, reference):
    ours = SenseVoice(weights=str(folder))
    results = ours.compute(signals, LANGUAGES)
    scores, lengths = ours._logits(signals, LANGUAGES)  # all in one padded batch, whatever their lengths
    answered = set()
    for n, (signal, language, result) in enumerate(zip(signals, LANGUAGES, results)):
        text, expected = reference(signal, language or "auto")
        tags = re.findall(r"<\|(.*?)\|>", text)
        answered |= set(tags)
        assert result["transcript"] == re.sub(r"<\|.*?\|>", "", text).strip() and "<|" not in result["transcript"]
        assert lengths[n] == len(expected)
        apart = float((scores[n, : lengths[n]] - expected).abs().max())
        assert apart <= 1e-5 * float(expected.abs().max())
        best = expected.argmax(-1)
        retained = [int(b) for k, b in enumerate(best) if b != 0 and (k == 0 or best[k - 1] != b)]
        assert result["tokens"].tolist() == retained
        for kind, known in (
            ("language", {"zh", "en", "yue", "ja", "ko", "nospeech"}),
            ("event", {"Speech", "BGM", "Event_UNK"}),
        ):
            assert result[kind] == next((tag for tag in tags if tag in known), "")
    assert answered and any(result["transcript"] for result in results)


def test_a_language_is_detected_and_an_unknown_one_is_none(folder, signals):
    ours = SenseVoice(weights=str(folder))
    ours.load()
    alone = {code: ours._logits([signals[0]], [code])[0] for code in (None, "auto", "fr", "zh", "ko")}
    assert torch.equal(alone[None], alone["fr"]) and torch.equal(alone[None], alone["auto"])
    assert float((alone["zh"] - alone["ko"]).abs().max()) > 1e-2 < float((alone["zh"] - alone[None]).abs().max())


def test_a_result_does_not_depend_on_the_batch(folder, signals):
    ours = SenseVoice(weights=str(folder))
    together = ours.compute(signals, LANGUAGES)
    backwards = ours.compute(signals[::-1], LANGUAGES[::-1])[::-1]
    for signal, language, one, other in zip(signals, LANGUAGES, together, backwards):
        (alone,) = ours.compute([signal], [language])
        assert one["tokens"].tolist() == other["tokens"].tolist() == alone["tokens"].tolist()
        assert one["transcript"] == other["transcript"] == alone["transcript"]


def test_unusable_audio_is_reported(folder, signals):
    results = SenseVoice(weights=str(folder)).compute([signals[0][:399], signals[0], np.full(800, np.inf, np.float32)])
    assert [isinstance(result, Unavailable) for result in results] == [True, False, True]


def test_names_and_weights(folder, tmp_path):
    assert SenseVoice.protocol_id() == "sensevoice-small/funasr-1"
    assert SenseVoice.protocol_id("sensevoice-small", "tf32") == "sensevoice-small/funasr-1/tf32"
    with refuses("no_point_of_metric", point="28s"):
        SenseVoice(weights=str(folder), point="28s")
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("model: SenseVoiceSmall", "model: FunASRNano"))
    with refuses("configuration_value", key="model", value="FunASRNano", expected="SenseVoiceSmall"):
        SenseVoice(weights=str(tmp_path)).load()
    (tmp_path / "chn_jpn_yue_eng_ko_spectok.bpe.model").unlink()
    with refuses("weights_folder_lacks"):
        SenseVoice(weights=str(tmp_path))
