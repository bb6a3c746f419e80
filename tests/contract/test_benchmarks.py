"""Every benchmark on a miniature of its data: opened the way the real data is, answered, post-processed and scored."""

import csv
import json
from functools import cache
from pathlib import Path

import miniature
import pytest
from refusals import refuses

from codec_bench.audio.clip import Clip
from codec_bench.benchmark import benchmark_names, load_benchmark, suite, suite_names
from codec_bench.benchmark.definition.loader import definitions, read_definition
from codec_bench.benchmark.definition.prompt import load_prompt, prompt_names
from codec_bench.benchmark.definition.validate import validate_benchmark, validate_prompt
from codec_bench.benchmark.metrics import is_answer_metric, load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.reading import Unparsed, load_steps
from codec_bench.messages.errors import MissingExtra, MissingResource
from codec_bench.models.base import ModelInfo

TEXT_MODEL = ModelInfo("a-text-model", reads="messages")
SPEAKER = ModelInfo("a-synthesiser", reads="fields")
NAMES = benchmark_names()
AIR_BENCH = ("air-bench-foundation", "air-bench-foundation-official")
CHECKED = [
    name
    for name in NAMES
    if miniature.load(name).entry.family not in AIR_BENCH
    or name.startswith(("air-bench-speaker-gender", "air-bench-audio-gr"))
    if not miniature.like_another(name)
]
"""All of them, but of AIR-Bench's tasks and FLEURS's languages, which differ in their rows alone, a few."""
UPSTREAM = list(
    csv.DictReader((Path(__file__).parents[1] / "golden" / "ultraeval_audio_datasets.csv").open(encoding="utf-8"))
)
# Where UltraEval-Audio's reference is the prompt's sound or an id, ours is the text to be spoken; the sound is the
# question's.
OTHER_REFERENCE = {
    "WavPath": "text",  # Seed-TTS-Eval, MiniMax
    "id": "target_text",  # CV3-Eval emotion: the emotion is a part of the id
}
# If its reference is the question itself, we expect no particular answer.
NOTHING_EXPECTED = {
    f"voice_bench_{item}" for item in ("alpacaeval", "alpacaeval_full", "commoneval", "wildvoice", "ifeval", "advbench")
}
# The hub's library allows no hyphen in the name of a split.
OTHER_SPLIT = {"sample-en": "sample_en"}
# UltraEval-Audio's BLEU treats a Japanese sentence as one word, and BLEU of one word is not defined.
JAPANESE_AS_ONE_WORD = "bleu[official/ultraeval-audio/bleu]"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    folder = tmp_path_factory.mktemp("mirror")
    for name in NAMES:
        miniature.build(name, folder)
    with miniature.layouts_read_once():
        yield folder


@pytest.fixture(scope="module")
def questions_of(mirror):
    """The questions of a benchmark by its name, read once."""

    @cache
    def read(name):
        stream = miniature.load(name).questions(mirror=mirror)
        questions = list(stream)
        assert stream.total in (None, len(questions))
        return questions

    return read


def test_every_entry_of_ultraeval_audio_is_defined_once():
    named = [upstream for name in NAMES if (upstream := miniature.load(name).spec.upstream) is not None]
    assert sorted(named) == sorted(row["name"] for row in UPSTREAM)
    assert len(set(named)) == 160


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in NAMES
        if (data := miniature.load(name).data).speaker is not None and data.join is None
        if data.layout
        not in (
            "transcribed",
            "esd",
            "expresso",
        )  # a folder says who speaks, and there are fewer speakers (test_layouts.py)
    ],
)
def test_speakers_are_read_where_the_data_name_them(questions_of, name):
    speakers = [question.speaker for question in questions_of(name)]
    first, second, nobody = speakers[:3]
    assert first and second and first != second and nobody is None
    assert speakers[:3] == speakers[3:6]
    assert "speaker" not in miniature.load(name).request_facts["data"]["optional"]


@pytest.mark.parametrize("row", UPSTREAM, ids=lambda row: row["name"])
def test_an_entry_reads_what_ultraeval_audio_reads(row):
    benchmark = load_benchmark(row["name"])  # by its name in UltraEval-Audio
    data = benchmark.data
    assert benchmark.spec.upstream == row["name"]
    assert benchmark.category == row["category"]
    assert f"hf:{data.repository}" == row["source"].split(" ")[0]
    text = dict(item.split("=") for item in row["config_split"].split("/")) if "=" in row["config_split"] else {}
    assert data.config == text.get("cfg")
    split = data.splits[0] if data.splits and len(data.splits) == 1 else data.split
    assert split == OTHER_SPLIT.get(row["name"], text.get("split"))
    # `target_text→text`: the data's column on the left, theirs on the right.
    renamed = [
        item.strip().split("→") for item in row["audio_column"].replace(",", ";").split(";") if item.count("→") == 1
    ]
    aliases = {theirs: column for column, theirs in renamed}
    if row["name"] in NOTHING_EXPECTED:
        assert "reference" not in data.columns
        return
    expected = OTHER_REFERENCE.get(row["reference_column"]) or aliases.get(
        row["reference_column"], row["reference_column"]
    )
    reference = data.columns["reference"]
    assert (reference if isinstance(reference, str) else reference[0]) == expected
    if "audio" in data.columns and data.layout == "table":
        assert data.columns["audio"] == aliases.get("audio", "audio")


@pytest.mark.parametrize("file", definitions(), ids=lambda file: Path(str(file)).parent.name)
def test_a_definition_has_no_mistake(file):
    assert [str(finding) for finding in validate_benchmark(str(file))] == []
    kinds = {miniature.load(entry.name).kind for entry in read_definition(str(file))}
    assert kinds == {Path(str(file)).parent.parent.name}


@pytest.mark.parametrize("name", prompt_names())
def test_a_prompt_has_no_mistake_and_is_used(name):
    assert [str(finding) for finding in validate_prompt(name)] == []
    assert load_prompt(name).summary
    # These are chosen with --set NAME.prompt=..., as a README and docs/benchmarks.md say.
    offered = {"speak-as-instructed-in-voice", "audiobench/figure-2", "reworded-choice"}
    used = {str(miniature.load(one).spec.prompt) for one in NAMES} | offered
    assert name.removesuffix("-zh") in used  # the Chinese wordings are taken with --set NAME.prompt=...


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_names_benchmarks(name):
    members = suite(name)
    assert members and len(set(members)) == len(members)


@pytest.mark.parametrize("name", CHECKED)
def test_questions_of_the_miniature(name, questions_of):
    benchmark, questions = miniature.load(name), questions_of(name)
    assert len({question.id for question in questions}) == len(questions) > 0
    good = [question for question in questions if question.problem is None]
    bad = [question for question in questions if question.problem is not None]
    for question in good:
        assert question.language == benchmark.language
        assert set(question.subsets) <= set(benchmark.subsets)
        if "audio" in benchmark.data.columns and "audio" not in benchmark.data.optional:
            assert isinstance(question.audio, Clip) and question.audio.read().duration_s >= 0.1
        assert all(isinstance(text, str) and text.strip() for text in question.references)
    assert good
    if (
        "reference" in benchmark.data.columns
        and "text" not in benchmark.data.columns
        and benchmark.data.layout == "table"
    ):
        assert any(question.references == () for question in good)  # a row that can be answered but not scored
    # One row of each split has no sound (or no text, if there is no sound to begin with). It is still counted.
    assert bad or "audio" in benchmark.data.optional
    assert all(question.problem.startswith(("the row has no", "the story 'story4' has no")) for question in bad)


def one_of_each_layout():
    """Of benchmarks whose rows lie in the same way, one."""
    by_name = {}
    for name in NAMES:
        if miniature.like_another(name):
            continue
        data = miniature.load(name).data
        split = "several" if data.splits else "one" if data.split else "all"
        details = (
            data.layout,
            data.expand is None,
            split,
            data.config is None,
            data.configs is None,
            data.data_dir is None,
            data.id is None,
        )
        by_name.setdefault(details, name)
    return list(by_name.values())


@pytest.mark.parametrize("name", one_of_each_layout())
def test_a_part_of_the_questions(name, mirror, monkeypatch, questions_of):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(mirror))
    benchmark, every = miniature.load(name), [question.id for question in questions_of(name)]
    first = [question.id for question in benchmark.questions(limit=2)]
    assert first == every[:2] or benchmark.data.splits
    drawn = [question.id for question in benchmark.questions(limit=3, seed=5)]
    assert drawn == [question.id for question in benchmark.questions(limit=3, seed=5)]
    assert len(drawn) == 3 and set(drawn) <= set(every)


@pytest.mark.parametrize("name", [name for name in CHECKED if miniature.load(name).kind != "codec"])
def test_prompts_for_a_text_model_and_for_a_synthesiser(name, questions_of):
    benchmark = miniature.load(name)
    question = next(question for question in questions_of(name) if question.problem is None)
    prompt = benchmark.prompt_for(TEXT_MODEL)
    request = prompt.render(question)
    assert request.id == question.id and request.wants == benchmark.wants
    if benchmark.wants == "likelihood":  # there are no words: two sounds, whatever the model reads
        assert request.fields == {"preferred": question.audio, "other": question.fields["other_audio"]}
        return
    content = [item for message in request.messages for item in message.content]
    assert request.messages[-1].role == "user" and all(isinstance(item, (str, Clip)) for item in content)
    words = " ".join(item for item in content if isinstance(item, str))
    assert "{{" not in words and "{%" not in words
    if benchmark.kind in ("understanding", "qa"):
        assert question.audio in content
        details = (*question.fields.get("labels", ()), *question.fields.get("choices", ()))
        # The prompt does not contain the expected answer, except as one of several options.
        assert all(
            reference in details or len(reference) == 1 or reference not in words for reference in question.references
        )
    if benchmark.kind == "generation":
        fields = benchmark.prompt_for(SPEAKER).render(question).fields
        if "source_audio" in question.fields:  # in voice conversion the words are in the audio
            assert fields["audio"] is question.fields["source_audio"] and fields["prompt_audio"] is question.audio
            return
        assert fields["text"] == question.fields["text"] == question.references[0]
        if "prompt_text" in question.fields:
            assert fields["prompt_audio"] is question.audio and fields["prompt_text"] == question.fields["prompt_text"]
    json.dumps([benchmark.request_facts, benchmark.scored, benchmark.described, prompt.identity])


@pytest.mark.parametrize("name", [name for name in CHECKED if miniature.load(name).kind in ("understanding", "qa")])
def test_a_right_answer_scores_best_and_a_wrong_or_empty_one_does_not(name, questions_of):
    benchmark = miniature.load(name)
    prompt = benchmark.prompt_for(TEXT_MODEL)
    questions = [question for question in questions_of(name) if question.problem is None]
    questions = [q for q in questions if q.references or "reference" not in benchmark.data.columns]
    for metric_name, actual in benchmark.metric_steps.items():
        if not is_answer_metric(metric_name) or metric_name == JAPANESE_AS_ONE_WORD:
            continue
        try:
            metric = load_answer_metric(metric_name)
        except (MissingExtra, MissingResource):
            continue
        if (
            metric.sound_metrics or metric_name == "withheld"
        ):  # transcripts are tried in test_runs.py; withheld answers have no number
            continue
        chain = load_steps(actual if actual is not None else [*prompt.process, *benchmark.process])
        right = _values(metric, chain, questions, [miniature.right_answer(q, prompt) for q in questions])
        wrong = _values(metric, chain, questions, [miniature.wrong_answer(q, prompt) for q in questions])
        empty = _values(metric, chain, questions, [""] * len(questions))
        # CIDEr's best depends on how rare the words are, and METEOR's on how many there are.
        best = metric.range[1] if metric.higher_is_better else metric.range[0]
        if not metric.whole_set and not metric_name.startswith("meteor"):
            assert right == pytest.approx([best] * len(right)), metric_name
        if "first-option-a" not in str(actual):  # the published default: A, whatever the answer
            for good, *others in zip(right, wrong, empty):
                worse = [
                    other is None or (good > other if metric.higher_is_better else good < other) for other in others
                ]
                assert worse == [True, True], metric_name


def _values(metric, chain, questions, answers):
    """The metric's values; None for an answer that was not read or that has no value."""
    values, read = {}, []
    for question, raw in zip(questions, answers):
        parsed = chain(raw, question.fields)
        if not isinstance(parsed, Unparsed):
            read.append(Answer(question.id, parsed.text, question.references, question.fields, question.language, raw))
    if read:
        values = {answer.id: score.value for answer, score in zip(read, metric.compute(read))}
    return [values.get(question.id) for question in questions]


def test_published_numbers_are_in_the_metrics_unit():
    numbers = [(miniature.load(name), published) for name in NAMES for published in miniature.load(name).published]
    assert len(numbers) > 250
    assert all(published.metric in benchmark.metrics and published.source for benchmark, published in numbers)
    options = {(benchmark.name, p.model, p.metric): p.value for benchmark, p in numbers}
    # 1.60 per cent, 48.20 BLEU, a rating of 7.4 shown as 74.0.
    assert options["librispeech-test-clean", "Qwen2-Audio-7B", "wer[answer]@official/ultraeval-audio/wer"] == 0.016
    assert options["covost2-en-zh", "MiniCPM-o 2.6", "bleu[zh]"] == 48.2
    assert options["speech-chatbot-alpaca-eval", "GPT-4o-Realtime", "rating[alpaca-1-10]"] == 7.4


def test_a_column_that_is_not_there_names_those_that_are(mirror, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(mirror))
    benchmark = load_benchmark("meld-emo", {"data.columns.reference": "Feeling"})
    with refuses(
        "benchmark_column_missing", field="reference", column="Feeling", data="TwinkStart/MELD", hint="Sentiment"
    ):
        benchmark.questions()


@pytest.mark.parametrize(
    ("name", "subset", "values"),
    [
        ("speech-hsk", "split", {f"hsk{level}" for level in range(1, 7)}),
        ("hsk3", "split", {"hsk3"}),
        ("instruct-tts-eval-zh", "type", {"APS", "DSD", "RP"}),
        ("voice-bench-mmsu", "subject", {"dev", "test"}),  # the miniature's splits; the data's are school subjects
        ("voice-bench-bbh", "kind", {"navigate"}),
        ("minimax-tts-thai", "speaker", {"thai_female", "thai_male", "thai_nobody"}),
    ],
)
def test_subsets_come_from_splits_kinds_and_columns(name, subset, values, mirror, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(mirror))
    benchmark = load_benchmark(name)
    assert subset in benchmark.subsets
    assert {question.subsets[subset] for question in benchmark.questions()} == values


def test_a_random_part_is_drawn_from_all_splits_alike(mirror, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(mirror))
    benchmark = load_benchmark("speech-hsk")
    parts = {seed: [question.id for question in benchmark.questions(limit=3, seed=seed)] for seed in range(12)}
    assert all(len(item) == 3 for item in parts.values())
    # Of six levels with six rows each, twelve draws of three leave none out (that would be a chance of 1 in 140).
    assert {item.split("/")[0] for drawn in parts.values() for item in drawn} == {
        f"hsk{level}" for level in range(1, 7)
    }
    # With the same seed, a larger part contains the smaller ones.
    assert set(parts[4]) <= {question.id for question in benchmark.questions(limit=7, seed=4)}
