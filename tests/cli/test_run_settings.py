"""`--set` reaches the models and benchmarks of a run, whatever dots their names and options have."""

import json
from pathlib import Path

import pytest
import soundfile
from refusals import refuses

from codec_bench.api.read_arguments import group_options
from codec_bench.benchmark import load_benchmark
from codec_bench.data import open_source
from codec_bench.models import load_model
from codec_bench.terminal.request import parse_settings
from codec_bench.types import Audio

NAMES = ["qwen2.5-omni-7b", "gpt-4o", "aishell-1", "./mine.yaml"]


def test_dots_in_names_and_in_options():
    settings = [
        "gpt-4o.parameters.temperature=0", "qwen2.5-omni-7b.dtype=float32", "gpt-4o.base_url=http://a.b/v1",
        "utmos.weights=x",
        "aishell-1.data.columns.audio=sound", "./mine.yaml.limit_s=30",
    ]  # fmt: skip
    assert group_options(parse_settings(settings), NAMES) == {
        "gpt-4o": {"parameters.temperature": 0, "base_url": "http://a.b/v1"},
        "qwen2.5-omni-7b": {"dtype": "float32"},
        "utmos": {"weights": "x"},
        "aishell-1": {"data.columns.audio": "sound"},
        "./mine.yaml": {"limit_s": 30},
    }


def test_a_benchmark_of_ones_own_is_named_by_its_path_or_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, name in (("big", ""), ("other", "name: renamed")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "benchmark.yaml").write_text(f"version: 1\n{name}\ntitle: Big\n")
    names = ["./big", "./other/benchmark.yaml", "./mine.yaml"]
    details = [
        "./big.parameters.temperature=0.7",
        "big.parameters.top_p=0.5",
        "renamed.prompt=question",
        "mine.limit_s=3",
    ]
    assert group_options(parse_settings(details), names) == {
        "./big": {"parameters.temperature": 0.7, "parameters.top_p": 0.5},
        "./other/benchmark.yaml": {"prompt": "question"},
        "./mine.yaml": {"limit_s": 3},
    }


def test_a_models_file_next_to_the_benchmarks_folder_does_not_take_the_benchmarks_name(tmp_path, monkeypatch):
    (tmp_path / "doors" / "questions").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "doors")
    Path("questions/benchmark.yaml").write_text("version: 1\nname: doors\ntitle: Doors\n")
    Path("mine.yaml").write_text("version: 1\nkind: openai-chat\n")
    assert group_options(parse_settings(["doors.prompt=question"]), ["./questions", "./mine.yaml"]) == {
        "./questions": {"prompt": "question"}
    }


def test_metrics_can_be_set_as_a_list():
    options = parse_settings(['aishell-1.metrics=["wer[answer]", "cer[answer]"]'])["aishell-1"]
    assert options == {"metrics": ["wer[answer]", "cer[answer]"]}
    built = load_benchmark("aishell-1", {**options, "primary": "cer[answer]"})
    assert set(built.metrics) == {"wer[answer]", "cer[answer]"}


def test_the_longest_name_takes_the_setting():
    assert group_options({"a.b": {"c": 1}}, ["a", "a.b"]) == {"a.b": {"c": 1}}


def test_parameters_can_be_set_one_by_one_or_as_a_mapping():
    def parameters(*settings):
        options = group_options(parse_settings([f"gpt-4o-audio.{setting}" for setting in settings]), ["gpt-4o-audio"])
        return load_model("gpt-4o-audio", options["gpt-4o-audio"]).parameters

    assert parameters("parameters={temperature: 0, stop: [a]}") == {"temperature": 0, "stop": ["a"]}
    assert parameters("parameters={top_p: 0.5}", "parameters.temperature=0") == {"top_p": 0.5, "temperature": 0}


@pytest.mark.parametrize("value", ["temperature", "3", "{temperature", "[temperature]", "{1: 2}"])
def test_parameters_that_are_no_mapping_are_reported_in_a_sentence(value, command):
    code, out, err = command("run", "aishell-1", "--model", "gpt-4o-audio", "--set", f"gpt-4o-audio.parameters={value}")
    assert (code, out) == (2, "")
    assert "the option 'parameters' of the model 'gpt-4o-audio' is" in err and "expected a mapping" in err
    assert "--set gpt-4o-audio.parameters='{temperature: 0}'" in err


def test_the_example_of_a_mapping_fits_the_option():
    with refuses("model_option_not_a_mapping", option="load", model="step-audio-2-mini", value=3) as refused:
        load_model("step-audio-2-mini", {"load": 3})
    setting = "--set step-audio-2-mini.load"
    assert refused.value.hint == f"{setting}='{{NAME: VALUE}}', or {setting}.NAME=VALUE"


READERS = {
    "eval": ("--codec=g722", "--data=embedded", "--metrics=snr", "--limit=1"),
    "score": ("--generated=.", "--data=embedded", "--metrics=snr"),
    "profile": ("--codec=g722", "--limit=1"),
    "run": ("mmar", "--model=openai-chat", "--limit=1"),
    "converse": ("--model=openai-chat",),
    "judge check": (
        "openai-chat",
        "--parts=sounds",
        "--set=openai-chat.base_url=http://127.0.0.1:9",
        "--set=openai-chat.model=m",
    ),
    "validate": ("g722",),
    "verify-batching": ("g722",),
}


@pytest.mark.parametrize("name", READERS)
def test_settings_of_a_name_that_nothing_reads_are_refused_in_every_command(name, command):
    sample = next(iter(open_source("embedded")))
    soundfile.write(f"{sample.id}.wav", 0.5 * Audio.read(sample.audio).samples[0], 16000)
    options = () if name in ("validate", "verify-batching") else ("--out=o",)
    code, out, err = command(*name.split(), *READERS[name], "--set=noneofthese.x=1", *options)
    assert code == 2 and "'noneofthese'" in err, out + err


@pytest.mark.parametrize("name, option", [("g722", "x"), ("snr", "x"), ("embedded", "weights"), ("mmar", "x")])
def test_validate_refuses_an_option_that_its_name_does_not_take(name, option, command):
    code, out, _ = command("validate", name, "--set", f"{name}.{option}=1", "--json")
    assert code == 2
    assert [f["state"] for f in json.loads(out)] == ["wrong"]


@pytest.mark.parametrize("name", ["g722", "snr"])
def test_verify_batching_refuses_an_option_that_its_name_does_not_take(name, command):
    code, _, err = command("verify-batching", name, "--limit=2", "--set", f"{name}.nosuch=1")
    assert code == 2 and "nosuch" in err
