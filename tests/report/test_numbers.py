"""How numbers and names are written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codec_bench.messages import Diagnostic
from codec_bench.report import numbers
from codec_bench.stats.summary_types import Below50, MetricSummary


def entry(value, low=None, high=None, missing=None):
    return MetricSummary.from_dict(
        {"value": value, "ci95": None if low is None else [low, high], "missing": missing or {}}
    )


def test_a_small_p_value_is_a_bound():
    assert [numbers.probability(p) for p in (None, 0.0, 0.0009, 0.001, 0.0425)] == [
        "–",
        "<0.001",
        "<0.001",
        "0.001",
        "0.043",
    ]


def test_an_error_rate_shows_what_is_left_without_items_above_half():
    rest = Below50(0.0812, [0.07, 0.0924], None, 41, 3)
    assert numbers.below_50_text(replace(entry(0.2), below_50=rest), 3) == "0.081 ±0.011 without 3 items above 50 %"
    assert numbers.below_50_text(entry(0.2), 3) == ""


@pytest.mark.parametrize(
    ("system", "codec"),
    [
        ("opus-6k", "opus"),
        ("amr-nb-12.2k", "amr-nb"),
        ("mp3-32kbps", "mp3"),
        ("encodec-24khz@6", "encodec-24khz"),
        ("g722", "g722"),
        ("g711-ulaw", "g711-ulaw"),
        ("@", "@"),
    ],
)
def test_family_drops_only_the_operating_point(system, codec):
    assert numbers.family(system) == codec


def test_a_number_has_the_decimals_its_interval_deserves():
    assert numbers.decimals([entry(0.93456, 0.92, 0.95), entry(0.9, 0.88, 0.93)]) == 3
    assert numbers.decimals([entry(12003.0, 11800.0, 12200.0), entry(5e3, 4.7e3, 5.2e3)], 1e-3) == 1
    assert numbers.decimals([entry(1234.5, 1100.0, 1300.0)]) == 0
    assert numbers.decimals([entry(0.5), entry(None)]) == 3
    assert numbers.decimals([]) == 3
    # One interval of no width (all items equal) says nothing about the others.
    assert numbers.decimals([entry(1.0, 1.0, 1.0), entry(0.5, 0.2, 0.8)]) == 2
    # A half width of 0.1 to 0.2 gets a second digit: it would be rounded by half of itself.
    assert numbers.decimals([entry(0.5, 0.35, 0.65)]) == 3


def test_numbers_are_written_with_true_signs_and_no_negative_zero():
    assert numbers.number(-3.14159, 2) == "−3.14"
    assert numbers.number(-0.001, 2) == "0.00"
    assert numbers.number(0.5, 1, sign=True) == "+0.5"
    assert numbers.number(None, 2) == "–"


def test_an_interval_that_is_not_symmetric_shows_its_ends():
    assert numbers.spread(entry(0.5, 0.39, 0.61), 2) == "±0.11"
    assert numbers.spread(entry(0.5, 0.395, 0.6), 2) == "±0.10", "the sides differ by less than a tenth"
    assert numbers.spread(entry(1.0, 0.88, 1.67), 2) == "[0.88, 1.67]"
    assert numbers.spread(entry(72130.0, 64000.0, 98300.0), 1, 1e-3) == "[64.0, 98.3]"
    assert numbers.spread(entry(0.5), 2) == ""
    assert numbers.spread(entry(0.0002, 0.0001, 0.0003), 3) == "±0.0001", "no width that is not zero looks like zero"
    assert numbers.spread(entry(0.0, 0.0, 0.0004), 3) == "[0.0000, 0.0004]"
    assert numbers.spread(entry(0.5, 0.5, 0.5), 3) == "±0.000"
    assert numbers.spread(replace(entry(0.5, 0.39, 0.61), note=Diagnostic("single_unit")), 2) == "±0.11*"


def test_the_notes_of_intervals_name_their_metrics():
    noted = lambda note, low=None: replace(entry(0.5, low, low and 0.6), note=note)  # noqa: E731
    small, short = Diagnostic("few_of", units=2, of="items", needed=3), Diagnostic("dominant_unit")
    all_few = [("a", "wer", noted(small)), ("a", "stoi", noted(small))]
    assert numbers.interval_notes(all_few) == [f"–: {small}"]
    fine = entry(0.5, 0.4, 0.6)
    one_metric = [(s, m, noted(short, 0.4) if m == "wer" else fine) for s in "ab" for m in ("wer", "stoi")]
    assert numbers.interval_notes(one_metric) == [f"* (wer): {short}"]
    one_system = [(s, m, noted(small) if s == "b" else fine) for s in "ab" for m in ("wer", "stoi")]
    assert numbers.interval_notes(one_system) == [f"– (all metrics of b): {small}"]
    marked = {("a", "wer"), ("b", "wer"), ("c", "stoi"), ("c", "cer")}
    metrics, systems = ("wer", "cer", "stoi"), ("a", "b", "c")
    apart = [(s, m, noted(short, 0.4) if (s, m) in marked else fine) for s in systems for m in metrics]
    assert numbers.interval_notes(apart) == [f"* (wer of a, b; cer, stoi of c): {short}"]
    assert numbers.interval_notes([("a", "wer", entry(None))]) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (1.25, "1.2 s"), (59.97, "1 min 00 s"), (125, "2 min 05 s"), (12000, "3 h 20 min"),
        (3599.8, "1 h 00 min")],
)  # fmt: skip
def test_durations(seconds, text):
    assert numbers.duration(seconds) == text


def test_text_that_steers_a_terminal_is_neutralised():
    assert numbers.plain("a\x1b[31mb\u202ec\n") == "a�[31mb�c�"
    assert numbers.plain("Größe 语音 👍") == "Größe 语音 👍"


def test_names_and_units():
    assert numbers.split_name("wer[whisper-large-v3]") == ("wer", "whisper-large-v3")
    assert numbers.split_name("pesq_wb") == ("pesq_wb", "")
    assert numbers.shown_unit("bit/s") == (1e-3, "kbps")
    assert numbers.shown_unit("dB") == (1.0, "dB")


def test_reasons_of_several_systems_become_one():
    row = {"metric": "pesq_wb", "status": "failed", "reason_code": {"code": "pesq_no_utterance"}, "example": "x"}
    grouped = numbers.grouped_reasons([{**row, "system": "a", "count": 2}, {**row, "system": "b", "count": 3}])
    assert [(g["systems"], g["count"]) for g in grouped] == [(["a", "b"], 5)]


@pytest.mark.parametrize(
    ("metric", "parts"),
    {
        "stoi": ("stoi", ""),
        "wer[pocketsphinx]": ("wer", "pocketsphinx"),
        "sim@bfloat16": ("sim", "@bfloat16"),
        "wer[whisper-large-v3@28s]@official/seed-tts-eval": ("wer", "whisper-large-v3@28s @official/seed-tts-eval"),
        "./mine.py:Mine": ("./mine.py:Mine", ""),
    }.items(),
)
def test_a_metric_s_name_stands_apart_from_how_it_is_measured(metric, parts):
    assert numbers.split_name(metric) == parts


def test_names_that_form_no_curve_are_reported_with_names_that_do():
    result = numbers.uncurved(
        ["rvq2", "rvq4", "rvq16", "opus-6k", "opus@12", "g711", "g722", "mp3", "codec2", "lyra6k", "lyra9.2k"]
    )
    assert result == [
        "rvq2, rvq4, rvq16 are on no common curve: if they are operating points of one codec, name them rvq@2, rvq@4, "
        "rvq@16, by the "
        "name in `info` or as NAME=CODEC",
        "lyra6k, lyra9.2k are on no common curve: if they are operating points of one codec, name them lyra@6k, "
        "lyra@9.2k, by the "
        "name in `info` or as NAME=CODEC",
    ]
    named = [
        name.strip()
        for sentence in result
        for name in sentence.partition("name them ")[2].partition(", by")[0].split(",")
    ]
    assert numbers.uncurved(named) == [] and {numbers.family(name) for name in named} == {"rvq", "lyra"}
