"""uv makes each environment once, completely or not at all, from the indexes that pip uses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from refusals import refuses

from codec_bench.workers import environment
from codec_bench.workers.environment import MARKER, EnvSpec, find_environment, make_environment, pip_settings

SPEC = EnvSpec("own", ("a==1", "b==2"))

# Makes the files that uv would make, records its arguments, and waits or fails if a file says so.
FAKE = """#!{python}
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
asked = sys.argv[1:]
with open(os.path.join(here, "asked"), "a") as log:
    log.write(json.dumps(asked) + "\\n")
step = asked[0] if asked[0] != "pip" else asked[1]
if step == "venv":
    os.makedirs(os.path.join(asked[-1], "bin"))
    os.symlink(sys.executable, os.path.join(asked[-1], "bin", "python"))
while os.path.exists(os.path.join(here, "wait-" + step)):
    time.sleep(0.01)
for stream, name in ((sys.stderr, "say-" + step), (sys.stdout, "find-" + step)):
    if os.path.exists(os.path.join(here, name)):
        stream.write(open(os.path.join(here, name)).read())
sys.exit(os.path.exists(os.path.join(here, "fail-" + step)))
"""

BUILDER = """
import json, sys
from codec_bench.workers import environment
from codec_bench.workers.environment import EnvSpec
environment._find_uv = lambda: sys.argv[1]
environment.pip_settings = lambda variables: ({}, [])
print(environment.make_environment(EnvSpec("own", ("a==1", "b==2"))).python, flush=True)
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(folder))
    return folder / "env"


@pytest.fixture
def uv(tmp_path, monkeypatch):
    """A program in place of uv; a file beside it says where it waits or fails."""
    file = tmp_path / "fake" / "uv"
    file.parent.mkdir()
    file.write_text(FAKE.replace("{python}", sys.executable))
    file.chmod(0o755)
    monkeypatch.setattr(environment, "_find_uv", lambda: str(file))
    monkeypatch.setattr(environment, "pip_settings", lambda variables: ({}, []))
    return file


def requests(uv: Path) -> list[list[str]]:
    log = uv.parent / "asked"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def until(condition, within_s: float = 120.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_environment_is_built_once_and_reused(cache, uv):
    messages = []
    assert find_environment(SPEC) is None
    built = make_environment(SPEC, messages.append)
    assert [line[0:2] for line in requests(uv)] == [["venv", "--relocatable"], ["pip", "install"], ["pip", "check"]]
    assert "--no-deps" in requests(uv)[1]
    assert make_environment(SPEC, messages.append) == built == find_environment(SPEC)
    assert len(requests(uv)) == 3 and len(messages) == 1 and "'own'" in messages[0]
    assert json.loads((built.folder / MARKER).read_text())["requirements"] == ["a==1", "b==2"]
    assert sorted(f.name for f in cache.iterdir()) == [built.folder.name, f"{built.folder.name}.lock"]


def test_an_environment_without_packages_installs_nothing(cache, uv):
    assert make_environment(EnvSpec("own", ())).python.exists()
    assert [line[0:2] for line in requests(uv)] == [["venv", "--relocatable"], ["pip", "check"]]


def test_two_lists_are_two_environments(cache, uv):
    others = [EnvSpec("own", ("a==1", "b==3")), EnvSpec("own", ("a==1", "b==2"), variables={"A": "1"})]
    first, second, third = (make_environment(spec) for spec in (SPEC, *others))
    assert first == third != second


def test_two_processes_make_it_once(cache, uv):
    wait = uv.parent / "wait-install"
    wait.touch()
    command = [sys.executable, "-P", "-c", BUILDER, str(uv)]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    until(lambda: len(requests(uv)) == 2)
    wait.unlink()
    answers = [builder.communicate()[0] for builder in builders]
    assert answers[0] == answers[1] != ""
    assert [line[0] for line in requests(uv)].count("venv") == 1


def test_a_build_that_was_killed_is_rebuilt(cache, uv):
    wait = uv.parent / "wait-install"
    wait.touch()
    builder = subprocess.Popen([sys.executable, "-P", "-c", BUILDER, str(uv)])
    until(lambda: len(requests(uv)) == 2)
    builder.kill()
    builder.wait()
    assert find_environment(SPEC) is None
    assert list(cache.glob("*.part"))
    wait.unlink()  # the orphan of the killed one ends as well
    built = make_environment(SPEC)
    assert find_environment(SPEC) == built
    assert not list(cache.glob("*.part"))


@pytest.mark.parametrize("damage", ["marker", "python", "digest", "nonsense"])
def test_one_that_is_damaged_is_rebuilt(cache, uv, damage):
    built = make_environment(SPEC)
    marker = built.folder / MARKER
    if damage == "marker":
        marker.unlink()
    elif damage == "python":  # as when the interpreter it was made from is removed
        built.python.unlink()
        built.python.symlink_to(built.folder / "gone")
    elif damage == "digest":
        marker.write_text(json.dumps({**json.loads(marker.read_text()), "digest": "0"}))
    else:
        marker.write_text("{")
    assert find_environment(SPEC) is None
    assert make_environment(SPEC) == built
    assert [line[0] for line in requests(uv)].count("venv") == 2


@pytest.mark.parametrize("step", ["venv", "install"])
def test_a_failure_is_reported_with_what_uv_reported_last(cache, uv, step):
    (uv.parent / f"fail-{step}").touch()
    (uv.parent / f"say-{step}").write_text("".join(f"line {k}\n" for k in range(100)) + "no version of b==2\n")
    with refuses("environment_failed", environment="own") as caught:
        make_environment(SPEC)
    assert caught.value.message.endswith("line 99 | no version of b==2")
    assert "line 50" not in caught.value.message
    assert find_environment(SPEC) is None
    assert not list(cache.glob("*.part"))


def test_a_list_that_is_not_whole_is_refused(cache, uv):
    (uv.parent / "fail-check").touch()
    (uv.parent / "say-check").write_text(
        "Checked 2 packages in 1ms\nFound 2 incompatibilities\n"
        "The package `a` requires `c>=2`, but it's not installed\n"
        "The package `a` requires `b>=3`, but `2` is installed\n"
    )
    with refuses("environment_incomplete") as caught:
        make_environment(SPEC)
    assert "b>=3" not in str(caught.value)
    assert find_environment(SPEC) is None


def test_versions_that_a_package_would_not_like_are_the_lists_choice(cache, uv):
    (uv.parent / "fail-check").touch()
    (uv.parent / "say-check").write_text("The package `a` requires `b>=3`, but `2` is installed\n")
    assert make_environment(SPEC).python.exists()


def test_a_python_that_is_not_here(cache, uv):
    (uv.parent / "fail-python").touch()
    (uv.parent / "say-python").write_text("error: No interpreter found for Python 3.99\n")
    with refuses("environment_python", python="3.99"):
        make_environment(EnvSpec("own", ("a==1",), python="3.99"))


def test_a_python_that_is_here_is_used(cache, uv):
    (uv.parent / "find-python").write_text("/usr/bin/python-of-that-version\n")
    make_environment(EnvSpec("own", ("a==1",), python=">=3.11"))
    assert requests(uv)[0] == ["python", "find", "--system", ">=3.11"]
    assert requests(uv)[1][:4] == ["venv", "--relocatable", "--python", "/usr/bin/python-of-that-version"]


def test_without_uv_one_names_what_to_install(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with refuses("package_not_installed", hint="codec-bench[isolated]"):
        make_environment(SPEC)


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, uv):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "file"))
    with refuses("environment_not_writable"):
        make_environment(SPEC)


NEEDS_PIP = pytest.mark.skipif(find_spec("pip") is None, reason="pip, which reads its own settings, is not installed")


@pytest.fixture
def settings_of_pip(tmp_path, monkeypatch):
    """Variables in which neither pip nor uv has settings but those of a test."""
    retained = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PIP_", "UV_")) and k not in ("SSL_CERT_FILE", "ALL_PROXY")
    }
    retained.update(XDG_CONFIG_HOME=str(tmp_path / "config"), XDG_CONFIG_DIRS=str(tmp_path / "xdg"))
    monkeypatch.setattr(environment, "_uv_files", lambda variables: [tmp_path / "config" / "uv" / "uv.toml"])

    def build(text: str = "", **variables: str) -> dict[str, str]:
        file = tmp_path / "pip.conf"
        file.write_text(text)
        # os.devnull would make pip read no file at all.
        return {**retained, "PIP_CONFIG_FILE": str(file), **variables}

    return build


@NEEDS_PIP
def test_uv_gets_what_pip_gets(settings_of_pip):
    text = """
[global]
index-url = file:///a/simple
extra-index-url =
    file:///b/simple
    file:///c/simple
find-links = ./x ./y
cert = /certificates.pem
[install]
trusted-host = one two:8080
"""
    result, options = pip_settings(settings_of_pip(text))
    result.pop("ALL_PROXY", None)  # the machine's own pip.conf is read as well
    assert result == {
        "UV_DEFAULT_INDEX": "file:///a/simple", "UV_INDEX": "file:///b/simple file:///c/simple",
        "UV_FIND_LINKS": "./x,./y",
        "UV_INSECURE_HOST": "one two:8080", "SSL_CERT_FILE": "/certificates.pem",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }  # fmt: skip
    assert options == []


@NEEDS_PIP
def test_pips_variables_win_over_its_files_as_they_do_for_pip(settings_of_pip):
    text = "[global]\nindex-url = file:///a\nno-index = true\n[install]\nindex-url = file:///b\n"
    result, options = pip_settings(settings_of_pip(text))
    assert (result["UV_DEFAULT_INDEX"], options) == ("file:///b", ["--no-index"])
    result, options = pip_settings(settings_of_pip(text, PIP_INDEX_URL="file:///c", PIP_NO_INDEX="0"))
    assert (result["UV_DEFAULT_INDEX"], options) == ("file:///c", [])


def test_pips_variables_count_where_there_is_no_pip(settings_of_pip, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 1, "", "No module named pip"))
    result = pip_settings(settings_of_pip(PIP_FIND_LINKS="/a /b", PIP_NO_INDEX="1"))
    assert result == ({"UV_FIND_LINKS": "/a,/b"}, ["--no-index"])


def test_settings_of_uvs_own_win(settings_of_pip, tmp_path):
    text = "[global]\nindex-url = file:///a\n"
    assert pip_settings(settings_of_pip(text, UV_INDEX="file:///mine")) == ({}, [])
    (tmp_path / "config" / "uv").mkdir(parents=True)
    (tmp_path / "config" / "uv" / "uv.toml").write_text("")
    assert pip_settings(settings_of_pip(text)) == ({}, [])


def test_the_callers_python_settings_do_not_reach_another_python(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("VIRTUAL_ENV", "/somewhere")
    monkeypatch.setenv("KEPT", "1")
    result = environment.foreign_variables()
    assert "PYTHONPATH" not in result and "VIRTUAL_ENV" not in result and result["KEPT"] == "1"
