"""Every benchmark from end to end on a miniature of its data: a perfect model, a judge, the record, the scores."""

from __future__ import annotations

import json
import os
from pathlib import Path

import miniature
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

MODELS = '''
import json, os
from codec_bench.audio.clip import Clip
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response

class Perfect(Model):
    """Knows every answer, and says or writes it."""

    concurrency = 8
    identity = {"model": "perfect"}

    def __init__(self, info=None, speaks=False, sound=None):
        self.info = ModelInfo("perfect", outputs=("text", "audio"), reads="fields" if speaks else "messages")
        self.sound = sound

    async def start(self):
        self.known = json.load(open(os.environ["RIGHT_ANSWERS"]))

    async def ask(self, request):
        audio = Clip(self.sound).read() if self.sound and request.wants == "audio" else None
        if request.wants == "audio" and audio is None:
            audio = Audio([0.1, -0.1] * 800, 16000)
        return Response(text=self.known[request.id.partition(" (round ")[0]], audio=audio, usage={"output_tokens": 3})

    def log_likelihood(self, request):
        return -1.5 if request.id.endswith("/preferred") else -2.0

class Judge(Model):
    """Gives everything the best verdict there is, in the form that the rubric asks for."""

    concurrency = 8
    info = ModelInfo("judge")
    identity = {"model": "judge"}

    async def ask(self, request):
        if not request.messages:  # as a model of embeddings
            likeness = [float(text == request.fields["text"]) for text in request.fields["texts"]]
            return Response(text=json.dumps({"similarities": likeness}))
        *heard, asked = request.messages[-1].content
        if "Yes or No" in asked or "Yes if the criterion is met" in asked:
            return Response(text="Yes")
        if "The recordings are its answers" in asked:
            return Response(text=str(sum(isinstance(one, Clip) for one in heard)))
        if "Reply with a JSON list alone" in asked:
            return Response(text='[{"name": "Names the sound", "score": 1, "justification": "It does."}]')
        if "Decide whether the answer gives the same" in asked or "Decide about the content alone" in asked:
            return Response(text="It is the same. Rating: 1")
        if "two answers" in asked or "second answer" in asked or "that of the second" in asked:
            return Response(text="10 10")
        return Response(text="Very good. [[10]]" if "[[5]]" in asked else "5")
'''
NAMES = [name for name in benchmark_names() if not miniature.like_another(name)]
CODECS = [name for name in NAMES if miniature.load(name).kind == "codec"]
REQUESTS = [name for name in NAMES if name not in CODECS]


def one_of_each(names):
    """Few benchmarks that have every prompt, layout, step, metric and language.

    Those that differ in their columns alone are read, asked and scored in test_benchmarks.py.
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


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    folder = tmp_path_factory.mktemp("runs")
    for name in NAMES:
        miniature.build(name, folder / "mirror")
    (folder / "models.py").write_text(MODELS)
    with miniature.layouts_read_once():
        yield folder


def run(name, target, tmp_path, monkeypatch, *, speaks=False, phase="both", overrides=None, sound=None):
    """Runs one benchmark with the perfect model; returns the run."""
    benchmark = load_benchmark(name, overrides)
    prompt = benchmark.prompt_for(ModelInfo("perfect", reads="fields" if speaks else "messages"))
    questions = list(benchmark.questions(mirror=target / "mirror"))
    right = {q.id: miniature.right_answer(q, prompt) for q in questions if q.problem is None}
    (tmp_path / "right.json").write_text(json.dumps(right))
    monkeypatch.setenv("RIGHT_ANSWERS", str(tmp_path / "right.json"))
    model = f"{target / 'models.py'}:Perfect"
    judge = f"{target / 'models.py'}:Judge" if any(map(is_judge_metric, benchmark.metrics)) else None
    outcome = run_benchmark(
        benchmark=name, model=model, judge=judge, phase=phase, data=target / "mirror", out=tmp_path / "out", page=False,
        cache=False,
        options={model: {"speaks": speaks, "sound": sound}, **({name: overrides} if overrides else {})}, workers=1,
    )  # fmt: skip
    built = outcome.runs[name, "perfect"]
    every = list(exchanges(built))
    assert [e.question.id for e in every] == [q.id for q in questions]
    for exchange, question in zip(every, questions):
        assert (exchange.answer.status == "ok") is (question.problem is None), exchange.answer.reason
        assert exchange.answer.status == "ok" or exchange.answer.reason == question.problem
    return built, questions, outcome


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


@pytest.mark.parametrize("name", one_of_each([name for name in REQUESTS if name not in SPOKEN and name != "mmau-test"]))
def test_a_benchmark_runs_from_end_to_end(name, target, tmp_path, monkeypatch):
    overrides = as_it_can_be_scored(name)
    built, questions, outcome = run(name, target, tmp_path, monkeypatch, overrides=overrides)
    benchmark = load_benchmark(name, overrides)
    (row,) = json.loads((outcome.folder / "summary.json").read_text())["benchmarks"]
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


@pytest.mark.parametrize("name", one_of_each(SPOKEN))
def test_a_spoken_benchmark_is_queried(name, target, tmp_path, monkeypatch):
    # Its recognisers and speaker networks are checkpoints; two of these benchmarks are scored below with embedded ones.
    benchmark = load_benchmark(name)
    built, _, _ = run(name, target, tmp_path, monkeypatch, speaks=benchmark.kind == "generation", phase="answers")
    spoken = [e for e in exchanges(built) if e.answer.status == "ok"]
    assert spoken and all(e.answer_path.is_file() for e in spoken)


def test_cloned_voices_are_scored(target, tmp_path, monkeypatch, embedded_clip):
    overrides = {"metrics": "wer[pocketsphinx],sim[ge2e]", "primary": "wer[pocketsphinx]"}
    built, questions, _ = run(
        "seed-tts-eval-en", target, tmp_path, monkeypatch, speaks=True, overrides=overrides, sound=embedded_clip.audio
    )
    assert set(built.metrics) == {"wer[pocketsphinx]", "sim[ge2e]"}
    good = [q for q in questions if q.problem is None]
    wer = list(built.scores("perfect", "wer[pocketsphinx]"))
    assert len(wer) == len(questions) and sum(s.status == "ok" for s in wer) == len(good)
    # The recording does not contain the words that were asked for, and the recogniser hears its words.
    assert all(s.value > 0.5 for s in wer if s.status == "ok")
    assert all(
        len(set(s.detail["hypothesis"].split()) & set(embedded_clip.text.lower().split())) >= 2
        for s in wer
        if s.status == "ok"
    )


def test_spoken_answers_are_transcribed_and_read(target, tmp_path, monkeypatch, embedded_clip):
    overrides = {
        "postprocess": "transcript[pocketsphinx]",
        "metrics": "accuracy[contains]",
        "primary": "accuracy[contains]",
    }
    built, questions, _ = run(
        "llama-questions", target, tmp_path, monkeypatch, overrides=overrides, sound=embedded_clip.audio
    )
    transcript = [e.reading.transcript for e in exchanges(built) if e.answer.status == "ok"]
    assert len(transcript) == sum(q.problem is None for q in questions) and all(transcript)
    assert {s.value for s in built.scores("perfect", "accuracy[contains]") if s.status == "ok"} == {0.0}
    assert "transcript[pocketsphinx]" not in built.metrics


def test_a_conversation_in_rounds_is_judged_as_a_whole(target, tmp_path, monkeypatch, few_words):
    overrides = {"postprocess": "transcript[pocketsphinx]", "metrics": "rating[uro-rounds],dnsmos_ovrl"}
    built, questions, _ = run(
        "uro-bench-mtbencheval-en", target, tmp_path, monkeypatch, overrides=overrides, sound=few_words
    )
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


def test_a_role_is_played_over_rounds_and_recognised_as_a_whole(target, tmp_path, monkeypatch, embedded_clip):
    built, questions, _ = run("speech-role-multi", target, tmp_path, monkeypatch, sound=embedded_clip.audio)
    requests = [q for q in questions if q.problem is None]
    by_name = {e.question.id: e for e in exchanges(built) if e.answer.status == "ok"}
    assert {len(q.fields["audio"]) for q in requests} == {2, 3, 4} and list(by_name) == [q.id for q in requests]
    for q in requests:
        turns = by_name[q.id].turns
        assert len(turns) == len(q.fields["audio"]) - 1 and all(path is not None for _, path in turns)
    scores = {s.id: s for s in built.scores("perfect", "rating[speech-role]") if s.status == "ok"}
    assert {id: s.value for id, s in scores.items()} == {
        q.id: len(q.fields["audio"]) for q in requests
    }  # what it heard
    assert {len(s.detail["verdicts"]) for s in scores.values()} == {8}


def test_the_emotion_that_is_recognised_in_spoken_answers_counts(target, tmp_path, monkeypatch):
    """The network was taught what each voice sounds like; every answer is said with the same
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
    built, questions, _ = run(
        "uro-bench-genemotion-en", target, tmp_path, monkeypatch, overrides=overrides, sound=str(tmp_path / "sad.wav")
    )
    assert list(built.metrics) == rules.split(",")
    requests = {q.id: q.fields["emotion"] for q in questions}
    for name in rules.split(","):
        scores = {s.id: s for s in built.scores("perfect", name)}
        right = {one: score.value > 0.9 for one, score in scores.items() if score.status == "ok"}
        assert len(right) >= 4 and right == {one: requests[one] == "sad" for one in right}
        assert all(scores[q.id].status != "ok" for q in questions if q.problem is not None)


@pytest.mark.parametrize("name", CODECS)
def test_a_benchmark_of_codecs_runs(name, target, tmp_path):
    outcome = run_codecs(
        benchmark=name, codec="unprocessed,opus-12k", data=target / "mirror", out=tmp_path, page=False, cache=False,
        workers=1,
        options={name: {"metrics": "stft_distance,bitrate", "primary": "stft_distance"}}, by="duration",
    )  # fmt: skip
    rows = json.loads((tmp_path / "summary.json").read_text())["benchmarks"]
    assert [(row["benchmark"], row["model"]) for row in rows] == [(name, "unprocessed"), (name, "opus-12k")]
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
