"""The exported table: every aggregate of a run comes out of its CSV, numbers read back
exactly, and no item is missing.
"""

from __future__ import annotations

import csv
import errno
import importlib.util
import io
import json
import math
import os
import struct
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import soundfile
from refusals import refuses

import codec_bench
from codec_bench.audio.clip import wav_bytes
from codec_bench.report.open_run import Run
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading
from codec_bench.store.export import COLUMNS, export_run, without_apostrophe, write_csv
from codec_bench.store.rows import NUMBERS, ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Audio, Sample, Score

CUSTOM_CODE = Path(__file__).parents[1] / "engine" / "assets" / "custom_code.py"
REQUESTED = (
    "system,id,metric,value,status,code,reason,protocol,numerator,denominator,speaker,language,duration_s,"
    "reference_duration_s,text,transcript,text_normalised,transcript_normalised,detail,extra,suspect,judge"
)
FACTS = {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}
HOSTILE = (
    "=1+1",
    "@a",
    "-x",
    "a\rb",
    "c\nd",
    'q"u,o"te',
    "tab\there",
    "'",
    "日本語 \u2028",
    "\tindented",
    " ",
    "'=1",
    "''@a",
    "''",
)


@pytest.fixture(scope="module")
def eval_run(tmp_path_factory) -> Run:
    """A run over embedded speech with a codec that fails for long items, and error rates."""
    from codec_bench import evaluate

    return evaluate(
        codec=f"unprocessed,{CUSTOM_CODE}:RaisesForLong", data="embedded",
        metrics="stoi,si_sdr,bitrate,wer[pocketsphinx]",
        limit=5, out=tmp_path_factory.mktemp("eval") / "run", cache=False, workers=1, page=False, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_an_alignment_has_the_edits_that_an_error_rate_counts(eval_run, tmp_path, form):
    path = tmp_path / f"x.{form}"
    codec_bench.export(eval_run, form=form, out=path, alignment=True)
    if form == "parquet":
        import pyarrow.parquet as pq

        rows = pq.read_table(path).to_pylist()
    else:
        lines = path.read_text("utf-8").splitlines()
        rows = list(csv.DictReader(lines)) if form == "csv" else [json.loads(line) for line in lines]
    assert len(rows) == sum(1 for _ in eval_run.rows())
    aligned = [row for row in rows if row["alignment"]]
    assert {row["metric"] for row in aligned} == {"wer[pocketsphinx]"}
    for row in aligned:
        edits = Counter()
        for operation, reference, estimate in json.loads(row["alignment"]):
            edits[operation] += len((reference or estimate).split())
        counts = json.loads(row["detail"])
        names = {"equal": "hits", "substitute": "substitutions", "delete": "deletions", "insert": "insertions"}
        assert {name: edits[operation] for operation, name in names.items()} == {n: counts[n] for n in names.values()}
    with refuses("option_of_format", options=["--alignment"]):
        codec_bench.export(eval_run, form="csv", summary=True, alignment=True)


@pytest.fixture(scope="module")
def score_run(tmp_path_factory) -> Run:
    """A run over audio that exists already, of which one file is broken."""
    from codec_bench import score
    from codec_bench.data import open_source

    folder = tmp_path_factory.mktemp("score")
    samples = list(open_source("embedded"))[:4]
    (folder / "generated").mkdir()
    for index, sample in enumerate(samples):
        built = folder / "generated" / f"{sample.id}.wav"
        samples_of, rate_hz = soundfile.read(sample.audio)
        soundfile.write(built, 0.5 * samples_of, rate_hz)
        if index == 2:
            built.write_bytes(b"not audio")
    return score(
        generated=str(folder / "generated"), data="embedded", metrics="mel_distance,stoi", limit=None,
        out=folder / "run",
        cache=False, workers=1, page=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def benchmark_run(tmp_path_factory) -> Run:
    """A run of answers with BLEU, BLEU and CIDEr of captions, and an error rate; every sixth
    answer could not be read.
    """
    from codec_bench.benchmark.metrics import Answer, load_answer_metric

    rng = np.random.default_rng(3)
    words = "the a cat dog sat on mat under tree green old house and ran".split()
    answers = []
    for n in range(50):
        reference = [words[k] for k in rng.integers(0, len(words), int(rng.integers(5, 20)))]
        text = [w if rng.random() < 0.8 else words[int(rng.integers(len(words)))] for w in reference]
        answers.append(
            Answer(f"q{n:02d}", " ".join(text[: int(rng.integers(4, 20))]), (" ".join(reference),), language="en")
        )
    metrics = {name: load_answer_metric(name) for name in ("bleu[13a]", "coco_bleu[4]", "cider", "wer[answer]")}
    scores = {name: metric.compute(answers) for name, metric in metrics.items()}
    for name, metric in metrics.items():
        for n in range(0, 50, 6):
            worst = metric.worst(answers[n])
            wrong = worst.detail.get("counts") or [worst.numerator, worst.denominator]
            scores[name][n] = Score(None, "unparsed", "not readable", metric.protocol, detail={"wrong": wrong})
    facts = {
        name: {"unit": "", "higher_is_better": True, "protocol": m.protocol, "aggregate": m.aggregate}
        for name, m in metrics.items()
    }
    folder = tmp_path_factory.mktemp("benchmark") / "run"
    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"model": {}}, facts, ())
        for n, answer in enumerate(answers):
            question = QuestionRecord(n, answer.id, expected=answer.references, subsets={"half": str(n % 2)})
            writer.write_answers([(question, AnswerRecord("ok", text=answer.text))])
            item = ItemRecord("model", answer.id, "ok", None, {name: scores[name][n] for name in metrics})
            writer.write_marked([(n, item)], {n: Reading()})
    return Run(folder)


@pytest.fixture(scope="module")
def silence_run(tmp_path_factory) -> Run:
    """A run with transcribed words where the reference has none, beside items with words and a silent one."""
    from codec_bench import evaluate
    from codec_bench.data import open_source

    folder = tmp_path_factory.mktemp("silence")
    samples = list(open_source("embedded"))[:3]
    texts = (samples[0].text, "", "[noise] uh")
    rows = [{"id": s.id, "audio": s.audio, "text": text, "language": "en"} for s, text in zip(samples, texts)]
    (folder / "silent.wav").write_bytes(wav_bytes(Audio(np.zeros(16000, np.float32), 16000)))
    rows.append({"id": "silent", "audio": "silent.wav", "text": "", "language": "en"})
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return evaluate(
        codec="unprocessed", data=str(folder), out=folder / "run", cache=False, workers=1, page=False,
        metrics="wer[pocketsphinx],cer[pocketsphinx],wer_macro[pocketsphinx],hallucinated[pocketsphinx]",
    )  # fmt: skip


def exported(run: Run, folder: Path) -> list[dict[str, str]]:
    """The rows of an export, read as docs/export.md says: one apostrophe before what would be
    a formula is taken off.
    """
    export_run(run, "csv", folder / "x.csv")
    with open(folder / "x.csv", newline="", encoding="utf-8") as file:
        return [{name: without_apostrophe(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def bleu_of(counts: list[list[float]]) -> float:
    """BLEU as the paper has it, with orders that do not match counted as 1/2, 1/4, ...;
    written anew from the formula.
    """
    text, expected, *grams = (math.fsum(column) for column in zip(*counts))
    log, halved = 0.0, 1.0
    for matched, total in zip(grams[:4], grams[4:]):
        halved /= 1 if matched else 2
        log += math.log(100 * (matched or halved) / total) / 4
    return math.exp(log + min(0.0, 1 - expected / text))


def coco_bleu_of(counts: list[list[float]]) -> float:
    text, expected, *grams = (math.fsum(column) for column in zip(*counts))
    product = math.prod((matched + 1e-15) / (total + 1e-9) for matched, total in zip(grams[:4], grams[4:]))
    ratio = (text + 1e-15) / (expected + 1e-9)
    return product**0.25 * (math.exp(1 - 1 / ratio) if ratio < 1 else 1)


FOLDS = {"bleu[13a]": bleu_of, "coco_bleu[4]": coco_bleu_of}


@pytest.mark.parametrize("name", ["eval_run", "score_run", "benchmark_run", "silence_run"])
def test_every_number_of_the_summary_comes_out_of_the_csv(name, request, tmp_path):
    run = request.getfixturevalue(name)
    groups = defaultdict(list)
    for row in exported(run, tmp_path):
        groups[row["system"], row["metric"]].append(row)
    summary = run.summary()
    assert len(groups) == sum(len(system["metrics"]) for system in summary["systems"].values())
    failing = 0
    for (system, metric), rows in groups.items():
        entry = summary["systems"][system]["metrics"][metric]
        good = [row for row in rows if row["status"] == "ok"]
        assert (len(good), len(rows) - len(good)) == (entry["n"], entry["failed"])
        assert {row["protocol"] for row in rows} == {entry["protocol"]}
        parts = [[float(row["numerator"]), float(row["denominator"])] for row in good]
        wrong = [w for row in rows if (w := json.loads(row["detail"]).get("wrong"))]
        fold = lambda sums: math.fsum(a for a, _ in sums) / math.fsum(b for _, b in sums)  # noqa: E731
        if metric in FOLDS:
            fold, parts = FOLDS[metric], [json.loads(row["detail"])["counts"] for row in good]
        if parts:
            assert fold(parts) == pytest.approx(entry["value"], rel=1e-9, abs=1e-9)
        else:
            assert entry["value"] is None
        counting = entry["counting_failures"]
        assert counting["n"] == len(parts + wrong)
        if parts + wrong:
            assert fold(parts + wrong) == pytest.approx(counting["value"], rel=1e-9)
        else:
            assert counting["value"] is None
        failing += entry["failed"]
    assert failing, "the comparison is of a run in which something has no value"


def test_the_runs_that_are_compared_have_what_makes_them_hard(eval_run, score_run, benchmark_run):
    assert sum(item.status == "failed" for item in eval_run.items("quantiser")) == 4
    assert [item.status for item in score_run.items()].count("ok") == 3, (
        "the other samples have no file, or a broken one"
    )
    assert {row.status for row in benchmark_run.rows()} == {"ok", "unparsed"}
    ratios = [row for row in eval_run.rows() if row.metric == "wer[pocketsphinx]" and row.status == "ok"]
    assert len({row.denominator for row in ratios}) > 1, "a mean of the items would be another number"


def test_words_recognised_in_silence_count_from_the_sound_to_the_table(silence_run, tmp_path):
    import jiwer

    rows = [row for row in exported(silence_run, tmp_path) if row["system"] == "unprocessed"]
    by = {(row["metric"], row["id"]): row for row in rows}
    wer = [row for row in rows if row["metric"] == "wer[pocketsphinx]"]
    spoken, *silences, silent = wer
    transcript = [len(row["transcript_normalised"].split()) for row in silences]
    assert min(transcript) > 0 and [float(row["numerator"]) for row in silences] == transcript
    assert [float(row["denominator"]) for row in wer] == [
        len(json.loads(spoken["detail"])["reference"].split()),
        0,
        0,
        0,
    ]
    assert (silent["status"], float(silent["numerator"])) == ("ok", 0), "nothing is heard in digital silence"
    texts = [json.loads(row["detail"]) for row in wer]
    expected = jiwer.process_words([t["reference"] for t in texts], [t["hypothesis"] for t in texts]).wer
    entry = silence_run.summary()["systems"]["unprocessed"]["metrics"]
    assert entry["wer[pocketsphinx]"]["value"] == expected > 1
    assert entry["hallucinated[pocketsphinx]"]["value"] == pytest.approx(2 / 3)
    assert by["hallucinated[pocketsphinx]", spoken["id"]]["status"] == "refused"
    assert [row["status"] for row in rows if row["metric"] == "wer_macro[pocketsphinx]"] == ["ok", *["undefined"] * 3]
    reasons = [r for r in silence_run.summary()["failures"]["reasons"] if r["metric"] == "wer[pocketsphinx]"]
    assert {(r["system"], r["status"], r["count"]) for r in reasons} == {
        ("unprocessed", "flagged", 2),
    }  # fmt: skip


def test_pandas_gives_the_same_table(eval_run, tmp_path):
    pandas = pytest.importorskip("pandas")
    exported(eval_run, tmp_path)
    table = pandas.read_csv(tmp_path / "x.csv", keep_default_na=False, na_values=[""])
    sums = table[table.status == "ok"].groupby(["system", "metric"])[["numerator", "denominator"]].sum()
    result = (sums.numerator / sums.denominator).to_dict()
    systems = eval_run.summary()["systems"]
    expected = {(s, m): e["value"] for s, held in systems.items() for m, e in held["metrics"].items() if e["n"]}
    assert result == {key: pytest.approx(value, rel=1e-9, abs=1e-9) for key, value in expected.items()}
    frame = eval_run.to_pandas()
    assert list(frame.columns) == REQUESTED.split(",") and len(frame) == len(table)
    assert [str(frame[name].dtype) for name in NUMBERS] == ["float64"] * 5
    for name in NUMBERS:
        assert frame[name].dropna().tolist() == pytest.approx(table[name].dropna().tolist(), rel=1e-15)
    assert frame.text.tolist() == table.text.tolist()


def test_polars_gives_the_same_table(eval_run):
    polars = pytest.importorskip("polars")
    frame = eval_run.to_polars()
    assert frame.columns == REQUESTED.split(",")
    assert [frame.schema[name] for name in NUMBERS] == [polars.Float64] * 5
    assert frame.rows() == [tuple(row) for row in eval_run.rows()]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_not_installed_is_named(eval_run, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # an import then fails as if the package were absent
    with refuses("package_not_installed", package=package, hint=f"pip install {package}"):
        getattr(eval_run, f"to_{package}")()


def written(folder: Path, values=(0.1,), *, samples=None, transcript=None) -> Run:
    """A run with one system and one metric of a mean, with a value for each sample."""
    samples = samples or [Sample(f"s{n}", None) for n in range(len(values))]
    with closing(RunWriter(folder, {})) as writer:
        writer.begin({"x": {}}, {"m": FACTS}, samples)
        for n, (sample, value) in enumerate(zip(samples, values)):
            detail = {"hypothesis": transcript} if transcript else None
            score = Score.ok(value, "m/1", detail=detail)
            writer.write([(n, ItemRecord("x", sample.id, "ok", None, {"m": score}, duration_s=value))])
    return Run(folder)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def test_numbers_read_back_exactly(tmp_path, rng):
    import pyarrow.parquet

    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e99, 0.1 + 0.2, 1e16, 123456789.123456789]
    values += [float(value) for value in rng.standard_normal(200) * 10.0 ** rng.integers(-20, 20, 200)]
    run = written(tmp_path / "run", values)
    export_run(run, "jsonl", tmp_path / "x.jsonl")
    export_run(run, "parquet", tmp_path / "x.parquet")
    tables = [
        exported(run, tmp_path),
        [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").split("\n")[:-1]],
        pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist(),
    ]
    for rows in tables:
        for name in ("value", "numerator", "duration_s"):
            assert [bits(float(row[name])) for row in rows] == list(map(bits, values))


def test_texts_read_back_exactly_whatever_they_hold(tmp_path):
    samples = [Sample(text, None, text, text, text) for text in HOSTILE]
    run = written(tmp_path / "run", [1.0] * len(HOSTILE), samples=samples, transcript="\r".join(HOSTILE))
    rows = exported(run, tmp_path)
    for name in ("id", "text", "speaker", "language"):
        assert [row[name] for row in rows] == list(HOSTILE)
    assert {row["transcript"] for row in rows} == {"\r".join(HOSTILE)}
    assert {json.loads(row["detail"])["hypothesis"] for row in rows} == {"\r".join(HOSTILE)}
    assert "\r\n" not in (tmp_path / "x.csv").read_bytes().decode()
    if importlib.util.find_spec("pandas"):
        import pandas

        table = pandas.read_csv(tmp_path / "x.csv", keep_default_na=False, na_values=[""])
        assert (
            [without_apostrophe(cell) for cell in table.id]
            == table.text.map(without_apostrophe).tolist()
            == list(HOSTILE)
        )


def test_no_cell_of_an_export_is_a_formula(tmp_path, command):
    """No switch is needed: a run whose ids, texts and answers come from somebody else is opened in a spreadsheet as it
    is exported.
    """
    samples = [Sample(text, None, text) for text in HOSTILE]
    run = written(tmp_path / "run", [-0.5] * len(HOSTILE), samples=samples)
    code, _, _ = command("export", run.folder, "--out", tmp_path / "run.csv")
    assert code == 0
    with open(tmp_path / "run.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    formulas = [text for text in HOSTILE if text.lstrip("'")[:1] in ("=", "+", "-", "@", "\t", "\r")]
    assert len(formulas) == 6
    assert [row["id"] for row in rows] == [f"'{text}" if text in formulas else text for text in HOSTILE]
    assert {row["value"] for row in rows} == {"-0.5"}, "a number is never changed"
    assert [
        cell for row in rows for name, cell in row.items() if name not in NUMBERS and cell[:1] in tuple("=+-@")
    ] == []
    file = io.StringIO()
    write_csv(file, ["a"], [["+1"], [1.5], [None], ["\rx"]])
    assert file.getvalue() == 'a\n\'+1\n1.5\n""\n"\'\rx"\n'


def test_an_item_without_scores_has_a_row_for_every_metric(tmp_path):
    with closing(RunWriter(tmp_path / "run", {})) as writer:
        writer.begin(
            {"x": {}}, {"m": FACTS, "w": {**FACTS, "protocol": "w/1"}}, [Sample(id, None, "t", "s") for id in "abcd"]
        )
        ok = {"m": Score.ok(2.0, "m/1"), "w": Score.refused("not for this", "w/1")}
        writer.write([(0, ItemRecord("x", "a", "ok", None, ok))])
        writer.write([(1, ItemRecord("x", "b", "failed", "the codec broke", {}))])
        writer.write([(2, ItemRecord("x", "c", "ok", None, {"m": Score.ok(4.0, "m/1")}))])
    run = Run(tmp_path / "run")
    rows = [
        (r["id"], r["metric"], r["value"], r["status"], r["reason"], r["protocol"]) for r in exported(run, tmp_path)
    ]
    assert rows == [
        ("a", "m", "2.0", "ok", "", "m/1"),
        ("b", "m", "", "failed", "the codec broke", "m/1"),
        ("c", "m", "4.0", "ok", "", "m/1"),
        ("a", "w", "", "refused", "not for this", "w/1"),
        ("b", "w", "", "failed", "the codec broke", "w/1"),
        ("c", "w", "", "not_scored", "the record holds no score", "w/1"),
    ]  # d is not finished
    for metric, entry in run.summary()["systems"]["x"]["metrics"].items():
        statuses = Counter(row[3] for row in rows if row[1] == metric)
        assert (statuses.pop("ok", 0), statuses.total()) == (entry["n"], entry["failed"])


def test_a_transcript_stands_where_a_recogniser_recognised_something(eval_run):
    rows = list(eval_run.rows())
    transcript = [row for row in rows if row.transcript is not None]
    assert transcript and {row.metric for row in transcript} == {"wer[pocketsphinx]"}
    assert all(json.loads(row.detail)["hypothesis"] == row.transcript_normalised for row in transcript)
    assert all(row.text and row.text[0].isupper() for row in rows), "the reference text stands as the data has it"
    assert all(row.speaker and row.language == "en" and row.duration_s > 1 for row in rows)


def test_detail_is_strict_json(tmp_path):
    with closing(RunWriter(tmp_path / "run", {})) as writer:
        writer.begin({"x": {}}, {"m": FACTS}, [Sample("a", None), Sample("b", None)])
        detail = {"odd": [math.nan, math.inf, 0.1], "said": "NaN"}
        writer.write([(0, ItemRecord("x", "a", "ok", None, {"m": Score.ok(1.0, "m/1", detail=detail)}))])
        writer.write([(1, ItemRecord("x", "b", "ok", None, {"m": Score.ok(1.0, "m/1")}))])

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    held, none = [json.loads(row["detail"], parse_constant=refuse) for row in exported(Run(tmp_path / "run"), tmp_path)]
    assert held == {"odd": [None, None, 0.1], "said": "NaN"} and none == {}


def test_further_columns_of_the_manifest_are_in_every_row(tmp_path, benchmark_run, capsys):
    rooms = [{"room": "büro", "noise_db": -3.25, "take": 2}, {"room": ""}, {}]
    with closing(RunWriter(tmp_path / "run", {})) as writer:
        writer.begin(
            {"x": {}, "y": {}}, {"m": FACTS}, [Sample(f"s{n}", None, extra=room) for n, room in enumerate(rooms)]
        )
        for system in "xy":
            writer.write([(n, ItemRecord(system, f"s{n}", "failed", "broken", {})) for n in range(3)])
    run = Run(tmp_path / "run")
    expected = [{"room": "büro", "noise_db": -3.25, "take": 2}, {}, {}]
    assert [json.loads(row["extra"]) for row in exported(run, tmp_path)] == 2 * expected
    export_run(run, "jsonl", None)
    assert [json.loads(json.loads(line)["extra"]) for line in capsys.readouterr().out.splitlines()] == 2 * expected
    assert Counter(row.extra for row in benchmark_run.rows()) == {'{"half":"0"}': 100, '{"half":"1"}': 100}


def test_a_run_without_items_is_a_table_without_rows(tmp_path):
    with closing(RunWriter(tmp_path / "run", {})) as writer:
        writer.begin({"x": {}}, {"m": FACTS}, [Sample("a", None)])
    run = Run(tmp_path / "run")
    assert exported(run, tmp_path) == []
    assert (tmp_path / "x.csv").read_text() == REQUESTED + "\n"
    for form in ("jsonl", "parquet"):
        export_run(run, form, tmp_path / f"x.{form}")
    import pyarrow.parquet

    assert (tmp_path / "x.jsonl").read_text() == ""
    table = pyarrow.parquet.read_table(tmp_path / "x.parquet")
    assert (table.num_rows, table.column_names) == (0, list(COLUMNS))
    for package in ("pandas", "polars"):
        if importlib.util.find_spec(package):
            frame = getattr(run, f"to_{package}")()
            assert (len(frame), list(frame.columns)) == (0, list(COLUMNS))


def test_sqlite_neither_sorts_nor_stores_the_rows(eval_run, monkeypatch):
    """A run of any size is exported in the memory of one row: the plan has no temporary table."""
    requests = []

    class Spy:
        def execute(self, sql, *values):
            requests.append(sql)
            return db.execute(sql, *values)

    db = eval_run._db
    monkeypatch.setattr(eval_run, "_db", Spy())
    next(eval_run.rows())
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {requests[-1]}")]
    assert len(plan) == 8 and not any("TEMP" in step or "AUTOMATIC" in step for step in plan), plan


def test_what_cannot_be_written_is_one_sentence(tmp_path):
    run = written(tmp_path / "run", [0.5] * 50)
    for form in ("csv", "jsonl", "parquet"):
        with refuses("file_not_writable", cause="No such file or directory", hint="nowhere'; make it"):
            export_run(run, form, tmp_path / "nowhere" / "x")
        with refuses("file_not_writable", cause="Is a directory"):
            export_run(run, form, tmp_path)
        if os.path.exists("/dev/full"):
            with refuses("file_not_writable", path="/dev/full", cause="No space left on device"):
                export_run(run, form, Path("/dev/full"))
    with refuses("no_export_format", format="latex", hint="with --summary"):
        export_run(run, "latex", None)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path, monkeypatch, form):
    """A disk that is full in the middle left half a table, or an empty file in the place of an older table."""
    run, file = written(tmp_path / "run", [0.5] * 50), tmp_path / "scores"
    export_run(run, form, file)
    before, rows = file.read_bytes(), list(run.rows())
    assert len(rows) > 20

    def broken():
        yield from rows[:20]
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(run), "rows", lambda _: broken())
    for target in (file, tmp_path / "new"):
        with refuses("file_not_writable", cause="No space left on device"):
            export_run(run, form, target)
    assert file.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == ["run", "scores"]


def test_a_link_stays_a_link(tmp_path):
    run = written(tmp_path / "run", [0.5] * 5)
    (tmp_path / "real").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "real" / "scores.csv")
    export_run(run, "csv", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "real" / "scores.csv").stat().st_size > 100


COMMAND = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()", "export"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("more", [(), ("--summary",)])
def test_a_full_output_ends_with_a_sentence(tmp_path, more):
    folder = written(tmp_path / "run").folder
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, folder, *more], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "error: standard output cannot be written: No space left on device\n")


def test_a_reader_that_has_read_enough_is_no_error(tmp_path):
    folder = written(tmp_path / "run", [0.5] * 20000).folder
    with subprocess.Popen([*COMMAND, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as export:
        assert export.stdout.readline() == REQUESTED + "\n"
        export.stdout.close()
        assert export.stderr.read() == ""


def test_no_csv_holds_a_formula(tmp_path):
    file = io.StringIO()
    write_csv(file, ["=a", "b"], [["+1", -1.5], ["＝x", None], ["a=b", 2]])
    assert file.getvalue() == "'=a,b\n'+1,-1.5\n'＝x,\na=b,2\n"
    for cell in HOSTILE:
        file = io.StringIO()
        write_csv(file, ["a"], [[cell]])
        ((written,),) = list(csv.reader(io.StringIO(file.getvalue(), newline="")))[1:]
        assert without_apostrophe(written) == cell
    package = Path(codec_bench.__file__).parent
    writers = [path for path in package.rglob("*.py") if "csv.writer(" in path.read_text("utf-8")]
    assert [path.name for path in writers] == ["export.py"]


def test_the_transcript_is_as_written_and_both_texts_as_compared(tmp_path):
    """Jiwer's own measure of the two compared texts gives the row's errors."""
    from codec_bench import evaluate

    jiwer = pytest.importorskip("jiwer")
    run = evaluate(
        codec="unprocessed", data="embedded", metrics="wer[pocketsphinx]", limit=3, out=tmp_path, workers=1, page=False
    )
    first = next(iter(run.rows()))
    assert "seven" in first.transcript and "7" in first.transcript_normalised.split()
    for row in run.rows():
        assert row.transcript and row.transcript_normalised and row.text_normalised
        assert row.text != row.text_normalised
        counts = jiwer.process_words(row.text_normalised, row.transcript_normalised)
        assert counts.substitutions + counts.deletions + counts.insertions == row.numerator
