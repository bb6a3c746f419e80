"""Every kind's scores, by hand and by scipy; gold questions, traps, checks, one name for two people, and loudness."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter, defaultdict
from statistics import fmean
from zlib import crc32

import numpy as np
import pytest
from refusals import Containing, refuses
from scipy import stats

import codec_bench
from codec_bench.apps.agreement.ratings import read_ratings
from codec_bench.apps.listening.checks import beeping, make_checks, read_digits, triplet
from codec_bench.apps.listening.crossed import crossed_interval
from codec_bench.apps.listening.key import REFERENCE, read_key
from codec_bench.apps.listening.sound import match_sounds
from codec_bench.audio.encode import write_flac
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

RATERS = [f"Rater {n}" for n in range(6)]
PAIR = "zebra-codec,quagga-codec"


def opened(run, folder, kind, **more):
    built = codec_bench.export_listening(
        runs=run, kind=kind, out=folder / f"{kind}.html", **{"systems": PAIR, "items": 5, **more}
    )
    return built, read_key(built.key)


def drawn(*kind):
    return crc32(" ".join(map(str, kind)).encode())


def of(trial, id):
    return next(one.system for one in trial.stimuli if one.id == id.partition("/")[0])


def shown_first(rater):
    return lambda trial: trial.stimuli[drawn(rater, trial.id, "first") % 2].id


def test_the_second_is_compared_with_the_first_and_scores_are_about_the_system(codec_run, tmp_path, save):
    for kind in ("ccr", "cmos"):
        built, key = opened(codec_run, tmp_path, kind)
        expected, files = defaultdict(list), []
        for rater in RATERS:
            answers = {}
            for trial in key.trials:
                first = shown_first(rater)(trial)
                systems = [of(trial, first), next(s.system for s in trial.stimuli if s.id != first)]
                about = next(name for name in ("zebra-codec", "quagga-codec") if name in systems)
                value = drawn(rater, trial.id) % 7 - 3
                answers[trial.id] = value
                expected[about].append(value if systems[1] == about else -value)
            files.append(
                save(f"{kind}{rater}.json", key, rater, lambda t, _, a=answers: a[t.id], firsts=shown_first(rater))
            )
        outcome = codec_bench.import_listening(files, key=built.key)
        assert not outcome.problems and outcome.measure == "CMOS"
        assert {one.system: one.value for one in outcome.systems} == pytest.approx(
            {name: fmean(v) for name, v in expected.items()}
        )
        assert {one.other for one in outcome.systems} == ({REFERENCE} if kind == "ccr" else {"quagga-codec"})
        for one in outcome.systems:
            rows = [r for r in outcome.ratings if r.system == one.system]
            same = crossed_interval([r.score for r in rows], [r.rater for r in rows], [r.speaker for r in rows])
            assert (one.interval.low, one.interval.high) == pytest.approx((max(same.low, -3), min(same.high, 3)))
            assert one.test.difference == pytest.approx(one.value) and one.interval.method == "crossed"
        assert len(outcome.pairs) == (1 if kind == "ccr" else 0)
        without = save("none.json", key, "Nobody", lambda *_: 1, firsts=lambda _: "s9999")
        options = {one.what for one in codec_bench.import_listening(without, key=built.key).problems}
        assert "value out of range" in options, "without what was first a comparison says nothing"


def test_difference_grades_are_less_those_of_the_hidden_reference(codec_run, tmp_path, save):
    built, key = opened(codec_run, tmp_path, "bs1116")

    def grade(rater):
        def of_one(trial, id):
            is_recognised = drawn(rater, trial.id) % 4 > 0
            return 5 if (of(trial, id) == REFERENCE) == is_recognised else 2 + drawn(rater, trial.id) % 25 / 10

        return of_one

    files = [save(f"{n}.json", key, rater, grade(rater)) for n, rater in enumerate(RATERS)]
    outcome = codec_bench.import_listening(files, key=built.key, screening="none")
    apart = defaultdict(list)
    for rater in RATERS:
        for trial in key.trials:
            values = {of(trial, one.id): grade(rater)(trial, one.id) for one in trial.stimuli}
            (system,) = values.keys() - {REFERENCE}
            apart[system].append(values[system] - values[REFERENCE])
    assert {one.system: one.value for one in outcome.systems} == pytest.approx({s: fmean(v) for s, v in apart.items()})
    assert any(value > 0 for held in apart.values() for value in held), "the reference was not always found"
    assert outcome.pairs[0].test.difference == pytest.approx(fmean(apart["zebra-codec"]) - fmean(apart["quagga-codec"]))
    assert Counter(row.status for row in outcome.ratings)["reference"] == 60 and not outcome.problems
    half = save("half.json", key, "Half", lambda t, id: 4.25 if of(t, id) == REFERENCE else 3)
    wrong = codec_bench.import_listening(half, key=built.key)
    assert {p.what: p.count for p in wrong.problems} == {"value out of range": 10} and not any(
        row.score for row in wrong.ratings
    )


def test_x_is_identified_by_chance_half_of_the_time(codec_run, tmp_path, save):
    built, key = opened(codec_run, tmp_path, "abx", systems="zebra-codec", items=7)
    assert {trial.stimuli[-1].role for trial in key.trials} == {"unknown"} and len(
        {trial.stimuli[-1].system for trial in key.trials}
    ) == 2
    right = Counter()

    def chosen(rater):
        def of_one(trial, _):
            sides, x = trial.stimuli[:2], trial.stimuli[-1]
            is_right = drawn(rater, trial.id) % 4 > 0
            right[is_right] += 1
            return next(one.id for one in sides if (one.system == x.system) == is_right)

        return of_one

    files = [save(f"{n}.json", key, rater, chosen(rater), firsts=shown_first(rater)) for n, rater in enumerate(RATERS)]
    (one,) = codec_bench.import_listening(files, key=built.key).systems
    assert one.value == pytest.approx(right[True] / 42) and one.choices == {"right": right[True], "wrong": right[False]}
    same = stats.binomtest(right[True], 42, 0.5, alternative="greater").pvalue
    assert one.exact_p == pytest.approx(same, rel=1e-12) and one.p_holm == one.exact_p and one.test is None


def test_each_scale_has_its_values_and_agreement_reads_the_overall_one(codec_run, tmp_path, save):
    built, key = opened(codec_run, tmp_path, "p835")
    names = ("signal", "background", "overall")
    values = lambda rater: lambda trial, id: 1 + drawn(rater, trial.id, id.partition("/")[2]) % 5  # noqa: E731
    files = [save(f"{n}.json", key, rater, values(rater), scales=names) for n, rater in enumerate(RATERS)]
    outcome = codec_bench.import_listening(files, key=built.key, csv=tmp_path / "r.csv")
    assert [(one.scale, one.system) for one in outcome.systems] == [(s, c) for s in names for c in PAIR.split(",")]
    for one in outcome.systems:
        actual = [
            values(r)(t, f"/{one.scale}") for r in RATERS for t in key.trials if t.stimuli[0].system == one.system
        ]
        assert one.value == pytest.approx(fmean(actual)) and one.interval.method == "crossed" and one.n == 30
    assert [pair.scale for pair in outcome.pairs] == list(names) and outcome.raters[0].asked == 30
    read = read_ratings(tmp_path / "r.csv")
    assert read.kind == "rating" and len(read.rows) == 60 and read.scale == (1, 5)
    assert {row.value for row in read.rows} == {float(row.score) for row in outcome.ratings if row.scale == "overall"}


def test_two_people_of_one_name_are_two_raters(codec_run, tmp_path, save):
    built, key = opened(codec_run, tmp_path, "rating")
    files = [
        save("a.json", key, "Ann", lambda *_: 4, changed={"person": "1"}),
        save("b.json", key, "ann", lambda *_: 2, changed={"person": "2"}),
        save("c.json", key, "Ann", lambda *_: 5, saved="2026-11-23T10:00:00.000Z", changed={"person": "1"}),
    ]  # fmt: skip
    outcome = codec_bench.import_listening(files, key=built.key, keep="edited")
    used = {(row.rater, row.score) for row in outcome.ratings if row.status == "used"}
    assert used == {("Ann", 5), ("ann (2)", 2)}
    assert ("raters_of_one_name", {"people": 2}) in [
        (one.detail.code, one.detail.parameters) for one in outcome.problems
    ]
    older = [
        save("d.json", key, "Bob", lambda *_: 1),
        save("e.json", key, "bob", lambda *_: 2, saved="2026-11-23T10:00:00.000Z"),
    ]
    assert {
        row.score for row in codec_bench.import_listening(older, key=built.key).ratings if row.status == "used"
    } == {2}


def test_formulas_in_names_do_not_land_in_the_table(codec_run, tmp_path, save):
    built, key = opened(codec_run, tmp_path, "ccr")
    name = '=HYPERLINK("https://example.org","x")'
    codec_bench.import_listening(save("a.json", key, name, lambda *_: -2), key=built.key, csv=tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["rater"] for row in rows} == {f"'{name}"} and {row["given"] for row in rows} == {"-2"}
    assert {float(row["score"]) for row in rows} <= {-2.0, 2.0}, "numbers below zero stay numbers"


def gold(folder, text):
    write_flac(folder / "g.flac", Audio(np.zeros((1, 8000), np.float32), 16_000))
    (folder / "gold.csv").write_text(text, encoding="utf-8")
    return folder / "gold.csv"


@pytest.mark.parametrize(
    "kind,text,message",
    [
        (
            "rating",
            "audio,answer\ng.flac,\n",
            {"code": "gold_without_answer", "place": Containing("line 2 of the gold questions ")},
        ),
        (
            "rating",
            "audio,answer\ng.flac,7\n",
            {"code": "gold_answer_out_of_scale", "answer": "7", "kind": "rating", "low": 0, "high": 5},
        ),
        ("rating", "audio,answer\ng.flac,good\n", {"code": "gold_answer_out_of_scale", "answer": "good"}),
        ("rating", "audio,answer\nh.flac,4\n", {"code": "gold_without_sound", "path": "h.flac"}),
        ("rating", "sound,answer\ng.flac,4\n", {"code": "gold_lacks_column", "column": "audio"}),
        ("dcr", "audio,answer\ng.flac,4\n", {"code": "gold_lacks_column", "column": "reference"}),
        ("p835", "audio,answer\ng.flac,4\n", {"code": "gold_without_answer"}),
        ("rating", "", {"code": "gold_lacks_column", "column": "audio"}),
    ],
)
def test_gold_questions_that_cannot_be_posed_are_refused(codec_run, tmp_path, kind, text, message):
    with refuses(**message):
        opened(codec_run, tmp_path, kind, gold=gold(tmp_path, text))


def test_gold_traps_and_checks_are_marked_and_count_nowhere(codec_run, tmp_path, save):
    built, key = opened(
        codec_run, tmp_path, "p835", gold=gold(tmp_path, "audio,signal,overall\ng.flac,5,4\n"), traps=2,
        checks="qualification,hearing,headphones,environment", screening="trap,headphones",
    )  # fmt: skip
    page = built.page.read_text("utf-8")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    hidden = {t["id"] for t, actual in zip(data["trials"], key.trials) if actual.check in ("gold", "trap")}
    assert len(hidden) == 3 and all(not t["check"] and not t["choices"] for t in data["trials"] if t["id"] in hidden)
    assert "gold" not in json.dumps(data).lower() and "trap" not in json.dumps(data).lower()
    assert "beeps" in " ".join(data["instructions"])
    names = ("signal", "background", "overall")

    def answers(wrong):
        def of_one(trial, id):
            if trial.check == "hearing":
                return "".join(map(str, trial.right if trial.check not in wrong else trial.right[::-1]))
            if trial.choices:
                return trial.right[0] if trial.check not in wrong else (trial.right[0] + 1) % len(trial.choices)
            if trial.check:
                right = trial.right[names.index(id.partition("/")[2])]
                far = {"gold": 2, "trap": 1}[trial.check] if trial.check in wrong else 0
                return 3 if right is None else right - far if right > far else right + far
            return 3 if trial.repeat_of else 1 + drawn(trial.id) % 5

        return of_one

    planted = {
        "Good": (),
        "Trapped": ("trap",),
        "Golden": ("gold",),
        "Speaker": ("headphones", "environment"),
        "Deaf": ("hearing",),
        "Phone": ("qualification",),
    }
    files = [save(f"{name}.json", key, name, answers(wrong), scales=names) for name, wrong in planted.items()]
    outcome = codec_bench.import_listening(files, key=built.key)
    rules = {name: {one.rule for one in outcome.screened if one.rater == name and one.marked} for name in planted}
    assert rules == {name: set(wrong) for name, wrong in planted.items()}
    assert {one.rater for one in outcome.raters if one.left_out} == {"Trapped", "Speaker"}
    assert next(one for one in outcome.raters if one.rater == "Golden").marked == (
        Diagnostic("rule_finding", rule="gold", cause=Diagnostic("checks_wrong", wrong=2, answers=2)),
    )
    assert {row.rater for row in outcome.ratings if row.status == "used"} == planted.keys() - {"Trapped", "Speaker"}
    assert {one.system for one in outcome.systems} == set(PAIR.split(",")) and outcome.raters[0].asked == 30
    assert not outcome.problems


def test_the_sounds_of_the_checks_are_as_named():
    speech = Audio(np.random.default_rng(0).uniform(-0.5, 0.5, (1, 16_000)).astype(np.float32), 16_000)
    built = make_checks(("hearing", "headphones", "environment"), speech, 1)
    for drawn_, sounds in built:
        samples = [sound.samples.astype(np.float64) for sound in sounds.values()]
        if drawn_.check == "headphones":
            power = [np.mean(one**2) for one in samples]
            assert int(np.argmin(power)) == drawn_.right[0]
            assert 10 * math.log10(min(power) / max(power)) == pytest.approx(-6, abs=0.01)
            assert sum(np.abs(one.sum(0)).max() < 1e-6 for one in samples) == 1, "one cancels itself in the air"
        if drawn_.check == "hearing":
            assert len(samples) == 1 and len(set(drawn_.right)) == 3 and not drawn_.choices
        if drawn_.check == "environment":
            noise = [
                10 * math.log10(np.mean((one - speech.samples) ** 2) / np.mean(speech.samples.astype(np.float64) ** 2))
                for one in samples
            ]
            assert int(np.argmin(noise)) == drawn_.right[0] and sorted(noise) == pytest.approx([-50, -40], abs=0.3)
    output = beeping(speech, 3)
    level = np.abs(output.samples[0, 8_000:]).reshape(-1, 80).max(1) > 0.05
    assert np.sum(np.diff(level.astype(int)) == 1) == 3


def test_digits_lie_as_far_below_the_noise_as_stated_and_the_noise_has_their_spectrum():
    digits = read_digits(None)
    apart = [triplet(digits, (4, 0, 7), below, 1).samples[0].astype(np.float64) for below in (8.0, 200.0)]
    noise, spoken = apart[1], apart[0] - apart[1]
    length = sum(len(digits[number]) for number in (4, 0, 7))
    level = 10 * math.log10(np.sum(spoken**2) / length / np.mean(noise**2))
    assert level == pytest.approx(-8, abs=0.01) and np.abs(apart[0]).max() < 1
    bands = [(100, 500), (500, 1500), (1500, 4000), (4000, 7000)]

    def shares(signals):
        power = sum(np.abs(np.fft.rfft(one, 1 << 17)) ** 2 for one in signals)
        hz = np.fft.rfftfreq(1 << 17, 1 / 16_000)
        return np.array([power[(hz >= low) & (hz < high)].sum() for low, high in bands]) / power.sum()

    assert 10 * np.log10(shares([noise]) / shares(digits)) == pytest.approx([0] * 4, abs=0.7)


def test_recorded_digits_take_the_place_of_those_of_the_package(codec_run, tmp_path, save):
    rng = np.random.default_rng(0)
    for digit in range(10):
        sound = np.concatenate([np.zeros(3_000), 0.01 * (digit + 1) * rng.standard_normal(6_000), np.zeros(2_000)])
        write_flac(tmp_path / "digits" / f"{digit}.flac", Audio(sound[None].astype(np.float32), 16_000)) if digit else (
            tmp_path / "digits"
        ).mkdir()
    with refuses("digit_files", count=0, digit=0):
        opened(codec_run, tmp_path, "rating", checks="hearing", digits=tmp_path / "digits")
    write_flac(tmp_path / "digits" / "0.flac", Audio(np.zeros((1, 900), np.float32), 16_000))
    with refuses("digit_silent", path="0.flac"):
        opened(codec_run, tmp_path, "rating", checks="hearing", digits=tmp_path / "digits")
    write_flac(tmp_path / "digits" / "0.flac", Audio(0.1 * rng.standard_normal((1, 6_000)).astype(np.float32), 16_000))
    actual = read_digits(tmp_path / "digits")
    assert {len(one) for one in actual} == {6_000} and [np.mean(one**2) for one in actual] == pytest.approx(
        [1] * 10, abs=1e-5
    )
    with refuses("digits_without_check"):
        opened(codec_run, tmp_path, "rating", digits=tmp_path / "digits")
    built, key = opened(codec_run, tmp_path, "rating", checks="hearing", digits=tmp_path / "digits", session_minutes=20)
    assert sum(trial.check == "hearing" for trial in key.trials) == 5

    def answers(wrong):
        places = {t.id: n for n, t in enumerate(t for t in key.trials if t.check)}
        return lambda t, _: "".join(map(str, t.right if places[t.id] >= wrong else t.right[::-1])) if t.check else 3

    files = [save(f"{wrong}.json", key, f"{wrong} wrong", answers(wrong)) for wrong in (2, 3)]
    files.append(save("short.json", key, "Short", lambda t, _: "12" if t.check else 4))
    outcome = codec_bench.import_listening(files, key=built.key)
    hearing = {one.rater: (one.marked, one.told) for one in outcome.screened if one.rule == "hearing"}
    assert hearing["2 wrong"] == (False, Diagnostic("checks_right", right=3, answers=5, needed=3))
    assert hearing["3 wrong"] == (True, Diagnostic("checks_right", right=2, answers=5, needed=3))
    assert hearing["Short"] == (None, Diagnostic("checks_unanswered"))
    assert [one.what for one in outcome.problems] == ["value out of range"] and outcome.problems[0].count == 5


def test_sounds_are_brought_to_one_loudness_only_where_it_is_requested(tmp_path):
    noise = np.random.default_rng(0).standard_normal((1, 32_000)).astype(np.float32)
    paths = {}
    for name, level in (("a", 0.02), ("b", 0.15)):
        paths[name] = tmp_path / f"{name}.flac"
        write_flac(paths[name], Audio(level * noise, 16_000))
    apart = {name: loudness_lufs(sound) for name, sound in match_sounds(paths).items()}
    assert apart["b"] - apart["a"] == pytest.approx(20 * math.log10(7.5), abs=0.05)
    aligned = [loudness_lufs(one) for one in match_sounds(paths, loudness_lufs=-30.0).values()]
    assert aligned == pytest.approx([-30, -30], abs=0.01)
    loud = match_sounds(paths, loudness_lufs=0.0)
    assert loudness_lufs(loud["a"]) == pytest.approx(loudness_lufs(loud["b"]), abs=0.01), "lower, and still alike"
    assert max(np.abs(one.samples).max() for one in loud.values()) == pytest.approx(1, abs=1e-5)
