"""Wheel and sdist contain the project's files, and both work in a clean environment."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import zipfile
from email import message_from_bytes
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("benchmarks", "configs", "kernels")
BROKEN = "broken_plugin"
UNPACKING = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Debian 12's Python, 3.11.2, has no filters of archives yet."""


def execute(*command: object, cwd: Path, limit_s: float = 120) -> str:
    """Runs a command away from the repository and returns what it wrote; its words are the failure's message."""
    done = subprocess.run(
        [str(item) for item in command], cwd=cwd, capture_output=True, text=True, timeout=limit_s,
        env={name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")},
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def copy_project(to: Path) -> Path:
    """The files that git keeps or would keep, links as links, and so without empty folders."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines() if line]
    for here, folders, files in os.walk(ROOT):
        for names in (folders, files):
            names[:] = [n for n in names if n != ".git" and not any(fnmatch.fnmatch(n, p) for p in ignored)]
        links = [name for name in folders if Path(here, name).is_symlink()]
        for name in [*files, *links]:
            target = to / Path(here, name).relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(here, name), target, follow_symlinks=False)
    return to


def packed(file: Path) -> dict[str, str]:
    """Hash by name of every file in a wheel or sdist, without the folder that an sdist has around them."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            return {
                i.filename: hashlib.sha256(archive.read(i)).hexdigest() for i in archive.infolist() if not i.is_dir()
            }
    with tarfile.open(file) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
        assert all(member.isfile() for member in members), "an sdist must hold files where the repository has links"
        return {
            member.name.partition("/")[2]: hashlib.sha256(archive.extractfile(member).read()).hexdigest()
            for member in members
        }


def run_backend(hook: str, project: Path, out: Path) -> Path:
    """Calls a hook of the build backend as front ends do; returns the file."""
    code = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
    execute(sys.executable, "-P", "-c", code, hook, out, cwd=project)
    (file,) = out.iterdir()
    return file


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """The project's copy, its sdist, and the wheel built from that."""
    major = int(version("setuptools").partition(".")[0])
    assert major >= 77, f"building needs setuptools>=77 and {major} is installed: pip install -e '.[embedded,dev]'"
    tmp = tmp_path_factory.mktemp("built")
    project = copy_project(tmp / "project")
    for name in ("sdist", "wheel"):
        (tmp / name).mkdir()
    sdist = run_backend("build_sdist", project, tmp / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp / "unpacked", **UNPACKING)
    (unpacked,) = (tmp / "unpacked").iterdir()
    return {"project": project, "sdist": sdist, "through": run_backend("build_wheel", unpacked, tmp / "wheel")}


class Environment:
    """A virtual environment whose own packages come first and the running environment's, as
    dependencies, after them.
    """

    def __init__(self, folder: Path) -> None:
        execute(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
        self.folder = folder
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        config = {"base": str(folder), "platbase": str(folder)}
        self.packages = Path(sysconfig.get_path("purelib", vars=config))
        self.before = {path.name for path in self.packages.iterdir()}
        # Paths in a .pth file come after the environment's own, and .pth files in them are not read.
        here = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
        (self.packages / "dependencies.pth").write_text("\n".join(here) + "\n", "utf-8")

    def install(self, wheel: Path) -> None:
        from uv import find_uv_bin

        options = ("--no-deps", "--no-index", "--no-cache", "--python", self.bin / "python")
        execute(find_uv_bin(), "pip", "install", "-q", *options, wheel, cwd=self.elsewhere)

    def python(self, code: str) -> object:
        """What a snippet prints as JSON, run from a folder that is not the repository."""
        return json.loads(execute(self.bin / "python", "-c", textwrap.dedent(code), cwd=self.elsewhere))


@pytest.fixture(scope="module")
def clean(built, tmp_path_factory) -> Environment:
    """A clean environment with the wheel that was built through the sdist."""
    environment = Environment(tmp_path_factory.mktemp("clean") / "env")
    environment.install(built["through"])
    return environment


@pytest.fixture(scope="module")
def extended(clean, tmp_path_factory) -> Environment:
    """The same with the tiny package of tests/plugin_package, and with one that cannot be imported."""
    tmp = tmp_path_factory.mktemp("plugin")
    shutil.copytree(ROOT / "tests" / "plugin_package", tmp / "source", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp / "wheel").mkdir()
    clean.install(run_backend("build_wheel", tmp / "source", tmp / "wheel"))
    facts = clean.packages / f"{BROKEN}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {BROKEN}\nVersion: 1.0\n", "utf-8")
    (facts / "entry_points.txt").write_text(f"[codec_bench]\nbroken = {BROKEN}\n", "utf-8")
    (clean.packages / f"{BROKEN}.py").write_text('raise RuntimeError("its licence has run out")\n', "utf-8")
    return clean


def expected_modules() -> set[str]:
    """Names in a wheel of every file of the package, the linked rooms in place of the links."""
    results = set()
    for name in ("codec_bench", *LINKED):
        for path in (ROOT / name).rglob("*"):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not path.is_symlink() and "__pycache__" not in parts:
                if parts[0] == "codec_bench" and parts[1] in LINKED:  # reached through the link
                    continue
                results.add("/".join(parts if parts[0] == "codec_bench" else ("codec_bench", *parts)))
    return results


def test_the_wheel_holds_the_package_and_nothing_next_to_it(built):
    names = packed(built["through"])
    top = {name.split("/")[0] for name in names}
    assert top == {"codec_bench", f"codec_bench-{version('codec-bench')}.dist-info"}
    assert {name for name in names if name.startswith("codec_bench/")} == expected_modules()


def test_the_wheel_holds_data_and_licence(built):
    names = set(packed(built["through"]))
    assert "codec_bench/py.typed" in names
    assert "codec_bench/data/embedded/manifest.jsonl" in names
    assert sum(name.startswith("codec_bench/data/embedded/") and name.endswith(".flac") for name in names) >= 24
    assert any(re.fullmatch(r"codec_bench/configs/\w+/.*\.yaml", name) for name in names)
    assert any(re.fullmatch(r"codec_bench/kernels/\w+/cpu\.py", name) for name in names)
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {"LICENSE", "NOTICE"}
    assert built["through"].stat().st_size < 10_000_000


def test_the_wheel_says_its_author_and_what_it_is(built):
    with zipfile.ZipFile(built["through"]) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/METADATA"))
        facts = message_from_bytes(archive.read(name))
    assert facts["Author"] == "the codec-bench authors" and facts["License-Expression"] == "Apache-2.0"
    kinds = {text.partition(" ::")[0] for text in facts.get_all("Classifier")}
    assert kinds >= {"Development Status", "Intended Audience", "Operating System", "Programming Language", "Topic"}
    assert facts.get_payload(decode=True).decode("utf-8") == (ROOT / "README.md").read_text("utf-8")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert (cited["version"], cited["license"]) == (facts["Version"], facts["License-Expression"])
    assert [author["name"] for author in cited["authors"]] == [facts["Author"]]
    assert f"\n## {facts['Version']}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.long
def test_a_wheel_through_the_sdist_is_the_wheel(built, tmp_path):
    build = (sys.executable, "-P", "-m", "build", "--no-isolation", "--skip-dependency-check", built["project"])
    execute(*build, "--wheel", "--outdir", tmp_path, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    through, straight = packed(built["through"]), packed(wheel)
    record = next(name for name in straight if name.endswith("/RECORD"))
    del through[record], straight[record]
    assert through == straight


def test_the_sdist_holds_what_a_build_needs(built):
    names = set(packed(built["sdist"]))
    assert {"pyproject.toml", "README.md", "LICENSE", "NOTICE"} <= names
    assert expected_modules() <= names
    assert not any(name.split("/")[0] in LINKED for name in names), "linked rooms stand in the package only"


def test_installed_it_adds_one_package(clean):
    new = {path.name for path in clean.packages.iterdir()} - clean.before - {"dependencies.pth"}
    new -= {name for name in new if BROKEN in name or "mulaw" in name} | {"__pycache__"}
    assert new == {"codec_bench", f"codec_bench-{version('codec-bench')}.dist-info"}


def test_installed_it_works_from_anywhere(clean):
    text = clean.python(
        """
        import importlib, importlib.util, json, pkgutil
        import codec_bench, codec_bench.kernels
        from codec_bench.data import open_source
        from codec_bench.types import Audio
        kernels = []
        for found in pkgutil.walk_packages(codec_bench.kernels.__path__, "codec_bench.kernels."):
            if found.name.rpartition(".")[2] in ("ref", "cpu"):
                importlib.import_module(found.name)
                kernels.append(found.name)
        from codec_bench import interval as interval_of
        interval = interval_of([1.0, 2.0, 4.0])
        source = open_source("embedded")
        spec = importlib.util.find_spec("kernels")
        print(json.dumps({
            "file": codec_bench.__file__,
            "version": codec_bench.__version__,
            "kernels": kernels,
            "seconds": sum(Audio.read(sample.audio).duration_s for sample in source),
            "interval": [interval.low, interval.high],
            "bare": [str(place) for place in (spec.submodule_search_locations or [])] if spec else [],
        }))
        """
    )
    assert Path(text["file"]).is_relative_to(clean.folder.resolve()) or Path(text["file"]).is_relative_to(clean.folder)
    assert text["version"] == version("codec-bench")
    files = {f"codec_bench.kernels.{f.parent.name}.{f.stem}" for f in (ROOT / "kernels").glob("*/*.py")}
    assert set(text["kernels"]) == {name for name in files if name.rpartition(".")[2] in ("ref", "cpu")}
    assert text["seconds"] > 90
    assert text["interval"][0] < 7 / 3 < text["interval"][1]
    assert not [target for target in text["bare"] if Path(target).is_relative_to(clean.folder)]


def test_installed_it_evaluates_a_codec(clean):
    """The cheap form of the demo in an environment of its own (below): the dependencies are those of the tests."""
    requested = ("--codec", "g711-ulaw", "--data", "embedded", "--metrics", "si_sdr", "--limit", "1", "--workers", "1")
    execute(clean.bin / "codec-bench", "eval", *requested, "--no-cache", "--out", "run", cwd=clean.elsewhere)
    result = json.loads((clean.elsewhere / "run" / "summary.json").read_text("utf-8"))
    assert result["systems"]["g711-ulaw"]["metrics"]["si_sdr"]["n"] == 1
    assert "si_sdr" in (clean.elsewhere / "run" / "report.html").read_text("utf-8")


@pytest.mark.install
def test_the_demo_runs_from_the_wheel_alone(built, tmp_path):
    from uv import find_uv_bin

    bin_ = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    execute(find_uv_bin(), "venv", "--python", sys.executable, tmp_path / "env", cwd=tmp_path)
    expected = f"{built['through']}[embedded]"
    execute(find_uv_bin(), "pip", "install", "--python", bin_ / "python", expected, cwd=tmp_path, limit_s=1800)
    execute(bin_ / "codec-bench", "demo", "--out", "run", cwd=tmp_path, limit_s=1800)
    result = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert len(result["systems"]) == 9 and result["systems"]["opus-12k"]["metrics"]["dnsmos_ovrl"]["failed"] == 0


CONTAINERS = {"Containerfile": "demo", "Containerfile.cuda": "all"}


def steps(file: str) -> list[tuple[str, str]]:
    """The instructions of a file for containers and what they say."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("file", CONTAINERS)
def test_containers_are_built_from_the_lists_of_versions(file):
    run = [text for word, text in steps(file) if word == "RUN"]
    lists = re.findall(r"requirements/\w+\.txt", "\n".join(run))
    assert set(lists) == {f"requirements/{name}.txt" for name in ("uv", "build", CONTAINERS[file])}
    assert all((ROOT / one).is_file() for one in lists)
    assert all("--require-hashes" in text or "--no-deps" in text for text in run if "pip install" in text)
    assert ("COPY", ". /src") in steps(file) and ("ENTRYPOINT", '["codec-bench"]') in steps(file)
    excluded = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert {".git", ".venv*", "build", "dist", "runs"} <= {*excluded}
    for path in ("codec_bench", "kernels", "benchmarks", "configs", "requirements", "pyproject.toml", "README.md"):
        assert not any(fnmatch.fnmatch(path, one) for one in excluded), path


@pytest.mark.install
def test_the_container_for_cpus_runs_the_demo(tmp_path):
    """With podman or docker where an engine is there; else its steps, but for the compiler's, in an empty folder."""
    project = copy_project(tmp_path / "src")
    for engine in ("podman", "docker"):
        if shutil.which(engine) and subprocess.run([engine, "info"], capture_output=True).returncode == 0:
            execute(engine, "build", "-t", "codec-bench-test", "-f", "Containerfile", ".", cwd=project, limit_s=3600)
            texts = execute(
                engine, "run", "--rm", "codec-bench-test", "demo", "--limit", "2", "--json", cwd=project, limit_s=1800
            )
            break
    else:
        places = {"/src": str(project), "/opt/codec-bench": str(tmp_path / "opt")}
        for word, text in steps("Containerfile"):
            if word == "RUN" and "apt-get" not in text:
                for index, here in places.items():
                    text = text.replace(index, here)
                execute(
                    "bash", "-c", text.replace("python -m venv", f"{sys.executable} -m venv"), cwd=project, limit_s=1800
                )
        work = tmp_path / "work"
        work.mkdir()
        texts = execute(
            tmp_path / "opt" / "bin" / "codec-bench", "demo", "--limit", "2", "--json", cwd=work, limit_s=1800
        )
    assert json.loads(texts)["systems"]["opus-12k"]["metrics"]["stoi"]["n"] == 2


def test_the_command_says_what_it_can_do(clean):
    shown = execute(clean.bin / "codec-bench", "--help", cwd=clean.elsewhere)
    for command in ("demo", "eval", "score", "compare", "list"):
        assert re.search(rf"\b{command}\b", shown), shown
    assert execute(clean.bin / "codec-bench", "--version", cwd=clean.elsewhere).strip() == version("codec-bench")


def test_another_package_adds_names_and_a_broken_one_is_listed(extended):
    text = extended.python(
        """
        import json, sys
        from codec_bench import codecs, metrics
        from codec_bench.config.registry import plugins
        names = {"codecs": codecs.codec_names(), "metrics": metrics.REGISTRY.names()}
        loaded = [name for name in sys.modules if name.startswith("mulaw_plugin.")]
        found = {plugin.name: [plugin.target, plugin.error] for plugin in plugins()}
        print(json.dumps({**names, "loaded": loaded, "plugins": found}))
        """
    )
    assert "mulaw" in text["codecs"] and "crossing_distance" in text["metrics"]
    assert "stoi" in text["metrics"], "the project's own names stay"
    assert text["loaded"] == [], "listing names imports no codec"
    assert text["plugins"]["mulaw"] == ["mulaw_plugin", None]
    assert text["plugins"]["broken"] == [BROKEN, "RuntimeError: its licence has run out"]


def test_names_of_another_package_work_like_ones_own(extended):
    text = extended.python(
        """
        import json
        import numpy as np
        from codec_bench import Audio, Inputs, load_codec
        from codec_bench.metrics import build_metric
        x = np.sin(np.arange(8000) * 0.05).astype(np.float32) * 0.5
        codec = load_codec("mulaw")
        codes = codec.encode([Audio(x, 16_000)])
        y = codec.decode(codes)[0].samples[0]
        same, other = build_metric("crossing_distance").compute([
            Inputs("a", 16_000, estimate=y, reference=x), Inputs("b", 16_000, estimate=np.abs(y), reference=x),
        ])
        error = float(np.sqrt(np.mean((x - y) ** 2) / np.mean(x ** 2)))
        print(json.dumps([codes[0].nominal_bitrate_bps, error, len(y), same.value, other.value]))
        """
    )
    bitrate, error, length, same, other = text
    assert (bitrate, length) == (128_000.0, 8000)
    # 8-bit logarithmic quantisation has a signal-to-noise ratio near 38 dB whatever the level.
    assert 0.005 < error < 0.02
    # sin(0.05 n) crosses zero 0.05 / pi times a sample; the two signals agree but for the level nearest zero.
    assert same < 100 and other == pytest.approx(0.05 / 3.14159 * 16_000, rel=0.02)


def test_the_command_lists_another_package_and_its_names(extended):
    shown = execute(extended.bin / "codec-bench", "list", "plugins", cwd=extended.elsewhere)
    assert "mulaw_plugin" in shown and "RuntimeError: its licence has run out" in shown
    assert "mulaw" in execute(extended.bin / "codec-bench", "list", "codecs", cwd=extended.elsewhere)
