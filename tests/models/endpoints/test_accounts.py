import math
from datetime import date

import pytest
from refusals import refuses

from codec_bench.models.endpoints.accounts import NUMBERS, Prices, gemini_usage, openai_usage


def test_cost_by_hand():
    prices = Prices.parse({"input": 2.5, "output": 10.0, "audio_input": 40.0, "audio_output": 80.0})
    usage = {"input_tokens": 1000, "audio_input_tokens": 600, "output_tokens": 500, "audio_output_tokens": 100}
    # 400 x 2.5 + 600 x 40 + 400 x 10 + 100 x 80 = 37,000 millionths.
    assert prices.cost(usage) == pytest.approx(0.037)


@pytest.mark.parametrize(
    "prices, usage, cost",
    [
        ({}, {"input_tokens": 1, "output_tokens": 1}, None),
        ({"input": 1.0}, {"input_tokens": 1, "output_tokens": 1}, None),
        ({"input": 1.0}, {"input_tokens": 1, "output_tokens": 0}, 1e-6),
        ({"input": 1.0, "output": 1.0}, {}, None),
        ({"input": 1.0, "output": 1.0}, {"input_tokens": 1}, None),
        ({"input": 1.0, "output": 2.0}, {"input_tokens": 10, "audio_input_tokens": 10, "output_tokens": 1}, 12e-6),
        ({"audio_input": 1.0, "output": 2.0}, {"input_tokens": 10, "audio_input_tokens": 9, "output_tokens": 0}, None),
        ({"input": 0, "output": 0}, {"input_tokens": 10, "output_tokens": 1}, 0.0),
    ],
)
def test_what_is_not_known_is_none_and_not_0(prices, usage, cost):
    assert Prices.parse(prices).cost(usage) == (None if cost is None else pytest.approx(cost))


@pytest.mark.parametrize("prices", [{"inputs": 1}, {"input": -1}, {"input": "1"}, {"input": True},
                                    *({kind: value} for kind in NUMBERS
                                        for value in (math.nan, math.inf, -math.inf))])  # fmt: skip
def test_prices_that_are_none(prices):
    (item,) = prices
    with refuses("price_out_of_range|price_unknown", kind=item):
        Prices.parse(prices)


@pytest.mark.parametrize(
    "reported", [None, 3, [], {}, {"prompt_tokens": None}, {"prompt_tokens": "4"}, {"promptTokenCount": True}]
)
def test_counts_that_are_none(reported):
    assert openai_usage(reported) == {} and gemini_usage(reported) == {}


@pytest.mark.parametrize(
    "prices, usage, cost",
    [
        ({"audio_minute": 0.006}, {"sent_audio_s": 90.0}, 0.009),
        ({"characters": 15.0}, {"characters": 2000.0}, 0.03),
        ({"characters": 15.0, "input": 1.0, "output": 1.0}, {"characters": 2000.0}, None),
    ],
)
def test_cost_of_what_is_sent(prices, usage, cost):
    assert Prices.parse(prices).cost(usage) == (None if cost is None else pytest.approx(cost))


def test_prices_hold_until_their_last_day():
    prices = Prices.parse({"input": 1.0, "output": 1.0, "until": "2026-12-31", "source": "a page"})
    usage = {"input_tokens": 1e6, "output_tokens": 0}
    assert prices.cost(usage, today=date(2026, 12, 31)) == 1.0
    assert prices.cost(usage, today=date(2027, 1, 1)) is None
    assert prices.missing(usage, today=date(2027, 1, 1)) == ("input", "output")
    with refuses("price_date"):
        Prices.parse({"until": "soon"})


def test_what_is_missing_has_a_name():
    prices = Prices.parse({"input": 1.0})
    assert prices.missing({"input_tokens": 5.0, "output_tokens": 2.0, "audio_output_tokens": 2.0}) == ("audio_output",)
    assert prices.missing({"input_tokens": 5.0}) == ("output_tokens",)


SOUNDING = {"input": 2.5, "audio_input": 32.0, "output": 10.0, "audio_output": 64.0}


@pytest.mark.parametrize(
    "usage, sent, came, unsplit",
    [
        ({"input_tokens": 117.0}, True, False, ("input",)),
        (
            {"input_tokens": 117.0, "audio_input_tokens": 0.0},
            True,
            False,
            ("input",),
        ),  # sound was sent, so 0 is no count
        ({"input_tokens": 117.0, "audio_input_tokens": 90.0}, True, False, ()),
        ({"input_tokens": 117.0}, False, False, ()),
        ({"input_tokens": 117.0, "output_tokens": 20.0}, True, True, ("input", "output")),
        ({"output_tokens": 20.0}, False, True, ("output",)),
    ],
)
def test_tokens_that_may_be_sound_or_text(usage, sent, came, unsplit):
    assert Prices.parse(SOUNDING).unsplit(usage, sent=sent, came=came) == unsplit
    assert Prices.parse({"input": 1.0, "output": 1.0}).unsplit(usage, sent=sent, came=came) == ()


def test_a_cost_without_a_split_is_a_range():
    prices, usage = Prices.parse(SOUNDING), {"input_tokens": 117.0, "output_tokens": 7.0}
    most = prices.cost(usage, unsplit=("input",))
    assert most == pytest.approx((117 * 32 + 7 * 10) / 1e6)
    assert most - prices.unsure(usage, ("input",)) == pytest.approx((117 * 2.5 + 7 * 10) / 1e6) == prices.cost(usage)


def test_what_an_answer_will_cost():
    requested = {"sound_s": 10.0, "text_bytes": 40, "characters": 0, "most_tokens": 256, "speaks": False}
    gemini = Prices.parse({"input": 0.3, "audio_input": 1.0, "output": 2.5, "audio_tokens_s": 32})
    least, most, unknown = gemini.bounds(**requested)
    assert least == pytest.approx(320e-6) and most == pytest.approx((320 * 1 + 40 * 0.3 + 256 * 2.5) * 1e-6)
    assert unknown == []
    unsaid = Prices.parse({"input": 2.5, "audio_input": 32, "output": 10})
    assert unsaid.bounds(**requested)[2] == ["how many tokens a second of sound is (audio_tokens_s of the prices)"]
    assert unsaid.bounds(**requested | {"most_tokens": None, "sound_s": 0.0})[2] == ["how long answers are"]
    assert Prices.parse({"audio_minute": 0.006}).bounds(**requested) == (pytest.approx(0.001), pytest.approx(0.001), [])


def test_prices_in_words():
    prices = Prices.parse({"input": 2.5, "audio_minute": 0.006, "date": "2026-11-22", "source": "a page"})
    assert (
        prices.words
        == "input 2.5 USD a million tokens; 0.006 USD a minute of sent sound; looked up on 2026-11-22; a page"
    )
