"""`codec-bench --help`: groups of commands from tables, and no command's module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

import codec_bench
from codec_bench.cli.app import app, command_table
from codec_bench.cli.commands import GROUPS
from codec_bench.config.registry import doc_summary, load_attribute


@pytest.mark.parametrize("name", command_table())
def test_the_line_of_a_command_is_the_summary_of_its_function(name):
    built = load_attribute(command_table()[name].path)
    summary = " ".join(built.info.help.split()) if isinstance(built, typer.Typer) else doc_summary(built)
    assert summary == command_table()[name].help


def test_help_has_every_command_in_its_group_and_the_common_ones_first(command):
    code, out, _ = command("--help")
    assert code == 0
    for group in GROUPS:
        _, _, rest = out.partition(f"\n{group}:\n")
        lines = rest.partition("\n\n")[0].splitlines()
        shown = [line.split()[0] for line in lines]
        held = {name: one for name, one in command_table().items() if one.group == group}
        assert shown == list(held) and all(len(line) <= 80 for line in lines)
        assert [one.common for one in held.values()] == sorted((one.common for one in held.values()), reverse=True)


@pytest.mark.parametrize(
    "group", [name for name, one in command_table().items() if isinstance(load_attribute(one.path), typer.Typer)]
)
def test_help_of_a_group_cuts_no_sentence(group, command):
    code, out, _ = command(group, "--help")
    assert code == 0 and "Commands:" in out and "..." not in out.partition("Commands:")[2]


def test_help_imports_no_command():
    code = (
        "import sys\nfrom codec_bench.cli import main\nsys.argv = ['codec-bench', '--help']\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    modules = {one.path.partition(":")[0] for one in command_table().values()}
    assert done.returncode == 0 and len(modules) > 15 and not modules & set(done.stderr.split())


def test_the_package_runs_as_a_module_and_keeps_the_checkout_off_the_path(tmp_path):
    checkout = Path(codec_bench.__file__).parents[1]
    for folder in (tmp_path, checkout):
        done = subprocess.run(
            [sys.executable, "-m", "codec_bench", "--version"], cwd=folder, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout.split()[-1]) == (0, codec_bench.__version__)
    code = (
        "import importlib.util, runpy, sys\nsys.argv = ['codec_bench', '--version']\nsys.path.insert(0, '')\n"
        "try:\n    runpy.run_module('codec_bench', run_name='__main__')\n"
        "finally:\n    print(importlib.util.find_spec('kernels'), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=checkout, capture_output=True, text=True)
    assert (done.returncode, done.stderr.split()) == (0, ["None"])


def test_commands_are_had_by_name():
    program = typer.main.get_command(app)
    assert list(program.commands) == list(command_table()) and program.commands["eval"] is program.commands["eval"]
    assert "evl" not in program.commands and program.commands.get("evl") is None
