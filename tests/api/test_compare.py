"""Runs of models are compared on one benchmark, under names that tell them apart."""

import pytest
from refusals import refuses

from codec_bench.api.compare import compare
from codec_bench.benchmark.reading import steps_on
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.metrics import build_metric
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score


def recorded(folder, benchmark, values, *, aggregate="mean", counts=None, protocol="m/1", fingerprint=None):
    writer = RunWriter(folder, fingerprint or {})
    facts = {"m": {"protocol": protocol, "unit": "", "higher_is_better": True, "aggregate": aggregate}}
    writer.begin({"echo": {}}, facts, [Sample(f"s{k}", None) for k in range(len(values))])
    detail = [{"counts": counts[k]} if counts else {} for k in range(len(values))]
    items = [
        (k, ItemRecord("echo", f"s{k}", "ok", None, {"m": Score.ok(value, protocol, detail=detail[k])}))
        for k, value in enumerate(values)
    ]
    writer.write(items)
    writer.set_meta(benchmark={"name": benchmark}, config={"seed": 0})
    writer.close()
    return folder


def test_runs_of_two_benchmarks_are_not_compared(tmp_path):
    runs = [recorded(tmp_path / name / "echo", name, [1.0, 0.0]) for name in ("capitals", "rivers")]
    with refuses("runs_of_two_benchmarks", one="capitals", other="rivers"):
        compare(runs=runs)


def test_values_of_two_precisions_are_not_compared(tmp_path):
    ids = [build_metric("sim").protocol, build_metric("sim@float16").protocol]
    runs = [recorded(tmp_path / str(k), "capitals", [1.0, 0.0], protocol=id) for k, id in enumerate(ids)]
    with refuses(
        "protocols_differ",
        one="sim/wavlm-large-sv/seed-tts-eval",
        other="sim/wavlm-large-sv/seed-tts-eval/float16-weights",
    ):
        compare(runs=runs)


def test_answers_that_were_transcribed_in_two_precisions_are_not_compared(tmp_path):
    runs = []
    for gpu in (False, True):
        scheme = Scheme.of(steps_on(["transcript[ultraeval-audio]"], gpu=gpu), {"accuracy[exact]": None})
        runs.append(recorded(tmp_path / str(gpu), "b", [1.0, 0.0], fingerprint={"scored": scheme.identity()}))
    with refuses(
        "recognisers_differ",
        protocols="transcript/whisper-large-v3/greedy/30s, transcript/whisper-large-v3/greedy/30s/float16",
    ):
        compare(runs=runs)


def test_two_runs_of_one_model_are_distinguished(tmp_path):
    runs = [recorded(tmp_path / name / "capitals" / "echo", "capitals", [1.0, 0.0]) for name in ("monday", "friday")]
    (pair,) = compare(runs=runs)
    assert (pair.a, pair.b) == ("monday/capitals/echo/echo", "friday/capitals/echo/echo")


def test_a_corpus_metric_is_compared_by_its_own_fold(tmp_path):
    import sacrebleu

    message = (["the cat sat on the mat", "a dog ran far away"], ["the cat sat on a mat", "the dog ran far away now"])
    expected = ["the cat sat on the mat", "a dog ran very far away"]
    runs = []
    for name, texts in zip(("one", "two"), message):
        stats = [sacrebleu.corpus_bleu([text], [[reference]]) for text, reference in zip(texts, expected)]
        counts = [[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in stats]
        runs.append(recorded(tmp_path / name, "b", [s.score for s in stats], aggregate="bleu", counts=counts))
    (pair,) = compare(runs=runs)
    (result,) = pair.comparisons
    assert result.value_a == pytest.approx(sacrebleu.corpus_bleu(message[0], [expected]).score, rel=1e-12)
    assert result.value_b == pytest.approx(sacrebleu.corpus_bleu(message[1], [expected]).score, rel=1e-12)
    assert result.test.difference == pytest.approx(result.value_a - result.value_b)
