"""Paraformer against FunASR itself, one file at a time, on the published architecture with random weights."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import pickle

import numpy as np
import pytest
import tiny_funasr
import torch
from hostile import Hostile
from refusals import Containing, refuses

from codec_bench.features.base import Unavailable
from codec_bench.features.recognisers import paraformer
from codec_bench.features.recognisers.paraformer import Paraformer
from codec_bench.messages.errors import WeightsError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("funasr") is None, reason="FunASR is not installed")
RATE_HZ = 16_000
MODELS = {
    "Paraformer": ("paraformer-zh", "CifPredictorV2"),
    "BiCifParaformer": ("paraformer-zh", "CifPredictorV3"),
    "SeacoParaformer": ("seaco-paraformer-zh", "CifPredictorV3"),
}


def assert_same(actual, expected):
    """To 1e-5 of the largest value: sums over a padded batch are added in another order."""
    assert actual.shape == expected.shape
    assert float((actual - expected).abs().max()) <= 1e-5 * float(expected.abs().max())


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One published-looking folder per architecture."""
    root = tmp_path_factory.mktemp("weights")
    return {
        model: tiny_funasr.write_paraformer(root / model, model, predictor) for model, (_, predictor) in MODELS.items()
    }


@pytest.fixture(scope="module")
def signals(embedded):
    """Speech of many lengths, among them one of a single frame, one without a token, and digital silence."""
    speech = np.concatenate([audio.samples[0] for _, audio in embedded[:8]])
    assert embedded[0][1].sample_rate_hz == RATE_HZ
    cuts = (3.1, 0.7, 6.03, 1.9, 2.0, 4.4, 0.5, 9.0)
    pieces, start = [], 0
    for seconds in cuts:
        length = int(seconds * RATE_HZ)
        start = start if start + length <= speech.size else 0
        pieces.append(speech[start : start + length].copy())
        start += length
    return [*pieces, speech[:400].copy(), speech[:4321].copy(), np.zeros(RATE_HZ, np.float32), speech[5000:5600].copy()]


class Reference:
    """FunASR's AutoModel on a folder. Every call adds the noise of a new generator."""

    def __init__(self, folder):
        from funasr import AutoModel

        threads, level, handlers = torch.get_num_threads(), logging.root.level, list(logging.root.handlers)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.model = AutoModel(model=str(folder), device="cpu", disable_update=True, disable_pbar=True, ncpu=1)
        torch.set_num_threads(threads)
        logging.root.setLevel(level)
        logging.root.handlers[:] = handlers
        self.scores = None
        self.model.model.decoder.register_forward_hook(self._keep)

    def _keep(self, _module, _inputs, outputs):
        self.scores = torch.log_softmax(outputs[0], dim=-1)[0]

    def __call__(self, signal):
        self.scores = None
        torch.manual_seed(0)
        result = self.model.generate(input=signal.copy())
        return result[0]["text"] if result else ""


@pytest.mark.compares("paraformer-zh", "seaco-paraformer-zh", weights="stand-in")
@pytest.mark.parametrize("model", MODELS)
def test_a_batch_is_what_funasr_gives_one_by_one(folders, signals, model):
    name, _ = MODELS[model]
    ours, reference = Paraformer(weights=str(folders[model]), model=name), Reference(folders[model])
    results = ours.compute(signals)
    net = reference.model.model
    places, scores, counts = ours._logits(signals)  # all in one padded batch, whatever their lengths
    rows = {index: scores[n, : counts[n]] for n, index in enumerate(places)}
    output = 0
    for index, (signal, result) in enumerate(zip(signals, results)):
        assert result["transcript"] == reference(signal)
        if reference.scores is None:  # FunASR stopped before its decoder: no token
            assert index not in rows and result["tokens"].size == 0
            continue
        assert_same(rows[index], reference.scores)
        tokens = [t for t in reference.scores.argmax(-1).tolist() if t not in (net.blank_id, net.sos, net.eos)]
        assert result["tokens"].tolist() == tokens
        output += len(tokens)
    assert output > 60 and len({token for result in results for token in result["tokens"].tolist()}) > 5
    assert any(result["tokens"].size == 0 for result in results)


@pytest.mark.parametrize("model", MODELS)
def test_a_result_does_not_depend_on_the_batch(folders, signals, model):
    ours = Paraformer(weights=str(folders[model]), model=MODELS[model][0])
    ours.load()
    places, scores, counts = ours._logits(signals)
    for n, index in enumerate(places):
        _, alone, (count,) = ours._logits([signals[index]])
        assert count == counts[n]
        assert_same(scores[n, :count], alone[0])
    backwards = ours.compute(signals[::-1])[::-1]
    for one, other in zip(ours.compute(signals), backwards):
        assert one["transcript"] == other["transcript"] and np.array_equal(one["tokens"], other["tokens"])


def test_the_padding_of_funasr_itself_leaks(folders, signals):
    """The reason why FunASR's own batches are not used: their results differ from its results one by one."""
    reference = Reference(folders["Paraformer"]).model.model
    ours = Paraformer(weights=str(folders["Paraformer"]))
    ours.load()
    features, lengths = ours._loaded().front(signals[:4])
    with torch.inference_mode():
        encoded, encoded_lengths = reference.encode(features, lengths)
        batched = reference.calc_predictor(encoded, encoded_lengths)[2]
        apart = 0.0
        for n, length in enumerate(lengths.tolist()):
            alone, alone_length = reference.encode(features[n : n + 1, :length], lengths[n : n + 1])
            weights = reference.calc_predictor(alone, alone_length)[2]
            apart = max(apart, float((batched[n, :length] - weights[0, :length]).abs().max()))
    assert apart > 1e-3


@pytest.mark.parametrize("seconds", [0.025, 0.03, 1.0, 90.0])
def test_the_front_end_is_funasrs(folders, signals, seconds):
    """90 s are more frames than are computed at a time, and silence shows the noise that FunASR adds."""
    ours = Paraformer(weights=str(folders["Paraformer"]))
    ours.load()
    speech = np.resize(signals[7], int(seconds * RATE_HZ)).copy()
    speech[speech.size // 3 : speech.size // 2] = 0
    torch.manual_seed(0)
    expected, _ = ours._loaded().front._wave(torch.from_numpy(speech)[None], torch.tensor([speech.size]))
    result, lengths = ours._loaded().front([speech])
    assert lengths.tolist() == [expected.shape[1]]
    assert_same(result, expected)


def test_half_precision_is_near_and_another_protocol(folders, signals):
    exact, half = (Paraformer(weights=str(folders["Paraformer"]), point=point) for point in (None, "bfloat16"))
    for feature in (exact, half):
        feature.load()
    compared = 0
    for signal in signals[:8]:
        (_, one, (count,)), (_, other, (same,)) = exact._logits([signal]), half._logits([signal])
        if count == same:
            apart = float((one - other).abs().mean() / one.abs().mean())
            assert 1e-5 < apart < 0.2
            compared += 1
    assert compared and half.protocol != exact.protocol


@pytest.mark.gpu
@pytest.mark.parametrize("model", MODELS)
def test_a_gpu_transcribes_what_the_cpu_transcribes(folders, signals, model):
    if not torch.cuda.is_available():
        pytest.skip("there is no NVIDIA GPU")
    one, other = (
        Paraformer(device, weights=str(folders[model]), model=MODELS[model][0]).compute(signals)
        for device in ("cpu", "cuda:0")
    )
    assert [result["transcript"] for result in one] == [result["transcript"] for result in other]


def test_unusable_audio_is_reported(folders, signals):
    broken = signals[0].copy()
    broken[7] = np.nan
    results = Paraformer(weights=str(folders["Paraformer"])).compute(
        [signals[0][:399], signals[0], broken, signals[0][:0]]
    )
    assert [isinstance(result, Unavailable) for result in results] == [True, False, True, True]
    assert "25 ms" in str(results[0]) and "finite" in str(results[2])


def test_chunks_are_recognised_by_themselves(folders, signals, monkeypatch):
    """A little more than three chunks. The remainder is shorter than a frame and is not transcribed.

    Chunks last 28 s; shorter ones show the same.
    """
    assert paraformer.CHUNK_SAMPLES == 28 * RATE_HZ
    chunk = 9 * RATE_HZ
    monkeypatch.setattr(paraformer, "CHUNK_SAMPLES", chunk)
    speech = np.resize(np.concatenate(signals[:8]), 2 * chunk + 2 * RATE_HZ)
    long = np.concatenate([speech, speech[: chunk - 2 * RATE_HZ + 100]])
    name, reference = MODELS["SeacoParaformer"][0], Reference(folders["SeacoParaformer"])
    complete = Paraformer(weights=str(folders["SeacoParaformer"]), model=name)
    chunked = Paraformer(weights=str(folders["SeacoParaformer"]), model=name, point="28s")
    (result,) = chunked.compute([long])
    pieces = [long[start : start + chunk] for start in range(0, 3 * chunk, chunk)]
    assert result["transcript"] == "".join(map(reference, pieces))
    assert result["tokens"].size == sum(r["tokens"].size for r in complete.compute(pieces))
    assert complete.compute([long])[0]["transcript"] == reference(long) != result["transcript"]
    assert chunked.protocol == f"{complete.protocol}/28s"


def test_names_need_no_weights(monkeypatch):
    assert Paraformer.protocol_id() == "paraformer-zh/funasr-1"
    assert Paraformer.protocol_id("seaco-paraformer-zh", "bfloat16") == "seaco-paraformer-zh/funasr-1/bfloat16"
    with refuses("no_variant", variant="paraformer-en", name="Paraformer"):
        Paraformer.protocol_id("paraformer-en")
    with refuses("no_point_of_metric", name="paraformer-zh", point="30s", hint="@28s"):
        Paraformer.protocol_id(point="30s")
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *a: None if name == "funasr" else find_spec(name, *a))
    with refuses("package_not_installed", hint="codec-bench[asr]"):
        Paraformer()


def test_where_weights_are_located(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    for variable in ("MODELSCOPE_CACHE", "CODEC_BENCH_CACHE", "CODEC_BENCH_WEIGHTS"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    with refuses("weights_missing", hint="weights fetch paraformer-zh"):
        Paraformer()
    for model, repository in (
        ("paraformer-zh", "funasr/paraformer-zh"),
        ("paraformer-zh", "iic/speech_paraformer-large_asr_nat-zh-cn-16k-common-vocab8404-pytorch"),
        ("seaco-paraformer-zh", "iic/speech_seaco_paraformer_large_asr_nat-zh-cn-16k-common-vocab8404-pytorch"),
    ):
        root = tmp_path / f"root-{repository.replace('/', '-')}"
        (root / repository).parent.mkdir(parents=True)
        (root / repository).symlink_to(folders["Paraformer"])
        monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(root))
        assert Paraformer(model=model).compute([np.zeros(RATE_HZ, np.float32)])[0]["transcript"] is not None


@pytest.fixture
def copy(folders, tmp_path):
    """A copy of the folder, which a test may damage."""
    for file in folders["Paraformer"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_nothing_in_the_weights_is_run(copy):
    built = copy / "made"
    (copy / "model.pt").write_bytes(pickle.dumps({"encoder": Hostile(built)}))
    with pytest.raises(WeightsError):
        Paraformer(weights=str(copy)).load()
    torch.save({"encoder": Hostile(built)}, copy / "model.pt")
    with pytest.raises(WeightsError):
        Paraformer(weights=str(copy)).load()
    assert not built.exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "encoder: SANMEncoder",
            "encoder: !!python/object/apply:os.getcwd []",
            {"code": "at_position", "cause": Containing("is not taken")},
        ),
        (
            "encoder: SANMEncoder",
            "encoder: QwenAudioEncoder",
            {"code": "configuration_value", "key": "encoder", "value": "QwenAudioEncoder", "expected": "SANMEncoder"},
        ),
        (
            "model: Paraformer",
            "model: LLMASR",
            {"code": "configuration_value", "expected": "Paraformer or BiCifParaformer or SeacoParaformer"},
        ),
        (
            "output_size: 32",
            "output_size: 64",
            {"code": "tensors_wrong", "difference": {"code": "tensors_differ", "reshaped": Containing("(expected")}},
        ),
        (
            "num_blocks: 3",
            "num_blocks: 4",
            {
                "code": "tensors_wrong",
                "difference": {"code": "tensors_differ", "missing": Containing("encoder.encoders.2")},
            },
        ),
        ("idim: 32", "idim: nothing", {"code": "weights_not_loaded"}),
        ("fs: 16000", "fs: 8000", {"code": "front_end_unexpected"}),
    ],
)
def test_a_configuration_that_does_not_fit_is_named(copy, old, new, says):
    text = (copy / "config.yaml").read_text()
    assert old in text
    (copy / "config.yaml").write_text(text.replace(old, new))
    with refuses(**says):
        Paraformer(weights=str(copy)).load()


def test_weights_of_a_training_run_are_read(copy, folders, signals):
    """Weights one level down, with a prefix and with unused tensors are accepted, as by FunASR."""
    state = torch.load(copy / "model.pt", weights_only=True)
    state = {f"module.{name}": tensor for name, tensor in state.items()} | {"module.unused": torch.zeros(3)}
    torch.save({"state_dict": state, "epoch": 3}, copy / "model.pt")
    one, other = (Paraformer(weights=str(folder)).compute(signals[:2]) for folder in (copy, folders["Paraformer"]))
    assert [r["transcript"] for r in one] == [r["transcript"] for r in other]


def test_loading_leaves_the_process_alone(folders, capsys):
    threads, handlers = torch.get_num_threads(), list(logging.root.handlers)
    state = torch.random.get_rng_state()
    Paraformer(weights=str(folders["Paraformer"])).load()
    assert torch.get_num_threads() == threads and logging.root.handlers == handlers
    assert torch.equal(torch.random.get_rng_state(), state)
    assert capsys.readouterr() == ("", "")
