"""What a profile says of the codes as a language, with codecs of which it is known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Codes, CodeStream
from codec_bench.apps.profiling.language import SpokenContent, language, transformer
from codec_bench.apps.profiling.rows import sections
from codec_bench.apps.profiling.steps import OPTIONAL
from codec_bench.apps.profiling.token_model import MOST_CODES, TokenCorpus
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import Alignment

OTHERS = [step for step in OPTIONAL if step not in ("language", "transformer")]


def corpus(*streams, clips=6, seconds=2):
    """Clips of white codes in streams of (codebooks, entries, rate)."""
    rng, output = np.random.default_rng(0), TokenCorpus()
    for clip in range(clips):
        values = [(rng.integers(0, k, (q, round(rate * seconds))), k, rate) for q, k, rate in streams]
        output.add(f"clip {clip}", Codes(tuple(CodeStream(*one) for one in values), 16_000 * seconds, 16_000))
    return output


def test_streams_add_their_bits_per_second():
    result = language(corpus((2, 4, 200.0), (1, 8, 100.0)), seed=0)
    assert result["tokens_per_s"] == 500.0 and result["nominal_bps"] == 2 * 2 * 200 + 3 * 100
    first = result["orders"][0]
    assert first["bps"] == pytest.approx(1100, rel=0.01) and first["bits_per_token"] == first["bps"] / 500
    assert [len(stream["zipf"]) for stream in result["streams"]] == [2, 1]


def test_one_stream_that_cannot_carry_an_order_leaves_the_sum_without_it():
    result = language(corpus((1, 4, 400.0), (1, 256, 100.0)), seed=0)
    assert result["streams"][0]["orders"][1]["bps"] is not None
    assert result["orders"][1]["bps"] is None and result["orders"][1]["reason"].code == "order_unseen"


def test_bits_per_phone_and_per_character_are_over_the_clips_that_have_them():
    held = corpus((1, 16, 200.0))
    spoken = SpokenContent(
        {"clip 0": "a cat", "clip 1": "sat"}, {"clip 2": Alignment.of([(0, 0.5, "A"), (0.5, 1, "B")])}
    )
    result = transformer(held, spoken, steps=1, seed=0, alive=lambda: None)
    assert result["characters_per_s"] == 7 / 4 and result["phones_per_s"] == 2 / 2
    assert result["bits_per_character"] == result["bps"] / (7 / 4) and result["bits_per_phone"] == result["bps"]
    assert result["bps"] == pytest.approx(800, rel=0.01) and result["protocol"]["steps"] == 1


def test_codes_beyond_what_is_stored_are_counted():
    held = TokenCorpus()
    for clip in range(3):
        values = np.zeros((1, MOST_CODES // 2 + 1), int)
        held.add(str(clip), Codes((CodeStream(values, 2, 16_000.0),), values.size, 16_000))
    assert (held.items, held.excluded) == (2, 1)


def test_codes_without_time_are_no_language():
    held = TokenCorpus()
    held.add("a", Codes((CodeStream(np.zeros((1, 4), int), 8, 0.0),), 16_000, 16_000))
    with refuses("no_frame_rate", error=NotApplicable):
        language(held, seed=0)


def test_a_codec_with_white_codes_is_distinguished_from_one_that_follows_the_sound(profiled, odd):
    result = profiled(odd("White"), odd("Followed"), limit=6, settings={"lm_steps": 25}, skip=OTHERS)
    white, followed = result.codecs.values()
    assert not result.faults
    assert white["rate"]["bits_per_token"] == followed["rate"]["bits_per_token"] == 4.0
    carried = [order["bits_per_token"] for order in white["language"]["orders"] if order["bps"]]
    assert len(carried) >= 2 and carried == pytest.approx([4.0] * len(carried), abs=0.05)
    assert white["transformer"]["bits_per_token"] == pytest.approx(4.0, abs=0.05)
    assert white["language"]["streams"][0]["zipf"][0] < 0.1
    assert followed["language"]["orders"][1]["bits_per_token"] < 3.0 and followed["transformer"]["bits_per_token"] < 3.0
    assert followed["transformer"]["bits_per_character"] > 0 and followed["transformer"]["bits_per_phone"] is None
    (shown,) = [s for s in sections(result.facts) if s.title == "Tokens for a language model"]
    rows = {row.label: [cell.text for cell in row.cells] for row in shown.rows}
    assert rows["entropy rate, order 1"] == [
        f"{one['language']['orders'][0]['bits_per_token']:.3f}" for one in (white, followed)
    ]
    assert "bits per phone" in {row.label for row in shown.without}
    assert json.loads((result.folder / "profile.json").read_text())["codecs"] == json.loads(json.dumps(result.codecs))


def test_a_part_that_cannot_be_measured_leaves_the_rest(profiled, odd):
    result = profiled(odd("White"), settings={"lm_steps": 5}, skip=OTHERS)  # three clips
    (white,) = result.codecs.values()
    assert white["transformer"]["state"] == "not applicable" and white["transformer"]["reason_code"] == {
        "code": "too_few_clips",
        "clips": 5,
    }
    assert white["language"]["state"] == "ok" and not result.faults


def test_a_transformer_that_is_not_requested_is_reported():
    with refuses("no_training", error=NotApplicable):
        transformer(corpus((1, 16, 200.0)), SpokenContent({}, {}), steps=0, seed=0, alive=lambda: None)
