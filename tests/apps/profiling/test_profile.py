"""The whole profile, with correct codecs and codecs that fail in every way. A failure does not affect other codecs."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import Containing, refuses
from rich.console import Console

import codec_bench
from codec_bench.apps.profiling.api import SCHEMA
from codec_bench.apps.profiling.command import profile_tables
from codec_bench.apps.profiling.settings import Settings
from codec_bench.apps.profiling.several_codecs import _marks, _measured_before
from codec_bench.apps.profiling.steps import OPTIONAL, STEPS, ProfileJob
from codec_bench.engine.codec_worker import measure
from codec_bench.messages import Diagnostic


def test_a_right_codec_has_every_number(profiled, odd, tmp_path):
    name = odd("Framed")
    result = profiled(name)
    (sections,) = result.codecs.values()
    states = {key: s["state"] for key, s in sections.items() if isinstance(s, dict) and "state" in s}
    # No torch module, no method `first`, nothing global; all was measured on the CPU; no training steps.
    without = {"complexity", "codebooks_kept", "latent_bits", "speaker_swap", "speed_on_cpu", "transformer"}
    assert {k for k, v in states.items() if v == "not applicable"} == without
    assert states["quality"] == "not measured" and not result.faults
    assert set(states.values()) == {"ok", "not applicable", "not measured"}
    assert sections["info"]["name"] == "framed" and sections["rate"]["nominal_bps"] == 2000.0
    assert sections["load"]["load_s"] > 0 and sections["load"]["memory"]["resident_bytes"] > 1e7
    assert 0 < sections["speed"]["encode_real_time_factor"] < sections["speed"]["real_time_factor"]
    assert sections["batched"]["audio_hours_per_hour"] > 0 and sections["batched"]["items"] == 3
    assert sections["latency"]["lookahead_samples"] == 79 and sections["streaming"]["equals_offline"]
    assert {f["check"] for f in sections["findings"]["findings"]} >= {
        "hidden delay",
        "clipping",
        "length",
        "batch",
        "bitrate label",
    }
    # What it decoded is kept beside the record, for the page's players.
    assert len(sections["players"]) == 2
    for path in sections["players"].values():
        assert codec_bench.Audio.read(tmp_path / "out" / path).num_samples > 1000
    assert result.facts["labels"] == {name: "framed"}
    facts = json.loads((tmp_path / "out" / "profile.json").read_text("utf-8"))
    assert facts == result.as_dict() and facts["schema"] == SCHEMA
    assert facts["machine"]["cores"] and facts["versions"]["python"]


BROKEN = {
    "Raises": ("contract", "RuntimeError: cannot find my tables"),
    "WillNotLoad": ("load", "OSError: no such checkpoint"),
    "Dies": ("contract", "its process ended (exit code 7)"),
}
CUSTOM_CODE = {
    "WrongLength": "output must be as long as input",
    "NotFinite": "samples that are not finite",
    "OutOfRange": "expected 0 to 15",
    "LosesItems": "returned 1 items for a batch of 2",
    "NoInfo": "has nothing as its 'info'",
}


def printed(result):
    stream = io.StringIO()
    Console(file=stream, width=200).print(profile_tables(result.facts, width=200))
    return stream.getvalue()


def test_every_fault_is_one_sentence_and_the_others_are_finished(profiled, odd, custom_code):
    broken = [*map(odd, BROKEN), *map(custom_code, CUSTOM_CODE)]
    result = profiled(*broken, odd("Pcm"), skip=list(OPTIONAL))
    for name, (section, sentence) in BROKEN.items():
        sections = result.codecs[odd(name)]
        assert sections[section]["state"] == "failed" and sections[section]["reason"] == sentence
        rate = sections["rate"]
        assert (rate["state"], rate["reason"]) == ("not measured", sentence)
    for name, sentence in CUSTOM_CODE.items():
        (fault,) = result.faults[custom_code(name)]
        assert sentence in fault and "\n" not in fault
    assert set(result.faults) == set(broken)
    assert "nothing suspect" not in printed(result) and "nothing suspect" in printed(
        profiled(odd("Pcm"), skip=list(OPTIONAL))
    )
    assert result.codecs[odd("Pcm")]["rate"]["nominal_bps"] == 256000.0


def test_a_codec_that_hangs_is_ended_and_the_next_is_measured(profiled, odd, hanging):
    others = [step for step in OPTIONAL if step != "stability"]
    result = profiled(odd("Hangs"), odd("Pcm"), settings={"time_limit_s": 4.0}, skip=others)
    contract = result.codecs[odd("Hangs")]["contract"]
    assert (contract["state"], contract["reason_code"]) == ("failed", {"code": "call_timed_out", "limit_s": 4.0})
    assert result.codecs[odd("Pcm")]["stability"]["state"] == "ok"
    assert set(hanging) == {4.0}


def test_the_limit_is_in_seconds_that_pass(files, odd, tmp_path):
    request = ProfileJob(odd("Hangs"), files, "cpu", Settings(clip_s=0.5, time_limit_s=0.5), tuple(STEPS))
    start = time.monotonic()
    sections = measure(request, tmp_path / "log")
    failed = {section["reason"] for section in sections.values() if section["state"] == "failed"}
    assert failed == {"it did not answer for 0.5 s and was ended"}
    assert time.monotonic() - start >= 0.5


def test_one_measurement_that_hangs_or_dies_leaves_the_others(profiled, odd, hanging):
    result = profiled(odd("HangsInStreams"), odd("DiesOnSilence"), settings={"time_limit_s": 4.0})
    streams, silence = result.codecs[odd("HangsInStreams")], result.codecs[odd("DiesOnSilence")]
    assert streams["streaming"]["reason"] == Diagnostic("call_timed_out", limit_s=4)
    assert streams["stability"]["state"] == streams["rate"]["state"] == "ok"
    assert silence["rate"]["state"] == "ok"
    # Silence is what stands in the place of lost frames.
    assert result.faults[odd("DiesOnSilence")] == ["loss, odd input: its process ended (exit code 7)"]


def test_a_codec_that_changes_its_codebooks_has_no_rate(profiled, odd):
    result = profiled(odd("ChangesItsShape"), limit=6)
    sections = result.codecs[odd("ChangesItsShape")]
    assert sections["rate"]["state"] == "failed" and sections["rate"]["reason_code"]["code"] == "streams_differ"
    assert len(result.faults[odd("ChangesItsShape")]) == 1  # reported once, though three sections are without numbers


def test_what_the_caller_can_mend_is_an_error_before_anything_runs(profiled, odd, tmp_path):
    with refuses("unknown_name", name="opos-12k"):
        profiled("opos-12k", odd("Pcm"))
    with refuses("codec_point", point="3"):
        profiled("opus@3")
    with refuses("no_file"):
        profiled(f"{tmp_path}/nothing.py:Codec")
    with refuses("no_codec_named"):
        profiled()
    with refuses("codec_cannot_be_loaded", reason=Containing("no such checkpoint")):
        profiled(odd("WillNotLoad"))
    with refuses("unknown_name", name="anchor_of_nobody"):
        profiled(odd("Pcm"), anchor="anchor_of_nobody")
    with refuses("unknown_name", kind="metric", name="stoy"):
        profiled(odd("Pcm"), metrics="stoy")
    with refuses("unknown_name", kind="optional_measurement", name="corpus"):
        profiled(odd("Pcm"), skip="corpus")


def test_what_is_omitted_is_not_measured_and_is_reported(profiled, odd):
    done, skipped = [], [step for step in OPTIONAL if step != "speed"]
    result = profiled(
        odd("HangsInStreams"),
        skip=skipped,
        progress=lambda codec, step, *counts: done.append((step, *counts)),
    )
    sections = result.codecs[odd("HangsInStreams")]
    for name in ("streaming", "latency"):
        assert (sections[name]["state"], sections[name]["reason_code"]) == ("not measured", {"code": "skipped"})
    assert not result.faults and sections["speed"]["state"] == "ok" and result.facts["how"]["skip"] == skipped
    steps = [step for step, *_ in done]
    assert (
        "streaming" not in steps
        and "latency" not in steps
        and done[-1][1:] == (len(STEPS) - len(skipped) - 1, len(STEPS) - len(skipped))
    )


def test_a_packet_codec_gives_what_applies_and_reasons_for_the_rest(profiled):
    applied = ("complexity", "latency", "streaming")
    sections = profiled("amr-nb-12k", skip=[step for step in OPTIONAL if step not in applied]).codecs["amr-nb-12k"]
    assert sections["rate"]["nominal_bps"] == pytest.approx(12200, rel=0.06)
    assert sections["rate"]["entropy_coded_bps"] is None and sections["rate"]["packets"]["bytes_median"] == 31
    assert sections["complexity"]["state"] == sections["streaming"]["state"] == "not applicable"
    assert 4 <= sections["latency"]["lookahead_ms"] <= 40


def test_what_an_earlier_copy_left_next_to_a_finished_profile_is_not_used(tmp_path):
    """`measured.json` of a copy in the middle stays where the finished folder, which has none, is copied over it."""
    requests = SimpleNamespace(folder=tmp_path, measured=tmp_path / "measured.json", request={"codecs": ["a"]})
    held = {"codecs": {"a": {"load": {"state": "ok"}}}}
    requests.measured.write_text(json.dumps({**_marks(requests), **held}))
    assert _measured_before(requests) == held["codecs"]
    (tmp_path / "profile.json").write_text('{"codecs": {"a": "finished"}}')
    assert _measured_before(requests) == {}
    requests.measured.write_text(json.dumps({**_marks(requests), **held}))
    assert _measured_before(requests) == held["codecs"], "it is measured anew in the same folder"


def children():
    """The numbers of the processes that this one has started. Another test may keep a browser."""
    return {number for path in Path("/proc/self/task").glob("*/children") for number in path.read_text().split()}


def test_no_process_is_left_behind(profiled, odd, hanging):
    before = children()
    profiled(odd("Hangs"), settings={"time_limit_s": 2.0})
    assert children() <= before


def test_a_network_takes_its_options_and_is_counted(profiled, odd):
    others = [step for step in OPTIONAL if step not in ("speed", "complexity")]
    result = profiled(odd("Network"), options={odd("Network"): {"width": 6}}, skip=others)
    complexity = result.codecs[odd("Network")]["complexity"]
    assert complexity["parameters"] == 2 * 80 * 6
    assert complexity["encoder"]["macs_per_s"] == complexity["decoder"]["macs_per_s"] == 200 * 80 * 6
    assert result.codecs[odd("Network")]["speed"]["threads"]["torch"] == 1
    assert not result.faults
    with refuses("unknown_name", name="nobody"):
        profiled(odd("Network"), options={"nobody": {"width": 6}})


def test_a_decoder_that_writes_into_its_codes_changes_no_number_of_the_codes(profiled):
    wrong = Path(__file__).parents[2] / "codecs" / "checks" / "assets" / "wrong_codecs.py"
    one, other = f"{wrong}:Right", f"{wrong}:UsesUpCodes"
    result = profiled(one, other, skip=list(OPTIONAL))
    assert not result.faults
    assert result.codecs[one]["rate"] == result.codecs[other]["rate"]
    assert result.codecs[other]["rate"]["streams"][0]["entropy_coded_bps"] > 0
