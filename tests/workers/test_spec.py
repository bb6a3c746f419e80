"""What an environment's file may contain, and that an environment is identified by this content."""

from __future__ import annotations

import pytest
from refusals import Containing, refuses

from codec_bench.config import config_names
from codec_bench.workers.environment import pinned, read_env

HEX = "0123456789abcdef" * 4


def write(folder, text, name="mine.yaml"):
    file = folder / name
    file.write_text(text, "utf-8")
    return str(file)


@pytest.mark.parametrize("name", config_names("env"))
def test_every_environment_of_ours_reads_and_has_its_code(name):
    spec = read_env(name)
    assert spec.requirements and spec.code.is_file()
    compile(spec.code.read_text("utf-8"), str(spec.code), "exec")


def test_a_file_of_ones_own_with_its_code_and_lock_next_to_it(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "lock.txt").write_text(
        "a==1  # via b\n\n# nothing\nb==2 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n"
    )
    write(
        tmp_path, "version: 1\nsummary: x\nlock: sub/lock.txt\ncode: sub/code.py\nvariables: {A: '1'}\npython: '3.10'"
    )
    spec = read_env("mine.yaml", tmp_path)
    assert spec.name == "mine"
    assert spec.requirements == ("a==1", "b==2 --hash=sha256:00 --hash=sha256:11")
    assert spec.code == tmp_path / "sub" / "code.py"
    assert (spec.variables, spec.python) == ({"A": "1"}, "3.10")


def test_a_worker_may_need_no_packages(tmp_path):
    assert read_env(write(tmp_path, "version: 1\nsummary: x\nrequirements: []")).requirements == ()


def test_the_digest_is_of_what_the_environment_holds(tmp_path):
    def digest(text):
        return read_env(write(tmp_path, f"version: 1\nsummary: s\n{text}")).digest

    first = digest("requirements: [a==1, b==2]")
    assert first == digest("requirements: [a==1, b==2]\ncode: other.py\nvariables: {A: '1'}")
    (tmp_path / "lock").write_text("# of another look\na==1\nb==2\n")
    assert first == digest("lock: lock")
    others = [
        digest("requirements: [a==1, b==3]"),
        digest("requirements: [a==1]"),
        digest("requirements: [a==1, b==2]\npython: '3.12'"),
    ]
    assert len({first, *others}) == 4


@pytest.mark.parametrize(
    "line",
    [
        "a==1", "a-b.c_d == 1.0.post1", "a[x,y]==1", "a===1", "a==1+cu121; sys_platform == 'linux'",
        "a==1 --hash=sha256:00",
        f"a @ https://host/a-1.whl#sha256={HEX}", f"a @ git+https://host/a@{HEX[:40]}",
        f"a@git+https://host/a@{HEX[:40]}#egg=a",
        "--extra-index-url https://host/simple", "--find-links=./wheels", "--no-binary :all:",
    ],
)  # fmt: skip
def test_lines_that_state_one_thing(line):
    assert pinned([line], "list") == (line,)


@pytest.mark.parametrize(
    "line",
    [
        "a", "a>=1", "a==1.*", "a==1,<2", "a~=1.0", "-r other.txt", "-c limits.txt", "-e .", "./folder",
        "--requirement x",
        "a @ https://host/a-1.whl", "a @ git+https://host/a@main", "a==1 b==2", "--pre",
    ],
)  # fmt: skip
def test_lines_that_may_mean_another_thing_tomorrow(line):
    with refuses("package_not_pinned", lock="list.txt", line=line, hint="uv pip compile"):
        pinned(["a==1", line], "list.txt")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version: 1\nsummary: x", {"mistakes": {"code": "wrong_field", "message": "requirements_or_lock"}}),
        (
            "version: 1\nsummary: x\nrequirements: [a==1]\nlock: b",
            {"mistakes": {"code": "wrong_field", "message": "requirements_or_lock"}},
        ),
        ("version: 2\nsummary: x\nrequirements: [a==1]", {"mistakes": {"code": "wrong_field", "name": "version"}}),
        (
            "version: 1\nsummary: x\nrequirements: [a==1]\npyhton: '3.1'",
            {"mistakes": {"code": "unknown_field", "name": "pyhton"}},
        ),
        (
            "version: 1\nsummary: x\nrequirements: [a==1]\npython: --help",
            {"mistakes": {"code": "wrong_field", "name": "python"}},
        ),
        (
            "version: 1\nsummary: x\nrequirements: [a]",
            {"code": "package_not_pinned", "lock": Containing("mine"), "line": "a"},
        ),
        (
            "version: 1\nsummary: x\nlock: nowhere.txt",
            {"code": "lock_unreadable", "lock": "nowhere.txt", "environment": "mine"},
        ),
        ("[1]", {"code": "mapping_expected", "path": "mine.yaml", "type": "list"}),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, text, says):
    with refuses(**({"code": "does_not_fit", "path": "mine.yaml"} if "mistakes" in says else {}), **says):
        read_env(write(tmp_path, text))


def test_an_unknown_name_suggests_the_nearest():
    with refuses("unknown_name", hint="numpy-1"):
        read_env("numpy1")
    with refuses("no_file"):
        read_env("./nowhere.yaml")
