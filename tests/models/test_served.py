"""Which models their services have shut down, by the configs, and what follows."""

from datetime import date

import pytest
from refusals import Containing, refuses

from codec_bench.models import _config, check_served, describe_service_end, list_models, load_model
from codec_bench.models.served import Served

MODELS = {row.name: row for row in list_models()}
ROWS = [row for row in MODELS.values() if row.served is not None]
BEFORE, AFTER = date(2026, 11, 30), date(2026, 12, 1)
"""Around the day on which gemini-2.5-pro is shut down."""


def test_a_model_is_refused_from_the_day_of_its_shutdown():
    check_served("gemini-2.5-pro", today=BEFORE)
    with refuses("model_shut_down", date=Containing("2026-12-01"), hint="--model gemini-3.8-flash") as caught:
        check_served("gemini-2.5-pro", today=AFTER)
    assert "--anyway" in caught.value.hint


@pytest.mark.parametrize(
    "options",
    [{"base_url": "http://localhost:8000/v1beta"}, {"model": "gemini-2.5-pro-of-my-own"}, {"base_url": "x:["}],
)
def test_another_address_or_name_may_serve_it_for_ever(options):
    check_served("gemini-2.5-pro", options, today=AFTER)


def test_a_part_of_a_cascade_may_be_gone():
    with refuses("model_shut_down", model="gpt-4"):
        check_served("whisper-large-v2+gpt-4", today=AFTER)
    check_served("whisper-large-v2+gpt-4", today=date(2026, 10, 22))


@pytest.mark.parametrize(("day", "warned"), [(date(2026, 10, 1), False), (date(2026, 10, 2), True), (AFTER, True)])
def test_a_shutdown_is_announced_sixty_days_before(day, warned):
    assert ("2026-12-01" in describe_service_end("gemini-2.5-pro", today=day)) == warned
    assert describe_service_end("openai-chat", today=day) == ""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_recorded_shutdown_says_where_when_and_what_instead(row):
    served = row.served
    assert served.source.startswith("https://") and served.looked_up >= date(2026, 11, 22)
    if served.successor is not None:
        successor = MODELS[served.successor].served
        assert successor.until is None or successor.until > served.until
    assert Served.model_validate(served.facts()) == served


def test_every_model_of_a_vendor_says_how_long_it_is_served():
    keyed = [row.name for row in MODELS.values() if row.kind is not None and "key_env" in _config(row.name).options]
    of_vendors = {*keyed, *(row.name for row in MODELS.values() if row.kind in ("gemini", "openai-realtime"))}
    assert of_vendors - {row.name for row in ROWS} == {"azure-speech"}, "a deployment of one's own"


def test_prices_of_configs_are_read_and_hold_at_their_own_address():
    priced = [row for row in MODELS.values() if row.prices is not None]
    assert len(priced) >= 15
    for row in priced:
        prices = load_model(row.name).prices
        assert prices.date is not None and prices.source.startswith("https://"), row.name
    assert load_model("gpt-audio-1.5").prices.audio_input == 32
    assert load_model("gpt-audio-1.5", {"model": "another"}).prices.audio_input is None
    elsewhere = load_model("gpt-audio-1.5", {"base_url": "http://localhost:8000/v1"})
    assert elsewhere.prices.audio_input is None
    assert load_model("gpt-audio-1.5", {"prices.audio_input": 1.5}).prices.audio_input == 1.5
