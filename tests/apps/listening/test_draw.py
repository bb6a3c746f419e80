"""Which items are taken, and what trials they form."""

from __future__ import annotations

from collections import Counter

import pytest
from refusals import refuses

from codec_bench.apps.listening.material import ListeningItem, arrange, collect, draw_order
from codec_bench.messages import Diagnostic


def item(id, *stratum):
    return ListeningItem(id, None, stratum, None, {})


def test_items_are_drawn_evenly_from_the_groups():
    items = [item(f"a{n}", "ann") for n in range(50)] + [item(f"b{n}", "bob") for n in range(3)]
    order = draw_order(items, 1)
    assert Counter(one.stratum[0] for one in order[:6]) == {"ann": 3, "bob": 3}
    assert sorted(one.id for one in order) == sorted(one.id for one in items)
    assert order == draw_order(items[::-1], 1) != draw_order(items, 2)


@pytest.mark.parametrize(
    "kind,each", [("mushra", [("x", "y", "z")]), ("rating", [("x",), ("y",), ("z",)]),
        ("preference", [("x", "y"), ("x", "z"), ("y", "z")]), ("review", [()])]
)  # fmt: skip
def test_every_item_forms_its_trials_and_some_are_repeated(kind, each):
    items = [item(f"i{n}") for n in range(5)]
    trials = arrange(kind, "xyz", items, 2, 2, 7)
    practice, counted = trials[:2], [one for one in trials[2:] if one.repeat_of is None]
    assert all(one.training for one in practice) and {one.item.id for one in practice} == {"i0", "i1"}
    assert sorted((one.item.id, one.systems) for one in counted) == sorted(
        (id, systems) for id in ("i2", "i3", "i4") for systems in each
    )
    again = [one for one in trials if one.repeat_of is not None]
    assert len(again) == 2
    for one in again:
        before = trials[one.repeat_of]
        assert (before.item, before.systems, before.repeat_of, before.training) == (one.item, one.systems, None, False)


def test_items_that_a_system_has_no_audio_of_are_counted(codec_run):
    result = collect([codec_run], [])
    assert len(result.items) == 7 and dict(result.excluded) == {Diagnostic("no_audio_of", systems="quagga-codec"): 1}
    assert {one.stratum for one in result.items} == {(f"speaker {n}",) for n in range(4)}
    assert result.items[0].speaker == "speaker 0" and result.reference(result.items[0]).is_file()
    assert len(collect([codec_run], ["zebra-codec"]).items) == 8


def test_items_can_be_drawn_by_other_columns(codec_run):
    result = collect([codec_run], ["zebra-codec"], by=["language", "speaker"])
    assert {one.stratum for one in result.items} == {("en", f"speaker {n}") for n in range(4)}


def test_systems_of_several_runs_are_judged_over_what_all_have(codec_run, make_run, tmp_path):
    other = make_run(tmp_path / "ibex", samples=6, systems=("zebra-codec", "okapi-codec"))
    result = collect([codec_run, other], [])
    assert result.systems == (
        "aardvark run/unprocessed", "aardvark run/zebra-codec", "quagga-codec", "ibex/unprocessed", "ibex/zebra-codec",
        "okapi-codec",
    )  # fmt: skip
    assert [one.id for one in result.items] == [f"narwhal/{n}" for n in range(5)]
    assert result.excluded["another of the runs does not have the same sample"] == 2
    assert len(collect([codec_run, other], ["okapi-codec"]).items) == 5, (
        "a run whose systems are not chosen adds no condition"
    )


def test_audio_of_a_folder_replaces_what_was_not_saved(codec_run, tmp_path):
    for n in range(8):
        (tmp_path / f"{n}.flac").write_bytes((codec_run.folder / f"audio/quagga-codec/{n:07d}.flac").read_bytes())
    result = collect([codec_run], [], folders={"quagga-codec": tmp_path})
    assert len(result.items) == 8 and result.items[5].outputs["quagga-codec"].audio == tmp_path / "5.flac"


def test_questions_come_with_their_options_and_what_is_right(answer_run):
    result = collect([answer_run], [])
    assert [one.id for one in result.items] == ["narwhal-1", "narwhal-2", "narwhal-3"]
    assert dict(result.excluded) == {Diagnostic("no_answer_of", system="zebra-model"): 1}
    assert (result.items[0].choices, result.items[0].right) == (("Rome", "Paris"), (1,))
    assert result.items[0].sound.is_file() and result.items[1].sound is None


def test_wrong_names_and_kinds_of_runs_are_refused(codec_run, answer_run):
    with refuses("unknown_name", kind="system", name="zebra"):
        collect([codec_run], ["zebra"])
    with refuses("runs_of_two_kinds"):
        collect([codec_run, answer_run], [])
    with refuses("not_a_benchmark_run"):
        collect([codec_run], [], needs_answers=True)
    with refuses("no_column_to_group_by", name="weather"):
        collect([codec_run], [], by=["weather"])
