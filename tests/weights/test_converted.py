"""Converted tensors come from the cache to the last bit, and a load works with no cache at all."""

from __future__ import annotations

import json
import os
from functools import partial

import deterministic_weights
import numpy as np
import pytest
import tiny_speech
import torch
import transformers
from filelock import FileLock

from codec_bench.codecs.neural.random_weights import RANDOM
from codec_bench.features.speakers.wavlm_base_sv import WavlmBasePlusSv
from codec_bench.features.utmos import Utmos
from codec_bench.networks.utmos import UtmosNet
from codec_bench.weights import converted, load_state
from codec_bench.weights.converted import convert_cached, converted_folder, converted_size


@pytest.fixture(autouse=True)
def small_files_too(monkeypatch, tmp_path):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(converted, "LEAST_BYTES", 0)


def cached():
    return sorted(converted_folder().glob("*.pt"))


def split(state, *, skipped=("embed",)):
    """Weights of convolutions as gains and directions, neither of length one."""
    out = {}
    for name, value in state.items():
        if name.endswith(".weight") and value.ndim == 3 and not any(word in name for word in skipped):
            gain = value.flatten(1).norm(dim=1).view(-1, *[1] * (value.ndim - 1))
            out[f"{name}_g"], out[f"{name}_v"] = 1.7 * gain, 0.3 * value
        else:
            out[name] = value
    return out


def stand_in(net):
    numbers = {name: value for name, value in net.state_dict().items() if not value.is_floating_point()}
    return split({**deterministic_weights.stand_in(net), **numbers})


def bigcodec(folder, patch):
    from codec_bench.codecs.neural import bigcodec as adapter
    from codec_bench.networks.bigcodec import BigCodecDecoder, BigCodecEncoder, BigCodecShape

    small = BigCodecShape(filters=4, latent_dim=32)
    patch.setattr("codec_bench.networks.bigcodec.BigCodecShape", lambda: small)
    halves = {"CodecEnc": BigCodecEncoder(small), "generator": BigCodecDecoder(small)}
    torch.save({key: stand_in(net) for key, net in halves.items()}, folder / "bigcodec.pt")
    return lambda: adapter._load(str(folder / "bigcodec.pt"))[:2]


def speechtokenizer(folder, patch):
    from codec_bench.codecs.neural import speechtokenizer as adapter
    from codec_bench.networks.speechtokenizer import SpeechTokenizerNet, SpeechTokenizerShape

    small = SpeechTokenizerShape(filters=4, dimension=32)
    patch.setattr("codec_bench.networks.speechtokenizer.SpeechTokenizerShape", lambda: small)
    torch.save(stand_in(SpeechTokenizerNet(small)), folder / "SpeechTokenizer.pt")
    return lambda: adapter._load(str(folder / "SpeechTokenizer.pt"))[:1]


def wavtokenizer(folder, patch):
    from codec_bench.codecs.neural import wavtokenizer as adapter
    from codec_bench.networks.wavtokenizer import WavTokenizerNet, WavTokenizerShape

    patch.setattr("codec_bench.networks.wavtokenizer.WavTokenizerShape", partial(WavTokenizerShape, **adapter._SMALL))
    net, _ = adapter._load(75, "wavtokenizer-large-speech-75token", RANDOM)
    assert isinstance(net, WavTokenizerNet)
    torch.save({"state_dict": stand_in(net)}, folder / "a.ckpt")
    return lambda: adapter._load(75, "wavtokenizer-large-speech-75token", str(folder / "a.ckpt"))[:1]


def snac(folder, patch):
    from codec_bench.codecs.neural import snac as adapter

    small = {**adapter._MODELS["24khz"], **adapter._SMALL}
    patch.setitem(adapter._MODELS, "24khz", small)
    torch.save(pytest.importorskip("snac").SNAC(**small).state_dict(), folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(small))
    return lambda: adapter._load("24khz", str(folder))[:1]


def bicodec(folder, patch):
    from safetensors.torch import save_file

    from codec_bench.codecs.neural import bicodec as adapter
    from codec_bench.networks.bicodec import BiCodecNet
    from codec_bench.networks.bicodec_config import SMALL
    from codec_bench.networks.speech_encoder import SpeechEncoder

    patch.setattr("codec_bench.networks.bicodec_config.PUBLISHED", SMALL)
    patch.setattr("codec_bench.networks.bicodec.renamed_speech", lambda state, layers: state)
    for name in ("BiCodec", "wav2vec2-large-xlsr-53"):
        (folder / name).mkdir()
    save_file(stand_in(BiCodecNet(SMALL)), folder / "BiCodec" / "model.safetensors")
    speech = deterministic_weights.stand_in(SpeechEncoder(SMALL.speech))
    torch.save(speech, folder / "wav2vec2-large-xlsr-53" / "pytorch_model.bin")
    (folder / "config.yaml").write_text("sample_rate: 16000\nref_segment_duration: 6\nvolume_normalize: true\n")
    return lambda: adapter._load(str(folder), "cpu")[:2]


def dac(folder, patch):
    from codec_bench.codecs.neural import dac as adapter
    from codec_bench.codecs.neural.dac_original import load_original
    from codec_bench.networks.weight_norm import fold_weight_norm

    build = partial(adapter._empty_net, adapter._MODELS["44khz-16kbps"], **adapter._REDUCED)
    patch.setattr("codec_bench.codecs.neural.dac_original.renamed", fold_weight_norm)
    torch.save({"state_dict": stand_in(build())}, folder / "weights.pth")
    return lambda: [load_original(build(), folder / "weights.pth")]


def in_half(feature, point, write, folder, patch):
    weights = write(folder)

    def load():
        one = feature(weights=weights, point=point)
        one.load()
        return [one._net]

    return load


class SmallUtmos(Utmos):
    def _architecture(self):
        return tiny_speech.BASE


def write_utmos(folder):
    torch.save(tiny_speech.standing_in(UtmosNet(tiny_speech.BASE)).state_dict(), folder / "utmos.pt")
    return str(folder / "utmos.pt")


def write_wavlm(folder):
    state = deterministic_weights.stand_in(tiny_speech.SmallWavlmSv._architecture(None))
    return tiny_speech.published(state, folder / "wavlm_large_finetune.pth")


def write_wavlm_base(folder):
    config = transformers.WavLMConfig(**tiny_speech.FACTS)
    transformers.WavLMForXVector(config).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    return str(folder)


HALF = {
    "utmos": (SmallUtmos, write_utmos),
    "wavlm-large-sv": (tiny_speech.SmallWavlmSv, write_wavlm),
    "wavlm-base-plus-sv": (WavlmBasePlusSv, write_wavlm_base),
    "wvmos": (tiny_speech.SmallWvmos, tiny_speech.write_wvmos),
    "scoreq": (tiny_speech.SmallScoreq, partial(tiny_speech.write_scoreq, rates=True)),
    "scoreq-embedding": (tiny_speech.SmallScoreqEmbedding, partial(tiny_speech.write_scoreq, rates=False)),
    "nomad": (tiny_speech.SmallNomad, tiny_speech.write_nomad),
    "units": (partial(tiny_speech.SmallUnits, "hubert-km200"), tiny_speech.write_units),
    "audiobox": (tiny_speech.SmallAudiobox, tiny_speech.write_audiobox),
    "redimnet": (tiny_speech.SmallReDimNet, tiny_speech.write_redimnet),
    "emotion2vec": (tiny_speech.SmallEmotion2vec, tiny_speech.write_emotion2vec),
    **{
        kind.name: (kind, lambda folder, kind=kind: tiny_speech.bare(kind, folder / "model.pt"))
        for kind in (tiny_speech.SmallCamPlusPlus, tiny_speech.SmallERes2Net, tiny_speech.SmallWespeaker)
    },
}
"""Encoders whose products may be in half precision, with what writes their weights."""
POINTS = ("float16", "bfloat16")
CONVERTS = {
    **{one.__name__: one for one in (bigcodec, speechtokenizer, wavtokenizer, snac, bicodec, dac)},
    **{f"{name}@{point}": partial(in_half, one, point, write) for name, (one, write) in HALF.items()
        for point in POINTS[: 2 if name == "utmos" else 1]},
}  # fmt: skip


@pytest.mark.parametrize("name", CONVERTS)
def test_a_second_load_is_the_first_to_the_last_bit(name, tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    load = CONVERTS[name](tmp_path / "weights", monkeypatch)
    with monkeypatch.context() as without_cache:
        without_cache.setattr(converted, "LEAST_BYTES", 1 << 40)
        expected = [net.state_dict() for net in load()]
    assert not cached()
    first = load()
    files = {path: path.stat().st_mtime_ns for path in cached()}
    assert files
    mapped = []
    monkeypatch.setattr(converted, "_write", lambda *_: pytest.fail("it was converted again"))
    monkeypatch.setattr(converted, "load_state", lambda path: mapped.append(path) or load_state(path))
    second = load()
    assert sorted(mapped) == sorted(files)
    for nets in (first, second):
        for net, state in zip(nets, expected, strict=True):
            actual = net.state_dict()
            assert actual.keys() == state.keys()
            for tensor, value in state.items():
                assert actual[tensor].dtype == value.dtype, tensor
                assert torch.equal(actual[tensor], value), tensor
    if "@" in name:
        assert {value.dtype for state in expected for value in state.values()} >= {torch.float32, _dtype(name)}


def _dtype(name):
    return getattr(torch, name.partition("@")[2])


def test_results_in_half_precision_are_those_without_a_cache(tmp_path, monkeypatch, rng):
    weights, signal = write_wavlm(tmp_path), rng.normal(0, 0.1, 9_000).astype(np.float32)
    results = []
    for least in (1 << 40, 0, 0):
        monkeypatch.setattr(converted, "LEAST_BYTES", least)
        feature = tiny_speech.SmallWavlmSv(weights=weights, point="bfloat16")
        results.append(feature.compute([signal])[0]["embedding"])
    assert all(np.array_equal(result, results[0]) for result in results)


@pytest.fixture
def source(tmp_path):
    """A file of weights, and what converts them; it counts how often."""
    path, calls = tmp_path / "weights.pt", []
    torch.save({"a": torch.arange(40.0).view(5, 8), "b": torch.ones(3)}, path)

    def convert():
        calls.append(path)
        state = load_state(path)
        return {"a": 2 * state["a"], "view": torch.arange(1e5)[2:4], "b": state["b"]}

    return path, convert, calls


def check(tensors, factor=2):
    assert torch.equal(tensors["a"], factor * torch.arange(40.0).view(5, 8))
    assert tensors["view"].tolist() == [2, 3] and tensors["b"].tolist() == [1, 1, 1]


def test_a_hit_is_mapped_aligned_and_small(source):
    path, convert, calls = source
    check(convert_cached(convert, path))
    tensors = convert_cached(convert, path)
    check(tensors)
    assert len(calls) == 1
    assert all(value.data_ptr() % 64 == 0 for value in tensors.values())
    assert converted_size() == cached()[0].stat().st_size < 10_000  # the view without its storage


def test_other_content_or_another_part_is_converted(source):
    path, convert, calls = source
    convert_cached(convert, path, "decoder")
    convert_cached(convert, path, "encoder")
    assert len(calls) == len(cached()) == 2
    torch.save({"a": torch.arange(40.0).view(5, 8) / 2, "b": torch.ones(3)}, path)
    check(convert_cached(convert, path, "decoder"), factor=1)
    assert len(calls) == 3


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "empty"])
def test_a_damaged_file_is_a_miss(damage, source):
    path, convert, calls = source
    convert_cached(convert, path)
    (file,) = cached()
    content = file.read_bytes()
    flipped = bytearray(content)
    flipped[content.index(torch.arange(0.0, 80, 2).numpy().tobytes()) + 9] ^= 1
    file.write_bytes({"cut": content[:-100], "flipped": flipped, "foreign": b"GIF89a", "empty": b""}[damage])
    for _ in range(2):
        check(convert_cached(convert, path))
    assert len(calls) == 2 and cached()[0].read_bytes() == content


def test_no_room_no_permission_and_a_file_in_place_of_the_folder(source, monkeypatch, tmp_path):
    path, convert, calls = source
    monkeypatch.setattr(converted, "_SPARE", 1 << 60)
    check(convert_cached(convert, path))
    assert not cached()
    monkeypatch.undo()
    monkeypatch.setattr(converted, "LEAST_BYTES", 0)
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", "/proc/none"):
        monkeypatch.setenv("CODEC_BENCH_CACHE", str(folder))
        check(convert_cached(convert, path))
        assert converted_size() == 0
    assert len(calls) == 3


def test_a_disk_that_fills_leaves_nothing(source, monkeypatch):
    path, convert, _ = source

    def full(tensors, file):
        file.write_bytes(b"half")
        raise RuntimeError("PytorchStreamWriter failed writing file")

    monkeypatch.setattr(torch, "save", full)
    check(convert_cached(convert, path))
    assert not cached() and not list(converted_folder().glob("*.part"))


def test_another_process_that_writes_is_not_waited_for(source):
    path, convert, calls = source
    convert_cached(convert, path)
    (file,) = cached()
    file.unlink()
    with FileLock(converted_folder() / f"{file.name.partition('-')[0]}.lock"):
        check(convert_cached(convert, path))
    assert len(calls) == 2 and not cached()


def test_the_files_that_were_not_used_for_longest_go_first(source, monkeypatch):
    path, convert, _ = source
    seen = []
    for index, letter in enumerate("abc", 1):
        convert_cached(convert, path, letter)
        (file,) = (one for one in cached() if one not in seen)
        os.utime(file, (index, index))
        seen = cached()
    oldest = min(seen, key=lambda one: one.stat().st_mtime)
    monkeypatch.setattr(converted, "MAX_BYTES", 7 * oldest.stat().st_size // 2)
    (stale := converted_folder() / "killed.part").touch()
    os.utime(stale, (1, 1))
    convert_cached(convert, path, "d")
    assert len(cached()) == 3 and oldest not in cached() and not stale.exists()


def test_small_checkpoints_are_not_cached(source, monkeypatch):
    path, convert, calls = source
    monkeypatch.setattr(converted, "LEAST_BYTES", path.stat().st_size + 1)
    check(convert_cached(convert, path))
    assert not cached() and len(calls) == 1
