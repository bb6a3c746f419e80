"""Every feature that runs on a GPU, on one that is not there: the CPU's values, and a fixed number of waits and
uploads.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tiny_audio_models
import tiny_funasr
import tiny_recognisers
import tiny_speech
import tiny_whisper
import torch
from pretended import Mixed, There

from codec_bench import features
from codec_bench.features import load_feature
from codec_bench.features.base import PreparedFeature
from codec_bench.features.dnsmos import Dnsmos, _Torch
from codec_bench.features.recognisers import canary, qwen3_asr, transformers_asr, whisper_network
from codec_bench.features.recognisers.whisper import Whisper, _Window
from codec_bench.features.scorers import SCORERS
from codec_bench.features.utmos import Utmos
from codec_bench.kernels.dnsmos.ref import DnsmosWeights
from codec_bench.networks import batch_shapes, utmosv2
from codec_bench.networks.transfer import UploadStream

RATE_HZ = 16_000
TOLERANCE = 1e-5
AUDIOSEAL = json.loads((Path(__file__).parents[1] / "golden" / "audioseal_small.json").read_text("utf-8"))
LENGTHS = (9001, 5200, 12_000, 5201, 9001)
"""One less than fills a batch to its shape."""
LONGER = tuple(2 * length for length in LENGTHS)
"""For features that hear 48 kHz."""
WINDOWS = {"ttsds2-whisper": (*LENGTHS, 7017, 5519), "dnsmos": LENGTHS[:4]}
"""The same for a feature that places windows of 30 s one after the other; fewer for one that repeats them to 9 s."""


class SmallUtmos(Utmos):
    """The feature with a small network."""

    def __init__(self, device):
        self.device, self._precision, self._net = device, "float32", None

    def load(self):
        if self._net is None:
            self._net = tiny_speech.small_utmos().to(self.device)


class SmallDnsmos(Dnsmos):
    """The feature with networks of two channels, and a window for every signal."""

    def _loaded(self):
        rng = np.random.default_rng(3)

        def weights(layers, outputs, front=None):
            channels = [1, *[2] * layers]
            convolutions = [
                (rng.normal(0, 0.3, (out, options, 3, 3)).astype(np.float32), np.zeros(out, np.float32))
                for options, out in pairwise(channels)
            ]
            return DnsmosWeights(
                convolutions, [(rng.normal(0, 1, (2, outputs)).astype(np.float32), np.zeros(outputs))], front
            )

        front = tuple(rng.normal(0, 0.1, (161, 320)).astype(np.float32) for _ in range(2))
        self._scorer = self._scorer or _Torch(self, weights(7, 3, front), weights(4, 1))
        return self._scorer


def saved_sv(folder):
    tiny_speech.saved(folder)
    return str(folder)


def published_sv(folder):
    import deterministic_weights

    state = deterministic_weights.stand_in(tiny_speech.SmallWavlmSv._architecture(None))
    return tiny_speech.published(state, folder / "wavlm_large_finetune.pth")


def bare_sv(name):
    return lambda folder: tiny_speech.bare(getattr(tiny_speech, name), folder / "bare.pt")


def paraformer(model, predictor):
    return lambda folder: str(tiny_funasr.write_paraformer(folder, model, predictor))


def whisper(folder):
    tiny_whisper.write_transformers(folder, end=55.0, layers=1, heads=1)
    return str(folder)


class Recording:
    """A recogniser that takes one language for every signal."""

    def __init__(self, feature, language):
        self.load, self._feature, self._language = feature.load, feature, language

    def compute(self, signals):
        return self._feature.compute(signals, [self._language] * len(signals))


# By name: what makes it on a device, from weights; and what writes the weights into a folder.
CASES = {
    "ge2e": (lambda device, _: load_feature("ge2e", device=device), None),
    "ge2e-vad": (lambda device, _: load_feature("ge2e-vad", device=device), None),
    "dnsmos": (lambda device, _: SmallDnsmos(device), None),
    "utmos": (lambda device, _: SmallUtmos(device), None),
    "wavlm-large-sv": (lambda device, weights: tiny_speech.SmallWavlmSv(device, weights), published_sv),
    "wavlm-base-plus-sv": (
        lambda device, weights: load_feature("wavlm-base-plus-sv", device=device, weights=weights), saved_sv,
    ),
    "campplus": (lambda device, weights: tiny_speech.SmallCamPlusPlus(device, weights), bare_sv("SmallCamPlusPlus")),
    "emotion2vec-plus-large": (
        lambda device, weights: tiny_speech.SmallEmotion2vec(device, weights), tiny_speech.write_emotion2vec,
    ),
    "redimnet-b5": (
        lambda device, weights: tiny_speech.SmallReDimNet(device, weights), tiny_speech.write_redimnet,
    ),
    "wespeaker-resnet34": (
        lambda device, weights: tiny_speech.SmallWespeaker(device, weights), bare_sv("SmallWespeaker"),
    ),
    "eres2net": (lambda device, weights: tiny_speech.SmallERes2Net(device, weights), bare_sv("SmallERes2Net")),
    "s3prl": (
        lambda device, weights: load_feature("s3prl[wavlm_local]", device=device, weights=weights),
        lambda folder: tiny_speech.write_s3prl(folder / "small.pt"),
    ),
    "s3prl-frames": (
        lambda device, weights: load_feature("s3prl-frames[wavlm_local@1]", device=device, weights=weights),
        lambda folder: tiny_speech.write_s3prl(folder / "small.pt"),
    ),
    "hubert-large-ls960": (
        lambda device, weights: load_feature("hubert-large-ls960", device=device, weights=weights),
        lambda folder: str(tiny_speech.write_ctc(folder, "hubert", "layer", True)),
    ),
    "audiobox": (
        lambda device, weights: tiny_speech.SmallAudiobox(device, weights),
        lambda folder: tiny_speech.write_audiobox(folder),
    ),
    "dnsmos-pro": (
        lambda device, weights: load_feature("dnsmos-pro", device=device, weights=weights),
        lambda folder: tiny_speech.write_dnsmos_pro(folder),
    ),
    "nisqa": (
        lambda device, weights: load_feature("nisqa", device=device, weights=weights),
        lambda folder: tiny_speech.write_nisqa(folder, "nisqa"),
    ),
    "scoreq": (
        lambda device, weights: tiny_speech.SmallScoreq(device, weights),
        lambda folder: tiny_speech.write_scoreq(folder, rates=True),
    ),
    "scoreq-embedding": (
        lambda device, weights: tiny_speech.SmallScoreqEmbedding(device, weights),
        lambda folder: tiny_speech.write_scoreq(folder, rates=False),
    ),
    "wvmos": (
        lambda device, weights: tiny_speech.SmallWvmos(device, weights),
        lambda folder: tiny_speech.write_wvmos(folder),
    ),
    "auto-att": (
        lambda device, weights: load_feature("auto-att", device=device, weights=weights),
        lambda folder: tiny_audio_models.write_auto_att(folder),
    ),
    "phones-wav2vec2-lv60": (
        lambda device, weights: load_feature("phones-wav2vec2-lv60", device=device, weights=weights),
        lambda folder: str(tiny_speech.write_ctc(folder, "wav2vec2", "layer", True)),
    ),
    "audioseal": (
        lambda device, weights: tiny_speech.SmallAudioSeal(device, weights),
        lambda folder: tiny_speech.write_audioseal(folder, AUDIOSEAL["shapes"]),
    ),
    "utmosv2": (
        lambda device, weights: tiny_speech.SmallUtmosV2(device, weights),
        lambda folder: tiny_speech.write_utmosv2(folder),
    ),
    "hubert-km200": (
        lambda device, weights: tiny_speech.SmallUnits("hubert-km200", device, weights),
        lambda folder: tiny_speech.write_units(folder),
    ),
    "clap-htsat-unfused": (
        lambda device, weights: load_feature("clap-htsat-unfused", device=device, weights=weights),
        lambda folder: tiny_speech.write_clap(folder),
    ),
    "ttsds2-wav2vec2": (
        lambda device, weights: tiny_speech.SmallTtsds2Wav2vec2(device, weights, "noise"),
        lambda folder: tiny_speech.write_ttsds2_wav2vec2(folder),
    ),
    "ttsds2-whisper": (
        lambda device, weights: load_feature("ttsds2-whisper", device=device, weights=weights),
        lambda folder: tiny_speech.write_ttsds2_whisper(folder),
    ),
    "canary-1b-v2": (
        lambda device, weights: Recording(load_feature("canary-1b-v2", device=device, weights=weights), "en"),
        lambda folder: str(tiny_recognisers.write_canary(folder)),
    ),
    "parakeet-ctc-0.6b": (
        lambda device, weights: load_feature("parakeet-ctc-0.6b", device=device, weights=weights),
        lambda folder: str(tiny_recognisers.write_parakeet(folder, "ctc")),
    ),
    "parakeet-tdt-0.6b-v2": (
        lambda device, weights: load_feature("parakeet-tdt-0.6b-v2", device=device, weights=weights),
        lambda folder: str(tiny_recognisers.write_parakeet(folder, "tdt")),
    ),
    "qwen3-asr-0.6b": (
        lambda device, weights: load_feature("qwen3-asr-0.6b", device=device, weights=weights),
        lambda folder: str(tiny_recognisers.write_qwen3_asr(folder)),
    ),
    "sensevoice-small": (
        lambda device, weights: load_feature("sensevoice-small", device=device, weights=weights),
        lambda folder: str(tiny_funasr.write_sensevoice(folder)),
    ),
    "paraformer-zh": (
        lambda device, weights: load_feature("paraformer-zh", device=device, weights=weights),
        paraformer("Paraformer", "CifPredictorV2"),
    ),
    "seaco-paraformer-zh": (
        lambda device, weights: load_feature("seaco-paraformer-zh", device=device, weights=weights),
        paraformer("SeacoParaformer", "CifPredictorV3"),
    ),
    "nomad-embedding": (
        lambda device, weights: tiny_speech.SmallNomad(device, weights),
        lambda folder: tiny_speech.write_nomad(folder),
    ),
    "squim-frames": (
        lambda device, weights: tiny_speech.SmallSquimFrames(device, weights),
        lambda folder: tiny_speech.write_squim_frames(folder),
    ),
    "spoken-language": (
        lambda device, weights: load_feature("spoken-language[whisper-tiny]@torch", device=device, weights=weights),
        whisper,
    ),
    "whisper-tiny": (
        lambda device, weights: load_feature("whisper-tiny@torch", device=device, weights=weights), whisper,
    ),
}  # fmt: skip
CASES |= {
    name: (
        lambda device, weights, name=name: Recording(load_feature(name, device=device, weights=weights), "en"),
        lambda folder, write=write: str(write(folder)),
    )
    for name, write in tiny_recognisers.REQUESTED.items()
}
# A feature that is a row of the table of scorers has stand-in weights of its network's own names and shapes.
CASES |= {
    row.feature: (
        lambda device, weights, name=row.feature: load_feature(name, device=device, weights=weights),
        lambda folder, network=row.network: tiny_speech.write_learned(folder, network),
    )
    for row in SCORERS
    if row.network is not None
}
CASES["squim"] = (
    lambda device, weights: load_feature("squim", device=device, weights=weights),
    lambda folder: tiny_speech.write_squim(folder),
)
CASES["emo-vad"] = (
    lambda device, weights: tiny_speech.SmallEmoVad(device, weights),
    lambda folder: tiny_speech.write_emo_vad(folder),
)
CASES["noresqa-frames"] = (tiny_speech.SmallNoresqaFrames, tiny_speech.write_noresqa)
for ssl_mos, small in tiny_speech.SSL_MOS.items():
    CASES[ssl_mos] = (small, lambda folder, name=ssl_mos: tiny_speech.write_ssl_mos(folder, name))
# Of the same classes as others here. CTranslate2's network of the Whispers is not torch's.
LIKE_OTHERS = {
    "hubert-km50", "hubert-km100", "nisqa-tts", "wav2vec2-base-960h", "wav2vec2-large-960h-lv60-self",
    "parakeet-ctc-1.1b", "parakeet-tdt-0.6b-v3", "qwen3-asr-1.7b",
    "kyutai-stt-1b-en-fr", "nemotron-speech-streaming-en-0.6b",
}  # fmt: skip
for name in LIKE_OTHERS:
    CASES.pop(name, None)
WRITE_TEXT = {
    "canary-1b-v2", "qwen3-asr-0.6b", "cohere-transcribe-03-2026", "fun-asr-nano-2512", "moss-transcribe-diarize",
    "vibevoice-asr",
}  # fmt: skip
TRANSDUCERS = {"nemotron-3.5-asr-streaming-0.6b"}
"""Of transformers, which waits three times for every token and blank, once for an index that it uploads."""
STEPS = {"kyutai-stt-2.6b-en", "voxtral-mini-4b-realtime-2602"}
"""As what writes text, with two uploads more: transformers passes the codec's windows as numbers."""
OF_FUNASR = {"sensevoice-small": 2, "paraformer-zh": 4, "seaco-paraformer-zh": 4}
"""Uploads of FunASR's own code, from memory that is not pinned: masks and positions."""
OF_LENGTHS = (
    WRITE_TEXT | OF_FUNASR.keys() | {"granite-speech-5.0-470m-turboctc", "ge2e", "ge2e-vad", "s3prl", "s3prl-frames"}
)
OF_LENGTHS |= (
    TRANSDUCERS
    | STEPS
    | {"aasist", "auto-att", "distillmos", "noresqa-frames", "spoken-language", "squim", "squim-frames", "whisper-tiny"}
)
"""Features whose shapes follow from the lengths or from the audio: docs/design/engine.md says why."""
TOLERANCES = {"whisper-tiny": 2e-4, "singmos-v1": 1e-4}
"""Where not `TOLERANCE`: the small Whisper's logits are in the hundreds; the small SingMOS's score is near 0."""
ON_THE_CPU = {name for name in features.TABLE if features.REGISTRY.resolve(name).where == "cpu"}


def voices(lengths):
    """Buzzes of other pitches and timbres, with noise."""
    rng = np.random.default_rng(5)
    out = []
    for length in lengths:
        time = np.arange(length) / RATE_HZ
        buzz = sum(np.sin(2 * np.pi * rng.uniform(80, 250) * k * time) / k for k in range(1, 12))
        out.append((0.1 * buzz + rng.normal(0, 0.02, length)).astype(np.float32))
    return out


def assert_same(theirs, ours, tolerance=TOLERANCE):
    for there, here in zip(theirs, ours, strict=True):
        assert isinstance(here, dict) and there.keys() == here.keys()
        for key, value in here.items():
            if isinstance(value, (str, bool, int)):
                assert there[key] == value, key
            else:
                a, b = np.asarray(there[key], np.float64), np.asarray(value, np.float64)
                assert np.abs(a - b).max(initial=0.0) <= tolerance * max(1e-3, np.abs(b).max(initial=0.0)), key


def test_every_feature_of_a_device_is_tried():
    whispers = {name for name, where in features.TABLE.items() if where.endswith(":Whisper")}
    assert CASES.keys() | LIKE_OTHERS | ON_THE_CPU | whispers == features.TABLE.keys()


@pytest.fixture(scope="module")
def on_the_cpu(tmp_path_factory):
    """By name: what makes a feature on the device, signals, and the CPU's results."""

    def computed(name):
        make, write = CASES[name]
        weights = None if write is None else write(tmp_path_factory.mktemp("weights"))
        lengths = LENGTHS if features.REGISTRY.resolve(name).rate_hz == RATE_HZ else LONGER
        signals = voices(WINDOWS.get(name, lengths))
        return lambda: make("cuda:0", weights), signals, make("cpu", weights).compute(signals)

    return computed


@pytest.fixture(autouse=True)
def _short_rungs(monkeypatch):
    """The first rung is a little longer than the signals."""
    monkeypatch.setattr(batch_shapes, "_UNIT_S", 0.8 / (2 * batch_shapes.PER_DOUBLING))


@pytest.fixture(params=CASES)
def case(request, on_the_cpu, monkeypatch):
    """A feature: its name, what makes it on the device, signals, and the CPU's results."""
    if request.param == "voxtral-mini-4b-realtime-2602":
        pytest.importorskip("mistral_common")
    for recogniser in (transformers_asr, canary, qwen3_asr):
        monkeypatch.setattr(recogniser, "MAX_TOKENS", 6)
    monkeypatch.setattr(whisper_network, "MAX_LENGTH", 12)  # six tokens
    monkeypatch.setattr(utmosv2, "HOP", 256)  # coarser images; nothing else of the passes changes
    monkeypatch.setattr(utmosv2, "SIZE", 128)
    monkeypatch.setattr("codec_bench.features.recognisers.whisper.room", lambda _: 1e12)
    return request.param, *on_the_cpu(request.param)


def test_a_batch_is_the_cpus_and_waits_a_fixed_number_of_times(case, there, within_limits):
    name, make, signals, expected = case
    feature = make()
    feature.load()
    prepared = issubclass(features.REGISTRY.resolve(name), PreparedFeature)
    tolerance = TOLERANCES.get(name, TOLERANCE)
    # Tables are uploaded once in the life of a feature; FunASR uploads some for each length.
    first = feature.compute(signals if name in OF_FUNASR else signals[:1])
    assert_same(first, expected[: len(first)], tolerance)
    there.reset()
    # s3prl's own code runs for every length by itself, and looks at every signal.
    uploads = 3 * len(set(LENGTHS))
    other = (
        {"more_waits": len(signals) + uploads, "more_uploads": uploads, "blocking": uploads}
        if name.startswith("s3prl")
        else {}
    )
    if name in OF_FUNASR:
        other = {"more_waits": OF_FUNASR[name], "blocking": OF_FUNASR[name]}
    if name == "parakeet-tdt-0.6b-v2":  # it asks now and then whether all have ended
        other = {"more_waits": 20}
    if name == "auto-att":  # transformers looks on which side the padding is and how many tokens stand for sound
        other = {"more_waits": 3}
    if name in WRITE_TEXT:  # transformers waits for every token
        other = {"more_waits": 300, "more_uploads": 20, "blocking": 5}
    if name in STEPS:
        other = {"more_waits": 300, "more_uploads": 20, "blocking": 7}
    if name in TRANSDUCERS:
        other = {"more_waits": 600, "more_uploads": 200, "blocking": 200}
    short = len(signals[3])
    others = [signal[:-40] if len(signal) > short + 320 else signal for signal in (*signals, signals[2])]
    equal = {1: 1, 3: 3}  # by their places in both batches
    if name == "dnsmos":  # how many windows it repeats a short signal to follows from its length
        others, equal = signals[::-1], {k: len(signals) - 1 - k for k in range(len(signals))}
    passes = [lambda: feature.compute(signals), lambda: feature.compute(others)]
    if prepared:
        passes = computed_ahead(feature, [signals, others], there)
        other["more_uploads"] = other.get("more_uploads", 0) - sum(there.uploads.values())
        there.reset()
    result = passes[0]()
    shapes = set(there.shapes)
    within_limits(**other)
    assert_same(result, expected, tolerance)
    if prepared or name not in OF_LENGTHS:
        there.reset()
        result = passes[1]()
        assert name in OF_LENGTHS or set(there.shapes) == shapes
        assert_same([result[k] for k in equal], [expected[k] for k in equal.values()], tolerance)


def computed_ahead(feature, batches, there):
    """What computes each of two batches that were made ready on another stream, once it was waited for; the uploads of
    the first are counted.
    """
    lane = UploadStream("cuda:0")
    second = lane.run(lambda: feature.prepare(batches[1]))
    assert not there.waits
    there.reset()
    first = lane.run(lambda: feature.prepare(batches[0]))
    assert there.uploads and not there.waits, "nothing waits while a batch is made ready"
    uploads = there.uploads.copy()
    with pytest.raises(Mixed, match="of another stream that was not waited for"):
        feature.compute_prepared(first.value)
    there.reset()
    there.uploads.update(uploads)
    return [lambda one=one: feature.compute_prepared(one.wait()) for one in (first, second)]


def test_whispers_spectrograms_are_the_cpus(there, within_limits):
    from codec_bench.networks.log_mel import laid_out, log_mels, log_mels_of
    from codec_bench.networks.precision import computing

    signals = voices(LENGTHS)
    expected = log_mels(signals, 80, "cpu")
    laid = UploadStream("cuda:0").run(lambda: laid_out(signals, "cuda:0")).wait()
    with computing("cuda:0", "float32"):
        result = log_mels_of(laid, 80)
    for theirs, ours in zip(result, expected, strict=True):
        np.testing.assert_allclose(theirs.numbers(), ours, rtol=0, atol=1e-6)
    whisper = object.__new__(Whisper)
    whisper.device, whisper.facts = "cuda:0", type("Facts", (), {"n_mels": 80})
    batch = whisper._batch([_Window(0, mel, True) for mel in result])
    assert isinstance(batch, There) and batch.shape == (len(LENGTHS), 80, 3000)
    within_limits()
    torch.cuda.synchronize()  # as whoever reads the results: until then, the signals must be kept
