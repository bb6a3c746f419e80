"""Codecs in environments of their own: the worker code of each against a package of the same interface, and a real
worker process.

The stand-ins send the mean of every frame, so that what comes back is known. They take and give the shapes and types of
the packages' own calls; no published checkpoint is loaded here.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnx.parser
import pytest
import torch
from refusals import Containing, refuses

from codec_bench import Audio
from codec_bench.codecs import isolated, list_codecs, load_codec, require_weights
from codec_bench.codecs.checks.serialised_codes import from_bytes, to_bytes
from codec_bench.workers import child
from codec_bench.workers.environment import Environment, read_env
from codec_bench.workers.pool import WorkerReply


def coded(wave, hop, top):
    """The mean of each frame as a whole number from 0 to `top`, of a wave `(..., samples)`."""
    frames = torch.nn.functional.pad(wave, (0, -wave.shape[-1] % hop)).unflatten(-1, (-1, hop)).mean(-1)
    return ((frames.clamp(-1, 1) + 1) / 2 * top).round().long()


def transcribe(codes, hop, top):
    return (codes / top * 2 - 1).repeat_interleave(hop, -1)


class Qwen:
    """`Qwen3TTSTokenizer`: NumPy waves in; codes `(frames, 16)` of each; a list of waves and the rate out."""

    @classmethod
    def from_pretrained(cls, checkpoint, device_map):
        assert checkpoint == "Qwen/Qwen3-TTS-Tokenizer-12Hz" and device_map == "cpu"
        return cls()

    def encode(self, audios, sr):
        assert isinstance(audios, np.ndarray) and audios.ndim == 1 and sr == 24000
        return SimpleNamespace(audio_codes=[coded(torch.from_numpy(audios), 1920, 2047).repeat(16, 1).T])

    def decode(self, encoded):
        (codes,) = encoded["audio_codes"]
        assert codes.shape[1] == 16
        return [transcribe(torch.as_tensor(codes[:, 0]), 1920, 2047).numpy()], 24000


class Dual:
    """`dualcodec.Inference`: `(items, 1, samples)` in, semantic `(items, 1, frames)` and acoustic codes out."""

    def __init__(self, dualcodec_model, dualcodec_path, w2v_path, device, autocast):
        assert w2v_path == "hf://facebook/w2v-bert-2.0"
        assert (dualcodec_model, dualcodec_path, device, autocast) == (
            "12hz_v1",
            "hf://amphion/dualcodec",
            "cpu",
            False,
        )

    def encode(self, audio, n_quantizers):
        assert audio.ndim == 3 and n_quantizers == 8
        codes = coded(audio, 1920, 16383)
        return codes, codes.clamp(0, 4095).repeat(1, 7, 1)

    def decode(self, semantic, acoustic):
        assert semantic.shape[:2] == (1, 1) and acoustic.shape[:2] == (1, 7)
        return transcribe(semantic, 1920, 16383)


class Kanade:
    """`KanadeModel`: a wave `(samples,)` in, token indices `(frames,)` and a vector out; decoded to a spectrogram."""

    config = SimpleNamespace(vocoder_name="hift")

    @classmethod
    def from_pretrained(cls, repo_id):
        assert repo_id == "frothywater/kanade-25hz-clean"
        return cls()

    def eval(self):
        return self

    def to(self, device):
        return self

    def encode(self, waveform):
        return SimpleNamespace(
            content_token_indices=coded(waveform, 960, 12799),
            global_embedding=torch.full((128,), float(waveform.mean())),
        )

    def decode(self, global_embedding, content_token_indices, target_audio_length):
        assert global_embedding.shape == (128,)
        return transcribe(content_token_indices, 960, 12799)[None, :target_audio_length]


class Moss:
    """The model beside MOSS-Audio-Tokenizer's checkpoint: `(items, 1, samples)` in, codes `(32, items, frames)` out."""

    @classmethod
    def from_pretrained(cls, checkpoint, trust_remote_code):
        assert checkpoint == "OpenMOSS-Team/MOSS-Audio-Tokenizer" and trust_remote_code
        return cls()

    def eval(self):
        return self

    def to(self, device):
        return self

    def encode(self, wave, num_quantizers, return_dict):
        return SimpleNamespace(audio_codes=coded(wave, 1920, 1023)[:, 0][None].repeat(num_quantizers, 1, 1))

    def decode(self, codes, return_dict):
        assert codes.ndim == 3
        return SimpleNamespace(audio=transcribe(codes[0][:, None], 1920, 1023))


LOADER = """
    import sys
    from test_isolated_parts import coded, heard
    import os, torch

    def load_encoder(config, device):
        assert os.path.exists(config)
        def encode(wave, rate, n_acoustic_codebooks):
            codes = coded(wave, 1440, 8191)[:, 0]
            return [codes, codes.clamp(0, 8099)[:, None].repeat(1, n_acoustic_codebooks, 1)]
        return encode

    def load_decoder(config, device):
        assert os.path.exists(config)
        class Decoder:
            output_rate = 24000
            def __call__(self, semantic, acoustic):
                assert semantic.shape[0] == 1 and acoustic.shape[:2] == (1, 3)
                return heard(semantic[:, None], 1440, 8191)
        return Decoder()
"""
STAND_INS = {
    "qwen-tts/12hz": {"qwen_tts": {"Qwen3TTSTokenizer": Qwen}},
    "dualcodec/12hz-8vq": {"dualcodec": {"get_model": lambda model, path: model, "Inference": Dual}},
    "kanade/25hz-clean": {
        "kanade_tokenizer": {
            "KanadeModel": Kanade, "load_vocoder": lambda name: torch.nn.Identity(),
            "vocode": lambda vocoder, mel: mel[0],
        }
    },
    "moss/32cb": {"transformers": {"AutoModel": Moss}},
    "longcat/24khz-4cb": {"test_isolated_parts": {"coded": coded, "heard": transcribe}},
}  # fmt: skip


def arrived(packed):
    """An item as the other side of the wire has it."""
    item = json.loads(packed.text)
    for (path, channels, _, rate), buffer in zip(packed.places, packed.buffers, strict=True):
        samples = np.array(buffer, np.float32)
        item[path[0]] = {"samples": samples, "channels": channels, "sample_rate_hz": rate}
    return item


class Here:
    """The pool of workers, in this process."""

    def __init__(self, settings, variables):
        assert variables == [{"CUDA_VISIBLE_DEVICES": ""}]
        self._settings = settings

    async def start(self):
        spec = importlib.util.spec_from_file_location("worker_code", self._settings.code)
        self._code = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._code)
        self._state = self._code.load(**json.loads(json.dumps(self._settings.options)))

    async def ask(self, batch):
        answers = self._code.answer(self._state, [arrived(item) for item in batch])
        return [WorkerReply(arrived(child._pack_answer(answer)), None, 1) for answer in answers]

    async def close(self):
        pass


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """A function that makes the stand-in of a codec's package importable, and gives the
    options that it is loaded with.
    """
    monkeypatch.setattr(isolated, "make_environment", lambda spec: Environment(Path(sys.prefix), Path(sys.executable)))
    monkeypatch.setattr(isolated, "WorkerPool", Here)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.chdir(tmp_path)

    def install(name):
        for package, held in STAND_INS[name].items():
            module = ModuleType(package)
            module.__dict__.update(held)
            monkeypatch.setitem(sys.modules, package, module)
        if not name.startswith("longcat"):
            return {}
        folder = tmp_path / "networks" / "semantic_codec"
        folder.mkdir(parents=True)
        (folder / "model_loader.py").write_text(textwrap.dedent(LOADER))
        (tmp_path / "configs").mkdir()
        for item in ("encoder", "decoder_24k_4codebooks"):
            (tmp_path / "configs" / f"LongCatAudioCodec_{item}.yaml").write_text("x: 1\n")
        for module in ("networks", "networks.semantic_codec", "networks.semantic_codec.model_loader"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        return {"weights": str(tmp_path)}

    return install


SOUNDS = [Audio(np.full((1, length), level), 24000) for length, level in ((1, 0.5), (5760, -0.25), (30000, 0.75))]
# Of each codec: bits a second as its authors state them, the shapes of the streams of 30,000 samples, bits beside the
# codes.
STATED = {
    "qwen-tts/12hz": (2200, [(16, 16)], 0),
    "dualcodec/12hz-8vq": (1225, [(1, 16), (7, 16)], 0),
    "kanade/25hz-clean": (341, [(1, 32)], 4096),
    "moss/32cb": (4000, [(32, 16)], 0),
    "longcat/24khz-4cb": (870, [(1, 21), (3, 21)], 0),
}


@pytest.mark.parametrize("name", STAND_INS)
def test_a_codec_keeps_the_contract(name, installed):
    bps, shapes, extra = STATED[name]
    codec = load_codec(name, **installed(name))
    assert codec.info.nominal_bitrate_bps == pytest.approx(bps, rel=0.01)
    codes = codec.encode(SOUNDS)
    assert [stream.values.shape for stream in codes[2].streams] == shapes and codes[2].side_bits == extra
    assert codec.info.global_side == (("side",) if extra else ()) and all(
        key in codes[2].side for key in codec.info.global_side
    )
    for out, sound in zip(codec.decode([from_bytes(to_bytes(item)) for item in codes]), SOUNDS, strict=True):
        assert out.samples.shape == sound.samples.shape
        complete = sound.num_samples // 5760 * 5760  # frames of every codec here
        assert np.abs(out.samples[:, :complete] - sound.samples[:, :complete]).max(initial=0) < 2e-3


ENCODER = """
    <ir_version: 8, opset_import: ["": 18]>
    encoder (float[1,1,T] x, int64 n) => (int64[32,1,F] codes, int64[1] lengths) {
        shape = Constant<value = int64[3] {1, -1, 1920}>()
        frames = Reshape(x, shape)
        last = Constant<value = int64[1] {2}>()
        means = ReduceMean<keepdims = 0>(frames, last)
        half = Constant<value = float {511.5}>()
        scaled = Mul(means, half)
        moved = Add(scaled, half)
        whole = Round(moved)
        one = Cast<to = 7>(whole)
        first = Constant<value = int64[1] {0}>()
        item = Unsqueeze(one, first)
        many = Constant<value = int64[3] {32, 1, 1}>()
        codes = Expand(item, many)
        lengths = Shape<start = 1>(means)
    }
"""
DECODER = """
    <ir_version: 8, opset_import: ["": 18]>
    decoder (int64[Q,1,F] codes, int64 n) => (float[1,1,T] audio, int64[1] lengths) {
        zero = Constant<value = int64 {0}>()
        book = Gather<axis = 0>(codes, zero)
        real = Cast<to = 1>(book)
        half = Constant<value = float {511.5}>()
        moved = Div(real, half)
        unit = Constant<value = float {1.0}>()
        means = Sub(moved, unit)
        last = Constant<value = int64[1] {2}>()
        column = Unsqueeze(means, last)
        long = Constant<value = int64[3] {1, 1, 1920}>()
        frames = Expand(column, long)
        shape = Constant<value = int64[3] {1, 1, -1}>()
        audio = Reshape(frames, shape)
        lengths = Shape<start = 2>(audio)
    }
"""


@pytest.fixture
def moss_onnx(monkeypatch, tmp_path):
    """Files of the inputs and outputs that MOSS-Audio-Tokenizer-ONNX has; the environment is this one."""
    for name, text in (("encoder", ENCODER), ("decoder", DECODER)):
        onnx.save(onnx.parser.parse_model(textwrap.dedent(text)), tmp_path / f"{name}.onnx")
    monkeypatch.setattr(isolated, "make_environment", lambda spec: Environment(Path(sys.prefix), Path(sys.executable)))
    return tmp_path


def test_a_codec_in_a_worker_process_gives_back_what_it_should_and_ends_with_its_owner(moss_onnx):
    codec = load_codec("moss-onnx/8cb", weights=str(moss_onnx))
    codes = codec.encode(SOUNDS)
    assert [item.streams[0].values.shape for item in codes] == [(8, 1), (8, 3), (8, 16)]
    for out, sound in zip(codec.decode(codes), SOUNDS, strict=True):
        complete = sound.num_samples // 5760 * 5760  # frames of every codec here
        assert np.abs(out.samples[:, :complete] - sound.samples[:, :complete]).max(initial=0) < 2e-3
    process = codec._pool._seats[0].host._process
    del codec
    assert process.wait(20) is not None


def test_what_a_worker_cannot_do_is_one_sentence(moss_onnx, monkeypatch):
    (moss_onnx / "decoder.onnx").unlink()
    with refuses("codec_not_loaded", codec="moss-onnx/32cb", cause=Containing("moss-onnx/32cb")):
        load_codec("moss-onnx/32cb", weights=str(moss_onnx))
    bad = moss_onnx / "bad.py"
    bad.write_text(
        'def load(**given): return {}\ndef answer(state, batch): return [{"streams": [[[1, 2]]]} for _ in batch]\n'
    )
    monkeypatch.setattr(isolated, "read_env", lambda name: replace(read_env(name), code=bad))
    with refuses("worker_codebooks", codec="moss-onnx/32cb", codebooks=[[1]], expected=[[32]]):
        load_codec("moss-onnx/32cb").encode(SOUNDS)
    bad.write_text('def load(**given): return {}\ndef answer(state, batch): raise ValueError("no memory left")\n')
    with refuses("codec_worker", codec="moss-onnx/32cb", cause=Containing("ValueError: no memory left")):
        load_codec("moss-onnx/32cb").encode(SOUNDS)


def test_a_codec_that_names_no_checkpoint_asks_for_one():
    with refuses("no_checkpoint_of_codec", collection="longcat", codec="24khz-4cb", hint="clone"):
        require_weights("longcat/24khz-4cb")
    require_weights("longcat/24khz-4cb", weights="./clone")


def test_every_environment_can_be_read_and_every_name_is_listed():
    names = {
        row.name
        for row in list_codecs()
        if row.name.split("/")[0] in {name.split("/")[0] for name in STATED} | {"moss-onnx"}
    }
    assert set(STATED) < names and len(names) == 17
    for name in ("qwen-tts", "dualcodec", "kanade", "moss", "moss-onnx", "longcat"):
        spec = read_env(name)
        assert spec.requirements and spec.code.is_file()
