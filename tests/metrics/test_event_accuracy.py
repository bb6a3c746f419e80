"""The events that CLAP hears, against transformers' whole model one by one with stand-in weights; and codecs that keep
the event or not.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import planted_sounds
import pytest
import torch
import transformers
from planted_sounds import EVENTS, RATE_HZ, event
from refusals import refuses

from codec_bench import Audio, load_metric
from codec_bench.codecs import load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.features.clap import TextEncoder
from codec_bench.messages import Diagnostic
from codec_bench.metrics import Inputs, build_metric, event_accuracy
from codec_bench.metrics.event_accuracy import ESC_50, PROMPT

NAME, CLAP = "event_accuracy", "clap-htsat-unfused"


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A small CLAP where the published one is looked for, with tokens of whole words."""
    folder = tmp_path_factory.mktemp("weights")
    actual = folder / "clap-htsat-unfused"
    planted_sounds.write_reading_clap(actual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODEC_BENCH_WEIGHTS", str(folder))
        yield actual


@pytest.fixture(scope="module")
def sounds():
    rng = np.random.default_rng(0)
    tones = [np.sin(np.arange(30_000) * (0.005 + 0.03 * index)) for index in (0, 4)]
    return [
        Audio((0.3 * t + rng.normal(0, 0.02 + 0.1 * k, t.size)).astype(np.float32), 48_000) for k, t in enumerate(tones)
    ]


@pytest.fixture(scope="module")
def theirs(weights, sounds):
    """What transformers' model hears in each sound: the label with the largest cosine."""
    net = transformers.ClapModel.from_pretrained(weights).eval()
    front = transformers.ClapFeatureExtractor(
        truncation="rand_trunc", padding="pad", frequency_min=50, frequency_max=14_000
    )
    read = transformers.AutoTokenizer.from_pretrained(weights)

    def spoken(label):
        tokens = read(PROMPT.format(label), truncation=True, return_tensors="pt")
        return net.get_text_features(input_ids=tokens.input_ids, attention_mask=tokens.attention_mask).pooler_output

    with torch.inference_mode():
        texts = torch.nn.functional.normalize(torch.cat([spoken(label) for label in ESC_50]), dim=-1)
        received = []
        for sound in sounds:
            samples = (np.clip(sound.samples[0], -1, 1) * 32767).astype(np.int16) / np.float32(32767)
            mels = front(samples, sampling_rate=48_000, return_tensors="pt").input_features.float()
            received.append(
                ESC_50[int((texts @ net.get_audio_features(input_features=mels).pooler_output[0]).argmax())]
            )
    return received


def test_the_labels_are_those_of_esc_50():
    assert len(ESC_50) == len(set(ESC_50)) == 50 and list(ESC_50) == sorted(ESC_50)


def test_sentences_are_embedded_as_transformers_does_one_by_one(weights):
    net = transformers.ClapModel.from_pretrained(weights).eval()
    read = transformers.AutoTokenizer.from_pretrained(weights)
    for label, result in list(zip(ESC_50, TextEncoder().embeddings([PROMPT.format(one) for one in ESC_50])))[::7]:
        tokens = read(PROMPT.format(label), truncation=True, return_tensors="pt")
        with torch.inference_mode():
            text = (
                net.get_text_features(input_ids=tokens.input_ids, attention_mask=tokens.attention_mask)
                .pooler_output[0]
                .numpy()
            )
        np.testing.assert_allclose(result, text / np.linalg.norm(text), atol=1e-5)


@pytest.mark.compares("event_accuracy", weights="stand-in")
def test_the_transcript_is_that_of_transformers(weights, sounds, theirs):
    right = load_metric(NAME)(estimate=sounds, text=[label.replace(" ", "_").upper() for label in theirs])
    assert [scores[NAME].value for scores in right] == [1.0] * len(sounds)
    others = [next(label for label in ESC_50 if label != output) for output in theirs]
    named = f"{NAME}[esc-50]"
    wrong = [scores[named] for scores in load_metric(named)(estimate=sounds, text=others)]
    assert [score.value for score in wrong] == [0.0] * len(sounds)
    assert [score.detail["event"] for score in wrong] == theirs and wrong[0].protocol.startswith(
        "event_accuracy/esc-50/clap"
    )


def test_what_is_no_label_has_no_value(weights, sounds):
    (score,) = load_metric(NAME)(estimate=sounds[:1], text=["a barking dog"])
    assert (score[NAME].status, score[NAME].reason) == (
        "undefined",
        Diagnostic("no_label_of_set", text="a barking dog"),
    )
    (none,) = load_metric(NAME)(estimate=sounds[:1], text=[None])
    assert none[NAME].status == "refused"
    with refuses("no_variant", variant="x", name="event_accuracy"):
        load_metric(f"{NAME}[x]")


def test_a_codec_that_preserves_the_events_is_distinguished_from_one_that_does_not(monkeypatch):
    monkeypatch.setattr(
        event_accuracy, "TextEncoder", lambda: SimpleNamespace(embeddings=lambda texts: list(np.eye(len(texts))))
    )
    rng = np.random.default_rng(0)
    labels = [ESC_50[n] for n in rng.integers(0, 50, 400)]
    output = np.eye(50)[[ESC_50.index(label) for label in labels]] + rng.normal(0, 0.05, (400, 50))
    planted = {
        "keeps": output,
        "loses a half": np.where(np.arange(400)[:, None] % 2, output, rng.normal(0, 1, (400, 50))),
        "one sound": output[:1].repeat(400, 0),
    }
    share = {}
    for codec, embeddings in planted.items():
        items = [
            Inputs(str(n), 48_000, text=label, estimate_features={CLAP: {"embedding": e}})
            for n, (label, e) in enumerate(zip(labels, embeddings))
        ]
        share[codec] = np.mean([score.value for score in build_metric(NAME).compute(items)])
    assert share["keeps"] == 1.0 and share["loses a half"] == pytest.approx(0.51, abs=0.03)
    assert share["one sound"] == labels.count(labels[0]) / 400


@pytest.fixture(scope="module")
def taught(weights, tmp_path_factory):
    """The same CLAP, whose last layers know six kinds of sounds."""
    folder = tmp_path_factory.mktemp("taught")
    shutil.copytree(weights, folder / weights.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODEC_BENCH_WEIGHTS", str(folder))
        planted_sounds.teach_clap(folder / weights.name)
        yield


def test_the_event_is_read_from_the_samples_and_not_from_what_a_bad_codec_leaves(taught):
    """Sounds that the network was not taught with.

    A codec that sends their level alone leaves noise, which may tick or rain.
    """
    kinds = [kind for kind in EVENTS for _ in range(2)]
    sounds = [Audio(event(kind, n), RATE_HZ) for n, kind in enumerate(kinds)]
    hiss = f"{Path(planted_sounds.__file__).with_name('planted_codecs.py')}:Hiss"
    output = {}
    for codec in ("opus-24k", hiss):
        out = [item.estimate for item in reconstruct(load_codec(codec), sounds).items]
        scores = [one[NAME] for one in load_metric(NAME)(estimate=out, text=kinds)]
        output[codec] = [(score.detail["event"], score.value) for score in scores]
    assert output["opus-24k"] == [(kind.replace("_", " "), 1.0) for kind in kinds]
    tones = output[hiss][4:]  # the siren and the crickets: no tone is left of them, and at most one is guessed
    assert sum(value for _, value in tones) <= 1 and sum(event == "rain" for event, _ in tones) >= 3
