"""`validate` of codecs: each in a process of its own, and whatever that process does is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_codecs import NAMES
from refusals import Containing, refuses

from codec_bench.api import check_codec as check
from codec_bench.api.check_codec import check_codec
from codec_bench.api.verify_batching import verify_batching
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks import faulty_findings
from codec_bench.config.limits import Limits
from codec_bench.messages import Diagnostic

WRONG = Path(__file__).parents[2] / "codecs" / "checks" / "assets" / "wrong_codecs.py"

ENDS = {
    "RaisesWhenBuilt": ("load", "OSError: no such checkpoint"),
    "ExitsWhenBuilt": ("load",
        "its process ended (exit code 0); the last that it wrote: this machine has no licence for me"),
    "Aborts": ("contract",
        "its process ended (killed by signal 6); the last that it wrote: Assertion failed: frames > 0"),
    "Grows": ("contract", "it took more than 1.5 GiB of memory and was ended"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_however_a_process_ends_it_is_one_sentence(name):
    check, sentence = ENDS[name]
    (result,) = check_codec(codec=f"{WRONG}:{name}", settings=Limits(memory_gib=1.5))
    assert (result["check"], result["state"], result["found"]) == (check, "failed", sentence)


def test_a_codec_that_hangs_is_ended(odd, hanging):
    (result,) = check_codec(codec=odd("Hangs"), settings=Limits(time_limit_s=4.0))
    assert result["found"] == Diagnostic("call_timed_out", limit_s=4)
    assert set(hanging) == {4.0}


def test_codes_are_decoded_by_another_process(monkeypatch):
    monkeypatch.setattr(check, "CLIPS", 1)
    (named,) = faulty_findings(check_codec(codec=f"{WRONG}:PassesAside"))
    assert named["check"] == "decoded elsewhere" and named["state"] == "failed"
    assert named["found"].startswith("another process cannot decode the codes: KeyError: ")


RIGHT = {"contract", "bitrate label", "repeatable", "batch", "decoded elsewhere", "length"}


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_neural_codec_of_the_project_has_no_finding_and_what_training_decides_is_not_sent(name):
    by_name = {
        f["check"]: f for f in check_codec(codec=name, options={"weights": "random"}, settings=Limits(threads=1))
    }
    assert not faulty_findings(by_name.values())
    expected = dict.fromkeys(RIGHT, "ok")
    if load_codec(name, weights="random").info.latents is not None:  # continuous latents have no bits
        expected["bitrate label"] = "not applicable"
    assert {check: by_name[check]["state"] for check in RIGHT} == expected, by_name


def test_batches_are_verified_in_a_process_of_the_codec():
    assert verify_batching(name=f"{WRONG}:Right", limit=3).exact
    result = verify_batching(name=f"{WRONG}:LeaksAFrame", limit=3)
    assert not result.exact and 0 < result.flips < result.frames / 10
    with refuses("file_without_attribute", name="LeaksAFram"):
        verify_batching(name=f"{WRONG}:LeaksAFram", limit=3)
    with refuses("codec_not_run", reason=Containing("killed by signal 6")):
        verify_batching(name=f"{WRONG}:Aborts", limit=3)


def test_a_metric_without_any_value_is_not_called_exact(tmp_path):
    """Nothing was compared, so that nothing is known of its batches."""
    (tmp_path / "mine.py").write_text(
        "from codec_bench import Metric, Score\n\n\n"
        "class Bad(Metric):\n"
        "    name, kind, rate_hz, protocol = 'bad', 'pair', 16000, 'bad/1'\n\n"
        "    def compute(self, batch):\n"
        "        return [self.one(item) for item in batch]\n\n"
        "    def one(self, item):\n"
        "        raise KeyError('x')\n\n\n"
        "class GivesNaN(Bad):\n"
        "    def one(self, item):\n"
        "        return float('nan')\n\n\n"
        "class Short(Bad):\n"
        "    def one(self, item):\n"
        "        return Score.undefined('too short', self.protocol) if len(item.estimate) < 30_000 else 1.0\n"
    )
    for name, reason in (("Bad", "KeyError: 'x'"), ("GivesNaN", "returned nan")):
        with refuses("batch_without_value", clips=4, reason=Containing(reason)):
            verify_batching(name=f"{tmp_path}/mine.py:{name}", limit=4)
    assert verify_batching(name=f"{tmp_path}/mine.py:Short", limit=4).exact, "some clips have a value"
