"""A pair counts as by SALMon's own program, and a set as by that of the ZeroSpeech challenge (tests/golden/text)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import soundfile

from codec_bench.benchmark import load_benchmark
from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.metrics.pair_accuracy import TIED

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"


def cases(name):
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]


METRIC = load_answer_metric("pair_accuracy")


def answer(preferred, other):
    return Answer("1", json.dumps({"preferred": preferred, "other": other}))


def test_pairs_count_as_by_the_program_of_salmon():
    golden = cases("salmon_pairs")
    scores = METRIC.compute([answer(*case["input"]) for case in golden])
    assert [score.value for score in scores] == [case["expected"] for case in golden]
    assert {score.value for score in scores} == {0.0, 0.5, 1.0}
    tied = [score for score in scores if score.value == 0.5]
    assert all(score.detail["flag"] == TIED for score in tied)
    assert sum("flag" in score.detail for score in scores) == len(tied)


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "-3 -4", '{"preferred": 1}', '{"preferred": -1, "other": "nan"}', "[" * 5000]
)
def test_an_answer_without_two_numbers_has_no_value(text):
    (score,) = METRIC.compute([Answer("1", text)])
    assert score.status == "unparsed" and score.value is None
    assert METRIC.worst(Answer("1", text)).value == 0.0


@pytest.mark.parametrize(
    ("name", "subset", "golden"), zip(("swuggy", "sblimp"), ("band", "type"), cases("zerospeech_pairs"))
)
def test_a_set_counts_as_by_the_program_of_the_challenge(name, subset, golden, tmp_path):
    folder = tmp_path / "zerospeech" / "sLM21-dataset" / golden["part"] / "dev"
    folder.mkdir(parents=True)
    # The program pairs rows by their order, and here they are matched by their fields.
    head, *rows = golden["gold"].splitlines()
    (folder / "gold.csv").write_text("\n".join([head, *reversed(rows)]) + "\n")
    for file in golden["scores"]:
        soundfile.write(folder / f"{file}.wav", np.zeros(160), 16_000)
    questions = list(load_benchmark(name).questions(mirror=tmp_path))
    assert not [question.problem for question in questions if question.problem]

    def score_of(clip):
        return golden["scores"][re.search(r"(\w+)\.wav", str(clip.source))[1]]

    scores = METRIC.compute([answer(score_of(q.audio), score_of(q.fields["other_audio"])) for q in questions])
    assert fmean(score.value for score in scores) == pytest.approx(golden["score"], abs=1e-12)
    results: dict[str, list[float]] = {}
    for question, score in zip(questions, scores):
        results.setdefault(question.subsets[subset], []).append(score.value)
    voices = len({question.speaker for question in questions})
    expected = {label: (count, value) for label, (count, value) in golden["by"].items()}
    # The program's labels of bands name numbers that lie beyond their limits.
    named = {"oov": "0", "1-5": "1-4", "6-20": "5-19", "21-100": "20-99", ">100": "100 and more"}
    assert {label: (len(values) / voices, pytest.approx(fmean(values))) for label, values in results.items()} == {
        named.get(label, label): messages for label, messages in expected.items()
    }
