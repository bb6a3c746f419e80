"""Post-screening after ITU-R BS.1534-3, by tables of ratings."""

from __future__ import annotations

from codec_bench.apps.listening.key import REFERENCE
from codec_bench.apps.listening.ratings import MID_ANCHOR, Rating, rule_without_effect, screen


def row(rater, trial, system, value):
    return Rating(trial, rater, system, value, "mushra", trial, "s", "", "", "", "", None, None, "used", "f", value)


def ratings(**by_rater):
    """Per rater a list of (hidden reference, mid-range anchor), one for each trial."""
    return [
        row(rater, f"t{n}", system, value)
        for rater, trials in by_rater.items()
        for n, pair in enumerate(trials)
        for system, value in zip((REFERENCE, MID_ANCHOR), pair)
    ]


def reasons(rows):
    return {one.rater: one.reasons for one in screen(rows, "bs1534-3")}


def test_more_than_fifteen_percent_below_90_leaves_out_and_fifteen_percent_does_not():
    at_limit = [(89, 30)] * 3 + [(90, 30)] * 17
    beyond = [(89, 30)] * 4 + [(90, 30)] * 16
    found = reasons(ratings(a=at_limit, b=beyond))
    assert found["a"] == () and found["b"] == ("the hidden reference was below 90 in 4 of 20 trials",)


def test_an_anchor_that_sounds_excellent_leaves_out():
    others = {f"r{n}": [(100, 40)] * 10 for n in range(4)}
    found = reasons(ratings(**others, x=[(100, 91)] * 2 + [(100, 40)] * 8))
    assert found["x"] == ("the 7 kHz anchor was above 90 in 2 of 10 trials",) and not any(found[r] for r in others)


def test_an_item_whose_anchor_many_find_excellent_does_not_count():
    # In the first two trials two of five raters, more than a quarter, are above 90.
    others = {f"r{n}": [(100, 40)] * 10 for n in range(3)}
    found = reasons(ratings(**others, x=[(100, 95)] * 2 + [(100, 40)] * 8, y=[(100, 95)] * 2 + [(100, 40)] * 8))
    assert found["x"] == found["y"] == ()


def test_that_the_rule_of_the_anchor_does_not_apply_is_said():
    honest = {f"r{n}": [(100, 40)] * 6 for n in range(11)}
    lazy = {f"lazy{n}": [(100, 100)] * 6 for n in range(5)}  # five of sixteen raters void the rule for every item
    rows = ratings(**honest, **lazy)
    assert not any(reasons(rows).values())
    said = rule_without_effect(rows)
    assert (
        said
        == "the rule of the 7 kHz anchor does not apply to 6 of 6 items, because more than a quarter of the raters put it above 90 there"
    )
    assert rule_without_effect(ratings(**honest)) is None


def test_no_rule_leaves_nobody_out():
    assert screen(ratings(a=[(0, 100)]), "none") == []
