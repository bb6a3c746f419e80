"""Gates: baselines, calibration, verdicts, limits, what is refused, and the files that are written."""

from __future__ import annotations

import json
import math
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
from refusals import refuses
from scipy import stats
from scipy.signal import resample_poly

from codec_bench import Audio, gate_calibrate, gate_check, gate_freeze, load_metric
from codec_bench.apps.gating.page import write_page
from codec_bench.apps.gating.repeats import PairedRuns, measure_loss, measure_spread
from codec_bench.apps.gating.verdicts import GateSpec, MetricSpec
from codec_bench.apps.gating.words import check_notes, junit_xml, markdown
from codec_bench.codecs.adapt import reconstruct
from codec_bench.codecs.classical.opus import Opus
from codec_bench.data import open_source
from codec_bench.messages.errors import UserError
from codec_bench.stats.intervals import ratios
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FACTS = {
    "mos": {"protocol": "mos/1", "unit": "", "higher_is_better": True, "aggregate": "mean"},
    "wer": {"protocol": "wer/1", "unit": "%", "higher_is_better": False, "aggregate": "ratio", "bounds": [0, None]},
}
WORDS = 20


def write_run(
    folder,
    mos,
    errors=None,
    *,
    speakers=None,
    protocol="mos/1",
    state="finished",
    texts=None,
    system="tts",
    finished=None,
):
    """A run with a mean score, and error rates of 20 words if `errors` are given. NaN is an item without an output."""
    facts = {name: dict(one) for name, one in FACTS.items() if name == "mos" or errors is not None}
    facts["mos"]["protocol"] = protocol
    samples = [
        Sample(f"s{n:03d}", None, text=texts[n] if texts else f"sentence {n}", speaker=speakers and speakers[n])
        for n in range(len(mos))
    ]
    writer = RunWriter(folder, {"of": "a test"})
    writer.begin({system: {}}, facts, samples)
    rows = []
    for n, sample in enumerate(samples[:finished]):
        if math.isnan(mos[n]):
            rows.append((n, ItemRecord(system, sample.id, "failed", "no output", {})))
            continue
        scores = {"mos": Score.ok(float(mos[n]), protocol)}
        if errors is not None:
            scores["wer"] = Score.ok(
                errors[n] / WORDS, "wer/1", numerator=float(errors[n]), denominator=float(WORDS),
                detail={"hypothesis": f"heard {errors[n]} @all <b>|"},
            )  # fmt: skip
        rows.append((n, ItemRecord(system, sample.id, "ok", None, scores)))
    writer.write(rows)
    writer.set_meta(state=state, config={"seed": 0}, data={"name": "made"})
    writer.close()
    return folder


@pytest.fixture
def repeats(tmp_path):
    """Three repeats of a system over 60 items, and what draws another one with a loss."""
    rng = np.random.default_rng(3)
    base = rng.normal(4.0, 0.4, 60)

    def draw(name, loss=0.0, **more):
        errors = rng.binomial(WORDS, 0.1 + loss, 60)
        return write_run(tmp_path / name, base - loss + rng.normal(0, 0.1, 60), errors, **more)

    return [draw(f"r{n}") for n in range(3)], draw


def test_an_unchanged_system_passes_and_a_worse_one_does_not(repeats, tmp_path):
    runs, draw = repeats
    frozen = gate_freeze(runs, out=tmp_path / "b.parquet")
    assert (frozen.system, frozen.items, frozen.repeats, frozen.metrics) == ("tts", 60, 3, ("mos", "wer"))
    result = gate_calibrate(frozen.file, out=tmp_path / "gate.yaml")
    assert result.metrics["mos"].margin >= result.metrics["mos"].detectable > 0
    same = gate_check(draw("same"), against=frozen.file, spec=tmp_path / "gate.yaml")
    assert [one.verdict for one in same.metrics] == ["same", "same"] and same.exit_code == 0
    loss = 3 * result.metrics["mos"].margin
    worse = gate_check(draw("worse", loss), against=frozen.file, spec=tmp_path / "gate.yaml")
    assert {one.metric: one.verdict for one in worse.metrics}["mos"] == "worse" and worse.exit_code == 1
    better = gate_check(draw("better", -0.09), against=frozen.file)
    assert [one.verdict for one in better.metrics] == ["better", "better"]


def test_the_interval_is_that_of_the_paired_t_test():
    rng = np.random.default_rng(0)
    before, after = rng.normal(4, 1, 40), rng.normal(3.9, 1, 40)
    parts = [np.stack([values, np.ones(40)], axis=1) for values in (before, after)]
    runs = PairedRuns(ratios, parts[:1], parts[1:], None, higher_is_better=True)
    measured = measure_loss(runs, margin=0.0, level=0.98)
    theirs = stats.ttest_rel(before, after, alternative="greater")
    low, high = stats.ttest_rel(before, after).confidence_interval(0.98)
    assert (measured.low, measured.high) == pytest.approx((low, high), abs=1e-9)
    assert measured.p == pytest.approx(theirs.pvalue, abs=1e-6)
    shifted = measure_loss(runs, margin=-0.2, level=0.98)
    assert shifted.p == pytest.approx(stats.ttest_rel(before, after - 0.2, alternative="greater").pvalue, abs=1e-6)


def test_the_spread_is_that_of_a_two_way_analysis_of_variance():
    rng = np.random.default_rng(1)
    items, runs = 400, 6
    table = rng.normal(size=(1, items)) + 0.3 * rng.normal(size=(runs, items)) + 0.2 * rng.normal(size=(runs, 1))
    measured = measure_spread(ratios, [np.stack([row, np.ones(items)], axis=1) for row in table], None)
    residual = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    mean_square = (residual**2).sum() / ((runs - 1) * (items - 1))
    assert measured.noise**2 == pytest.approx(mean_square / items, rel=1e-6)
    assert measured.repeats == pytest.approx(table.mean(axis=1).std(ddof=1))
    assert measured.items == pytest.approx(stats.sem(table[0]))


def test_the_detectable_regression_is_that_of_the_t_test():
    rng = np.random.default_rng(2)
    table = rng.normal(size=(1, 80)) + 0.3 * rng.normal(size=(3, 80))
    spread = measure_spread(ratios, [np.stack([row, np.ones(80)], axis=1) for row in table], None)
    size, error = spread.detectable(0.98, 0.8), math.sqrt(1 + 1 / 3)
    reach = max(stats.t.ppf(0.99, 79) * spread.noise, stats.t.ppf(0.99, 2) * spread.repeats) * error
    power = stats.t.cdf((size - reach) / (max(spread.noise, spread.repeats) * error), 2)
    assert power == pytest.approx(0.8, abs=1e-6)
    assert spread.detectable(0.98, 0.8, items=4) < size and spread.detectable(0.98, 0.8, repeats=10) < size


def draw_shifted(rng, runs, shift):
    """Runs over 40 items of one difficulty, each with a shift of its own: parts `(items, 2)`."""
    hard = rng.normal(size=40)
    values = hard + shift * rng.normal(size=(runs, 1)) + 0.3 * rng.normal(size=(runs, 40))
    return [np.stack([row, np.ones(40)], axis=1) for row in values]


@pytest.mark.parametrize(("baseline", "candidates"), [(2, 1), (4, 1), (3, 3), (1, 3)])
def test_runs_that_share_a_shift_have_the_t_interval_over_runs(rng, baseline, candidates):
    runs = draw_shifted(rng, baseline + candidates, 1.0)
    before, after = runs[:baseline], runs[baseline:]
    result = PairedRuns(ratios, before, after, None, higher_is_better=True).interval(0.98)
    values = [[run[:, 0].mean() for run in group] for group in (before, after)]
    theirs = stats.ttest_ind(*values).confidence_interval(0.98)
    assert result.by_runs and (result.low, result.high) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize("shift", [0.05, 0.2])
@pytest.mark.parametrize("repeats", [2, 4])
def test_false_alarms_are_rare_whatever_shift_runs_share(rng, repeats, shift):
    """At most 5 % of 400 checks."""
    alarms = 0
    for _ in range(400):
        *baseline, run = draw_shifted(rng, repeats + 1, shift)
        alarms += PairedRuns(ratios, baseline, [run], None, higher_is_better=True).interval(0.90).low > 0
    assert stats.binomtest(alarms, 400, 0.05, alternative="greater").pvalue > 1e-3


def test_one_run_says_that_the_spread_is_unknown(repeats, tmp_path):
    runs, _ = repeats
    gate_freeze(runs[0], out=tmp_path / "b.parquet")
    result = gate_calibrate(tmp_path / "b.parquet")
    assert result.metrics["mos"].detectable is None and result.metrics["mos"].margin == 0
    assert result.repeats == 1 and result.metrics["mos"].spread.repeats is None
    (tmp_path / "gate.yaml").write_text("alpha: 0.02")
    with refuses("file_exists"):
        gate_calibrate(tmp_path / "b.parquet", out=tmp_path / "gate.yaml")


def test_a_run_equal_to_its_baseline_is_the_same(repeats, tmp_path):
    runs, _ = repeats
    gate_freeze(runs[0], out=tmp_path / "b.parquet")
    result = gate_check(runs[0], against=tmp_path / "b.parquet")
    assert [(one.verdict, one.loss.loss, one.loss.high) for one in result.metrics] == [("same", 0.0, 0.0)] * 2


def test_speakers_are_units_where_there_are_six(tmp_path):
    rng = np.random.default_rng(5)
    values = rng.normal(4, 0.3, 60)
    moved = values - np.repeat(rng.normal(0.05, 0.1, 6), 10)
    for many, units in ((6, 6), (3, 60)):
        speakers = [f"p{n * many // 60}" for n in range(60)]
        gate_freeze(write_run(tmp_path / f"a{many}", values, speakers=speakers), out=tmp_path / "b.parquet")
        result = gate_check(write_run(tmp_path / f"b{many}", moved, speakers=speakers), against=tmp_path / "b.parquet")
        assert result.metrics[0].loss.units == units
        assert result.metrics[0].few_speakers == (many < 6)


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        (MetricSpec(max=3.0, margin=9), "max"),
        (MetricSpec(min=4.9, margin=9), "min"),
    ],
)
def test_limits_of_a_metric(repeats, tmp_path, limit, code):
    runs, _ = repeats
    gate_freeze(runs[:2], out=tmp_path / "b.parquet")
    result = gate_check(runs[2], against=tmp_path / "b.parquet", spec=GateSpec(metrics={"mos": limit}))
    broken = [check for check in result.limits if not check.passed]
    assert [(check.code, check.metric) for check in broken] == [(code, "mos")] and result.exit_code == 1


def test_items_with_a_rate_above_half_are_counted(tmp_path):
    values, errors = np.linspace(3, 4, 30), [2] * 27 + [15] * 3
    run = write_run(tmp_path / "a", values, errors)
    file = gate_freeze(run, out=tmp_path / "b.parquet").file
    for most, code in ((3, 0), (2, 1)):
        spec = GateSpec(metrics={"wer": MetricSpec(items_above_50=most)})
        assert gate_check(run, against=file, spec=spec).exit_code == code
    with refuses("not_an_error_rate"):
        gate_check(run, against=file, spec=GateSpec(metrics={"mos": MetricSpec(items_above_50=1)}))


def test_items_that_fail_are_a_regression(tmp_path):
    values = np.linspace(3, 4, 30)
    gate_freeze(write_run(tmp_path / "a", values), out=tmp_path / "b.parquet")
    failing = values.copy()
    failing[[3, 7]] = math.nan
    result = gate_check(write_run(tmp_path / "c", failing), against=tmp_path / "b.parquet")
    assert result.metrics[0].lost == ("s003", "s007") and result.metrics[0].verdict == "same"
    assert {(check.code, check.metric) for check in result.limits if not check.passed} == {
        ("failed", None),
        ("failed", "mos"),
    }
    assert result.exit_code == 1
    spec = GateSpec.model_validate({"limits": {"failed": 2}, "metrics": {"mos": {"failed": 2}}})
    assert gate_check(tmp_path / "c", against=tmp_path / "b.parquet", spec=spec).exit_code == 0


def test_items_without_a_value_are_counted_whatever_their_status(tmp_path):
    values = np.linspace(3, 4, 30)
    gate_freeze(write_run(tmp_path / "a", values), out=tmp_path / "b.parquet")
    scores = [
        Score.ok(float(v), "mos/1") if n > 9 else Score.undefined("too short", "mos/1") for n, v in enumerate(values)
    ]
    writer = RunWriter(tmp_path / "c", {"of": "a test"})
    writer.begin(
        {"tts": {}}, {"mos": FACTS["mos"]}, [Sample(f"s{n:03d}", None, text=f"sentence {n}") for n in range(30)]
    )
    writer.write([(n, ItemRecord("tts", f"s{n:03d}", "ok", None, {"mos": one})) for n, one in enumerate(scores)])
    writer.set_meta(state="finished", config={"seed": 0}, data={"name": "made"})
    writer.close()
    result = gate_check(tmp_path / "c", against=tmp_path / "b.parquet")
    (broken,) = [check for check in result.limits if not check.passed]
    assert (broken.code, broken.metric, broken.value) == ("failed", "mos", 10) and result.exit_code == 1


def test_a_loss_that_equals_the_margin_is_no_regression(tmp_path):
    values = np.linspace(3, 4, 30)
    gate_freeze(write_run(tmp_path / "a", values), out=tmp_path / "b.parquet")
    run = write_run(tmp_path / "c", values - 0.1)
    for margin, verdict in ((0.1, "same"), (0.0999, "worse")):
        spec = GateSpec(metrics={"mos": MetricSpec(margin=margin)})
        assert gate_check(run, against=tmp_path / "b.parquet", spec=spec).metrics[0].verdict == verdict


def test_a_loss_within_the_spread_of_whole_runs_cannot_be_determined(tmp_path):
    """Over items each loss is certain, and the repeats differ as much."""
    values, rng = np.linspace(3, 4, 30), np.random.default_rng(6)
    draw = lambda name, shift: write_run(tmp_path / name, values + shift + 0.001 * rng.normal(size=30))  # noqa: E731
    gate_freeze([draw(f"r{n}", shift) for n, shift in enumerate((0.1, 0.0, -0.1))], out=tmp_path / "b.parquet")
    result = gate_check(draw("run", -0.3), against=tmp_path / "b.parquet")
    assert (
        result.metrics[0].verdict == "cannot_tell" and result.metrics[0].loss.by_runs and len(check_notes(result)) == 1
    )
    gate_freeze(tmp_path / "r0", out=tmp_path / "one.parquet")
    alone = gate_check(tmp_path / "run", against=tmp_path / "one.parquet")
    assert alone.metrics[0].verdict == "worse" and len(check_notes(alone)) == 1
    write_page(alone, tmp_path / "run", tmp_path / "p.html")
    assert "The baseline has one run" in (tmp_path / "p.html").read_text("utf-8")


def test_an_undecided_metric_fails_where_the_spec_says_so(repeats, tmp_path):
    runs, draw = repeats
    gate_freeze(runs, out=tmp_path / "b.parquet")
    run = draw("another")
    undecided = {"metrics": {"mos": {"margin": 0.0001}}}
    for policy, code in (("pass", 0), ("fail", 3)):
        spec = GateSpec.model_validate({**undecided, "cannot_tell": policy})
        result = gate_check(run, against=tmp_path / "b.parquet", spec=spec)
        assert (result.metrics[0].verdict, result.exit_code) == ("cannot_tell", code)


def test_what_cannot_be_compared_is_refused(repeats, tmp_path):
    runs, _ = repeats
    values = np.linspace(3, 4, 60)
    file = gate_freeze(runs, out=tmp_path / "b.parquet").file
    refused = {
        "other protocol": (
            write_run(
                tmp_path / "p",
                values,
                [1] * 60,
                protocol="mos/2",
            ),
            {"code": "run_of_other_protocol", "metric": "mos", "protocol": "mos/2"},
        ),
        "fewer items": (
            write_run(tmp_path / "f", values[:50], [1] * 50),
            {"code": "run_of_other_items", "difference": "lacks", "count": 10},
        ),
        "more items": (
            write_run(tmp_path / "m", [*values, 3.0], [1] * 61),
            {"code": "run_of_other_items", "difference": "adds", "count": 1},
        ),
        "other texts": (
            write_run(tmp_path / "t", values, [1] * 60, texts=["x"] * 60),
            {"code": "items_changed_since_baseline", "count": 60},
        ),
        "no error rate": (write_run(tmp_path / "n", values), {"code": "run_lacks_metric", "metric": "wer"}),
        "not complete": (
            write_run(tmp_path / "u", values, [1] * 60, state="running", finished=40),
            {"code": "run_incomplete", "finished": 40, "items": 60},
        ),
        "no run": (
            tmp_path / "nothing",
            {"code": "not_a_run_folder", "folder": "nothing"},
        ),
    }
    for name, (run, fragment) in refused.items():
        with refuses(**fragment):
            gate_check(run, against=file)
            pytest.fail(name)
    with refuses("run_named_twice"):
        gate_freeze([runs[0], runs[0]], out=tmp_path / "c.parquet")
    with refuses("run_of_other_system", expected="tts"):
        gate_freeze([runs[0], write_run(tmp_path / "o", values, [1] * 60, system="other")], out=tmp_path / "c.parquet")
    small = gate_freeze(write_run(tmp_path / "few", values[:5]), out=tmp_path / "few.parquet").file
    for call in (gate_calibrate, lambda file: gate_check(tmp_path / "few", against=file)):
        with refuses("too_few_items_for_gate", count=5):
            call(small)


def test_a_baseline_that_is_not_whole_is_refused(repeats, tmp_path):
    runs, _ = repeats
    file = gate_freeze(runs, out=tmp_path / "b.parquet").file
    complete = file.read_bytes()
    for cut in (0, 10, len(complete) // 2, len(complete) - 1):
        file.write_bytes(complete[:cut])
        with refuses("baseline_not_parquet", path="b.parquet"):
            gate_calibrate(file)
    file.write_bytes(complete)
    table = pq.read_table(file)
    values = table.column("value").to_pylist()
    changed = table.set_column(
        table.schema.get_field_index("value"), "value", [[values[0] + 0.5, *values[1:]]]
    ).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, file)
    with refuses("baseline_changed"):
        gate_calibrate(file)
    pq.write_table(table.replace_schema_metadata({}), file)
    with refuses("not_a_gate_baseline"):
        gate_calibrate(file)


@pytest.mark.parametrize(
    "document",
    ["alpha: 2", "metrics: {mos: {margin: -1}}", "metrics: {moss: {}}", "margins: {}", "[", "a", "schema: 2"],
)
def test_a_wrong_spec_is_refused(repeats, tmp_path, document):
    runs, _ = repeats
    gate_freeze(runs[0], out=tmp_path / "b.parquet")
    (tmp_path / "gate.yaml").write_text(document)
    with pytest.raises(UserError):
        gate_check(runs[1], against=tmp_path / "b.parquet", spec=tmp_path / "gate.yaml")


def test_files_for_continuous_integration(repeats, tmp_path):
    runs, draw = repeats
    gate_freeze(runs, out=tmp_path / "b.parquet")
    result = gate_check(draw("worse", 0.4), against=tmp_path / "b.parquet")
    suite = ElementTree.fromstring(junit_xml(result))
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {"mos", "wer"} and suite.get("failures") == "2"
    assert int(suite.get("tests")) == len(result.metrics) + len(result.limits) == len(suite)
    text = markdown(result)
    table = [line for line in text.splitlines() if line.startswith("| s")]
    assert len(table) == 20 and "<b>" not in text and "@all" not in text


def test_the_command_line(repeats, tmp_path, cli, command):
    runs, draw = repeats
    worse = draw("worse", 0.4)
    code, out, err = command("gate", "freeze", *runs, "--out", "b.parquet", "--json")
    assert code == 0 and json.loads(out)["repeats"] == 3, err
    assert command("gate", "calibrate", "b.parquet", "--out", "gate.yaml")[0] == 0
    options = ("--against", "b.parquet", "--spec", "gate.yaml", "--json")
    code, out, _ = command(
        "gate", "check", runs[0], *options, "--junit", "j.xml", "--markdown", "m.md", "--page", "p.html"
    )
    assert code == 0 and json.loads(out)["passed"]
    assert all((tmp_path / name).is_file() for name in ("j.xml", "m.md", "p.html"))
    code, out, _ = cli("gate", "check", worse, *options)
    assert code == 1 and json.loads(out)["regressed"]
    code, out, err = command("gate", "check", worse, "--against", "nothing.parquet")
    assert (code, out) == (2, "") and "nothing.parquet" in err


def test_the_fixture_of_pytest(repeats, tmp_path):
    from codec_bench.apps.gating.pytest_plugin import Gate

    runs, draw = repeats
    gate_freeze(runs, out=tmp_path / "b.parquet")
    assert Gate().check(runs[0], tmp_path / "b.parquet").passed
    with pytest.raises(pytest.fail.Exception):
        Gate().check(draw("worse", 0.4), tmp_path / "b.parquet")


# ---- real systems ----


class ResampledOpus(Opus):
    """Opus after another resampler than ours, to 48 kHz and back."""

    def encode(self, batch):
        there = [resample_poly(audio.samples, 3, 1, axis=1) for audio in batch]
        back = [resample_poly(one, 1, 3, axis=1).astype(np.float32) for one in there]
        return super().encode([Audio(x[:, : a.num_samples], a.sample_rate_hz) for x, a in zip(back, batch)])


def test_opus_at_11k_is_worse_and_another_resampler_is_not(tmp_path):
    clips = [Audio.read(one.audio) for one in open_source("embedded")][::2]
    clips = [Audio(one.samples[:, : 2 * one.sample_rate_hz], one.sample_rate_hz) for one in clips]
    metric = load_metric("stoi", device="cpu")

    def run(name, codec):
        estimates = [item.estimate for item in reconstruct(codec, clips).items]
        return write_run(tmp_path / name, [one["stoi"].value for one in metric(estimate=estimates, reference=clips)])

    frozen = gate_freeze(run("opus", Opus(12_000)), out=tmp_path / "b.parquet").file
    assert gate_check(run("less", Opus(11_000)), against=frozen).metrics[0].verdict == "worse"
    assert gate_check(run("resampled", ResampledOpus(12_000)), against=frozen).exit_code == 0


@pytest.mark.parametrize("voice", ["awb", "rms", "slt"])
def test_a_voice_with_another_seed_passes_and_with_more_noise_does_not(voice, tmp_path):
    clips = [Audio.read(one.audio) for one in open_source("embedded") if one.speaker == voice]
    metric = load_metric("stoi", device="cpu")

    def run(name, seed, level=0.01):
        rng = np.random.default_rng(seed)
        noisy = [Audio(c.samples + rng.normal(0, level, c.samples.shape).astype(np.float32), 16_000) for c in clips]
        return write_run(tmp_path / name, [one["stoi"].value for one in metric(estimate=noisy, reference=clips)])

    frozen = gate_freeze([run(f"seed{seed}", seed) for seed in range(3)], out=tmp_path / "b.parquet").file
    gate_calibrate(frozen, out=tmp_path / "gate.yaml")
    for spec in (None, tmp_path / "gate.yaml"):
        assert gate_check(tmp_path / "seed2", against=frozen, spec=spec).exit_code == 0
    assert gate_check(run("seed3", 3), against=frozen, spec=tmp_path / "gate.yaml").exit_code == 0
    assert gate_check(run("louder", 4, 0.02), against=frozen, spec=tmp_path / "gate.yaml").exit_code == 1


def test_a_model_that_answers_two_percent_worse_is_detected(tmp_path):
    rng = np.random.default_rng(5)
    right = (rng.random(500) < 0.9).astype(float)
    worse = right.copy()
    worse[rng.choice(np.flatnonzero(right), 10, replace=False)] = 0
    frozen = gate_freeze(write_run(tmp_path / "base", right), out=tmp_path / "b.parquet").file
    assert gate_check(write_run(tmp_path / "again", right), against=frozen).exit_code == 0
    (result,) = gate_check(write_run(tmp_path / "worse", worse), against=frozen).metrics
    assert (result.verdict, result.loss.method) == ("worse", "mcnemar") and result.loss.loss == pytest.approx(0.02)
