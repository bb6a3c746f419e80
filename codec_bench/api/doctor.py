"""Check the installation (`codec-bench doctor`)."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from functools import cache
from importlib.metadata import requires
from importlib.resources import files

from codec_bench.api.finding import Finding
from codec_bench.api.gpus import check_gpus
from codec_bench.machine.environment import ONNXRUNTIMES, machine, package_version, versions
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio

_NOT_FOR_USERS = ("dev", "docs", "all")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[^\]]*)\])?[^;]*(;(?P<marker>.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["'](?P<extra>[\w.-]+)["']""")


def doctor() -> tuple[Finding, ...]:
    """Check Python, torch, extras, folders, embedded speech, caches and GPUs.

    Returns:
        One `Finding` for each check. Mend things whose state is `wrong` first.

    Examples:
        >>> from codec_bench import doctor
        >>> speech = next(finding for finding in doctor() if "speech" in finding.what)
        >>> speech.state
        'ok'
    """
    return (
        *_check_packages(), _onnxruntime(), _folders(), _embedded_speech(), _numba_cache(), *_describe_machine(),
        *check_gpus(embedded_clip, str(machine()["gpu"])),
    )  # fmt: skip


@cache
def read_extras() -> dict[str, tuple[str, ...]]:
    """The packages of each optional extra of the installation, by the extra's name."""
    by_extra: dict[str, list[tuple[str, str]]] = {}
    for line in _requirements():
        match = _REQUIREMENT.match(line)
        extra = _EXTRA.search(match["marker"] or "") if match else None
        if match and extra:
            by_extra.setdefault(extra["extra"], []).append((match["name"], match["extras"] or ""))

    def packages(extra: str) -> list[str]:
        members: list[str] = []
        for name, inner in by_extra.get(extra, ()):
            is_self = name == "codec-bench"
            members += [one for text in inner.split(",") for one in packages(text.strip())] if is_self else [name]
        return members

    return {extra: tuple(dict.fromkeys(packages(extra))) for extra in by_extra if extra not in _NOT_FOR_USERS}


def _requirements() -> list[str]:
    return (requires("codec-bench") or []) if package_version("codec-bench") is not None else []


def _check_packages() -> list[Finding]:
    """Check the versions of Python and torch, and the packages of each extra."""
    installed = versions()
    out = [Finding("python", "ok", Diagnostic("version", version=installed["python"]))]
    torch, torchaudio = installed.get("torch"), installed.get("torchaudio")
    same = torch and torchaudio and torch.split("+")[0] == torchaudio.split("+")[0]
    both = [repr(line) for line in _requirements() if re.match(r"torch(audio)?\b(?!.*extra)", line)]
    do = "" if same else f"pip install {' '.join(both or ('torch', 'torchaudio'))}"
    both_versions = Diagnostic("two_versions", torch=torch, torchaudio=torchaudio)
    out.append(Finding("torch and torchaudio match", "ok" if same else "wrong", both_versions, do))
    for extra, packages in read_extras().items():
        missing = [p for p in packages if package_version(p) is None]
        result = Finding(f"extra '{extra}'", "ok", Diagnostic("installed"))
        if missing:
            do = f"pip install 'codec-bench[{extra}]'"
            lacking = Diagnostic("lacks_packages", names=", ".join(missing))
            result = Finding(f"extra '{extra}'", "note", lacking, do)
        out.append(result)
    return out


def _onnxruntime() -> Finding:
    """Check that at most one onnxruntime package is installed, with its files."""
    subject = "one onnxruntime"
    installed = {name: version for name in ONNXRUNTIMES if (version := package_version(name))}
    packages = " and ".join(f"{name} {version}" for name, version in installed.items())
    if len(installed) > 1:
        return Finding(
            subject,
            "wrong",
            Diagnostic("onnxruntimes_clash", packages=packages),
            f"pip uninstall -y {' '.join(installed)}, then install the one you want; speechmos and faster-whisper need "
            "'onnxruntime' and run with the others too (install them with --no-deps)",
        )
    if not installed:
        return Finding(subject, "ok", Diagnostic("no_onnxruntime"))
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:  # uninstalling one of two leaves a folder without a module
        (name,) = installed
        return Finding(
            subject,
            "wrong",
            Diagnostic("onnxruntime_files_missing", packages=packages),
            f"pip install --force-reinstall --no-deps {name}",
        )
    return Finding(subject, "ok", Diagnostic("version", version=packages))


def _folders() -> Finding:
    """Check that the installation has its folders of kernels, configs and benchmarks."""
    missing = [n for n in ("kernels", "configs", "benchmarks") if not (files("codec_bench") / n).is_dir()]
    if not missing:
        return Finding("kernels, configs, benchmarks", "ok", Diagnostic("folders_found"))
    do = "check the repository out with symbolic links (git config core.symlinks true)"
    return Finding("kernels, configs, benchmarks", "wrong", Diagnostic("lacks_packages", names=", ".join(missing)), do)


def _embedded_speech() -> Finding:
    """Check that the embedded speech is complete."""
    from codec_bench.data import open_source

    try:
        source = open_source("embedded")
    except UserError as error:
        return Finding("embedded speech", "wrong", as_reason(error.message), "install codec-bench again")
    missing = [s.id for s in source if s.audio is None or not os.path.isfile(s.audio)]
    do = "install codec-bench again" if missing else ""
    counted = Diagnostic("utterances", readable=len(source) - len(missing), utterances=len(source))
    return Finding("embedded speech", "wrong" if missing else "ok", counted, do)


def _numba_cache() -> Finding:
    """Check that the folder of compiled kernels can be written."""
    folder = os.environ.get("NUMBA_CACHE_DIR") or str(files("codec_bench") / "kernels")
    if os.access(folder, os.W_OK):
        return Finding("kernel cache", "ok", Diagnostic("cache_folder", folder=folder))
    do = "numba keeps them in your cache folder; set NUMBA_CACHE_DIR to choose"
    return Finding("kernel cache", "note", Diagnostic("not_writable", folder=folder), do)


def _describe_machine() -> list[Finding]:
    """Report the CPU, GPU and memory, and the free space for the cache."""
    from codec_bench.config.paths import cache_folder

    facts = machine()
    folder = cache_folder()
    existing = folder if folder.exists() else next(p for p in folder.parents if p.exists())
    free = shutil.disk_usage(existing).free / 2**30
    do = "" if free > 5 else "set CODEC_BENCH_CACHE to a folder with room"
    return [
        Finding(
            "machine",
            "ok",
            Diagnostic("machine", cpu=facts["cpu"], cores=facts["cores"], memory_gib=facts.get("memory_gib", "?")),
        ),
        Finding("GPU", "ok" if facts["gpu"] != "none" else "note", Diagnostic("gpu", name=facts["gpu"])),
        Finding("feature cache", "note" if do else "ok", Diagnostic("cache_space", folder=folder, free_gib=free), do),
    ]


def embedded_clip() -> Audio:
    """The first utterance of the embedded speech."""
    from codec_bench.data import open_source

    sample = next(iter(open_source("embedded")))
    assert sample.audio is not None  # every embedded utterance has its sound
    return Audio.read(sample.audio)
