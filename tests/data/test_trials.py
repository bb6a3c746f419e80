"""Published lists of trials: what of them is read, what is refused, and what a run makes of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from refusals import refuses

import codec_bench
from codec_bench.api.run_benchmark import prepare_codecs
from codec_bench.data import Source, open_source, with_trials
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import Note
from codec_bench.stats.eer import equal_error_rate
from codec_bench.stats.sets import pairs_of
from codec_bench.types import TRIALS, Sample


@pytest.fixture
def listed(tmp_path):
    def write(text):
        (tmp_path / "trials.txt").write_text(text, encoding="utf-8")
        return tmp_path / "trials.txt"

    return write


def people():
    return Source("people", [Sample(id, f"{id}.wav") for id in ("id1/a/1", "id1/a/2", "id2/b/1")])


@pytest.mark.parametrize(
    "form",
    ["1 id1/a/1.wav id1/a/2.wav\n0 id2/b/1.wav id1/a/2.wav\n\n", "id1/a/1 id1/a/2 target\nid2/b/1 id1/a/2 nontarget"],
)
def test_both_forms_are_read_and_belong_to_the_test(listed, form):
    by_name = {sample.id: sample.extra[TRIALS] for sample in with_trials(people(), listed(form))}
    assert by_name == {"id1/a/1": [], "id1/a/2": [["id1/a/1", 1], ["id2/b/1", 0]], "id2/b/1": []}


@pytest.mark.parametrize(
    "text,message",
    [
        ("", {"code": "no_trial_of_data", "path": "trials.txt", "reason": "no_trial_listed"}),
        (
            "1 x.wav id1/a/1.wav\n",
            {"code": "no_trial_of_data", "path": "trials.txt", "reason": {"code": "trial_unknown", "line": 1}},
        ),
        ("1 id1/a/1\n", {"code": "trial_line", "line": "1 id1/a/1", "number": 1}),
        ("maybe id1/a/1 id1/a/2\n", {"code": "trial_line", "number": 1}),
        (
            "1 id1/a/1 id1/a/2\n0 id1/a/1 id1/a/2\n",
            {"code": "trials_disagree", "line": 2, "path": "trials.txt", "one": "id1/a/1", "other": "id1/a/2"},
        ),
    ],
)
def test_lists_that_cannot_be_used_are_refused(listed, text, message):
    with refuses(**message):
        with_trials(people(), listed(text))


def test_trials_of_recordings_that_are_not_there_are_counted(listed, tmp_path):
    with pytest.warns(Note) as noted:
        with_trials(people(), listed("1 id1/a/1 id1/a/2\n1 id9/x/1 id1/a/2\n0 id1/a/1 id9/x/2\n"))
    excluded = noted[0].message.message
    assert (excluded.code, excluded.parameters["trials"]) == ("trials_excluded", 2)
    assert excluded.parameters["first"] == Diagnostic("trial_unknown", line=2, name="id9/x/1")
    with refuses("file_not_readable"):
        with_trials(people(), tmp_path / "none.txt")


def test_the_rate_of_a_run_is_that_of_the_listed_trials(listed, tmp_path):
    samples = list(open_source("embedded"))[::4]
    rng = np.random.default_rng(0)
    lines = []
    for test in samples:
        for other in rng.permutation(len(samples))[:5]:
            if samples[other].id != test.id:
                lines.append(f"{int(samples[other].speaker == test.speaker)} {samples[other].id}.wav {test.id}.wav")
    path = listed("\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("error", Note)
        run = codec_bench.evaluate(
            codec="amr-nb-4.75k",
            data=samples,
            metrics="asv_eer_listed[ge2e]",
            trials=path,
            out=tmp_path / "run",
            page=False,
            check=False,
        )
    numbers = {row.id: number for number, row in enumerate(run.samples())}
    (system,) = run.systems
    pairs = {n: p.astype(float) for n, p in pairs_of(run, system, "asv_eer_listed[ge2e]").items()}
    scores = {0: [], 1: []}
    for line in lines:
        same, enrolment, test = line.replace(".wav", "").split()
        a, b = pairs[numbers[enrolment]][0], pairs[numbers[test]][1]
        scores[int(same)].append(a @ b / np.sqrt((a @ a) * (b @ b)))
    result = run.summary()["systems"][system]["metrics"]["asv_eer_listed[ge2e]"]
    assert result["value"] == pytest.approx(equal_error_rate(np.array(scores[1]), np.array(scores[0])), abs=1e-6)
    assert result["n"] == 8 and min(map(len, scores.values())) >= 3
    again = codec_bench.evaluate(
        codec="amr-nb-4.75k", data=samples, metrics="asv_eer_listed[ge2e]", out=tmp_path / "b", page=False, check=False
    )
    details = again.summary()["systems"][system]["metrics"]["asv_eer_listed[ge2e]"]
    assert details["value"] is None and "no trials were listed (--trials)" in str(details)


def test_a_benchmark_names_its_trials(tmp_path, monkeypatch):
    actual = tmp_path / "speakers"
    actual.mkdir()
    rows = [f'{{"id": "{s.id}", "audio": "{s.audio}"}}' for s in list(open_source("embedded"))[:3]]
    (actual / "rows.jsonl").write_text("\n".join(rows))
    first, second, third = (s.id for s in list(open_source("embedded"))[:3])
    (actual / "list.txt").write_text(f"1 {first} {second}\n0 {third} {second}\n")
    (actual / "benchmark.yaml").write_text(
        "version: 1\ntitle: T\nsummary: S\ncategory: Codec\nkind: codec\nwants: audio\nlanguage: null\nlicence: null\n"
        "data: {path: rows.jsonl, id: id, columns: {audio: audio}, trials: list.txt}\n"
        'metrics: ["asv_eer_listed[ge2e]"]\nprimary: asv_eer_listed[ge2e]\n'
    )
    requested = {"benchmark": str(actual), "codec": "g722"}
    (extra,) = prepare_codecs(**requested)
    held = {s.id: s.extra.get(TRIALS) for s in extra.source.samples}
    assert held == {first: [], second: [[first, 1], [third, 0]], third: []}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "own.txt").write_text(f"0 {first} {second}\n")
    monkeypatch.chdir(tmp_path / "other")
    (named,) = prepare_codecs(**requested, options={str(actual): {"data.trials": "own.txt"}})
    assert [s.extra[TRIALS] for s in named.source.samples] == [[], [[first, 0]], []]
