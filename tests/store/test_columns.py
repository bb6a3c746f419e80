"""Results by the values of a column: against pandas, against hand counts, and the law that the parts make the whole."""

from __future__ import annotations

import json
import re
from contextlib import closing

import numpy as np
import pytest
from refusals import refuses

from codec_bench.data import open_source
from codec_bench.data.columns import LONGEST, MOST_VALUES, broken_down
from codec_bench.report.open_run import Run
from codec_bench.stats.breakdown import finished_only, parts_of
from codec_bench.stats.intervals import interval
from codec_bench.stats.recorded import RecordedRun
from codec_bench.stats.summary import summarise
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.columns import grouped
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FACTS = {
    "wer": {"unit": "", "higher_is_better": False, "protocol": "wer/p", "aggregate": "ratio", "bounds": [0, None]},
    "stoi": {"unit": "", "higher_is_better": True, "protocol": "stoi/p", "aggregate": "mean"},
}
SYSTEMS = ("a", "b")


def details(by, source):
    """What a record says of columns of a source."""
    return broken_down(by, source.samples, source.name)


def write_run(folder, samples, score=None, finish=None, durations=None, **meta) -> Run:
    """A run over samples. `score` gives the scores of (system, number), or a reason why there are none."""
    with closing(RunWriter(folder, {"of": "a test"})) as writer:
        writer.begin({name: {} for name in SYSTEMS}, FACTS, samples)
        writer.set_meta(**meta)
        for system in SYSTEMS:
            for n, sample in enumerate(samples[:finish]):
                scores = score(system, n) if score else {"stoi": Score.ok(n, "p")}
                dropped = isinstance(scores, str)
                seconds = None if durations is None else durations[n]
                record = ItemRecord(
                    system, sample.id, "failed" if dropped else "ok", scores if dropped else None, {} if dropped
                    else scores,
                    duration_s=seconds, sample_rate_hz=None if seconds is None else (16000, 44100)[n % 2],
                )  # fmt: skip
                writer.write([(n, record)])
    return Run(folder)


def names_of(run, column) -> list[str]:
    return list(grouped(run, column)[column])


@pytest.fixture
def mixed(tmp_path, rng):
    """Two systems over 120 samples of 12 speakers, with columns of every kind and every kind of missing value."""
    samples = [
        Sample(
            f"s{n:03d}", f"/x/{n}.wav", speaker=None if n % 11 == 0 else f"spk{n % 12}",
            language=("en", "zh", None)[n % 3],
            extra={"mood": ("calm", "angry")[n % 2], "snr_db": round(float(rng.normal(10, 5)), 2), "level": n % 4,
                **({"note": "x"} if n % 7 else {})},
        )
        for n in range(120)
    ]  # fmt: skip
    rng.shuffle(samples)

    def score(system, n):
        if rng.random() < 0.05:
            return "no packet"
        words = int(rng.integers(3, 15))
        wrong = int(rng.integers(0, words))
        stoi = Score.undefined("too short", "p") if rng.random() < 0.1 else Score.ok(rng.random(), "p")
        return {"wer": Score.ok(wrong / words, "p", numerator=wrong, denominator=words), "stoi": stoi}

    return write_run(tmp_path / "run", samples, score, durations=rng.uniform(0.5, 30, 120).tolist())


COLUMNS = ("speaker", "language", "duration", "sample_rate", "mood", "snr_db", "level", "note")


def test_every_breakdown_is_what_pandas_finds_in_the_exported_table(mixed, tmp_path):
    pandas = pytest.importorskip("pandas")
    table = mixed.to_pandas()
    # The columns that the export has not come from the record's SQL, not from the code under test.
    held = pandas.DataFrame(
        [{"id": i, "sample_rate": r, **json.loads(c)} for i, r, c in mixed.query(
            "SELECT p.id, p.sample_rate_hz, e.columns FROM samples p JOIN extras e ON e.number = p.number"
        )]
    )  # fmt: skip
    table = table.merge(held, on="id")
    table["duration"] = pandas.cut(
        table.duration_s, [0, 2, 5, 10, 20, 60, 600, np.inf], right=False,
        labels=["under 2 s", "2 to 5 s", "5 to 10 s", "10 to 20 s", "20 to 60 s", "60 to 600 s", "600 s and more"],
    ).astype(object)  # fmt: skip
    table["sample_rate"] = table.sample_rate.map({16000: "16 kHz", 44100: "44.1 kHz"})
    table["level"] = table.level.astype(str)
    summary = summarise(mixed, COLUMNS).as_dict()
    edges = [float(x) for x in re.findall(r"[-\d.]+", " ".join(names_of(mixed, "snr_db")[1:3]))]
    low, middle, again, high = edges
    assert middle == again and len(names_of(mixed, "snr_db")) == 4
    table["snr_db"] = pandas.cut(
        table.snr_db, [-np.inf, low, middle, high, np.inf], right=False, labels=names_of(mixed, "snr_db")
    ).astype(object)
    seen = 0
    for column in COLUMNS:
        named = table[column].where(table[column].notna(), "")
        for (system, metric, name), rows in table.groupby(["system", "metric", named]):
            good = rows[rows.status == "ok"].sort_values("id")
            entry = summary["systems"][system]["metrics"][metric]["subsets"][column][name]
            assert (entry["n"], entry["failed"]) == (len(good), len(rows) - len(good))
            value = good.numerator.sum() / good.denominator.sum() if len(good) else None
            assert entry["value"] == (None if value is None else pytest.approx(value, rel=1e-12))
            clusters = [None if pandas.isna(s) else s for s in good.speaker]
            public = interval(good.numerator, denominators=good.denominator, clusters=clusters)
            assert entry["ci95"] == public.ends
            assert entry["note"] == public.note
            seen += 1
        result = summary["systems"]["a"]["metrics"]["wer"]["subsets"][column]
        assert set(result) == set(named), "no group is missing, and none is invented"
    assert seen == 4 * 35


@pytest.mark.parametrize("column", COLUMNS)
def test_the_groups_make_the_whole(mixed, column):
    subsets = grouped(mixed, column)
    summary = summarise(mixed, column).as_dict()
    for system in SYSTEMS:
        of_system = finished_only(subsets, set(RecordedRun(mixed).items(system).finished))[column]
        for metric in FACTS:
            entry = summary["systems"][system]["metrics"][metric]
            rows = entry["subsets"][column].values()
            assert sum(row["n"] for row in rows) == entry["n"]
            assert sum(row["failed"] for row in rows) == entry["failed"]
            parts = parts_of(RecordedRun(mixed), system, metric)
            at = dict(zip(parts.numbers, parts.sums))
            sums = [np.sum([at[n] for n in numbers if n in at], axis=0) for numbers in of_system.values()]
            total = np.sum([s for s in sums if np.ndim(s)], axis=0)
            assert total == pytest.approx(parts.sums.sum(axis=0), rel=1e-12)
            assert total[0] / total[1] == pytest.approx(entry["value"], rel=1e-12)


def test_samples_that_are_not_finished_count_nowhere(tmp_path):
    samples = [Sample(f"s{n}", "x", speaker=f"p{n % 2}") for n in range(10)]
    entry = summarise(write_run(tmp_path / "run", samples, finish=5), "speaker").as_dict()["systems"]["a"]["metrics"][
        "stoi"
    ]
    assert {name: row["n"] + row["failed"] for name, row in entry["subsets"]["speaker"].items()} == {"p0": 3, "p1": 2}
    assert entry["n"] + entry["failed"] == 5


def test_durations_lie_in_bins_that_include_their_lower_edge(tmp_path):
    seconds = [0.5, 1.999, 2.0, 4.999, 5.0, 10.0, 19.999, 20.0, 300.0, None]
    run = write_run(tmp_path / "run", [Sample(f"s{n}", "x") for n in range(10)], durations=seconds)
    assert grouped(run, "duration")["duration"] == {
        "under 2 s": [0, 1], "2 to 5 s": [2, 3], "5 to 10 s": [4], "10 to 20 s": [5, 6], "20 to 60 s": [7],
        "60 to 600 s": [8],
        "": [9],
    }  # fmt: skip
    assert grouped(run, "duration_s") == grouped(run, "duration"), "the name that the exported table has"
    assert names_of(run, "sample_rate") == ["16 kHz", "44.1 kHz", ""]


def write_column(folder, cells) -> Run:
    return write_run(folder, [Sample(f"s{n}", "x", extra={"c": cell}) for n, cell in enumerate(cells)])


def test_few_numbers_are_groups_and_many_are_cut_at_their_quartiles(tmp_path):
    assert names_of(write_column(tmp_path / "few", [10, 9.0, "2", 0.5] * 3), "c") == ["0.5", "2", "9", "10"]
    many = [str(n) for n in range(100)]
    run = write_column(tmp_path / "many", many)
    # numpy's quartiles of 0 to 99 are 24.75, 49.5 and 74.25, and are rounded to a tenth.
    assert [(name, len(of)) for name, of in grouped(run, "c")["c"].items()] == [
        ("under 24.8", 25), ("24.8 to 49.5", 25), ("49.5 to 74.2", 25), ("74.2 and more", 25),
    ]  # fmt: skip
    tied = grouped(write_column(tmp_path / "tied", [0] * 90 + list(range(1, 21))), "c")["c"]
    assert list(tied) == ["0 and more"], "quartiles that are equal are one edge"


def test_every_number_is_in_the_group_whose_name_says_so(tmp_path, rng):
    for k, scale in enumerate((1e-6, 1.0, 1e7)):
        cells = (rng.normal(2, 1, 60) * scale).tolist()
        for name, numbers in grouped(write_column(tmp_path / str(k), cells), "c")["c"].items():
            edges = [float(x) for x in re.findall(r"-?[\d.]+(?:e[-+]?\d+)?", name)]
            low, high = (-np.inf, edges[0]) if name.startswith("under") else (edges[0], [*edges, np.inf][1])
            assert all(low <= cells[n] < high for n in numbers)


def test_values_of_a_manifest_that_are_none(tmp_path):
    cells = ["", "  ", None, float("nan"), [1], {"a": 1}, True, False, "x", " x"]
    assert grouped(write_column(tmp_path / "run", cells), "c")["c"] == {
        "false": [7], "true": [6], "x": [8, 9], "": [0, 1, 2, 3, 4, 5],
    }  # fmt: skip


def test_columns_have_the_names_of_the_manifest_in_any_case(tmp_path):
    (tmp_path / "m.csv").write_text("audio,spk,Mood\na.wav,ann,calm\nb.wav,bob,angry\n")
    source = open_source(tmp_path / "m.csv")
    assert details("spk, mood,duration_s,spk", source) == {"by": ["speaker", "Mood", "duration"]}
    assert details(None, source) == details("", source) == {}
    run = write_run(tmp_path / "run", source.samples)
    assert grouped(run, ["SPK", "MOOD"]) == {
        "speaker": {"ann": [0], "bob": [1]},
        "Mood": {"angry": [1], "calm": [0]},
    }


def test_a_column_that_is_not_there_is_an_error_that_says_which_are(tmp_path):
    samples = [Sample(f"s{n}", "x", speaker="p", extra={"mood": "calm"}) for n in range(3)]
    run = write_run(tmp_path / "run", samples)
    for ask in (lambda: grouped(run, "mod"), lambda: details(["mod"], open_source(samples))):
        with refuses("no_column_to_group_by", name="mod") as e:
            ask()
        assert e.value.hint == "did you mean mood?"
    with refuses("no_column_to_group_by", name="accent") as e:
        summarise(run, "accent").as_dict()
    assert "run again" in e.value.hint
    with refuses("no_column_to_group_by", name="language"):
        grouped(run, "language")


def test_a_column_of_names_is_refused_before_anything_is_computed(tmp_path):
    many = [Sample(f"s{n}", "x", extra={"utt": f"u{n}", "half": "ab"[n % 2]}) for n in range(MOST_VALUES + 1)]
    small = many[:21]
    with refuses("many_values", name="utt", values=501, most=500):
        details("utt", open_source(many))
    with refuses("value_each", name="utt", samples=21):
        details("utt", open_source(small))
    assert details("half", open_source(many)) == {"by": ["half"]}
    long = [Sample(f"s{n}", "x", extra={"c": "x" * (LONGEST + 1)}) for n in range(3)]
    with refuses("column_text_too_long", most=200):
        details("c", open_source(long))
    run = write_run(tmp_path / "run", many)
    assert "half" in next(held for held in map(json.loads, [run.query("SELECT columns FROM extras")[0][0]]))
    assert "utt" not in run.query("SELECT columns FROM extras")[0][0], "it would only make the record larger"
    with refuses("no_column_to_group_by", name="utt"):
        grouped(run, "utt")


def test_requested_columns_are_in_its_summary(tmp_path):
    samples = [Sample(f"s{n}", "x", speaker=f"p{n % 2}", extra={"mood": "ab"[n % 2]}) for n in range(4)]
    run = write_run(tmp_path / "run", samples, by=["mood"])
    entries = [summarise(run, by).as_dict()["systems"]["a"]["metrics"]["stoi"] for by in (None, "speaker", ())]
    assert [list(entry.get("subsets", ())) for entry in entries] == [["mood"], ["speaker"], []]
    assert "subsets" not in entries[2], "a run that was asked for none has a summary as before"


def test_a_column_that_the_manifest_got_later_is_adopted(tmp_path):
    write_run(tmp_path / "run", [Sample(f"s{n}", "x", extra={"old": "o"}) for n in range(3)]).close()
    with closing(RunWriter(tmp_path / "run", {"of": "a test"})) as writer:
        moods = ("calm", "angry", "calm")
        later = [Sample(f"s{n}", "x", extra={"mood": mood}) for n, mood in enumerate(moods)]
        assert len(writer.begin(dict.fromkeys(SYSTEMS), FACTS, later)) == 6, "everything is still finished"
    run = Run(tmp_path / "run")
    assert grouped(run, "mood,old") == {"mood": {"angry": [1], "calm": [0, 2]}, "old": {"o": [0, 1, 2]}}


def test_questions_are_grouped_by_their_fields(tmp_path):
    with closing(AnswerWriter(tmp_path / "run", {"asked": {}, "scored": {}})) as writer:
        writer.begin({"model": {}}, {"stoi": FACTS["stoi"]}, ())
        for n in range(4):
            question = QuestionRecord(n, f"q{n}", {"topic": "ab"[n % 2]}, subsets={"level": "x"} if n else {})
            writer.write_answers([(question, AnswerRecord("ok", text="x"))])
            writer.write_marked([(n, ItemRecord("model", f"q{n}", "ok", None, {"stoi": Score.ok(n, "p")}))], {})
    run = Run(tmp_path / "run")
    entry = summarise(run, "topic,level").as_dict()["systems"]["model"]["metrics"]["stoi"]["subsets"]
    assert {name: row["value"] for name, row in entry["topic"].items()} == {"a": 1.0, "b": 2.0}
    assert {name: row["n"] for name, row in entry["level"].items()} == {"x": 3, "": 1}
    assert summarise(run).as_dict()["systems"]["model"]["metrics"]["stoi"]["subsets"] == {}, (
        "one value only: nothing to compare"
    )


def test_hostile_values_are_stored_as_texts(tmp_path):
    cells = ["</script>", "'; DROP TABLE samples; --", "\ud800half", "a,b"]
    run = write_column(tmp_path / "run", cells)
    assert set(names_of(run, "c")) == {"</script>", "'; DROP TABLE samples; --", "�half", "a,b"}
