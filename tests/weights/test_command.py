"""`codec-bench weights`, as a person runs it: a process of its own, a local hub behind
HF_ENDPOINT, and an exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "owner/model"
# The published entries pin what only the published files have, so the process gets one entry of its own besides.
MAIN = """
import sys
import importlib
from codec_bench.weights import catalogue
# No package brings weights.
importlib.import_module("codec_bench.weights.find").folder_in_a_package = lambda entry: None
real_names, real = catalogue.config_names, catalogue.read_config
own = {"name": "own", "version": 1, "summary": "Ours.", "hub": "owner/model", "licence": "CC-BY-NC-4.0",
       "files": [{"path": "model.safetensors"}, {"path": "config.json"}], "used_by": ["ours"]}
catalogue.config_names = lambda kind: sorted([*real_names(kind), "own"])
catalogue.read_config = lambda kind, name, schema: (
    schema.model_validate(own) if name == "own" else real(kind, name, schema)
)
from codec_bench.cli import main
sys.argv = ["codec-bench", "weights", *sys.argv[1:]]
main()
"""


@pytest.fixture
def run(server, content, tmp_path):
    """Runs one command; gives the finished process."""
    server.add_hub(REPO, {"model.safetensors": content, "config.json": b"{}"}, lfs={"model.safetensors"})

    def command(*arguments, **variables):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "MODELSCOPE", "TRANSFORMERS"))}
        places = {
            "HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "hf"), "CODEC_BENCH_CACHE": str(tmp_path / "cache"),
            "MODELSCOPE_DOMAIN": server.url, "MODELSCOPE_CACHE": str(tmp_path / "ms"), "HOME": str(tmp_path / "home"),
        }  # fmt: skip
        done = [sys.executable, "-P", "-c", MAIN, *arguments]
        return subprocess.run(done, env={**clean, **places, **variables}, capture_output=True, text=True, timeout=300)

    return command


def test_fetch_find_verify_and_a_corrupted_file(run, server, content):
    absent = run("path", "own")
    assert absent.returncode == 2 and absent.stdout == "" and "codec-bench weights fetch own" in absent.stderr
    fetched = run("fetch", "own")
    assert fetched.returncode == 0, fetched.stderr
    folder = fetched.stdout.strip()
    assert folder.endswith(COMMIT) and "CC-BY-NC-4.0 (non-commercial)" in fetched.stderr
    assert "\r" not in fetched.stderr and "%" not in fetched.stderr, "no progress bar where there is no terminal"
    server.close()
    assert run("path", "own", HF_HUB_OFFLINE="1").stdout.strip() == folder
    checked = run("verify", "--json", HF_HUB_OFFLINE="1")
    assert checked.returncode == 0
    assert [(row["file"], row["state"], row["used"]) for row in json.loads(checked.stdout)] == [
        ("model.safetensors", "same", f"{REPO}@{COMMIT}"),
        ("config.json", "same", f"{REPO}@{COMMIT}"),
    ]
    row = next(row for row in json.loads(run("list", "--json").stdout) if row["name"] == "own")
    assert row["folder"] == folder and row["size_here"] == len(content) + 2 and row["non_commercial"]
    blob = os.path.realpath(os.path.join(folder, "model.safetensors"))
    os.chmod(blob, 0o644)
    with open(blob, "r+b") as file:
        file.write(b"other")
    wrong = run("verify", "own")
    assert wrong.returncode == 2 and "expected" in wrong.stderr and "codec-bench weights fetch own" in wrong.stderr
    assert "differs" in wrong.stdout and "same" in wrong.stdout


def test_offline_it_fails_in_one_sentence(run, server):
    server.close()
    for variables in ({}, {"HF_HUB_OFFLINE": "1"}):
        done = run("fetch", "own", **variables)
        assert done.returncode == 2 and done.stdout == ""
        error = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        assert len(error) == 1 and "--from" in done.stderr and "Traceback" not in done.stderr


def test_a_published_checkpoint_with_another_content_is_refused(run, server, content):
    revision = "c3def8e7185ac8c8efdce6eb8c4a651e487a503e"
    files = {"model.safetensors": content, "config.json": b"{}"}
    server.add_hub("facebook/encodec_48khz", files, lfs={"model.safetensors"}, commit=revision)
    done = run("fetch", "encodec-48khz")
    assert done.returncode == 2 and "47a15ffbaf7bb761" in done.stderr and "expected" in done.stderr
    assert run("path", "encodec-48khz").returncode == 2


def test_several_names_and_a_wrong_one(run, tmp_path):
    wrong = run("fetch", "own", "encodec-24kz")
    assert wrong.returncode == 2 and wrong.stdout == ""
    assert (
        "there is no checkpoint called 'encodec-24kz'" in wrong.stderr and "did you mean encodec-24khz" in wrong.stderr
    )
    done = run("fetch", "own", "encodec-24khz", "--to", str(tmp_path / "shelf"))
    assert done.returncode == 2 and done.stdout.strip() == str(tmp_path / "shelf" / "own")
    assert "1 of 2 checkpoints could not be fetched: encodec-24khz" in done.stderr


def test_the_table_names_every_checkpoint_and_the_size_of_converted_ones(run, tmp_path):
    (tmp_path / "cache" / "converted").mkdir(parents=True)
    (tmp_path / "cache" / "converted" / "key-digest.pt").write_bytes(bytes(2_000))
    done = run("list")
    assert "2 kB" in done.stderr and str(tmp_path / "cache" / "converted") in done.stderr
    assert done.returncode == 0
    for item in ("encodec-24khz", "hf:owner/model", "CC-BY-NC-4.0", "ours"):
        assert item in done.stdout
    assert run("verify").stderr.strip() == "no weights are on this machine"
