"""Names of a run's rows, requests for codecs, and entries that are the same."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import Containing, refuses

from codec_bench import Audio, CodecInfo
from codec_bench.config.custom_code import code_hash
from codec_bench.config.registry import source_hash
from codec_bench.engine.plan import build_plan
from codec_bench.engine.systems import check_name, name_systems, read_generated, read_systems, split_name
from codec_bench.messages import Diagnostic

CUSTOM_CODE = Path(__file__).parent / "assets" / "custom_code.py"


def load_own(name="own_code_of_the_caller"):
    """The module of the assets as a script imports it: under its own name, from a file."""
    spec = importlib.util.spec_from_file_location(name, CUSTOM_CODE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def mine():
    module = load_own()
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def target(tmp_path, monkeypatch):
    """A folder with the assets as `codecs/mine.py`, from which the test runs."""
    (tmp_path / "codecs").mkdir()
    shutil.copy(CUSTOM_CODE, tmp_path / "codecs" / "mine.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


REQUESTED = {"data": "embedded", "metrics": "si_sdr,bitrate", "limit": 3}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("opus-12k", None, "opus-12k"),
        ("mine=./x.py:C", "mine", "./x.py:C"),
        (" mine = opus@12 ", "mine", "opus@12"),
        ("./lr=0.1/x.py:C", None, "./lr=0.1/x.py:C"),
        ("a=./lr=0.1/x.py:C", "a", "./lr=0.1/x.py:C"),
        ("here=1.py:C", None, "here=1.py:C"),
        ("here=1.yaml@16", None, "here=1.yaml@16"),
        ("here=1.py:C=2", "here", "1.py:C=2"),
    ],
)
def test_a_name_stands_before_the_first_equals_sign_unless_it_is_part_of_a_path(text, name, kind, target):
    for file in ("here=1.py", "here=1.yaml"):
        Path(file).touch()
    assert split_name(text) == (name, kind)


@pytest.mark.parametrize("text", ["=opus-12k", "mine="])
def test_half_a_name_is_refused(text):
    with refuses("name_or_system_missing"):
        read_systems(text)


@pytest.mark.parametrize(
    "name", ["", " ", 3, None, "a,b", " a", "a\n", "a\x1b[31m", "\u202eabc", "x" * 101, "unprocessed"]
)
def test_what_cannot_be_the_name_of_a_row(name):
    with refuses(
        "name_characters|name_empty|name_of_unprocessed|name_too_long", system="opus-12k", hint="NAME=opus-12k"
    ):
        check_name(name, "opus-12k")


@pytest.mark.parametrize(
    ("requested", "says"),
    [
        (3, {"code": "codec_type", "codec": 3, "type": "int"}),
        ([None], {"code": "codec_type", "type": "NoneType"}),
        (b"opus", {"code": "codec_type", "codec": 111}),
        ([], {"code": "no_codec_named"}),
        ({}, {"code": "no_codec_named"}),
        (" , ", {"code": "no_codec_named"}),
        ({"a,b": "opus-12k"}, {"code": "name_characters"}),
        ({3: "opus-12k"}, {"code": "name_empty", "system": "opus-12k", "name": 3}),
        ("raw=unprocessed", {"code": "unprocessed_renamed"}),
        ("opus-12k=opus-24k", {"code": "name_of_registered_codec", "name": "opus-12k", "system": "opus-24k"}),
        ("unprocessed=opus-24k", {"code": "name_of_unprocessed", "name": "unprocessed"}),
    ],
)
def test_what_is_no_codec_is_reported_in_a_sentence(requested, says):
    with refuses(**says):
        read_systems(requested)


@pytest.mark.parametrize(
    ("requested", "both"),
    [
        ("opus-12k,opus-12k", ["'opus-12k'"]),
        ("opus-12k,opus@12", ["'opus-12k'", "'opus@12'"]),
        ("a=opus@12,b=opus@12.0", ["'opus@12'", "'opus@12.0'", "'a' and 'b'"]),
        (
            "./codecs/mine.py:Quantiser,codecs/mine.py:Quantiser",
            ["'./codecs/mine.py:Quantiser'", "'codecs/mine.py:Quantiser'"],
        ),
        ("a=./codecs/mine.py:Quantiser,b=link.py:Quantiser", ["'./codecs/mine.py:Quantiser'", "'link.py:Quantiser'"]),
        ("./a.yaml@16,a.yaml@16", ["'./a.yaml@16'", "'a.yaml@16'"]),
    ],
)
def test_one_codec_under_two_names_is_refused_with_both(requested, both, target):
    os.symlink("codecs/mine.py", "link.py")
    with refuses("named_twice", kind="codec") as caught:
        build_plan(requested, ["stoi"], {})
    for name in both:
        assert name in caught.value.message.parameters["systems"]


def test_one_object_twice_is_refused_and_two_objects_of_a_class_are_not(mine):
    one = mine.Quantiser()
    with refuses("named_twice", kind="codec", systems="'Quantiser'"):
        build_plan([one, one], ["stoi"], {})
    assert len(build_plan({"a": one, "b": mine.Quantiser()}, ["stoi"], {}).systems) == 2


def test_one_codec_with_other_options_is_another_row(target):
    path = "./codecs/mine.py:Quantiser"
    options = {path: {"a": 1, "b": 1}, "fine": {"b": 2}, "codecs/mine.py:Quantiser": {"c": 3}}
    rows = build_plan(f"coarse={path},fine={path}", ["stoi"], options).systems
    assert [row.stage.options for row in rows] == [{"a": 1, "b": 1, "c": 3}, {"a": 1, "b": 2, "c": 3}]
    with refuses("unknown_name", kind="stage_of_run", name="other"):
        build_plan(f"coarse={path}", ["stoi"], {"other": {"a": 1}})
    with refuses("same_name_as_stage", name="dnsmos"):
        build_plan(f"dnsmos={path}", ["dnsmos"], {})


def test_every_row_keeps_its_audio_in_a_folder_of_its_own():
    def folders(*rows):
        return [system.folder for system in name_systems(read_systems(dict.fromkeys(rows, "opus-12k")))]

    assert folders("opus-12k", "a b", "a_b", "A?B") == ["opus-12k", "a_b", "a_b_2", "A_B_3"]
    assert folders("reference", "questions", "..", ".") == ["reference_2", "questions_2", "_..", "_."]
    assert len(folders("ä" * 100)[0].encode()) <= 200
    assert [s.folder for s in name_systems(read_systems("unprocessed,g722"))] == ["reference", "g722"]


# ---- what a codec of one's own is called ----


def test_a_codec_of_ones_own_has_the_name_that_it_gives_itself(run_it, target):
    run = run_it(
        codec="unprocessed,./codecs/mine.py:Quantiser,coarse=codecs/mine.py:LeaksItsBatch,o=opus-12k", **REQUESTED
    )
    assert list(run.systems) == ["unprocessed", "quantiser", "coarse", "o"]
    assert run.meta["config"]["codecs"] == {
        "quantiser": "./codecs/mine.py:Quantiser", "coarse": "codecs/mine.py:LeaksItsBatch", "o": "opus-12k",
    }  # fmt: skip
    assert {stage["stage"] for stage in run.meta["timings"]["stages"]} >= {"quantiser", "coarse", "o"}
    # By another path of the same file the run goes on; under another name it is another run.
    again = run_it(
        codec=f"unprocessed,{target}/codecs/mine.py:Quantiser,coarse=./codecs/../codecs/mine.py:LeaksItsBatch,"
        f"o=opus-12k",
        **REQUESTED,
    )
    assert again.meta["timings"]["items"] == run.meta["timings"]["items"] == 12
    with refuses("other_settings", differences=Containing("quantiser was")):
        run_it(
            codec="unprocessed,q=./codecs/mine.py:Quantiser,coarse=codecs/mine.py:LeaksItsBatch,o=opus-12k", **REQUESTED
        )


def test_two_codecs_that_give_themselves_one_name_are_refused_with_both(run_it, target, tmp_path):
    both = "./codecs/mine.py:Quantiser,./codecs/mine.py:LeaksItsBatch"
    says = {
        "code": "name_of_two_rows",
        "name": "quantiser",
        "one": "./codecs/mine.py:Quantiser",
        "other": "./codecs/mine.py:LeaksItsBatch",
    }
    with refuses(**says):
        run_it(codec=both, **REQUESTED)
    with refuses("name_of_two_rows", name="g722", one="g722", other="Calls"):
        run_it(codec=["g722", named_codec("g722")], **REQUESTED)
    for name, kind in (
        ("a,b", {"code": "name_characters"}),
        ("unprocessed", {"code": "name_of_unprocessed"}),
        (5, {"code": "name_empty", "name": 5}),
    ):
        with refuses(**kind):
            run_it(codec=named_codec(name), **REQUESTED)
    assert not (tmp_path / "run" / "run.sqlite").exists()


def named_codec(name):
    """A codec that gives itself a name."""
    # Its module has a name of its own: another module under the name of `mine` would hide the classes of `mine`.
    actual = load_own("own_code_with_a_name")
    return type("Calls", (actual.Quantiser,), {"info": CodecInfo(name, (16000,))})()


# ---- classes and objects ----


def test_a_class_an_object_and_a_path_give_the_same_numbers(run_it, mine, same):
    by_path = run_it(
        out="path", codec=f"{CUSTOM_CODE}:RaisesForLong", data="embedded", metrics="si_sdr,bitrate,stoi", limit=8
    )
    by_class = run_it(out="class", codec=mine.RaisesForLong, data="embedded", metrics="si_sdr,bitrate,stoi", limit=8)
    by_object = run_it(
        out="object",
        codec=[mine.RaisesForLong()],
        data="embedded",
        metrics="si_sdr,bitrate,stoi",
        limit=8,
        batch_s=1000,
    )
    assert {s.status for s in by_path.scores()} == {"ok", "failed"}, "some of the clips are too long for this codec"
    same(by_path, by_class)
    same(by_path, by_object)
    assert [i.bits for i in by_path.items()] == [i.bits for i in by_object.items()]
    # What a file holds is the same code by its path and as a class; the run can be continued either way.
    prints = [r.meta["fingerprint"]["systems"]["quantiser"]["code"] for r in (by_path, by_class, by_object)]
    assert prints[0] == prints[1] == code_hash(f"{CUSTOM_CODE}:RaisesForLong") != prints[2]
    assert run_it(
        out="path", codec=mine.RaisesForLong, data="embedded", metrics="si_sdr,bitrate,stoi", limit=8
    ).counts()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("WrongLength", "output must be as long as input"),
        ("LosesItems", "expected a list of 1 Codes"),
        ("Narrow", Diagnostic("out_of_memory")),
        ("Leaves", "SystemExit: 7"),
    ],
)
def test_what_a_codec_of_this_process_does_wrong_fails_its_items(run_it, mine, name, says):
    def leave(self, batch):
        sys.exit(7)

    built = type("Leaves", (mine.Quantiser,), {"encode": leave}) if name == "Leaves" else getattr(mine, name)
    run = run_it(codec=["g711-ulaw", built()], data="embedded", metrics="si_sdr", limit=2)
    assert [s.status for s in run.scores("g711-ulaw")] == ["ok"] * 2
    assert all(says in s.reason for s in run.scores("quantiser"))
    assert [s.status for s in run.scores("quantiser")] == ["failed"] * 2


def test_an_interrupt_in_a_codec_of_this_process_is_the_callers(run_it, mine):
    calls = []

    def encode(self, batch):
        calls.append(len(batch))
        if len(calls) > 2:
            raise KeyboardInterrupt
        return mine.Quantiser.encode(self, batch)

    stopped = type("Stopped", (mine.Quantiser,), {"encode": encode})
    with pytest.raises(KeyboardInterrupt):
        run_it(codec=stopped(), data="embedded", metrics="bitrate", batch_s=0.1)


def test_what_is_no_codec_is_reported_before_anything_runs(run_it, mine, tmp_path):
    class NeedsMore(mine.Quantiser):
        def __init__(self, levels):
            self.levels = levels

    class HalfACodec:
        def encode(self, batch):
            return batch

    for codec, says in (
        (mine.NoInfo, {"code": "codec_info", "type": "nothing"}),
        (mine.NoInfo(), {"code": "codec_info", "type": "nothing"}),
        (HalfACodec(), {"code": "codec_method", "method": "decode"}),
        (NeedsMore, {"code": "not_loadable", "name": "NeedsMore", "cause": Containing("TypeError")}),
        (int, {"code": "codec_type", "codec": "<class 'int'>", "type": "int"}),
    ):
        with refuses(**says):
            run_it(codec=codec, **REQUESTED)
    with refuses("option_of_object", option="levels", name="Quantiser"):
        run_it(codec=mine.Quantiser(), options={"Quantiser": {"levels": 3}}, **REQUESTED)
    assert not (tmp_path / "run" / "run.sqlite").exists()


def test_a_class_takes_options_and_needs_no_file(run_it, mine):
    class Levelled(mine.Quantiser):
        def __init__(self, levels=4):
            self.info = CodecInfo(f"levels@{levels}", (16000,), frame_rate_hz=np.float32(16000))

    run = run_it(codec=[Levelled], options={"Levelled": {"levels": 9}}, **REQUESTED)
    assert list(run.systems) == ["levels@9"] and run.counts()["failed_items"] == 0


def test_a_class_that_only_this_process_can_import_runs_in_it(run_it, tmp_path, monkeypatch):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "levels_of_mine.py").write_text("LEVELS = 16\n")
    text = CUSTOM_CODE.read_text().replace("import os\n", "import os\nfrom levels_of_mine import LEVELS\n", 1)
    text = text.replace("values, 16, 16000", "values, LEVELS, 16000")
    (tmp_path / "beside" / "codec_of_mine.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "beside")
    from codec_of_mine import Quantiser

    run = run_it(codec=Quantiser, **REQUESTED)
    assert run.counts()["failed_items"] == 0 and list(run.systems) == ["quantiser"]


def test_a_run_goes_on_only_with_the_class_that_began_it(run_it, mine):
    class Stepped(mine.Quantiser):
        def decode(self, codes):
            return [Audio(a.samples * 0.5, a.sample_rate_hz) for a in super().decode(codes)]

    first = Stepped
    run_it(codec=Stepped(), **REQUESTED)
    assert run_it(codec=Stepped(), **REQUESTED).counts()["finished"] == 3

    class Stepped(mine.Quantiser):
        def decode(self, codes):
            return [Audio(a.samples * 0.6, a.sample_rate_hz) for a in super().decode(codes)]

    assert source_hash(first) != source_hash(Stepped)
    with refuses("other_settings", differences=Containing("quantiser")):
        run_it(codec=Stepped(), **REQUESTED)


def test_without_its_source_a_class_can_run_but_a_run_cannot_be_continued(run_it, mine):
    space = {"Quantiser": mine.Quantiser}
    exec("class Typed(Quantiser):\n    def encode(self, batch): return super().encode(batch)\n", space)
    assert source_hash(space["Typed"]) is None
    run = run_it(codec=space["Typed"](), **REQUESTED)
    assert run.counts()["failed_items"] == 0
    with refuses("class_source_unknown", system="quantiser"):
        run_it(codec=space["Typed"](), **REQUESTED)


def test_a_preset_names_metrics(run_it, monkeypatch):
    monkeypatch.setattr("codec_bench.metrics.read_config", lambda kind, name: {"metrics": ["stoi", "bitrate"]})
    run = run_it(codec="g711-ulaw", data="embedded", metrics="bitrate", preset="any", limit=1)
    assert list(run.metrics) == ["bitrate", "stoi"]
    with refuses("no_metric_named"):
        run_it(codec="g711-ulaw", data="embedded")


# ---- audio made elsewhere ----


def test_what_cannot_be_generated_audio(tmp_path):
    for name in ("a", "b", "a,b", "c=d"):
        (tmp_path / name).mkdir()
    here = str(tmp_path)

    def rows(requested):
        return [(system.name, kind) for system, kind in read_generated(requested)]

    assert rows(f"{here}/a") == [("generated", f"{here}/a")]
    assert rows(f"{here}/a,b") == [("generated", f"{here}/a,b")], "the folder is called so"
    assert (
        rows(f"x={here}/a,y={here}/b")
        == rows({"x": f"{here}/a", "y": f"{here}/b"})
        == [("x", f"{here}/a"), ("y", f"{here}/b")]
    )
    assert rows(f"{here}/a,y={here}/b") == [("a", f"{here}/a"), ("y", f"{here}/b")]
    for requested, says in (
        (f"{here}/a,{here}/c/a", {"code": "name_of_two_rows", "name": "a", "one": "a", "other": "a"}),
        (f"x={here}/a,x={here}/b", {"code": "name_of_two_rows", "name": "x"}),
        (f"x={here}/a,y={here}/./a", {"code": "named_twice", "kind": "audio"}),
        (f"unprocessed={here}/a", {"code": "name_of_unprocessed"}),
        ({"x": 3}, {"code": "generated_type", "audio": 3, "type": "int"}),
        ([3], {"code": "generated_type"}),
        ({}, {"code": "no_audio_named"}),
    ):
        with refuses(**says):
            read_generated(requested)
