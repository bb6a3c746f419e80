"""Metrics of answers by name."""

from __future__ import annotations

import sys

import pytest
from reading_time import fill, is_proportional
from refusals import refuses

from codec_bench.benchmark.metrics import (
    TABLE,
    Answer,
    answer_metric_names,
    expand_answer_metrics,
    is_answer_metric,
    load_answer_metric,
)
from codec_bench.benchmark.metrics.accuracy import RULES
from codec_bench.messages.errors import MissingExtra, UserError

NAMES = [
    *(f"accuracy[{rule}]" for rule in RULES), "wer[answer]@by-language", "bleu[13a]", "cider", "coco_bleu[4]",
    "rouge_l", "refusal_rate",
    "refusal_rate[official/ultraeval-audio/harm]", "ifeval[loose]", "ifeval[official/audiobench]",
    "ifeval[official/mmau-pro]",
    "repeated", "repeated[official/uro-bench]",
]  # fmt: skip
FIELDS = {
    "choices": ["yes", "no"],
    "instruction_id_list": ["detectable_format:title", "detectable_content:number_placeholders",
        "detectable_format:number_bullet_lists"],
    "kwargs": [{}, {"num_placeholders": 1}, {"num_bullets": 1}], "rule": 13, "rule_target": '{"a": 1}',
}  # fmt: skip


def test_which_names_are_metrics_of_answers():
    yes = ["accuracy[exact]", "wer[answer]@by-language", "cer[answer]", "bleu", "captions", "ifeval[strict]"]
    no = ["wer[whisper-large-v3]", "wer", "stoi", "rating[helpful]"]
    assert [name for name in yes if not is_answer_metric(name)] == [name for name in no if is_answer_metric(name)] == []
    assert set(TABLE) < set(answer_metric_names())
    assert len(expand_answer_metrics(["captions", "bleu"])) == 7


def test_wrong_names():
    with refuses("unknown_name", name="acuracy"):
        load_answer_metric("acuracy[exact]")
    with pytest.raises(UserError):
        load_answer_metric("cider[x]")


def test_code_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from codec_bench.benchmark.metrics.base import AnswerMetric\n"
        "from codec_bench.types import Score\n"
        "class Mine(AnswerMetric):\n"
        "    name, protocol = 'mine', 'mine-1'\n"
        "    def compute(self, answers):\n"
        "        return [Score.ok(len(a.text), self.protocol) for a in answers]\n"
    )
    name = f"{tmp_path}/mine.py:Mine"
    assert is_answer_metric(name)
    assert load_answer_metric(name).compute([Answer("x", "abc")])[0].value == 3


@pytest.mark.parametrize("name", NAMES)
def test_hostile_answers_take_time_in_proportion_to_their_length(name):
    try:
        metric = load_answer_metric(name)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    metric.compute([Answer("x", "warm", ("up",), FIELDS, "en")])
    for segment in ("[", "*", "<<", "{", "\n", "a ", "今", "I. "):

        def compute(length, segment=segment):
            (score,) = metric.compute([Answer("x", fill(segment, length), ("yes", "a b"), FIELDS, "en")])
            assert score.status == "ok" or score.reason

        assert is_proportional(compute), segment


@pytest.mark.parametrize(("package", "name"), [("langdetect", "ifeval[strict]"), ("nltk", "meteor[exact-stem]")])
def test_a_missing_package_says_how_to_get_it(monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    fields = {"instruction_id_list": ["language:response_language"], "kwargs": [{"language": "de"}]}
    with refuses("package_not_installed", package=package):
        load_answer_metric(name).compute([Answer("x", "Guten Tag", ("x",), fields)])
