"""The lists of exact versions in requirements/ satisfy pyproject.toml, are complete, have hashes and name no index."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13")
# The lists that `make lock` writes from pyproject.toml, and the extras of each, as the Makefile has them.
EXTRAS = {
    name: extras.split()
    for name, extras in re.findall(r"^EXTRAS_(\w+) := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
}
FILES = sorted(FOLDER.glob("*.txt"))


@dataclass(frozen=True)
class Pin:
    """One line of a list: a package at one version, for the environments of its marker, with its hashes."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (exact,) = self.requirement.specifier
        assert exact.operator == "=="
        return exact.version


def read(file: Path) -> list[Pin]:
    """The pins of a list; continued lines are joined."""
    lines = file.read_text("utf-8").replace("\\\n", " ").splitlines()
    pins = []
    for line in (line for line in lines if line and not line.startswith("#")):
        head, *hashes = line.split("--hash=")
        pins.append(Pin(Requirement(head.strip()), tuple(result.strip() for result in hashes)))
    return pins


def machine(python: str) -> dict[str, str]:
    """The values of markers on a Linux machine with that Python."""
    return {
        "implementation_name": "cpython", "implementation_version": f"{python}.0", "os_name": "posix",
        "platform_machine": "x86_64", "platform_python_implementation": "CPython", "platform_release": "6.0",
        "platform_system": "Linux", "platform_version": "1", "python_full_version": f"{python}.0",
        "python_version": python, "sys_platform": "linux", "extra": "",
    }  # fmt: skip


def applies(requirement: Requirement, environment: dict[str, str], extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**environment, "extra": extra})


def pinned(name: str, python: str) -> dict[str, str]:
    """Version by package of a list for one Python; a package that stands there twice is an error."""
    environment = machine(python)
    results: dict[str, str] = {}
    for pin in read(FOLDER / f"{name}.txt"):
        if applies(pin.requirement, environment):
            assert pin.name not in results, f"{name}.txt has {pin.name} twice for Python {python}"
            results[pin.name] = pin.version
    return results


def direct(extras: list[str], environment: dict[str, str]) -> list[Requirement]:
    """What pyproject.toml asks for: the core and some extras, with the extras that those name."""
    requests, seen, waiting = [Requirement(line) for line in PROJECT["dependencies"]], set(), list(extras)
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
            if requirement.name == PROJECT["name"]:
                waiting.extend(requirement.extras)
            else:
                requests.append(requirement)
    return [requirement for requirement in requests if applies(requirement, environment)]


def named(extras: list[str]) -> set[str]:
    """The extras, and those that they name."""
    results = set(extras)
    for extra in extras:
        for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
            if requirement.name == PROJECT["name"]:
                results |= named(sorted(requirement.extras))
    return results


def unmet(requests: list[Requirement], versions: dict[str, str]) -> list[str]:
    """The requirements that a list does not satisfy."""
    return [
        f"{requirement}, pinned: {versions.get(canonicalize_name(requirement.name))}"
        for requirement in requests
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), ""), prereleases=True)
    ]


def test_every_list_has_its_file_and_every_extra_its_list():
    assert {file.stem for file in FILES} == {*EXTRAS, "uv", "build"}
    assert set().union(*map(named, EXTRAS.values())) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", EXTRAS)
def test_a_list_satisfies_pyproject(name, python):
    requests = direct(EXTRAS[name], machine(python))
    assert {requirement.name for requirement in requests} >= {"torch", "torchaudio", "numpy"}
    assert not unmet(requests, pinned(name, python))


def test_a_version_out_of_range_and_a_package_excluded_are_noticed():
    requests = [Requirement("numpy>=2"), Requirement("scipy>=1.11"), Requirement("torch>=2.11,<2.12")]
    assert unmet(requests, {"numpy": "1.26.4", "torch": "2.11.0"}) == [
        "numpy>=2, pinned: 1.26.4",
        "scipy>=1.11, pinned: None",
    ]


@pytest.mark.parametrize("name", EXTRAS)
def test_a_list_is_whole(name):
    """Lists are installed without resolving, so that what each package itself asks for must stand there too.

    Known only of packages that are installed here in the version of the list.
    """
    python = ".".join(map(str, sys.version_info[:2]))
    environment, versions = machine(python), pinned(name, python)
    waiting = [(requirement, "pyproject.toml") for requirement in direct(EXTRAS[name], environment)]
    seen, read_of, missing = set(), set(), []
    while waiting:
        requirement, asking = waiting.pop()
        package = canonicalize_name(requirement.name)
        missing += [f"{asking} asks for {line}" for line in unmet([requirement], versions)]
        for extra in ("", *requirement.extras):
            if (package, extra) in seen:
                continue
            seen.add((package, extra))
            try:
                if version(package) != versions.get(package):
                    continue
                listed = map(Requirement, requires(package) or [])
            except PackageNotFoundError:
                continue
            read_of.add(package)
            waiting += [(results, package) for results in listed if applies(results, environment, extra)]
    assert not missing
    if name == "test" and version("torch") == versions["torch"]:
        assert len(read_of) > 100, "the walk has read few packages: is this environment made from the list?"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_list_holds_versions_and_hashes_and_nothing_else(file):
    """No index, address, option or path: each line is a comment that names `make lock`, a pin, or a hash of it."""
    head, *lines = file.read_text("utf-8").splitlines()
    assert head == "# This file was autogenerated by uv via the following command:"
    assert lines.pop(0) == "#    make lock"
    pin = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?==[0-9][0-9a-z.+!]*( ; [A-Za-z0-9_.'<>=! ()]+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    assert not [line for line in lines if not pin.fullmatch(line) and not digest.fullmatch(line)]
    pins = read(file)
    assert pins and all(result.hashes for result in pins)


@pytest.mark.parametrize("name", EXTRAS)
@pytest.mark.parametrize("python", PYTHONS)
def test_torch_and_torchaudio_are_one_release(name, python):
    versions = pinned(name, python)
    assert versions["torch"] == versions["torchaudio"]


def test_no_torch_that_pyproject_allows_goes_with_another_torchaudio():
    torch, torchaudio = (
        next(requirement for requirement in map(Requirement, PROJECT["dependencies"]) if requirement.name == name)
        for name in ("torch", "torchaudio")
    )
    assert torch.specifier == torchaudio.specifier
    releases = [f"2.{minor}.0" for minor in range(30)]
    assert len(list(torch.specifier.filter(releases))) == 1


def test_doctor_names_the_same_range(monkeypatch):
    from codec_bench.api import doctor

    monkeypatch.setattr(doctor, "versions", lambda: {"python": "3.11.7", "torch": "2.15.0", "torchaudio": "2.11.0"})
    (finding,) = (result for result in doctor._check_packages() if result.what == "torch and torchaudio match")
    assert finding.state == "wrong"
    expected = {Requirement(line) for line in PROJECT["dependencies"]}
    named = {Requirement(line) for line in re.findall("'([^']+)'", finding.do)}
    assert named == {one for one in expected if one.name in ("torch", "torchaudio")}


@pytest.mark.parametrize("name", ["demo", "docs", "uv"])
@pytest.mark.parametrize("python", PYTHONS)
def test_lists_of_one_environment_agree(name, python):
    """`make demo`, `make test` and `make docs` install into the same environment; none may undo what another did."""
    ours, tests = pinned(name, python), pinned("test", python)
    shared = ours.keys() & tests.keys()
    assert shared and {package: ours[package] for package in shared} == {package: tests[package] for package in shared}


@pytest.fixture
def project(tmp_path):
    """A copy of what `make` looks at, with an environment that is newer than all of it."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(FOLDER, tmp_path / "requirements")
    (tmp_path / "codec_bench").mkdir()
    (tmp_path / "codec_bench" / "types.py").touch()
    for path in tmp_path.rglob("*"):
        os.utime(path, (1_000_000, 1_000_000))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for path in ("bin/python", "bin/uv", ".test", ".demo", ".docs"):
        file = tmp_path / ".venv" / path
        file.touch()
        os.utime(file, (2_000_000, 2_000_000))
    return tmp_path


def installs(project: Path, stamp: str) -> bool:
    """Whether `make` has something to install for a command."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "VENV", "MFLAGS"))}
    return bool(
        subprocess.run(["make", "-q", f".venv/{stamp}"], cwd=project, env=clean, capture_output=True).returncode
    )


@pytest.mark.parametrize(
    ("changed", "installing"),
    [
        (None, set()),
        ("codec_bench/types.py", set()),
        ("Makefile", set()),
        ("requirements/all.txt", set()),
        ("requirements/test.txt", {".test"}),
        ("requirements/demo.txt", {".demo"}),
        ("requirements/docs.txt", {".docs"}),
        ("requirements/build.txt", {".test", ".demo", ".docs"}),
        ("pyproject.toml", {".test", ".demo", ".docs"}),
    ],
)
def test_a_changed_list_or_pyproject_installs_and_nothing_else_does(project, changed, installing):
    if changed:
        os.utime(project / changed, (3_000_000, 3_000_000))
    assert {stamp for stamp in (".test", ".demo", ".docs") if installs(project, stamp)} == installing
