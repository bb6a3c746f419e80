"""Bad input of every kind in one run: one clear sentence names each, and other samples are not affected."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench.cli.app import build_command
from codec_bench.data import open_source
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.report.open_run import open_run
from codec_bench.types import Audio

METRICS = "wer[pocketsphinx],sim[ge2e],dnsmos,pesq_wb,pesq_nb,stoi,estoi,si_sdr,mel_distance,stft_distance,bitrate"


@pytest.fixture(scope="module")
def good():
    sample = next(iter(open_source("embedded")))
    return sample, Audio.read(sample.audio).samples[0, :25_600]  # its first words


@pytest.fixture
def folder(tmp_path, good):
    """A data set in which all samples but two are wrong."""
    sample, x = good
    rows = []

    def add(id, samples=None, rate=16000, raw=None, name=None, text="hello there", **more):
        path = tmp_path / (name or f"{id}.wav")
        if raw is not None:
            path.write_bytes(raw)
        elif samples is not None:
            soundfile.write(path, samples, rate, subtype="FLOAT" if path.suffix == ".wav" else "PCM_16")
        rows.append(
            json.dumps({"id": id, "audio": path.name, "text": text, "language": "en", **more}, ensure_ascii=False)
        )
        return path

    add("good", x, text=sample.text)
    add("missing")
    add("empty", raw=b"")
    add("cut", x, name="cut.flac")
    cut = tmp_path / "cut.flac"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    add("text", raw=b"this is not sound\n" * 100)
    add("nothing", x[:0])
    add("silence", np.zeros(32000, np.float32))
    add("nan", np.r_[x[:8000], np.nan, x[8000:]])
    add("inf", np.r_[x[:8000], np.inf, x[8000:]])
    add("loud", 4 * x, text=sample.text)
    add("short", x[8000:8800])
    add("eight", np.stack([x] * 8, 1), text=sample.text)
    add("low", x[::4], 4000)
    add("high", np.repeat(x, 12), 192000, text=sample.text)
    add("ünï cødé 北京", x, name="ünï cødé 北京.wav", text=sample.text)
    add("good", x)  # a doubled id
    rows.append("{this is not JSON")
    add("no text", x, text=None)
    add("no words", x, text="")
    (tmp_path / "manifest.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


FAILED = {
    "missing": "there is no file",
    "empty": "is empty",
    "cut": "cut.flac",
    "text": "not a sound file",
    "nothing": "no samples",
    "nan": "not finite",
    "inf": "not finite",
}


def test_every_bad_sample_is_reported_and_the_rest_is_unharmed(folder, cli, good):
    code, _out, err = cli(
        "eval", "--codec", "opus-12k,g711-ulaw", "--data", folder / "manifest.jsonl", "--metrics", METRICS, "--out",
        "run", "--no-cache", "--no-check",
    )  # fmt: skip
    assert code == 3, err
    run = open_run(folder / "run")
    scores = {(s.system, s.id, s.metric): s for s in run.scores()}
    ids = [s.id for s in run.samples()]
    metrics, systems = list(run.metrics), list(run.systems)
    assert len(ids) == 19
    assert len(scores) == len(ids) * len(metrics) * len(systems), "nothing is missing from the count"
    for id, reason in FAILED.items():
        for metric in metrics:
            score = scores["opus-12k", id, metric]
            assert score.status == "failed"
            assert reason in score.reason
            assert id in score.reason, "the sentence names the item"
            assert "\n" not in score.reason
    duplicates = [s for s in run.scores("opus-12k", "stoi") if "good" in (s.reason or "")]
    broken = [s for s in run.scores("opus-12k", "stoi") if "JSON" in (s.reason or "")]
    assert len(duplicates) == 1 and len(broken) == 1
    assert duplicates[0].status == broken[0].status == "failed"
    # Samples that are unusual but correct have numbers.
    for id in ("good", "loud", "eight", "high", "ünï cødé 北京"):
        for metric in metrics:
            assert scores["opus-12k", id, metric].status == "ok", (id, metric, scores["opus-12k", id, metric].reason)
    for metric in ("stoi", "si_sdr", "mel_distance", "dnsmos_ovrl"):
        assert scores["g711-ulaw", "low", metric].status == "ok", metric
    # A score without a value gives the reason; it is neither a number nor a failure.
    for metric in ("stoi", "estoi", "pesq_wb", "si_sdr", "sim[ge2e]"):
        assert scores["opus-12k", "silence", metric].status == "undefined", metric
    for metric in ("stoi", "estoi", "pesq_wb"):
        assert scores["opus-12k", "short", metric].status == "undefined", metric
    assert scores["opus-12k", "no text", "wer[pocketsphinx]"].status == "refused"
    # Where the text has no words, those of the transcript are errors.
    output = scores["opus-12k", "no words", "wer[pocketsphinx]"]
    assert (output.status, output.denominator) == ("ok", 0) and output.numerator == output.detail["insertions"] > 0
    for id in ("no text", "no words"):
        assert scores["opus-12k", id, "stoi"].status == "ok"
    notes = {i.id: i.notes for i in run.items("opus-12k")}
    assert "beyond full scale" in notes["loud"][0]
    # The good sample has the same numbers as when it is evaluated alone.
    code, _, err = cli(
        "eval", "--codec", "opus-12k", "--data", folder / "good.wav", "--metrics", "stoi,pesq_wb,dnsmos,si_sdr",
        "--out", "alone", "--no-cache", "--no-check",
    )  # fmt: skip
    assert code == 0, err
    for score in open_run(folder / "alone").scores():
        assert score.value == scores["opus-12k", "good", score.metric].value, score.metric
    summary = json.loads((folder / "run" / "summary.json").read_text())
    for system in systems:
        for metric in metrics:
            entry = summary["systems"][system]["metrics"][metric]
            assert entry["n"] + entry["failed"] == len(ids)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_in_which_no_score_has_a_value_says_so(folder, cli, good, as_json):
    """Every estimate is twice as long as its reference, so that no pair can be compared."""
    _sample, x = good
    for name in ("a", "b"):
        for target, samples in (("tts", np.r_[x, x]), ("data", x)):
            (folder / target).mkdir(exist_ok=True)
            soundfile.write(folder / target / f"{name}.wav", samples, 16000)
    requests = [
        "score",
        "--generated",
        "tts",
        "--data",
        folder / "data",
        "--no-cache",
        *(["--json"] if as_json else []),
    ]
    code, out, err = cli(*requests, "--metrics", "stoi,si_sdr", "--out", "none")
    assert code == 3 and "none of 4 scores has a value: 4 refused" in err
    if as_json:
        (system,) = json.loads(out)["systems"].values()
        assert {name: (one["n"], one["missing"]) for name, one in system["metrics"].items()} == {
            name: (0, {"refused": 2}) for name in ("stoi", "si_sdr")
        }
    code, _, err = cli(*requests, "--metrics", "stoi,dnsmos", "--out", "some")
    assert code == 3 and "none of" not in err and "stoi" in err


def test_generated_audio_longer_than_its_reference(folder, cli, good):
    _sample, x = good
    (folder / "tts").mkdir()
    soundfile.write(folder / "tts" / "good.wav", np.r_[x, x], 16000)
    soundfile.write(folder / "tts" / "loud.wav", np.r_[x, np.zeros(800, np.float32)], 16000)
    soundfile.write(folder / "tts" / "stranger.wav", x, 16000)
    code, _out, err = cli(
        "score",
        "--generated",
        "tts",
        "--data",
        folder / "manifest.jsonl",
        "--metrics",
        "stoi,dnsmos",
        "--out",
        "run",
        "--no-cache",
    )
    assert code == 3, err
    assert "stranger" in err
    scores = {(s.id, s.metric): s for s in open_run(folder / "run").scores()}
    assert scores["good", "stoi"].status == "refused"
    assert scores["good", "stoi"].reason.code == "lengths_differ"
    assert scores["good", "dnsmos_ovrl"].status == "ok"
    assert scores["loud", "stoi"].status == "ok", "0.05 s too long is mended"
    assert scores["silence", "stoi"].reason == Diagnostic("no_generated_audio")


@pytest.mark.parametrize("minutes", [3, pytest.param(60, marks=pytest.mark.long)])
def test_a_long_file(tmp_path, cli, good, minutes):
    _, x = good
    soundfile.write(tmp_path / "long.flac", np.resize(x, minutes * 60 * 16000), 16000)
    code, out, err = cli(
        "eval",
        "--codec",
        "g711-ulaw",
        "--data",
        tmp_path / "long.flac",
        "--metrics",
        "si_sdr,stoi,bitrate,pesq_wb",
        "--out",
        "run",
        "--json",
    )
    summary = json.loads(out)["systems"]["g711-ulaw"]["metrics"]
    assert code == 3, err  # every score of PESQ is refused
    assert summary["si_sdr"]["n"] == 1 and summary["stoi"]["n"] == 1
    assert summary["bitrate"]["value"] == pytest.approx(64000, rel=1e-3)
    reasons = [s.reason for s in open_run(tmp_path / "run").scores(metric="pesq_wb")]
    assert "PESQ" in reasons[0] or "pesq" in reasons[0]


@pytest.mark.parametrize(
    "args, says",
    [
        (["eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "stio"], "did you mean"),
        (["eval", "--codec", "opus-12k", "--data", "embedded"], "no metric was named"),
        (["eval", "--codec", "opus-12k", "--data", "nowhere", "--metrics", "stoi"], "nowhere"),
        (["eval", "--codec", "./none.py:Mine", "--data", "embedded", "--metrics", "stoi"], "none.py"),
        (["eval", "--codec", "encodec-24khz@7", "--data", "embedded", "--metrics", "stoi"], "1.5"),
        (
            ["eval", "--codec", "opus-12k", "--data", "embedded", "--metrics", "stoi", "--set", "nonsense"],
            "NAME.OPTION=VALUE",
        ),
        (
            ["eval", "--codec", "a=opus-12k,opus@12", "--data", "embedded", "--metrics", "stoi"],
            "the same codec is named twice: 'opus-12k' and 'opus@12'",
        ),
        (
            ["score", "--generated", "a=here,a=there", "--data", "embedded", "--metrics", "stoi"],
            "'a' would be the name of two rows: 'here' and 'there'",
        ),
        (["report", "nowhere"], "not a run folder"),
        (["export", "nowhere"], "not a run folder"),
        (["compare", "nowhere"], "not a run folder"),
        (["show", "stio"], "did you mean"),
        (["list", "codec"], "did you mean codecs"),
        (["verify-batching", "nothing-such"], "there is no"),
    ],
)
def test_mistakes_on_the_command_line_exit_with_2_and_one_sentence(command, args, says):
    code, out, err = command(*args)
    assert code == 2
    assert says in err
    assert out == ""


@pytest.mark.parametrize("option", ["--out", "--metrics", "--limit", "--set", "--seed", "--shard", "--by"])
def test_an_option_does_not_take_the_next_one_for_its_value(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refuses("value_missing", option=option, word="--device") as caught:
        build_command("eval").main(["--codec", "g722", option, "--device", "cpu"], standalone_mode=False)
    assert caught.value.hint == f"write {option}=--device if that is the value"
    with refuses("value_missing", option="--from", word="--to"):
        build_command("weights").main(["fetch", "utmos", "--from", "--to", "x"], standalone_mode=False)
    assert not list(tmp_path.iterdir())


def _typed(monkeypatch, name, *args):
    """The values of a command line."""
    seen = {}
    monkeypatch.setattr(build_command(name), "invoke", lambda context: seen.update(context.params))
    build_command(name).main(list(args), standalone_mode=False)
    return seen


def test_an_option_of_several_values_is_repeated_or_has_commas(monkeypatch):
    eval_ = ("eval", "--data", "embedded", "--codec", "a,b", "--set", "x.y=1", "--codec=c", "--metrics", "stoi")
    seen = _typed(
        monkeypatch, *eval_, "--set", "x.z=2", "--metrics", "snr", "--json", "--json", "--by", "a", "--by", "b"
    )
    assert (seen["codec"], seen["metrics"], seen["by"]) == ("a,b,c", "stoi,snr", ["a", "b"])
    assert seen["set"] == ["x.y=1", "x.z=2"]
    two = ("--generated", "a=x", "--generated", "b=y")
    assert _typed(monkeypatch, "score", "--data", "embedded", *two)["generated"] == "a=x,b=y"
    assert _typed(monkeypatch, "serve", "--metrics", "stoi", "--metrics", "snr")["metrics"] == "stoi,snr"


@pytest.mark.parametrize(
    "repeated", ["--limit 3 --limit 4", "--limit 3 --limit=3", "--out a --out b", "--cache --no-cache"]
)
def test_an_option_of_one_value_is_not_repeated(repeated):
    with pytest.raises(UserError):
        build_command("eval").main(["--codec", "g722", "--data", "embedded", *repeated.split()], standalone_mode=False)


@pytest.mark.parametrize("typed", [["--save-audio"], ["--save-audio", "--out", "x"], ["--save-audio", "all"]])
def test_save_audio_alone_means_all(typed, tmp_path, monkeypatch):
    seen = []
    for name in ("eval", "run"):
        monkeypatch.setattr(build_command(name), "invoke", lambda context: seen.append(context.params["save_audio"]))
    build_command("eval").main(["--codec", "g722", "--data", "embedded", *typed], standalone_mode=False)
    build_command("run").main(["a", "--model", "m", *typed], standalone_mode=False)
    build_command("eval").main(["--codec", "g722", "--data", "embedded", "--save-audio", "3"], standalone_mode=False)
    assert seen == ["all", "all", "3"]
