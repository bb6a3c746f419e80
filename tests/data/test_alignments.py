"""Alignments in every format say the same, and what is wrong in them is one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench.data.alignments import fingerprint, read_alignments

INTERVALS = [(0.0, 0.1, "HH"), (0.1, 0.25, "AH0"), (0.4, 0.5, 'a"b')]
LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 0.5
tiers? <exists>
size = 3
item []:
    item [1]:
        class = "IntervalTier"
        name = "words"
        xmin = 0
        xmax = 0.5
        intervals: size = 1
        intervals [1]:
            xmin = 0
            xmax = 0.5
            text = "huh 3.5 "
    item [2]:
        class = "TextTier"
        name = "clicks"
        xmin = 0
        xmax = 0.5
        points: size = 1
        points [1]:
            number = 0.2
            mark = "x"
    item [3]:
        class = "IntervalTier"
        name = "{tier}"
        xmin = 0
        xmax = 0.5
        intervals: size = 4
"""
ROWS = [(0, 0.1, "HH"), (0.1, 0.25, "AH0"), (0.25, 0.4, ""), (0.4, 0.5, 'a""b')]


def long_format(tier="phones"):
    rows = [
        f'        intervals [{n}]:\n            xmin = {start}\n            xmax = {end}\n            text = "{text}"\n'
        for n, (start, end, text) in enumerate(ROWS, 1)
    ]
    return LONG.replace("{tier}", tier) + "".join(rows)


def short_format():
    rows = "".join(f'{start}\n{end}\n"{text}"\n' for start, end, text in ROWS)
    head = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n0.5\n<exists>\n1\n'
    return f'{head}"IntervalTier"\n"anything"\n0\n0.5\n4\n{rows}'


def ctm():
    rows = [f"{name} 1 {start} {end - start} {text} 0.9\n" for name in ("b/a", "c") for start, end, text in INTERVALS]
    return ";; a comment\n" + "".join(reversed(rows))


WAYS = {
    "long/b/a.TextGrid": lambda: long_format().encode("utf-8"),
    "speakers/b/a.TextGrid": lambda: long_format("anna - phones").encode("utf-8"),
    "short/b/a.TextGrid": lambda: short_format().encode("utf-16"),
    "all.ctm": lambda: ctm().encode(),
    "all.json": lambda: json.dumps({"b/a": INTERVALS, "c": []}).encode(),
}


@pytest.mark.parametrize("variant", WAYS)
def test_every_format_says_the_same(tmp_path, variant):
    file = tmp_path / variant
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(WAYS[variant]())
    path = file if file.suffix != ".TextGrid" else tmp_path / variant.partition("/")[0]
    result = read_alignments(path)["b/a"]
    assert result.phones == ("HH", "AH0", 'a"b')
    np.testing.assert_allclose([result.starts_s, result.ends_s], [[0, 0.1, 0.4], [0.1, 0.25, 0.5]])
    times = np.array([0.0, 0.0999, 0.1, 0.3, 0.45, 0.5, 7.0])
    assert result.at(times).tolist() == [0, 0, 1, -1, 2, -1, -1]
    before = fingerprint(path)
    assert before == fingerprint(path)
    file.write_bytes(WAYS[variant]() + b"\n")
    assert fingerprint(path) != before


def test_one_file_and_overlaps(tmp_path):
    file = tmp_path / "a.TextGrid"
    file.write_text(long_format(), "utf-8")
    assert list(read_alignments(file)) == ["a"]
    overlapping = tmp_path / "o.json"
    overlapping.write_text(json.dumps({"a": [[0.0, 0.3, "A"], [0.2, 0.4, "B"]], "none": []}), "utf-8")
    result = read_alignments(overlapping)
    assert result["a"].at(np.array([0.1, 0.25, 0.35])).tolist() == [0, 1, 1]
    assert result["none"].at(np.array([0.1])).tolist() == [-1]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", b"[]", {"code": "alignments_no_mapping"}),
        ("a.json", b"{", {"code": "alignments_no_mapping"}),
        ("a.json", b'{"a": [[0, 1]]}', {"code": "alignments_no_mapping"}),
        (
            "a.json",
            b'{"a": [[0.5, 0.5, "A"]]}',
            {"code": "alignment_times", "name": "a", "cause": "the phone 'A' lasts from 0.5 to 0.5 s"},
        ),
        (
            "a.json",
            b'{"a": [[NaN, 0.5, "A"]]}',
            {"code": "alignment_times", "cause": Containing("lasts from nan to 0")},
        ),
        ("a.json", b'{"a": []}', {"code": "alignments_without_phones"}),
        ("a.json", b"\xff\xff", {"code": "alignments_unreadable"}),
        ("a.ctm", b"a 1 0.0 x AH\n", {"code": "alignment_line", "place": Containing("line 1 of the alignments")}),
        ("a.ctm", b"a 1 0.0\n", {"code": "alignment_line", "place": Containing("line 1 of the alignments")}),
        ("a.TextGrid", b"nothing", {"code": "alignments_not_whole"}),
        ("a.TextGrid", long_format()[:-60].encode(), {"code": "alignments_not_whole"}),
        ("a.TextGrid", long_format("phonemes").encode(), {"code": "no_phone_tier", "known": "'words', 'phonemes'"}),
        ("a.txt", b"", {"code": "alignments_format"}),
        ("empty/x.txt", b"", {"code": "alignments_without_phones"}),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, name, content, words):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    with refuses(**words) as caught:
        read_alignments(file if "/" not in name else file.parent)
    assert "\n" not in caught.value.message
    with refuses("no_file_of_alignments"):
        read_alignments(tmp_path / "nothing.json")
