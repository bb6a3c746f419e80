"""Names of codecs: which ones a user may type, and what the message for a wrong one says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from refusals import refuses

import codec_bench.config.registry
from codec_bench import CodecInfo
from codec_bench.codecs import catalogue, codec_names, describe_codec, has_codec, list_codecs, load_codec, require_codec
from codec_bench.codecs.adapt import CodecFault, check_encoded, fault_of
from codec_bench.codecs.base import PublishedWeights
from codec_bench.messages.errors import UnknownName
from codec_bench.types import Audio, Codes, CodeStream

CUSTOM_CODE = '''
from codec_bench import Audio, CodecInfo, Codes, CodeStream
import numpy as np

class Halved:
    """Sends each sample as one of 256 levels."""
    def __init__(self, device="cpu", levels=256):
        self.info = CodecInfo(name="halved", sample_rates_hz=(16000,))
        self.levels = levels
    def encode(self, batch):
        return [
            Codes((CodeStream(np.round((a.samples + 1) / 2 * (self.levels - 1)).astype(int), self.levels, 16000.0),),
                  a.num_samples, a.sample_rate_hz)
            for a in batch
        ]
    def decode(self, codes):
        return [Audio(c.streams[0].values / (self.levels - 1) * 2 - 1, c.sample_rate_hz) for c in codes]

class NoDecode:
    info = CodecInfo(name="x", sample_rates_hz=(16000,))
    def encode(self, batch): return []

class NoInfo:
    def encode(self, batch): return []
    def decode(self, codes): return []

class DictInfo(NoInfo):
    info = {"name": "x"}

class NoRates(NoInfo):
    info = CodecInfo(name="x", sample_rates_hz=())

class Pointed(NoInfo):
    def __init__(self, bitrate_bps=None):
        self.info = CodecInfo(name="pointed", sample_rates_hz=(16000,), nominal_bitrate_bps=bitrate_bps)
'''


@pytest.fixture
def custom_file(tmp_path):
    path = tmp_path / "own_codec.py"
    path.write_text(CUSTOM_CODE)
    return path


@pytest.fixture
def third_party(custom_file, monkeypatch):
    """Another package's entry point that adds two names."""
    tables = {"CODECS": {"halved": f"{custom_file}:Halved", "pointed": f"{custom_file}:Pointed"}}
    plugin = codec_bench.config.registry.Plugin("other", "other_package", tables)
    monkeypatch.setattr(codec_bench.config.registry, "plugins", lambda: (plugin,))


def test_a_variant_carries_what_its_file_says():
    info = load_codec("opus-12k").info
    assert (info.name, info.nominal_bitrate_bps, info.code_licence, info.weights_licence) == (
        "opus-12k",
        12000.0,
        "BSD-3-Clause",
        None,
    )
    assert "RFC 6716" in info.paper


@pytest.mark.parametrize(
    ("name", "bitrate_bps"),
    [
        ("opus@12", 12000),
        ("opus@6.5", 6500),
        ("opus@510", 510000),
        ("amr-nb@12.2", 12200),
        ("mp3@128", 128000),
        ("aac@48", 48000),
    ],
)
def test_a_family_with_a_point(name, bitrate_bps):
    info = load_codec(name).info
    assert (info.name, info.nominal_bitrate_bps) == (name, bitrate_bps)
    assert has_codec(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("opus", {"code": "not_one_point", "hint": "opus-6k, opus-12k, opus-24k, or opus@KBPS with 6 to 510"}),
        ("opus@5", {"code": "codec_point", "point": "5", "hint": "6 to 510 kbps"}),
        ("opus@fast", {"code": "point_not_a_bitrate", "point": "fast"}),
        ("opus@nan", {"code": "codec_point", "point": "nan"}),
        ("opus-6k@3", {"code": "codec_has_one_point", "name": "opus-6k@3"}),
        ("opus[voip]", {"code": "not_one_point", "name": "opus[voip]"}),
        ("amr-nb@12", {"code": "codec_point", "hint": "4.75, 5.15, 5.9, 6.7, 7.4, 7.95, 10.2, 12.2 kbps"}),
        ("mp3@33", {"code": "codec_point", "hint": "8, 16, 24, 32"}),
        ("encodec-24khz", {"code": "not_one_point", "hint": "1.5, 3, 6, 12, 24"}),
        ("encodec-48khz@1.5", {"code": "codec_point", "hint": "3, 6, 12, 24 kbps"}),
    ],
)
def test_a_wrong_point_lists_the_right_ones(name, says):
    with refuses(**says) as caught:
        load_codec(name)
    assert not isinstance(caught.value, UnknownName)


@pytest.mark.parametrize(
    ("name", "near"), [("opus-13k", "opus-12k"), ("encodec_24khz@6", "encodec-24khz@6"), ("g71-ulaw", "g711-ulaw")]
)
def test_an_unknown_name_suggests_the_nearest(name, near):
    with refuses("unknown_name", name=name, hint=near):
        load_codec(name)
    assert not has_codec(name)


def test_an_option_that_a_codec_does_not_take_is_refused():
    with refuses("unknown_option", option="colour"):
        load_codec("g722", colour="red")
    with refuses("unknown_option", option="weights"):
        load_codec("g722", weights="folder")


def test_own_code_works_like_a_name(custom_file):
    codec = load_codec(f"{custom_file}:Halved")
    audio = Audio(np.linspace(-1, 1, 500), 16000)
    (codes,) = codec.encode([audio])
    (out,) = codec.decode([codes])
    assert codes.bits == 500 * 8
    assert np.abs(out.samples - audio.samples).max() <= 1 / 255 + 1e-6
    assert load_codec(f"{custom_file}:Halved", levels=16).levels == 16


@pytest.mark.parametrize(
    ("attribute", "says"),
    [
        ("NoDecode", {"code": "codec_method", "method": "decode"}),
        ("NoInfo", {"code": "codec_info", "type": "nothing"}),
        ("DictInfo", {"code": "codec_info", "type": "dict"}),
        ("NoRates", {"code": "codec_info_values", "field": "sample_rates_hz", "values": []}),
        ("Nowhere", {"code": "file_without_attribute", "name": "Nowhere"}),
    ],
)
def test_own_code_that_is_no_codec_names_what_is_missing(custom_file, attribute, says):
    with refuses(**says):
        load_codec(f"{custom_file}:{attribute}")


def test_another_package_adds_names(third_party):
    assert load_codec("halved").info.name == "halved"
    assert load_codec("pointed@3").info.nominal_bitrate_bps == 3000
    assert {"halved", "pointed"} <= set(codec_names())
    assert [row.name for row in list_codecs() if row.info is None] == ["halved", "pointed"]
    with refuses("unknown_option", option="bitrate_bps"):
        load_codec("halved@3")
    with refuses("unknown_name", hint="did you mean halved"):
        load_codec("halvde")


def test_the_list_has_every_fact_and_loads_nothing_heavy():
    code = (
        "import sys; from codec_bench.codecs import list_codecs; rows = list_codecs(); "
        "assert not {'torch', 'av', 'transformers', 'numba', 'onnxruntime'} & set(sys.modules), sorted(sys.modules); "
        "assert len(rows) > 20"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
    rows = {row.name: row for row in list_codecs()}
    for name in (
        "opus-6k",
        "opus-12k",
        "opus-24k",
        "mp3-32k",
        "aac-32k",
        "amr-nb-12k",
        "g722",
        "g711-ulaw",
        "g711-alaw",
    ):
        row = rows[name]
        assert row.info.name == name
        assert row.info.nominal_bitrate_bps > 0
        assert row.info.code_licence
        assert row.weights_here is None
    assert (rows["g722"].info.tokens_per_s, rows["g722"].published) == (None, None)
    assert rows["encodec-24khz@6"].weights_here in (True, False)
    assert rows["encodec-24khz@6"].published == PublishedWeights("c1dbe2ae3f1de713481a3b3e7c47f357092ee040", None)
    assert rows["encodec-48khz@6"].published.size == 76291152 + 803  # the files that configs/weights states
    assert rows["spark-bicodec"].published == PublishedWeights()
    assert rows["encodec-24khz@6"].info.weights_licence == "MIT"
    assert rows["encodec-48khz@6"].info.channels == (2,)


def test_listed_facts_are_those_of_the_loaded_codec():
    for row in list_codecs():
        if row.weights_here is None:
            assert load_codec(row.name).info == row.info


def test_every_family_has_a_known_adapter_and_no_name_twice():
    from codec_bench.codecs import TABLE
    from codec_bench.codecs.collection import entries

    held = [*catalogue.families().values(), *(entry.family for entry in entries().values())]
    assert {family.adapter for family in held} == set(TABLE)
    names = codec_names()
    assert len(names) == len(set(names))
    assert all(has_codec(name) for name in names)


@pytest.mark.parametrize(
    "built",
    [
        "for n in (8, 16):\n    globals()[f'Small{n}'] = type(f'Small{n}', (Halved,), {})\n",
        "import sys\nsys.modules[__name__].__dict__['Small' + '16'] = Halved\n",
        "def __getattr__(name):\n    if name[:5] == 'Small':\n        return Halved\n    raise AttributeError(name)\n",
    ],
)
def test_a_class_that_a_file_makes_when_it_is_run_is_not_refused(tmp_path, built):
    path = tmp_path / "made.py"
    path.write_text(f"{CUSTOM_CODE}\n{built}")
    require_codec(f"{path}:Small16")
    assert load_codec(f"{path}:Small16").info.name == "halved"
    path.with_name("plain.py").write_text(CUSTOM_CODE + "\nif __name__ == '__main__':\n    print(Halved.__name__)\n")
    with refuses("file_without_name", name="Small16") as caught:
        require_codec(f"{tmp_path}/plain.py:Small16")
    assert caught.value.hint.startswith("it has Halved, NoDecode, NoInfo, ")


@pytest.mark.parametrize("values", [torch.zeros(2, 3, dtype=torch.int64), [[0, 1], [1, 0]]], ids=["a tensor", "a list"])
def test_codes_that_are_no_numpy_array_are_reported_as_such(values):
    info = CodecInfo("mine", (16000,))
    with pytest.raises(CodecFault) as caught:
        check_encoded(info, [Codes((CodeStream(values, 2, 75.0),), 640, 16000)], 1)
    known = {"codec": "mine", "kind": "codes", "returned": type(values).__name__}
    assert fault_of(caught.value).as_dict() == {"code": "not_array", **known}


@pytest.mark.parametrize(
    ("changes", "cardinality", "fault"),
    [
        ({"side_bits": -100.0}, 2, {"code": "side_bits_value", "value": "-100.0"}),
        ({"side_bits": float("nan")}, 2, {"code": "side_bits_value", "value": "nan"}),
        ({"side_bits": "8"}, 2, {"code": "side_bits_value", "value": "8"}),
        ({"packets": ("ab",)}, 2, {"code": "packet_type", "returned": "str"}),
        ({"packets": b"ab"}, 2, {"code": "packet_type", "returned": "int"}),
        ({}, [2, 2], {"code": "cardinality_value", "value": "[2, 2]"}),
        ({}, 2.5, {"code": "cardinality_value", "value": "2.5"}),
        ({}, 0, {"code": "cardinality_value", "value": "0"}),
    ],
)
def test_bits_that_no_bitrate_can_be_computed_from_are_faults(changes, cardinality, fault):
    stream = CodeStream(np.zeros((1, 3), int), cardinality, 75.0)
    with pytest.raises(CodecFault) as caught:
        check_encoded(CodecInfo("mine", (16000,)), [Codes((stream,), 640, 16000, **changes)], 1)
    assert fault_of(caught.value).as_dict() == {"codec": "mine", **fault}


def test_bits_of_numpys_types_are_numbers():
    stream = CodeStream(np.zeros((1, 3), int), np.int64(2), 75.0)
    sent = Codes((stream,), 640, 16000, side_bits=np.float32(8), packets=[bytearray(2), memoryview(b"a")])
    check_encoded(CodecInfo("mine", (16000,)), [sent], 1)
    assert sent.bits == 3 + 8 + 24


@pytest.mark.parametrize(
    ("name", "tokens_per_s", "bits_per_token"),
    [  # as their papers say: codebooks times frames a second, and the logarithm of the entries
        ("encodec-24khz@6", 8 * 75, 10),
        ("encodec-48khz@24", 16 * 150, 10),
        ("mimi-8cb", 8 * 12.5, 11),
        ("dac-44khz", 9 * 44100 / 512, 10),
        ("snac-24khz", (1 + 2 + 4) * 24000 / 2048, 12),
        ("snac-44khz", (1 + 2 + 4 + 8) * 44100 / 3072, 12),
        ("speechtokenizer@4", 8 * 50, 10),
        ("funcodec-zh-en-ds640@8", 32 * 25, 10),
        ("xcodec2", 50, 16),
        ("spark-bicodec", 50, 13),
        ("bigcodec", 80, 13),
        ("wavtokenizer-large-unify-40token", 40, 12),
        ("qwen-tts/12hz", 16 * 12.5, 11),
        ("dualcodec/12hz-8vq", 8 * 12.5, (14 + 7 * 12) / 8),
        ("pocket-tts-4bit", 32 * 12.5, 4),
    ],
)
def test_tokens_follow_from_codebooks_and_frames(name, tokens_per_s, bits_per_token):
    info = describe_codec(name).info
    assert info.tokens_per_s == pytest.approx(tokens_per_s) and info.bits_per_token == pytest.approx(bits_per_token)


def test_what_has_codes_declares_tokens_and_what_has_none_does_not():
    for row in list_codecs():
        assert row.info is None or (row.info.bits_per_token is not None) == (row.kind == "codes"), row.name
