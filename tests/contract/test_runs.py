"""Every benchmark from end to end on a miniature of its data: a perfect model, a judge, the record, the scores."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import miniature
import perfect_model
import planted_sounds
import pytest
import soundfile
from tiny_speech import write_emotion2vec

from codec_bench.api.run_benchmark import run_benchmark, run_codecs
from codec_bench.benchmark import benchmark_names, load_benchmark
from codec_bench.benchmark.judge.metric import is_judge_metric
from codec_bench.benchmark.metrics import is_answer_metric, load_answer_metric
from codec_bench.features import REGISTRY
from codec_bench.messages.errors import MissingResource
from codec_bench.models.base import ModelInfo
from codec_bench.store.answers import exchanges

NAMES = [name for name in benchmark_names() if not miniature.like_another(name)]
CODECS = [name for name in NAMES if miniature.load(name).kind == "codec"]
REQUESTS = [name for name in NAMES if name not in CODECS]


def one_of_each(names):
    """Few benchmarks that have every prompt, layout, step, metric and language.

    Those that differ in their columns alone are read, answered and scored in test_benchmarks.py.
    """
    values = {}
    for name in names:
        one, data = miniature.load(name), miniature.load(name).data
        rows = (data.layout, data.expand, data.splits is None, data.data_dir is None)
        values[name] = {*enumerate(map(str, (one.spec.prompt, rows, one.primary, one.language, one.kind)))}
        values[name] |= {(metric, str(steps)) for metric, steps in one.metric_steps.items()}
        values[name] |= {("process", str(step)) for step in one.process}
    chosen, missing = [], set().union(*values.values())
    while missing:
        chosen.append(max(values, key=lambda name: len(values[name] & missing)))
        missing -= values[chosen[-1]]
    return chosen


SPOKEN = [name for name in REQUESTS if miniature.load(name).wants == "audio"]
WRITTEN = one_of_each([name for name in REQUESTS if name not in SPOKEN and name != "mmau-test"])
QUERIED = one_of_each(SPOKEN)
ALONE = [
    "seed-tts-eval-en",
    "llama-questions",
    "uro-bench-mtbencheval-en",
    "speech-role-multi",
    "uro-bench-genemotion-en",
]
"""These are scored with metrics or sounds of their own."""


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    folder = tmp_path_factory.mktemp("runs")
    for name in {*WRITTEN, *QUERIED, *ALONE, *CODECS}:
        miniature.build(name, folder / "mirror")
    with miniature.layouts_read_once():
        yield folder


def read_questions(benchmark, target, *, speaks=False):
    """The questions of a benchmark, and the right answers by their ids and the words of the requests."""
    prompt = benchmark.prompt_for(ModelInfo("perfect", reads="fields" if speaks else "messages"))
    questions = list(benchmark.questions(mirror=target / "mirror"))
    good = [q for q in questions if q.problem is None]
    return questions, {(q.id, perfect_model.words(prompt.render(q))): miniature.right_answer(q, prompt) for q in good}


def run_together(overrides, answers, target, folder, *, speaks=False, phase="both", sound=None):
    """Runs benchmarks, by their overrides, with the model that knows the answers."""
    by_id = {}
    for (id, words), answer in answers.items():
        by_id.setdefault(id, {})[words] = answer
    (folder / "right.json").write_text(json.dumps(by_id))
    model, judge = (f"{perfect_model.__file__}:{name}" for name in ("Perfect", "Judge"))
    metrics = [metric for name, changes in overrides.items() for metric in load_benchmark(name, changes).metrics]
    options = {"speaks": speaks, "sound": sound, "answers": str(folder / "right.json")}
    return run_benchmark(
        benchmark=list(overrides), model=model, judge=judge if any(map(is_judge_metric, metrics)) else None,
        phase=phase, data=target / "mirror", out=folder / "out", page=False, cache=False, workers=1,
        options={model: options, **{name: changes for name, changes in overrides.items() if changes}},
    )  # fmt: skip


def check_answers(built, questions):
    """Every question has an answer, or its problem as the reason why there is none."""
    every = list(exchanges(built))
    assert [e.question.id for e in every] == [q.id for q in questions]
    for exchange, question in zip(every, questions):
        assert (exchange.answer.status == "ok") is (question.problem is None), exchange.answer.reason
        assert exchange.answer.status == "ok" or exchange.answer.reason == question.problem


def run(name, target, tmp_path, *, overrides=None, sound=None, speaks=False):
    """Runs one benchmark with the perfect model; returns the run and its questions."""
    questions, answers = read_questions(load_benchmark(name, overrides), target, speaks=speaks)
    outcome = run_together({name: overrides}, answers, target, tmp_path, sound=sound, speaks=speaks)
    check_answers(built := outcome.runs[name, "perfect"], questions)
    return built, questions


@pytest.fixture(scope="module")
def run_of(target, tmp_path_factory):
    """`run_of(name, names)` is the run of one of many benchmarks, its questions and its row of the summary.

    Those run together in which equal requests have equal answers, and all of those whose answers are not scored.
    """

    @cache
    def run_all(names, speaks, phase):
        overrides = {name: None if phase == "answers" else as_it_can_be_scored(name) for name in names}
        waiting = {name: read_questions(load_benchmark(name), target, speaks=speaks) for name in names}
        results = {}
        while waiting:
            answers, chosen = {}, {}
            for name, (questions, right) in waiting.items():
                if phase == "answers" or all(answers.get(one, answer) == answer for one, answer in right.items()):
                    chosen[name] = questions
                    answers |= right
            some = {name: overrides[name] for name in chosen}
            outcome = run_together(some, answers, target, tmp_path_factory.mktemp("run"), speaks=speaks, phase=phase)
            path = outcome.folder / "summary.json"
            rows = json.loads(path.read_text())["benchmarks"] if path.is_file() else []
            by_name = {row["benchmark"]: row for row in rows}
            for name, questions in chosen.items():
                results[name] = outcome.runs.get((name, "perfect")), questions, by_name.get(name)
                del waiting[name]
        return results

    return lambda name, names, speaks=False, phase="both": run_all(tuple(names), speaks, phase)[name]


@cache
def as_it_can_be_scored(name):
    """The metrics that this machine has the resources for, as options; None where it has all."""
    benchmark = load_benchmark(name)
    there = list(benchmark.metrics)
    for metric in benchmark.metrics:
        try:
            if is_answer_metric(metric):
                load_answer_metric(metric)
        except MissingResource:
            there.remove(metric)
    if len(there) == len(benchmark.metrics):
        return None
    there = there or ["bleu[char]"]  # the tokens of FLORES-101 are downloaded
    return {"metrics": ",".join(there), "primary": there[0]}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_benchmark_runs_from_end_to_end(name, run_of):
    built, questions, row = run_of(name, WRITTEN)
    check_answers(built, questions)
    benchmark = load_benchmark(name, as_it_can_be_scored(name))
    assert list(row["metrics"]) == list(benchmark.metrics)
    entry = row["metrics"][benchmark.primary]
    # Every question is counted: it has a score, or it is missing with a reason.
    assert entry["n"] + entry["failed"] == len(questions)
    assert entry["n"] >= 4, row["failures"]["reasons"]
    facts = built.metrics[benchmark.primary]
    best = facts["range"][1 if facts["higher_is_better"] else 0]
    if benchmark.primary.startswith("bleu"):
        best = 100.0
    if benchmark.primary != "cider" and best is not None:
        assert entry["value"] == pytest.approx(best, abs=1e-9)
    broken = [r for r in row["failures"]["reasons"] if r["status"] == "failed" and r["metric"] is not None]
    assert broken == []


@pytest.mark.parametrize("name", QUERIED)
def test_a_spoken_benchmark_is_queried(name, run_of):
    # Its recognisers and speaker networks are checkpoints; two of these benchmarks are scored below with embedded ones.
    speaks = load_benchmark(name).kind == "generation"
    alike = [one for one in QUERIED if (load_benchmark(one).kind == "generation") is speaks]
    built, questions, _ = run_of(name, alike, speaks=speaks, phase="answers")
    check_answers(built, questions)
    spoken = [e for e in exchanges(built) if e.answer.status == "ok"]
    assert spoken and all(e.answer_path.is_file() for e in spoken)


def test_cloned_voices_are_scored(target, tmp_path, embedded_clip):
    overrides = {"metrics": "wer[pocketsphinx],sim[ge2e]", "primary": "wer[pocketsphinx]"}
    built, questions = run(
        "seed-tts-eval-en", target, tmp_path, speaks=True, overrides=overrides, sound=embedded_clip.audio
    )
    assert set(built.metrics) == {"wer[pocketsphinx]", "sim[ge2e]"}
    good = [q for q in questions if q.problem is None]
    wer = list(built.scores("perfect", "wer[pocketsphinx]"))
    assert len(wer) == len(questions) and sum(s.status == "ok" for s in wer) == len(good)
    # The recording does not contain the requested words, and the recogniser transcribes its words.
    assert all(s.value > 0.5 for s in wer if s.status == "ok")
    assert all(
        len(set(s.detail["hypothesis"].split()) & set(embedded_clip.text.lower().split())) >= 2
        for s in wer
        if s.status == "ok"
    )


def test_spoken_answers_are_transcribed_and_read(target, tmp_path, embedded_clip):
    overrides = {
        "postprocess": "transcript[pocketsphinx]",
        "metrics": "accuracy[contains]",
        "primary": "accuracy[contains]",
    }
    built, questions = run("llama-questions", target, tmp_path, overrides=overrides, sound=embedded_clip.audio)
    transcript = [e.reading.transcript for e in exchanges(built) if e.answer.status == "ok"]
    assert len(transcript) == sum(q.problem is None for q in questions) and all(transcript)
    assert {s.value for s in built.scores("perfect", "accuracy[contains]") if s.status == "ok"} == {0.0}
    assert "transcript[pocketsphinx]" not in built.metrics


def test_a_conversation_in_rounds_is_judged_as_a_whole(target, tmp_path, few_words):
    overrides = {"postprocess": "transcript[pocketsphinx]", "metrics": "rating[uro-rounds],dnsmos_ovrl"}
    built, questions = run("uro-bench-mtbencheval-en", target, tmp_path, overrides=overrides, sound=few_words)
    requests = [q for q in questions if q.problem is None]
    by_name = {e.question.id: e for e in exchanges(built) if e.answer.status == "ok"}
    assert {len(q.fields["audio"]) for q in requests} == {2, 3, 4, 5} and list(by_name) == [q.id for q in requests]
    for q in requests:
        read, rounds = by_name[q.id].reading, len(q.fields["audio"])
        assert len(by_name[q.id].turns) == len(read.turns) == rounds - 1
        assert read.transcript and set(read.turns) == {read.transcript}, "every answer is the same recording"
        assert by_name[q.id].answer.usage == {"output_tokens": 3 * rounds}
    for name, value in (("rating[uro-rounds]", 5), ("dnsmos_ovrl", None)):
        scores = [s.value for s in built.scores("perfect", name) if s.status == "ok"]
        assert len(scores) == len(requests) and scores == pytest.approx([value or scores[0]] * len(scores))


def test_a_role_is_played_over_rounds_and_recognised_as_a_whole(target, tmp_path, embedded_clip):
    built, questions = run("speech-role-multi", target, tmp_path, sound=embedded_clip.audio)
    requests = [q for q in questions if q.problem is None]
    by_name = {e.question.id: e for e in exchanges(built) if e.answer.status == "ok"}
    assert {len(q.fields["audio"]) for q in requests} == {2, 3, 4} and list(by_name) == [q.id for q in requests]
    for q in requests:
        turns = by_name[q.id].turns
        assert len(turns) == len(q.fields["audio"]) - 1 and all(path is not None for _, path in turns)
    scores = {s.id: s for s in built.scores("perfect", "rating[speech-role]") if s.status == "ok"}
    assert {id: s.value for id, s in scores.items()} == {
        q.id: len(q.fields["audio"]) for q in requests
    }  # its transcript
    assert {len(s.detail["verdicts"]) for s in scores.values()} == {8}


def test_the_emotion_that_is_recognised_in_spoken_answers_counts(target, tmp_path, monkeypatch):
    """The network was trained on each voice; every answer is spoken with the same
    words and in a sad voice.
    """
    weights, modules = tmp_path / "weights", tmp_path / "modules"
    (weights / "emotion2vec-plus-large").mkdir(parents=True)
    modules.mkdir()
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(weights))
    planted_sounds.teach_emotion2vec(write_emotion2vec(weights / "emotion2vec-plus-large"))
    taught = {"emotion2vec-plus-large": "tiny_speech:SmallEmotion2vec"}
    (modules / "sitecustomize.py").write_text(
        f"from codec_bench.features import REGISTRY\nREGISTRY.built_in.update({taught})\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(modules), str(Path(miniature.__file__).parent)]))
    monkeypatch.setitem(REGISTRY.built_in, *taught.popitem())
    soundfile.write(tmp_path / "sad.wav", planted_sounds.voice("sad", 5), 16_000, subtype="FLOAT")
    rules = "said_with_emotion,said_with_emotion[official/uro-bench]"
    overrides = {"metrics": rules, "primary": "said_with_emotion", "postprocess": "first-line"}
    built, questions = run(
        "uro-bench-genemotion-en", target, tmp_path, overrides=overrides, sound=str(tmp_path / "sad.wav")
    )
    assert list(built.metrics) == rules.split(",")
    requests = {q.id: q.fields["emotion"] for q in questions}
    for name in rules.split(","):
        scores = {s.id: s for s in built.scores("perfect", name)}
        right = {one: score.value > 0.9 for one, score in scores.items() if score.status == "ok"}
        assert len(right) >= 4 and right == {one: requests[one] == "sad" for one in right}
        assert all(scores[q.id].status != "ok" for q in questions if q.problem is not None)


@pytest.fixture(scope="module")
def codec_runs(target, tmp_path_factory):
    """A function for the runs of all benchmarks of codecs, made at its first call."""

    @cache
    def run_all():
        return run_codecs(
            benchmark=CODECS, codec="unprocessed,opus-12k", data=target / "mirror",
            out=tmp_path_factory.mktemp("codecs"), page=False, cache=False, workers=1, by="duration",
            options={name: {"metrics": "stft_distance,bitrate", "primary": "stft_distance"} for name in CODECS},
        )  # fmt: skip

    return run_all


@pytest.mark.parametrize("name", CODECS)
def test_a_benchmark_of_codecs_runs(name, target, codec_runs):
    outcome = codec_runs()
    every = json.loads((outcome.folder / "summary.json").read_text())["benchmarks"]
    rows = [row for row in every if row["benchmark"] == name]
    assert [row["model"] for row in rows] == ["unprocessed", "opus-12k"]
    assert outcome.runs[name, "opus-12k"].meta["benchmark"]["name"] == name
    questions = list(load_benchmark(name).questions(mirror=target / "mirror"))
    good = sum(q.problem is None for q in questions)
    for row in rows:
        entry = row["metrics"]["stft_distance"]
        assert (entry["n"], entry["n"] + entry["failed"]) == (good, len(questions))
        assert sum(group["n"] for group in entry["subsets"]["duration"].values()) == good
    speakers = {q.id: q.speaker for q in questions}
    assert {s.id: s.speaker for s in outcome.runs[name, "opus-12k"].samples()} == speakers
    named = load_benchmark(name).data.speaker is not None
    assert len(set(speakers.values())) == (3 if named else 1) and None in speakers.values()


@pytest.fixture(scope="session")
def embedded_clip():
    from codec_bench.data import open_source

    return min(open_source("embedded"), key=lambda s: (len(s.text), s.id))


@pytest.fixture(scope="session")
def few_words(embedded_clip, tmp_path_factory):
    """The first second of a clip."""
    path = tmp_path_factory.mktemp("words") / "words.wav"
    samples, rate_hz = soundfile.read(embedded_clip.audio)
    soundfile.write(path, samples[:rate_hz], rate_hz)
    return str(path)
