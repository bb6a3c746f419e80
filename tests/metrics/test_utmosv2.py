"""UTMOSv2 against its definition with librosa's and transformers' parts and a small network, and batches against
signals alone.
"""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
from glides import glide
from refusals import refuses

from codec_bench.features import Unavailable, load_feature, utmosv2
from codec_bench.messages import Diagnostic
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs
from codec_bench.networks import utmosv2 as network

WINDOWS = (4096, 2048, 1024, 512)
LONG, SHORT = 60_001, 9001


def noisy(samples, seed=0):
    """A glide with noise."""
    sound = glide(samples).samples[0] + np.random.default_rng(seed).normal(0, 0.3, samples)
    return (0.7 * sound / np.abs(sound).max()).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five small folds in the layout of the published ones."""
    folder = tmp_path_factory.mktemp("utmosv2")
    for fold in range(5):
        tiny_speech.write_utmosv2(folder, fold)
    return folder


@pytest.fixture(scope="module")
def feature(folder):
    return tiny_speech.SmallUtmosV2("cpu", str(folder))


class Definition:
    """UTMOSv2 of one signal, step by step, from the tensors of a published file."""

    def __init__(self, path):
        import torch
        from transformers import Wav2Vec2Config, Wav2Vec2Model

        self.state = {name: value.double() for name, value in torch.load(path, weights_only=True).items()}
        encoder = "ssl.encoder.model."
        self.encoder = Wav2Vec2Model(Wav2Vec2Config(**tiny_speech.SMALL_WAV2VEC2)).double().eval()
        self.encoder.load_state_dict(
            {name.removeprefix(encoder): value for name, value in self.state.items() if name.startswith(encoder)}
        )

    def score(self, signal, generator):
        import torch

        def crop(size):
            long = signal if len(signal) > size else np.tile(signal, size // len(signal) + 1)
            start = generator.randint(0, len(long) - size)
            return long[start : start + size]

        wave = torch.from_numpy(crop(48_000)).double()
        seen = []
        for _ in range(2):
            actual, images = crop(22_400), []
            for window in WINDOWS:
                other = self.mel(crop(22_400), window)
                share = generator.beta(0.4, 0.4)
                images.append(share * self.mel(actual, window) + (1 - share) * other)
            seen.append(images)
        with torch.inference_mode():
            test = torch.zeros(30, dtype=torch.float64)
            test[21] = 1  # the second of ten listening tests, the third time that they are given
            parts = [self.output(wave), test[:10], self.looked_at(seen), test[10:]]
            return float(self.state["fc.weight"][0] @ torch.cat(parts) + self.state["fc.bias"][0])

    @staticmethod
    def mel(crop, window):
        librosa = pytest.importorskip("librosa")
        power = librosa.feature.melspectrogram(
            y=crop, sr=16_000, n_fft=4096, hop_length=32, win_length=window, n_mels=512
        )
        return (librosa.power_to_db(power, ref=np.max) + 80) / 80

    def output(self, wave):
        import torch

        wave = (wave - wave.mean()) / (wave.var(correction=0) + 1e-7).sqrt()
        hidden = self.encoder(wave[None], output_hidden_states=True).hidden_states
        x = sum(weight * one[0] for weight, one in zip(self.state["ssl.weights"], hidden, strict=True))
        return torch.cat([self.attention("ssl.attn.0.", x).mean(0), x.max(0).values])

    def looked_at(self, seen):
        import torch

        frames = []
        for images in seen:
            weighted = [
                self.state["spec_long.weights"][index]
                * self.convolved(f"spec_long.backbones.{index}.", squeezed(image))
                for index, image in enumerate(images)
            ]
            frames.append(sum(weighted))
        x = torch.cat(frames, 2)
        x = torch.cat([x.mean(2), x.max(2).values]).T
        return torch.cat([self.attention("spec_long.attn.", x).mean(0), x.max(0).values])

    def attention(self, name, x):
        import torch

        tensors = [self.state[name + leaf] for leaf in ("in_proj_weight", "in_proj_bias")]
        query, key, value = ((x @ w.T + b).unflatten(1, (8, -1)) for w, b in zip(*(t.chunk(3) for t in tensors)))
        weights = torch.einsum("ihd,jhd->hij", query, key).div(query.shape[2] ** 0.5).softmax(2)
        mixed = torch.einsum("hij,jhd->ihd", weights, value).flatten(1)
        return mixed @ self.state[name + "out_proj.weight"].T + self.state[name + "out_proj.bias"]

    def convolved(self, name, image):
        """The small network of `tiny_speech`, over an image `(3, size, size)`."""

        def block(at, *steps):
            for conv, norm, stride, active in steps:
                if conv == "se":
                    x[0] = x[0] * self.weigh(f"{name}{at}se.", x[0])
                else:
                    x[0] = self.step(f"{name}{at}{conv}", f"{name}{at}{norm}", x[0], stride, active)

        def separable(at, stride):
            block(
                at, ("conv_pw", "bn1", 1, 1), ("conv_dw", "bn2", stride, 1), ("se", "", 1, 0), ("conv_pwl", "bn3", 1, 0)
            )

        x = [image[None]]
        block("", ("conv_stem", "bn1", 2, 1))
        for at, inner in (
            ("blocks.0.0.", lambda at: block(at, ("conv", "bn1", 1, 1))),
            ("blocks.1.0.", lambda at: block(at, ("conv_exp", "bn1", 2, 1), ("conv_pwl", "bn2", 1, 0))),
            ("blocks.1.1.", lambda at: block(at, ("conv_exp", "bn1", 1, 1), ("conv_pwl", "bn2", 1, 0))),
            ("blocks.2.0.", lambda at: separable(at, 2)),
            ("blocks.2.1.", lambda at: separable(at, 1)),
        ):
            before = x[0]
            inner(at)
            if at in ("blocks.0.0.", "blocks.1.1.", "blocks.2.1."):
                x[0] = x[0] + before
        block("", ("conv_head", "bn2", 1, 1))
        return x[0][0]

    def step(self, conv, norm, x, stride, active):
        import torch.nn.functional as F

        weight, of = self.state[f"{conv}.weight"], lambda leaf: self.state[f"{norm}.{leaf}"][:, None, None]
        groups = x.shape[1] // weight.shape[1]
        if weight.shape[2] == 3:  # TensorFlow's "same" padding of an even number of rows and columns
            x = F.pad(x, (1, 1, 1, 1) if stride == 1 else (0, 1, 0, 1))
        x = F.conv2d(x, weight, stride=stride, groups=groups)
        x = (x - of("running_mean")) / (of("running_var") + 1e-3).sqrt() * of("weight") + of("bias")
        return x * x.sigmoid() if active else x

    def weigh(self, name, x):
        weights = [self.state[f"{name}{conv}.weight"][:, :, 0, 0] for conv in ("conv_reduce", "conv_expand")]
        biases = [self.state[f"{name}{conv}.bias"] for conv in ("conv_reduce", "conv_expand")]
        inner = weights[0] @ x[0].mean((1, 2)) + biases[0]
        return (weights[1] @ (inner * inner.sigmoid()) + biases[1]).sigmoid()[:, None, None]


def squeezed(image):
    """701 columns as 512, each a mean with the weights of a triangle as wide as two of them; three times."""
    import torch

    scale = image.shape[1] / 512
    centres, columns = (np.arange(512) + 0.5) * scale, np.arange(image.shape[1]) + 0.5
    triangles = np.maximum(0, 1 - np.abs(columns[:, None] - centres) / scale)
    return torch.from_numpy(np.stack([image @ (triangles / triangles.sum(0))] * 3))


@pytest.mark.compares("utmosv2", weights="stand-in")
def test_a_batch_is_the_definition_of_one_by_one(feature, folder):
    signals = [noisy(LONG), glide(SHORT).samples[0]]
    definition = Definition(folder / "fold0_s42_best_model.pth")
    expected = [definition.score(signal, np.random.RandomState(utmosv2.seed_of(signal))) for signal in signals]
    result = feature.compute(signals)
    assert np.ptp(expected) > 1e-2
    np.testing.assert_allclose([one["mos"] for one in result], expected, atol=1e-4)
    assert [one["draws"] for one in result] == [1, 1]
    assert feature.compute(signals[1:]) == result[1:], "on a CPU to the last bit"


def test_five_folds_draw_on(folder):
    """The first fold has the first five draws, the second the next ones."""
    feature = tiny_speech.SmallUtmosV2("cpu", str(folder), "five-folds")
    signal = noisy(SHORT)
    batch = feature.prepare([signal])
    assert [one.fold for one in batch.passes] == [fold for fold in range(5) for _ in range(5)]
    source = utmosv2.draws(signal, utmosv2.seed_of(signal))
    for one in batch.passes:
        draw = next(source)
        for options, actual in zip(one.inputs, (draw.wave, draw.crops, draw.shares), strict=True):
            np.testing.assert_array_equal(options.numpy()[0], actual)
    feature.load()
    feature._nets = [lambda *_, fold=fold: one.inputs[0].new_full((1,), fold) for fold in range(5)]
    assert feature.compute_prepared(batch) == [{"mos": 2.0, "draws": 25}]


def test_five_repetitions_begin_with_the_default(feature, folder):
    five = tiny_speech.SmallUtmosV2("cpu", str(folder), "five-repetitions")
    signal = noisy(SHORT, 3)
    one, passes = feature.prepare([signal]).passes, five.prepare([signal]).passes
    assert len(passes) == 5 and len(one) == 1
    assert all((a == b).all() for a, b in zip(one[0].inputs, passes[0].inputs, strict=True))
    assert not (passes[0].inputs[2] == passes[1].inputs[2]).any()


@pytest.mark.parametrize("samples", [22_399, 22_400, 22_401, 48_000, 1])
def test_a_signal_that_is_short_is_repeated(samples):
    signal = np.arange(1, samples + 1, dtype=np.float32)
    draw = next(utmosv2.draws(signal, 0))
    assert draw.wave.shape == (48_000,) and draw.crops.shape == (2, 5, 22_400) and draw.shares.shape == (2, 4)
    assert (
        set(np.diff(draw.wave).tolist()) <= {1.0, 1.0 - samples}
        and (0 <= draw.shares).all()
        and (draw.shares <= 1).all()
    )


def test_unusable_audio_is_unavailable_and_harms_nobody(feature, monkeypatch):
    monkeypatch.setattr(network, "HOP", 256)  # coarser images; nothing else of the passes changes
    monkeypatch.setattr(network, "SIZE", 128)
    fine = noisy(SHORT)
    none, short, silent, broken, usable = feature.compute(
        [fine[:0], fine[:399], np.zeros(9000, np.float32), np.full(9000, np.nan, np.float32), fine]
    )
    for result in (none, short, silent, broken):
        assert isinstance(result, Unavailable)
    assert str(short) == Diagnostic("signal_short", samples=399, model="UTMOSv2", needed=400)
    assert str(silent) == Diagnostic("signal_silent")
    assert usable == feature.compute([fine])[0]
    assert feature.compute([]) == []


def test_the_metric_is_the_score():
    metric = build_metric("utmosv2")
    (score,) = metric.compute([Inputs("a", 16_000, estimate_features={"utmosv2": {"mos": 3.25, "draws": 1}})])
    assert (score.value, score.protocol, score.detail) == (3.25, "utmosv2/fusion-stage3/fold0/draws-1", {"draws": 1})
    assert build_metric("utmosv2[five-repetitions]").protocol == "utmosv2/fusion-stage3/fold0/draws-5"
    other = build_metric("utmosv2[five-folds]")
    assert other.protocol == "utmosv2/fusion-stage3/5-folds/draws-5"
    assert other.estimate_features == ("utmosv2[five-folds]",)
    with refuses("no_variant", variant="ten-folds"):
        build_metric("utmosv2[ten-folds]")


def test_other_weights_are_one_sentence(tmp_path, monkeypatch):
    import torch

    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("CODEC_BENCH_WEIGHTS", raising=False)
    with refuses("weights_missing", hint="codec-bench weights fetch utmosv2-folds"):
        load_feature("utmosv2[five-folds]")
    with refuses("weights_folder_lacks", names="fold0_s42_best_model.pth"):
        load_feature("utmosv2", weights=str(tmp_path))
    file = tmp_path / "fold0_s42_best_model.pth"
    torch.save({"fc.weight": torch.zeros(3)}, file)
    with refuses("tensors_wrong"):
        load_feature("utmosv2", weights=str(file)).load()
