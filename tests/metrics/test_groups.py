"""Groups of metrics: what they hold, what they leave out and say, and that a continued run
keeps what its groups were.
"""

from __future__ import annotations

import warnings

import pytest
from refusals import Containing, refuses

from codec_bench import evaluate, metrics
from codec_bench.messages.errors import Note, UnknownName
from codec_bench.metrics import TABLE, TOPICS, build_metric, group_names
from codec_bench.metrics.groups import GroupConditions, SampleFields, expand_groups, group_metrics
from codec_bench.store.folders import started_fingerprint

ENGLISH = GroupConditions((SampleFields(True, True, "en"),))


@pytest.fixture(autouse=True)
def nothing_fetched(tmp_path, monkeypatch):
    for name in ("CODEC_BENCH_WEIGHTS", "HF_HOME", "HF_HUB_CACHE", "MODELSCOPE_CACHE", "CODEC_BENCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))


def expanded(*names, material=ENGLISH, start=None):
    """The metrics of names, and the messages about them."""
    with warnings.catch_warnings(record=True) as text:
        warnings.simplefilter("always", Note)
        result = expand_groups(list(names), material, start)
    return result, [one.message.message for one in text if issubclass(one.category, Note)]


def test_groups_are_built_from_the_topics():
    assert group_names() == [*TOPICS, "quality", "all-offline"] and "a whole set" not in TOPICS
    assert group_metrics("speaker") == ["sim"]
    assert group_metrics("quality") == [*TOPICS["naturalness"], *TOPICS["fidelity"]]
    assert set(group_metrics("all-offline")) >= set(TABLE)
    assert not set(group_names()) & {*TABLE, *metrics.GROUPS}, "a name says one thing"


def test_a_new_metric_with_a_topic_stands_in_its_group(monkeypatch):
    monkeypatch.setitem(metrics.REGISTRY.built_in, "loudness", "codec_bench.metrics.stoi:Stoi")
    monkeypatch.setitem(TOPICS, "fidelity", (*TOPICS["fidelity"], "loudness"))
    assert "loudness" in expanded("fidelity")[0].metrics


def test_a_group_holds_what_needs_no_download_and_says_what_it_leaves_out():
    result, (text,) = expanded("quality")
    assert result.metrics == result.groups["quality"]
    assert {"dnsmos_ovrl", "stoi", "si_sdr"} <= set(result.metrics) and "utmos" not in result.metrics
    assert (text.code, text.parameters["group"]) == ("group_excludes", "quality")
    assert "utmos: the weights 'utmos22-strong' are not on this machine" in text
    speaker, _ = expanded("speaker")
    assert speaker.metrics == ["sim[ge2e]"], "the encoder that comes with the installation"


def test_metrics_whose_brackets_name_a_model_stand_in_their_group_with_one_that_is_here(monkeypatch):
    monkeypatch.setattr("codec_bench.metrics.groups.BRACKETS", ("whisper-large-v3", "pocketsphinx"))
    result, (text,) = expanded("content")
    assert "wer[pocketsphinx]" in result.metrics and "dwer[pocketsphinx]" in result.metrics
    assert "speechbertscore" in text
    with refuses("nothing_of_group", group="emotion"):
        expanded("emotion")


def test_a_group_follows_the_data():
    alone = GroupConditions((SampleFields(False, False, "en"),), coded=False)
    result, (text,) = expanded("quality", material=alone)
    assert "stoi" not in result.metrics and "dnsmos_sig" in result.metrics
    assert "the data hold no reference audio" in text
    mixed = GroupConditions((SampleFields(False, False, "en"), SampleFields(True, False, "en")))
    assert "stoi" in expanded("quality", material=mixed)[0].metrics, "what some samples allow is measured on them"
    with refuses("nothing_of_group", reasons=Containing("no codec is measured")):
        expanded("rate", material=alone)
    assert expanded("rate")[0].metrics == ["bitrate"]
    german = GroupConditions((SampleFields(True, True, "de"),))
    assert not any(name.endswith("[pocketsphinx]") for name in expanded("all-offline", material=german)[0].metrics)


def test_groups_and_names_mix_and_each_metric_stands_once():
    result, _ = expanded("stoi", "fidelity", "dnsmos", "quality", "wer[pocketsphinx]")
    assert result.metrics[0] == "stoi" and result.metrics[-1] == "wer[pocketsphinx]"
    assert len(set(metrics.expand(result.metrics))) == len(metrics.expand(result.metrics))
    assert "stoi" in result.groups["fidelity"] and "dnsmos_sig" in result.groups["quality"]


@pytest.mark.parametrize("text", ["quality[natural]", "speaker@float16"])
def test_a_group_has_no_brackets_and_no_precision(text):
    with refuses("group_with_brackets"):
        expanded(text)


def test_an_unknown_name_says_what_is_near():
    with pytest.raises(UnknownName) as error:
        build_metric("sound-and-fury")
    assert error.value.hint is not None and "known names is near; the closest are" in error.value.hint
    with refuses("unknown_name", hint="did you mean quality"):
        build_metric("qualitys")


def test_a_continued_run_keeps_what_its_group_was(tmp_path, monkeypatch):
    def run(**changes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Note)
            requested = {"codec": "g711-ulaw", "data": "embedded", "metrics": "rate,si_sdr", "limit": 1, **changes}
            return evaluate(out=tmp_path / "run", workers=1, device="cpu", cache=False, page=False, **requested)

    first = run()
    assert first.meta["config"]["metrics"] == ["bitrate", "si_sdr"]
    assert first.meta["config"]["groups"] == {"rate": ["bitrate"]}
    first.close()
    monkeypatch.setitem(TOPICS, "rate", ("bitrate", "snr"))
    again = run(limit=2)
    assert list(again.metrics) == ["bitrate", "si_sdr"] and again.counts()["finished"] == 2
    assert list(started_fingerprint(tmp_path / "run")["metrics"]) == ["bitrate", "si_sdr"]


def test_the_command_lists_them_and_shows_one(command):
    code, out, _ = command("list", "metrics", "--groups")
    assert code == 0 and all(name in out for name in group_names()) and "dnsmos_ovrl" in out
    assert "sim" in command("show", "speaker")[1]
    code, out, err = command("list", "codecs", "--groups")
    assert (code, out) == (2, "") and "--groups is for metrics" in err
