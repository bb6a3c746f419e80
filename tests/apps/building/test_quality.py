"""Floors of quality: which metrics can be one, what falls below is dropped, and what is kept tells its score."""

from __future__ import annotations

import json

import pytest
from refusals import refuses

from codec_bench import build
from codec_bench.apps.building.item import TryError
from codec_bench.apps.building.speech import Floors
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Score

from .conftest import RATE_HZ, noise, rows_of


class Scripted:
    """A metric whose scores are given."""

    def __init__(self, scores):
        self.scores = iter(scores)

    def __call__(self, *, estimate, language=None):
        assert language == "en" and len(estimate) == 1
        return [{"dnsmos_ovrl": next(self.scores)}]


def test_a_score_below_its_floor_is_dropped_and_so_is_none():
    scores = [Score.ok(3.0, "p"), Score.ok(2.99, "p"), Score.undefined("too short", "p")]
    built = Scripted(scores)
    floors = Floors({"dnsmos_ovrl": 3.0}, "en", lambda name: built)
    audio = Audio(noise(1.0, 0)[None], RATE_HZ)
    assert floors.check(audio) == {"dnsmos_ovrl": 3.0}
    assert floors.as_dict({"dnsmos_ovrl": 3.0})["dnsmos_ovrl"]["protocol"].startswith("dnsmos")
    for code in ("below_floor", "floor_without_score"):
        with pytest.raises(TryError) as caught:
            floors.check(audio)
        assert caught.value.failure.reason.code == code


@pytest.mark.parametrize(
    ("name", "language", "reason"),
    [
        ("pesq_wb", "en", {"code": "quality_not_a_score"}),
        ("utmos", "zh", {"code": "quality_unusable", "reason": "trained_on_others"}),
        ("utmoss", "en", {"code": "unknown_name", "name": "utmoss"}),
    ],
)
def test_what_cannot_be_a_floor_is_refused_at_once(name, language, reason):
    with refuses(**reason):
        Floors({name: 3.0}, language, lambda name: pytest.fail("nothing is loaded"))


def test_noise_falls_below_a_floor_of_dnsmos(speaking, tmp_path):
    pytest.importorskip("speechmos")
    recipe = speaking("Is it blue?", retries=0)
    text = recipe.read_text().replace("checks:\n", "checks:\n  quality: {dnsmos_ovrl: 3}\n")
    recipe.write_text(text)
    funnel = build(recipe, out=tmp_path / "high").funnel
    assert funnel.usable == 0 and dict(funnel.dropped["quality"]) == {
        Diagnostic("below_floor", metric="dnsmos_ovrl", floor=3.0): 1
    }
    recipe.write_text(text.replace("dnsmos_ovrl: 3", "dnsmos_ovrl: 0.5"))
    (row,) = rows_of(build(recipe, out=tmp_path / "low").folder)
    built = json.loads(row["provenance"])["quality"]["dnsmos_ovrl"]
    assert built["score"] == row["dnsmos_ovrl"] < 3 and built["protocol"].startswith("dnsmos")
