"""Every command once, as a person types it: `cli` in a process of its own, `command` in this one, which is quicker."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest
import soundfile
import yaml
from command_line import COMMAND

from codec_bench.codecs.checks import TO_DO
from codec_bench.metrics import TABLE, TOPICS
from codec_bench.store.rows import TABLE_COLUMNS

CUSTOM_CODE = Path(__file__).parents[1] / "engine" / "assets" / "custom_code.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with two systems."""
    from codec_bench import evaluate

    return evaluate(
        codec="opus-12k,g711-ulaw", data="embedded", metrics="stoi,si_sdr,bitrate", limit=6,
        out=tmp_path_factory.mktemp("cli") / "run",
        cache=False, workers=1,
    )  # fmt: skip


def test_eval_prints_a_table_on_stdout_and_talks_on_stderr(cli, command, tmp_path):
    requests = [
        "eval",
        "--codec",
        "g711-ulaw",
        "--data",
        "embedded",
        "--metrics",
        "si_sdr,bitrate",
        "--limit",
        3,
        "--out",
        "r",
    ]
    code, out, err = cli(*requests, "--no-cache", "--timings")
    assert code == 0
    assert "g711-ulaw" in out and "si_sdr" in out and "where the time went" in out
    _, again, _ = command(*requests)
    assert "g711-ulaw" in again and "where the time went" not in again
    assert "3 of 3 items" in err and "report.html" in err
    held = {p.name for p in (tmp_path / "r").iterdir()}
    assert {"run.sqlite", "run.json", "summary.json", "report.html", "audio"} <= held
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert summary["schema"] == 1
    entry = summary["systems"]["g711-ulaw"]["metrics"]["si_sdr"]
    assert {"value", "ci95", "n", "failed", "unit", "higher_is_better", "protocol"} <= entry.keys()
    assert entry["n"] == 3 and entry["ci95"][0] <= entry["value"] <= entry["ci95"][1]
    assert summary["systems"]["g711-ulaw"]["bitrate_bps"]["value"] == pytest.approx(64000, rel=1e-3)


def test_json_is_all_there_is_on_stdout(cli):
    requested = "eval --codec g711-ulaw --data embedded --metrics si_sdr --limit 2 --out r --json --no-cache"
    code, out, _ = cli(*requested.split())
    assert code == 0
    assert json.loads(out)["systems"]["g711-ulaw"]["metrics"]["si_sdr"]["n"] == 2


def test_a_manifest_of_every_kind_gives_the_same_numbers(command, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    from codec_bench.data import open_source

    rows = [
        {"id": s.id, "audio": s.audio, "text": s.text, "speaker": s.speaker, "language": "en"}
        for s in list(open_source("embedded"))[:2]
    ]
    (tmp_path / "m.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    for suffix, delimiter in (("csv", ","), ("tsv", "\t")):
        with open(tmp_path / f"m.{suffix}", "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "m.parquet")
    seen = []
    for suffix in ("jsonl", "csv", "tsv", "parquet"):
        requested = (
            f"eval --codec g711-ulaw --data m.{suffix} --metrics si_sdr --out {suffix} --json --no-cache --workers 1"
        )
        code, out, err = command(*requested.split())
        assert code == 0, err
        seen.append(json.loads(out)["systems"]["g711-ulaw"]["metrics"])
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_own_code_by_relative_path(command, tmp_path):
    (tmp_path / "mine.py").write_text(CUSTOM_CODE.read_text())
    line = "eval --codec ./mine.py:Quantiser --data embedded --metrics si_sdr,./mine.py:Loudness --limit 1 "
    line += "--workers 1 --out r"
    code, out, err = command(*line.split(), "--json", "--no-cache")
    assert code == 0, err
    assert set(json.loads(out)["systems"]["quantiser"]["metrics"]) == {"si_sdr", "./mine.py:Loudness"}
    # The file changed: the run must not go on as if it had not.
    (tmp_path / "mine.py").write_text(CUSTOM_CODE.read_text() + "\n# another version\n")
    code, _, err = command(*line.split(), "--no-cache")
    assert code == 2 and "code was" in err
    code, out, err = command("validate", "./mine.py:Quantiser", "./mine.py:Loudness", "--json")
    # Zero is none of its 16 levels: silence comes back as a constant, and a quiet clip as a louder one.
    assert code == 2 and [f["what"] for f in json.loads(out) if f["state"] not in ("ok", "note")] == [
        "codec ./mine.py:Quantiser: loudness of clips",
        "codec ./mine.py:Quantiser: digital silence",
    ]
    code, out, _ = command("validate", "./mine.py:WrongLength")
    assert code == 2 and "output must be as long as input" in " ".join(out.split())
    code, out, _ = command("verify-batching", "./mine.py:Quantiser")
    assert code == 0 and "yes" in out
    code, out, _ = command("verify-batching", "./mine.py:LeaksItsBatch")
    assert code == 2 and "NO" in out


@pytest.mark.parametrize("kind", ["codecs", "metrics", "features", "rules", "data", "presets", "plugins"])
def test_list(command, kind):
    code, out, err = command("list", kind)
    assert code == 0 and (out.strip() or "no plugins" in err)
    code, out, _ = command("list", kind, "--json")
    rows = json.loads(out)
    assert isinstance(rows, list) and (rows or kind == "plugins")
    assert all("name" in row for row in rows)


def test_the_list_of_metrics_is_by_topic_and_says_what_each_needs(command):
    rows = json.loads(command("list", "metrics", "--json")[1])
    topics = [row["about"] for row in rows]
    assert topics == sorted(topics, key=[*TOPICS, ""].index)
    known = [name for members in TOPICS.values() for name in members]
    assert sorted(known) == sorted(TABLE), "each metric has one topic"
    needs = {row["name"]: row["needs"] for row in rows}
    assert needs["wer"] == "text, by variant" and needs["stoi"] == "reference"
    assert needs["utmos"] == needs["audiobox"] == "checkpoint" and needs["speechbertscore"] == "reference, checkpoint"
    assert needs["dnsmos"] == needs["bitrate"] == ""
    better = {row["name"]: row["better"] for row in rows}
    assert (better["stoi"], better["wer"], better["speech_share"]) == ("higher", "lower", "neither")


@pytest.mark.parametrize(
    "name, says",
    [
        ("stoi", "pystoi"), ("dnsmos", "dnsmos/speechmos"), ("wer[pocketsphinx]", "pocketsphinx"),
        ("wer", "recogniser"), ("opus-12k", "12000"),
        ("encodec-24khz@6", "75"), ("ge2e", "resemblyzer"), ("embedded", "fingerprint"), ("demo", "opus-6k"),
    ],
)  # fmt: skip
def test_show(command, name, says):
    code, out, err = command("show", name)
    if name.startswith("encodec") and code == 2:
        assert "facebook/encodec_24khz" in err, "its weights are not here, and that is said"
        return
    assert code == 0, err
    assert says.lower() in out.lower()


def test_show_prints_the_prompt_of_a_rubric_whole_and_as_a_file_of_ones_own_holds_it(command):
    _, out, _ = command("show", "absolute-1-5")
    table, prompt = out.split("prompt: |", 1)
    assert "\ufffd" not in out and "mark" not in table
    shown = yaml.safe_load("prompt: |" + prompt)["prompt"]
    assert shown == json.loads(command("show", "absolute-1-5", "--json")[1])["prompt"]


def test_show_validate_and_export_of_a_run(command, run, tmp_path):
    code, out, _ = command("show", run.folder)
    assert code == 0 and "opus-12k" in out
    code, out, _ = command("validate", run.folder)
    assert code == 0 and "12 of 12" in out
    code, out, _ = command("export", run.folder)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 2 * 6 * 3
    assert out.startswith(",".join(TABLE_COLUMNS) + "\n")
    code, out, _ = command("export", run.folder, "--format", "parquet", "--out", "x.parquet")
    assert code == 0 and (tmp_path / "x.parquet").stat().st_size > 1000


def test_compare_two_systems_and_two_runs(command, run, tmp_path):
    code, out, _ = command("compare", run.folder, "--json")
    assert code == 0
    (pair,) = json.loads(out)
    by_metric = {c["metric"]: c for c in pair["comparisons"]}
    assert by_metric["stoi"]["pairs"] == 6
    assert by_metric["stoi"]["wins"] == 0 and by_metric["stoi"]["losses"] == 6, "opus-12k loses to 64 kbit/s everywhere"
    stoi = by_metric["stoi"]
    assert (
        stoi["low"] < stoi["difference"] < min(0, stoi["high"])
        if stoi["units"] >= 3
        else "needs at least" in stoi["note"]
    )
    code, out, _ = command("compare", run.folder, run.folder, "--metrics", "stoi")
    assert code == 0 and "opus-12k" in out and "stoi" in out
    code, _, err = command("compare", run.folder, "--systems", "opus-12k,opus-13k")
    assert code == 2 and "did you mean opus-12k" in err


def test_report_of_two_runs(command, run, tmp_path):
    code, out, _ = command("report", run.folder, run.folder, "--out", "both.html")
    assert code == 0 and out.strip() == "both.html"
    assert (tmp_path / "both.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_folder_that_holds_a_definition_is_validated_as_one_and_run_names_its_path(command, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "benchmark.yaml").write_text("version: 3\n")
    soundfile.write(tmp_path / "mine" / "a.wav", [0.1, 0.2] * 800, 16_000)
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("validate", "mine")
    assert code == 2 and "version: Input should be 1; got 3" in " ".join(out.split())
    code, _, err = command("run", "mine", "--model", "gpt-4o")
    assert code == 2 and "a custom definition is named by its path: ./mine" in err


def test_validate_names_every_bad_row(command, tmp_path):
    (tmp_path / "m.jsonl").write_text('{"audio": "none.wav"}\nnot json\n')
    code, out, _ = command("validate", "m.jsonl")
    assert code == 2
    assert "none.wav" in out or "line 2" in out
    (complete,) = [row for row in out.splitlines() if "0 of 2 samples can be read" in row]
    assert "WRONG" in complete


def test_validate_tells_each_name_when_it_is_done(tmp_path):
    waits = (
        "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.05)\n"
        "raise OSError('no licence')\n"
    )
    (tmp_path / "mine.py").write_text(waits + "class Mine:\n    def encode(self, batch): ...\n")
    requests = [*COMMAND, "validate", "g711-ulaw", "./mine.py:Mine"]
    with subprocess.Popen(requests, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        seen = iter(process.stdout.readline, "")
        assert any("codec g711-ulaw" in line for line in seen)
        assert any(line.split()[:2] == ["decoded", "elsewhere"] for line in seen)
        (tmp_path / "go").touch()  # the second codec has waited for it until now
        (load,) = [line for line in seen if "WRONG" in line]
    assert process.returncode == 2 and "no licence" in load and load.rstrip().endswith(TO_DO["load"])


def test_doctor_and_version(cli):
    code, out, _ = cli("doctor", "--json")
    findings = json.loads(out)
    assert {f["what"] for f in findings} >= {
        "python",
        "torch and torchaudio match",
        "one onnxruntime",
        "embedded speech",
        "GPU",
    }
    assert code == (2 if any(f["state"] == "wrong" for f in findings) else 0)
    code, out, _ = cli("--version")
    assert code == 0 and out.strip()


def test_two_onnxruntimes_are_detected(monkeypatch):
    from codec_bench.api import doctor

    monkeypatch.setattr(doctor, "package_version", lambda name: "1.2" if "onnxruntime" in name else "1")
    finding = doctor._onnxruntime()
    assert finding.state == "wrong" and finding.found.code == "onnxruntimes_clash" and "uninstall" in finding.do


def test_help_loads_little():
    import subprocess
    import sys

    code = (
        "import sys\nbefore = set(sys.modules)\nfrom codec_bench.cli import main\n"
        "sys.argv = ['codec-bench', '--help']\n"
        "try:\n    main()\nfinally:\n    print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    loaded = done.stderr.split()
    assert done.returncode == 0 and "codec_bench.cli.app" in loaded, done.stderr
    assert not {"numpy", "scipy", "torch", "numba", "transformers", "onnxruntime", "av", "pyarrow"} & set(loaded)
    assert len(loaded) < 250, "every module costs time, and this is what people type first"


def test_a_name_in_brackets_is_shown_whole(command):
    code, details, _ = command("show", "wer[pocketsphinx]@seed-tts")
    assert code == 0 and "wer[pocketsphinx]@seed-tts" in details


def test_programs_of_ones_own_are_validated_as_a_codec(command, tmp_path):
    (tmp_path / "copy.yaml").write_text(
        "version: 1\nencoder: [cp, '{input}', '{output}']\ndecoder: [cp, '{input}', '{output}']\n"
        "sample_rates_hz: [16000]\ndelay_samples: 0\nbitrate_bps: 256000\nheader_bytes: 44\n"
    )
    code, details, talk = command("validate", "./copy.yaml")
    assert code == 0, details + talk


def test_the_data_of_a_benchmark_in_numbers(command, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    soundfile.write(mine / "a.wav", [0.0] * 12_000, 8000)
    (mine / "rows.jsonl").write_text('{"audio": "a.wav", "what": "x"}\n{"audio": "b.wav", "what": "y"}\n')
    (mine / "benchmark.yaml").write_text(
        "version: 1\ntitle: Mine\nsummary: Of the test.\ncategory: QA\nkind: understanding\n"
        "data: {path: rows.jsonl, columns: {audio: audio, reference: what}}\n"
        "prompt: {messages: [{content: [{audio: audio}, 'What is it?']}]}\nmetrics: ['accuracy[exact]']\n"
        "primary: accuracy[exact]\n"
    )
    code, out, _ = command("show", "./mine", "--data-statistics", "--json")
    result = json.loads(out)
    assert code == 0 and (result["questions"], result["sounds"], result["mean_s"], result["declared"]) == (
        2,
        1,
        1.5,
        None,
    )
    assert [(row["code"], row["questions"]) for row in result["problems"]] == [("no_file", 1)], result["problems"]
    code, out, _ = command("show", "./mine", "--data-statistics", "--limit", 1)
    assert code == 0 and "mean s" in out and "there is no file" not in out
