"""Codes are counted with the phones in the middle of their frames."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Codes, CodeStream
from codec_bench.apps.profiling.phones import PhoneCounter
from codec_bench.apps.profiling.rows import sections
from codec_bench.apps.profiling.steps import OPTIONAL
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data import open_source
from codec_bench.data.alignments import Alignment
from codec_bench.messages import Diagnostic

ALIGNED = {"a": Alignment.of([(0.0, 0.05, "B"), (0.05, 0.1, "A")]), "b": Alignment.of([(0.02, 0.2, "A")])}


def codes(values, rate_hz=100.0):
    return Codes((CodeStream(np.asarray([values]), 8, rate_hz),), 160 * len(values), 16_000)


def test_a_frame_has_the_phone_in_its_middle():
    counter = PhoneCounter(ALIGNED)
    counter.add("a", codes([3, 3, 3, 3, 3, 5, 5, 5, 5, 5, 0]))  # the last frame is after the last phone
    counter.add("b", codes([1, 1, 5]))  # the first two are before the first
    counter.add("c", codes([7, 7, 7]))
    result = counter.result(seed=0)
    assert (result["items"], result["items_without"]) == (2, 1)
    (stream,) = result["streams"]
    (book,) = stream["per_codebook"]
    assert (stream["frames"], book["frames"], book["codes"], book["phones"]) == (14, 11, 2, 2)
    assert book["pnmi"] == pytest.approx(1) and book["phone_purity"] == 1 and book["cluster_purity"] == 1
    half = PhoneCounter(ALIGNED)
    half.add("a", codes([3, 4, 3], rate_hz=30.0))  # middles at 17, 50 and 83 ms: B, A, A
    assert half.result(seed=0)["streams"][0]["per_codebook"][0]["phone_purity"] == pytest.approx(2 / 3)


def test_why_there_is_nothing_is_reported():
    counter = PhoneCounter(ALIGNED)
    counter.add("c", codes([1, 2]))
    with refuses("no_alignments", clips=1, error=NotApplicable):
        counter.result(seed=0)
    packets = PhoneCounter(ALIGNED)
    packets.add("a", Codes((), 16_000, 16_000, packets=(b"12",)))
    with refuses("no_frame_rate", error=NotApplicable):
        packets.result(seed=0)


def test_a_profile_tells_of_phones(profiled, odd, tmp_path):
    path = tmp_path / "phones.json"
    rng = np.random.default_rng(4)
    rows = {
        s.id: [[k / 20, (k + 1) / 20, str(rng.choice(["A", "B"]))] for k in range(20)] for s in open_source("embedded")
    }
    path.write_text(json.dumps(rows), "utf-8")
    others = [step for step in OPTIONAL if step != "corpus"]
    result = profiled(odd("Framed"), "amr-nb-12k", alignments=path, skip=others)
    framed, packets = result.codecs.values()
    (stream,) = framed["phones"]["streams"]
    for book in stream["per_codebook"]:
        assert 0 < book["frames"] < stream["frames"] and 0 <= book["pnmi_chance"] < 1
    (compared,) = framed["abx"]["streams"]
    assert compared["items"] == 3 * 18 and 0.3 < compared["all_codebooks"]["within"]["error"] < 0.7
    assert packets["abx"] == packets["phones"] and packets["abx"]["reason"] == Diagnostic("no_frame_rate")
    assert result.facts["how"]["alignments"] == "phones.json" and not result.faults
    (shown,) = [section for section in sections(result.facts) if section.title == "Phones"]
    cells = {row.label: [cell.text for cell in row.cells] for row in shown.rows}
    assert cells["clips without an alignment"] == ["0 of 3", "–"] and cells["frames with a phone"][1] == "–"
    error = compared["first_codebook"]["across"]["error"]
    assert cells["ABX error across speakers, first codebook"] == [f"{100 * error:.1f}", "–"]
    first = stream["per_codebook"][0]
    text = f"{100 * first['pnmi']:.1f}; chance {100 * first['pnmi_chance']:.1f}"
    assert cells["phone information, first codebook"] == [text, "–"]
    (no_vectors,) = [row for row in shown.without if row.label == "ABX error within speakers, vectors"]
    assert "gives no vectors" in no_vectors.cells[0].reason
    with refuses("no_file_of_alignments"):
        profiled(odd("Framed"), alignments=tmp_path / "nothing.ctm")
