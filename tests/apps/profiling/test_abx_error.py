"""ABX error rates equal the definition, triple by triple in plain loops, and are what is known of simulated phones."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from codec_bench.apps.profiling import abx
from codec_bench.apps.profiling.abx import PhoneItem, abx_error


def drawn(rng, count, *, codes, spread=2.0):
    """Items of three phones in four contexts by three speakers. The frames depend on phone and speaker."""
    places = {key: rng.standard_normal(5) for key in (*"abc", *"xyz")}
    items = []
    for _ in range(count):
        phone, speaker, before, after = (str(rng.choice(list(names))) for names in ("abc", "xyz", "pq", "pq"))
        frames = places[phone] + 0.5 * places[speaker] + spread * rng.standard_normal((rng.integers(1, 6), 5))
        items.append(PhoneItem(phone, before, after, speaker, np.digitize(frames, [-0.7, 0.7]) if codes else frames))
    return items


def distance(one, other):
    """Of two items: the mean over the cheapest path, which is sought backwards through the whole table."""
    apart = np.empty((len(one), len(other)))
    for i, j in product(range(len(one)), range(len(other))):
        if one.dtype.kind == "f":
            near = one[i] @ other[j] / (np.linalg.norm(one[i]) * np.linalg.norm(other[j]))
        else:
            near = np.mean(one[i] == other[j])
        apart[i, j] = math.acos(min(1.0, max(-1.0, near))) / math.pi

    def best(i, j):
        """(cost, cells) of the path to a cell; of equal costs, the diagonal step, then the one along the columns."""
        if (i, j) == (0, 0):
            return apart[0, 0], 1
        before = [best(*cell) for cell in ((i - 1, j - 1), (i, j - 1), (i - 1, j)) if min(cell) >= 0]
        cost, cells = min(before, key=lambda pair: pair[0])
        return cost + apart[i, j], cells + 1

    cost, cells = best(len(one) - 1, len(other) - 1)
    return cost / cells


def by_definition(items, speaker):
    """The averages over contexts and speakers of X, speakers, and pairs of phones, of errors
    counted triple by triple.
    """
    known = {}
    for x, y in product(range(len(items)), repeat=2):
        if (items[x].before, items[x].after) == (items[y].before, items[y].after):
            known[x, y] = distance(items[x].frames, items[y].frames)
    cells = {}
    for a, b, x in product(range(len(items)), repeat=3):
        one, other, third = items[a], items[b], items[x]
        context = (one.before, one.after)
        if not (context == (other.before, other.after) == (third.before, third.after)):
            continue
        if one.phone != third.phone or one.phone == other.phone or one.speaker != other.speaker or a == x:
            continue
        if (speaker == "within") != (third.speaker == one.speaker):
            continue
        to_a, to_b = known[x, a], known[x, b]
        wrong = 1.0 if to_a > to_b else 0.5 if to_a == to_b else 0.0
        cells.setdefault((one.phone, other.phone, one.speaker, *context, third.speaker), []).append(wrong)
    for level in (3, 2):  # contexts and speakers of X, then speakers
        joined = {}
        for key, values in cells.items():
            joined.setdefault(key[:level], []).append(np.mean(values))
        cells = joined
    return np.mean([np.mean(values) for values in cells.values()])


@pytest.mark.parametrize("speaker", ["within", "across"])
@pytest.mark.parametrize("codes", [False, True])
def test_it_is_the_definition(speaker, codes):
    items = drawn(np.random.default_rng(4), 70, codes=codes)
    result = abx_error(items, speaker=speaker, seed=0)
    assert 0.05 < result.error < 0.5 and result.pairs == 6 and result.triples > result.cells > 20
    assert result.error == pytest.approx(by_definition(items, speaker), abs=1e-9)
    assert abx_error(items[::-1], speaker=speaker, seed=5).error == pytest.approx(result.error, abs=1e-12)


def test_chance_is_a_half_and_perfect_separation_is_zero():
    rng = np.random.default_rng(9)
    noise = [
        PhoneItem(i.phone, i.before, i.after, i.speaker, rng.integers(0, 50, (6, 8)))
        for i in drawn(rng, 400, codes=True)
    ]
    for speaker in ("within", "across"):
        assert abx_error(noise, speaker=speaker, seed=0).error == pytest.approx(0.5, abs=0.03)
    messages = [PhoneItem(i.phone, i.before, i.after, i.speaker, np.full((3, 2), ord(i.phone))) for i in noise]
    same = [PhoneItem(i.phone, i.before, i.after, i.speaker, np.zeros((3, 2), int)) for i in noise]
    voice = [PhoneItem(i.phone, i.before, i.after, i.speaker, np.full((3, 2), ord(i.speaker))) for i in noise]
    for speaker in ("within", "across"):
        assert abx_error(messages, speaker=speaker, seed=0).error == 0
        assert abx_error(same, speaker=speaker, seed=0).error == 0.5
        assert abx_error(voice, speaker=speaker, seed=0).error == 0.5


def test_large_groups_are_cut_by_the_seed(monkeypatch):
    items = drawn(np.random.default_rng(2), 300, codes=False, spread=1.5)
    everything = abx_error(items, speaker="across", seed=0)
    monkeypatch.setattr(abx, "SIZE", 3)
    monkeypatch.setattr(abx, "SPEAKERS", 1)
    cut = abx_error(items, speaker="across", seed=0)
    assert cut.triples < everything.triples / 10 and cut.cells == everything.cells / 2
    assert cut.error == pytest.approx(everything.error, abs=0.05)
    assert cut == abx_error(items, speaker="across", seed=0) != abx_error(items, speaker="across", seed=1)


def test_nothing_to_compare_has_no_error():
    assert abx_error([], speaker="within", seed=0).error is None
    alone = [item for item in drawn(np.random.default_rng(1), 60, codes=True) if item.phone == "a"]
    assert abx_error(alone, speaker="within", seed=0) == abx.AbxError(None, 0, 0, 0)
    one_voice = [item for item in drawn(np.random.default_rng(1), 60, codes=True) if item.speaker == "x"]
    assert abx_error(one_voice, speaker="across", seed=0).error is None
    calls = []
    abx_error(one_voice, speaker="within", seed=0, alive=lambda: calls.append(1))
    assert len(calls) == 4
