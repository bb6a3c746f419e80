"""Errors reach the caller whole, also from another process."""

from __future__ import annotations

import pickle

import pytest
from refusals import refuses

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError, MissingExtra, UnknownName, UserError, beginning, first_of


@pytest.mark.parametrize(
    "error",
    [
        UserError("a", hint="b"),
        UserError("a"),
        AudioError("'x.wav' is empty"),
        UnknownName("metric", "stio", ["stoi", "estoi"]),
        MissingExtra("DNSMOS", "onnxruntime", "embedded"),
    ],
)
def test_errors_travel_between_processes(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert (back.message, back.hint, str(back)) == (error.message, error.hint, str(error))


def test_an_unknown_name_suggests_the_nearest():
    assert str(UnknownName("codec", "mp", ["mp3", "mp3"])).count("mp3") == 1
    assert "did you mean stoi" in str(UnknownName("metric", "stio", ["pesq_wb", "stoi"]))
    assert "known: pesq_wb" in str(UnknownName("metric", "zzzzzz", ["pesq_wb"]))
    many = UnknownName("codec", "rvq4", [f"benchmark-{n}" for n in range(400)] + ["dac-44khz", "vq-vae"])
    assert many.hint.startswith("none of 402 known names is near; the closest are ") and "vq-vae" in many.hint
    assert many.hint.count(",") == 11
    assert (
        UnknownName("codec", "./mine.py", ["mimi"]).hint
        == "own code is named by its file and its class: ./mine.py:CLASS"
    )


def test_a_missing_extra_says_what_to_type():
    assert "pip install 'codec-bench[embedded]'" in str(MissingExtra("DNSMOS", "onnxruntime", "embedded"))


def test_what_is_cut_says_how_much_is_excluded():
    names = [f"n{k}" for k in range(1_234)]
    assert first_of(names[:3], 3) == "n0, n1, n2" and first_of([], 3) == ""
    assert first_of(names, 2, "; ") == "n0; n1 and 1,232 more"
    assert beginning("abc", 3) == "abc"
    assert beginning("x" * 2_000, 5) == "xxxxx … (1,995 more characters are in the record)"


def test_an_error_is_expected_by_its_class_and_code():
    with refuses("no_file", error=ValueError, path="a.wav"):
        raise ValueError(Diagnostic("no_file", path="a.wav"))
    with pytest.raises(ValueError), refuses("no_file"):
        raise ValueError(Diagnostic("no_file", path="a.wav"))
    with pytest.raises(AssertionError), refuses("no_folder"):
        raise UserError("no_file", path="a.wav")
