"""Collections of codecs, through packages that keep their interface:

`sig_to_toks` and `toks_to_sig`, `extract_unit` and `decode_unit`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from refusals import refuses

from codec_bench import Audio
from codec_bench.codecs import collection, list_codecs, load_codec, require_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.codecs.checks.serialised_codes import from_bytes, to_bytes
from codec_bench.messages.errors import UnknownName

HOP = 320


class Tokens(torch.nn.Module):
    """The interface of `audiocodecs.Codec`: tokens `(items, frames, codebooks)` of signals `(items, samples)`.

    A mean of each frame.
    """

    def __init__(self, sample_rate, config):
        super().__init__()
        self.sample_rate, self.config = sample_rate, config

    def sig_to_toks(self, sig, length=None):
        assert sig.ndim == 2 and sig.shape[1] >= 1600  # real networks refuse a few samples
        frames = torch.nn.functional.pad(sig, (0, -sig.shape[1] % HOP)).unflatten(1, (-1, HOP)).mean(-1)
        return ((frames.clamp(-1, 1) + 1) * 4095).round().long()[..., None]

    def toks_to_sig(self, toks, length=None):
        assert toks.ndim == 3 and toks.shape[2] == 1
        return (toks[..., 0] / 4095 - 1).repeat_interleave(HOP, 1)


class Units:
    """The interface of `SoundCodec`'s `BaseCodec`, of four codebooks; its decoder is given a tuple."""

    device = "cpu"

    def extract_unit(self, data):
        wave = torch.as_tensor(data["audio"]["array"])
        assert wave.ndim == 1 and len(wave) >= 1600 and data["audio"]["sampling_rate"] == 16000
        frames = torch.nn.functional.pad(wave, (0, -len(wave) % HOP)).unflatten(0, (-1, HOP)).mean(-1)
        codes = ((frames.clamp(-1, 1) + 1) * 511).round().long().repeat(4, 1)
        return SimpleNamespace(unit=codes, stuff_for_synth=(codes, len(wave)))

    def decode_unit(self, stuff):
        codes, length = stuff
        return (codes[0] / 511 - 1).repeat_interleave(HOP)[:length].numpy()


@pytest.fixture
def packages(monkeypatch):
    first, second, third = ModuleType("audiocodecs"), ModuleType("SoundCodec"), ModuleType("SoundCodec.codec")
    first.FocalCodec = Tokens
    third.load_codec = lambda name: {"academicodec_hifi_16k_320d": Units}[name]()
    for module in (first, second, third):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(collection, "find_spec", lambda name: name if name in sys.modules else None)


SOUNDS = [Audio(np.full(length, level), 16000) for length, level in ((1, 0.5), (HOP, -0.25), (2000, 0.75))]


@pytest.mark.parametrize(
    ("name", "bps", "books"), [("audiocodecs/focalcodec-50hz", 650, 1), ("soundcodec/academicodec-16k", 2000, 4)]
)
def test_a_codec_of_a_collection_keeps_the_contract(name, bps, books, packages):
    codec = load_codec(name)
    assert codec.info.name == name and codec.info.nominal_bitrate_bps == bps
    codes = codec.encode(SOUNDS)
    assert [item.streams[0].values.shape for item in codes] == [(books, 5), (books, 5), (books, 7)]
    for item, sound in zip(reconstruct(codec, SOUNDS).items, SOUNDS, strict=True):
        assert item.estimate.samples.shape == sound.samples.shape
        complete = sound.num_samples // HOP * HOP
        assert np.abs(item.estimate.samples[:, :complete] - sound.samples[:, :complete]).max(initial=0) < 2e-3
    (again,) = codec.decode([from_bytes(to_bytes(codes[2]))])
    assert np.array_equal(again.samples, codec.decode(codes)[2].samples)


def test_other_codes_are_decoded_otherwise(packages):
    """What the decoder is given is made of the codes, not kept beside them."""
    codec = load_codec("soundcodec/academicodec-16k")
    (codes,) = codec.encode(SOUNDS[2:])
    (stream,) = codes.streams
    other = replace(codes, streams=(replace(stream, values=stream.values[:, ::-1].copy()),))
    one, two = (codec.decode([item])[0].samples[0] for item in (codes, other))
    assert codes.streams[0].values.shape == (4, 7) and not any(np.size(chunk) >= 16 for chunk in codes.side.values())
    assert not np.array_equal(one, two) and two[0] == one[-1]  # the last frame of the clip now comes first


@pytest.mark.parametrize("shape", [(4, 5), (1, 4, 5), (1, 5, 4), (4, 1, 5)])
def test_codes_are_located_in_any_order_of_axes(shape):
    values = np.arange(20).reshape(4, 5)
    held = (values.T if shape[-1] == 4 else values).reshape(shape)
    order = collection._order(held, values)
    assert order == ("codes, frames first" if shape[-1] == 4 else "codes")
    assert collection._order(held + 1, values) is None and collection._order(held / 2, values) is None


def test_what_is_not_there_is_one_sentence():
    require_codec("audiocodecs/magicodec")
    with refuses("package_not_installed", name="audiocodecs/magicodec", package="audiocodecs"):
        load_codec("audiocodecs/magicodec")
    with pytest.raises(UnknownName):
        require_codec("audiocodecs/magicodek")
    with refuses("collection_codec", collection="audiocodecs", codec="x"):
        collection.AudioCodecs.describe("x")


def test_every_codec_of_a_collection_is_listed_with_rate_and_licence():
    rows = {row.name: row for row in list_codecs()}
    published = {
        "magicodec": 850,
        "nanocodec-22khz-0.6k": 600,
        "audiodec": 6400,
        "wavlm-kmeans": 450,
        "stablecodec-2x15625": 700,
    }
    for name, bps in published.items():  # as their papers and names say
        row = rows[f"audiocodecs/{name}"]
        assert row.info.nominal_bitrate_bps == pytest.approx(bps, rel=0.01)
        assert row.info.code_licence == "Apache-2.0" and row.info.weights_licence and row.weights_here is False


def test_fifty_families_state_where_they_come_from():
    rows = [row for row in list_codecs() if row.info]
    assert all(row.source and row.family and row.kind in ("packets", "codes", "latents") for row in rows)
    assert len({row.family for row in rows}) >= 58
    kinds = {row.name: row.kind for row in rows}
    assert [kinds[name] for name in ("opus-12k", "mimi-8cb", "vibevoice", "vibevoice-4bit")] == [
        "packets",
        "codes",
        "latents",
        "codes",
    ]
