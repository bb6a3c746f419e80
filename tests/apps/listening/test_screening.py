"""Post-screening after ITU-R BS.1534-3, by tables of ratings."""

from __future__ import annotations

from scipy import stats

from codec_bench.apps.listening.key import REFERENCE, Key, Stimulus, Trial
from codec_bench.apps.listening.ratings import Rating
from codec_bench.apps.listening.screening import MID_ANCHOR, screen, unapplied
from codec_bench.messages import Diagnostic

KEY = Key("t", "mushra", (0, 100), True, False, ("x",), (), 0, ())


def row(rater, trial, system, value, **more):
    held = Rating(
        trial, rater, system, value, "mushra", trial, "s", "", "", value, "", None, None, "used", "f", "", value
    )
    return held._replace(**more)


def ratings(**by_rater):
    """Per rater a list of (hidden reference, mid-range anchor), one for each trial."""
    return [
        row(rater, f"t{n}", system, value)
        for rater, trials in by_rater.items()
        for n, pair in enumerate(trials)
        for system, value in zip((REFERENCE, MID_ANCHOR), pair)
    ]


def reasons(rows, *removing):
    """What BS.1534-3's rule marks raters by."""
    results = [one for one in screen(rows, KEY, removing) if one.rule == "bs1534-3"]
    return {
        rater: tuple(one.told for one in results if one.marked and one.rater == rater)
        for rater in {r.rater for r in rows}
    }


def test_more_than_fifteen_percent_below_90_leaves_out_and_fifteen_percent_does_not():
    at_limit = [(89, 30)] * 3 + [(90, 30)] * 17
    beyond = [(89, 30)] * 4 + [(90, 30)] * 16
    result = reasons(ratings(a=at_limit, b=beyond))
    assert result["a"] == () and result["b"] == (Diagnostic("reference_low", limit=90, low=4, trials=20),)


def test_an_anchor_that_sounds_excellent_leaves_out():
    others = {f"r{n}": [(100, 40)] * 10 for n in range(4)}
    result = reasons(ratings(**others, x=[(100, 91)] * 2 + [(100, 40)] * 8))
    assert result["x"] == (Diagnostic("anchor_high", limit=90, high=2, trials=10),) and not any(
        result[r] for r in others
    )


def test_an_item_whose_anchor_many_find_excellent_does_not_count():
    # In the first two trials two of five raters, more than a quarter, are above 90.
    others = {f"r{n}": [(100, 40)] * 10 for n in range(3)}
    result = reasons(ratings(**others, x=[(100, 95)] * 2 + [(100, 40)] * 8, y=[(100, 95)] * 2 + [(100, 40)] * 8))
    assert result["x"] == result["y"] == ()


def five_of_sixteen():
    honest = {f"r{n}": [(100, 40), (100, 38)] * 3 for n in range(11)}
    return ratings(**honest, **{f"lazy{n}": [(100, 100)] * 6 for n in range(5)})


def test_that_the_rule_of_the_anchor_does_not_apply_is_reported():
    rows = five_of_sixteen()
    assert not any(reasons(rows, "bs1534-3").values())
    (text,) = unapplied([one for one in screen(rows, KEY, ["bs1534-3"]) if one.rule == "bs1534-3"])
    assert (text.code, text.parameters["count"], text.parameters["raters"]) == ("rule_not_applied", 16, 16)
    assert text.parameters["cause"] == Diagnostic("uninformative_items", void=6, items=6, limit=90)


def test_raters_whom_a_rule_before_leaves_out_do_not_void_the_rule_of_the_anchor():
    result = screen(five_of_sixteen(), KEY, ["constant", "bs1534-3"])
    assert {one.rater for one in result if one.rule == "constant" and one.marked} == {f"lazy{n}" for n in range(5)}
    assert not unapplied([one for one in result if one.rule == "bs1534-3"])
    assert {one.rater for one in result if one.rule == "bs1534-3" and one.marked} == {f"lazy{n}" for n in range(5)}


def test_a_rule_that_the_test_has_nothing_for_says_so_where_it_was_named():
    result = screen(ratings(a=[(100, 40)] * 6), KEY, ["gold"])
    assert [(one.marked, one.told) for one in result if one.rule == "gold"] == [
        (None, Diagnostic("rule_without_trials", rule="gold"))
    ]
    assert "gold" not in {one.rule for one in screen(ratings(a=[(100, 40)] * 6), KEY, [])}


def key_of(kind, *trials, scale=(1, 5)):
    return Key("t", kind, scale, False, False, ("x", "y"), (), 0, trials)


def trial(id, seconds=2.0, **more):
    return Trial(id, id, None, (Stimulus("s" + id, "system", "x"),), seconds=seconds, **more)


def marked(rows, key, rule):
    return {one.rater: (one.marked, one.told) for one in screen(rows, key, []) if one.rule == rule}


def test_trials_shorter_than_their_sound_are_counted():
    trials = [trial(f"t{n}") for n in range(20)]
    rows = [
        row(who, t.id, "x", 3, seconds=1.9 if n < quick else 2.1)
        for who, quick in (("a", 3), ("b", 4))
        for n, t in enumerate(trials)
    ]
    result = marked(rows, key_of("rating", *trials), "hasty")
    assert result == {
        "a": (False, Diagnostic("hasty_trials", hasty=3, trials=20)),
        "b": (True, Diagnostic("hasty_trials", hasty=4, trials=20)),
    }  # fmt: skip
    assert marked([row("c", "t1", "x", 3)], key_of("rating", *trials), "hasty")["c"] == (
        None,
        Diagnostic("no_trial_times"),
    )


def test_repeats_further_apart_than_a_quarter_of_the_scale_mark():
    trials = [trial("t1"), trial("t2"), trial("t3", repeat_of="t1"), trial("t4", repeat_of="t2")]
    options = {"a": (3, 3, 4, 4), "b": (3, 3, 4, 5)}
    rows = [
        row(who, t.id, "x", v, status="repeat" if t.repeat_of else "used")
        for who, values in options.items()
        for t, v in zip(trials, values)
    ]
    result = marked(rows, key_of("rating", *trials), "repeats")
    assert (result["a"][0], result["b"][0]) == (False, True)
    assert result["b"][1] == "repeated answers differ by 1.5 on average; the limit is 1"


def test_whoever_always_takes_one_side_is_marked():
    def chose(who, firsts):
        return [
            row(who, f"t{n}", "x", float(f), status="used", other="y", choice="x", is_first=f)
            for n, f in enumerate(firsts)
        ]

    rows = [
        *chose("a", [True] * 6),
        *chose("b", [False] * 6),
        *chose("c", [True] * 5 + [False]),
        *chose("d", [True] * 5),
    ]
    result = marked(rows, key_of("preference", *[trial(f"t{n}") for n in range(6)]), "always-first")
    assert [result[who][0] for who in "abcd"] == [True, True, False, None]
    assert result["b"][1] == Diagnostic("one_side_chosen", side="second", choices=6)


def test_who_does_not_distinguish_the_hidden_reference_is_marked_by_bs1116():
    grades = {"hears": [-1.2, -0.8, -1.5, 0.1], "guesses": [-0.2, 0.3, -0.1, 0.0]}
    rows = [row(who, f"t{n}", "x", v) for who, values in grades.items() for n, v in enumerate(values)]
    result = marked(rows, key_of("bs1116", *[trial(f"t{n}") for n in range(4)]), "bs1116-3")
    for who, values in grades.items():
        p = stats.ttest_1samp(values, 0, alternative="less").pvalue
        assert result[who][0] == (p >= 0.05) and f"p = {p:.3f}" in result[who][1]
    assert (result["hears"][0], result["guesses"][0]) == (False, True)
