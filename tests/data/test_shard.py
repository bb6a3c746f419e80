"""Which samples a shard takes."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.data import Shard, Source, open_source, part_of, read_shard
from codec_bench.types import Sample

IDS = [f"u{number:04d}" for number in range(1000)]


def source(ids=IDS, **more):
    return Source("made", [Sample(id, None, **more) for id in ids])


def test_every_sample_is_in_one_shard_whatever_the_order():
    parts = [part_of(source(), Shard(k, 7)) for k in range(1, 8)]
    assert sorted(s.id for item in parts for s in item) == IDS
    turned = part_of(source(IDS[::-1]), Shard(3, 7))
    assert {s.id for s in turned} == {s.id for s in parts[2]}
    # Fair by a hash: each of seven holds 143 on average, with a standard deviation of 11.
    assert all(90 < len(item) < 200 for item in parts)


def test_samples_keep_their_place_and_the_whole_keeps_its_fingerprint():
    complete = source(language="de")
    complete.samples[17] = Sample("other", None, language="en")
    item = part_of(complete, Shard(2, 3))
    assert [complete.samples[number] for number in item.numbers] == item.samples
    assert item.fingerprint == complete.fingerprint and item.full_size == len(complete)
    assert item.languages == {"de", "en"}
    assert part_of(complete, None) is complete and list(complete.numbers) == list(range(len(complete)))


def test_the_limit_chooses_before_the_shards_divide():
    chosen = open_source([Sample(id, "x.wav") for id in IDS], limit=50, seed=3)
    parts = [part_of(chosen, Shard(k, 4)) for k in range(1, 5)]
    assert sorted(s.id for item in parts for s in item) == sorted(s.id for s in chosen)


def test_a_column_is_stored_by_a_shard_if_the_whole_keeps_it():
    many = [Sample(id, None, extra={"word": f"w{number}", "kind": f"{number % 3}"}) for number, id in enumerate(IDS)]
    item = part_of(Source("made", many), Shard(1, 8))
    assert list(item.columns) == ["kind"]  # a thousand words form no groups, and an eighth of them would


@pytest.mark.parametrize(
    "requested", ["5/4", "0/4", "a/b", "3", "1/0", "-1/3", "1/2/3", (1,), (1, 2, 3), 3, (1.0, 2), "1/999999"]
)
def test_what_is_no_shard_is_one_sentence(requested):
    with refuses("shard_form|shard_range"):
        read_shard(requested)


@pytest.mark.parametrize("requested", ["3/8", " 3/8 ", (3, 8), [3, 8], Shard(3, 8)])
def test_ways_to_name_a_shard(requested):
    assert read_shard(requested) == Shard(3, 8)
    assert str(read_shard(requested)) == "3/8"


def test_more_shards_than_samples_is_reported():
    with refuses("shard_without_samples", data="made"):
        for k in range(1, 101):
            part_of(source(IDS[:3]), Shard(k, 100))
