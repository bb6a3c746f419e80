"""Compiled templates on disk: loaded where whole, compiled anew otherwise."""

import sys

import pytest
from jinja2 import DictLoader
from jinja2.environment import Environment

from codec_bench.report.page.compiled import CompiledTemplates


def render(folder, text="{{ 1 + 1 }}") -> tuple[str, int]:
    """What the template gives, and how often it was compiled."""
    environment = Environment(loader=DictLoader({"page": text}), bytecode_cache=CompiledTemplates(folder))
    compiles = []
    compile_source = environment.compile
    environment.compile = lambda *args, **kwargs: (compiles.append(args), compile_source(*args, **kwargs))[1]
    return environment.get_template("page").render(), len(compiles)


@pytest.fixture(autouse=True)
def is_writing(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)


def test_compiles_once(tmp_path):
    assert render(tmp_path) == ("2", 1)
    assert render(tmp_path) == ("2", 0)
    assert render(tmp_path, "{{ 1 + 2 }}") == ("3", 1)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:40], lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: b""]
)
def test_damaged_file(tmp_path, damage):
    render(tmp_path)
    (file,) = (tmp_path / "__pycache__").iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert render(tmp_path) == ("2", 1)
    assert render(tmp_path) == ("2", 0)


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "__pycache__").write_text("")
    assert render(tmp_path) == ("2", 1)
    assert render(tmp_path) == ("2", 1)


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert render(tmp_path) == ("2", 1)
    assert not list(tmp_path.iterdir())


def test_a_chosen_folder_holds_templates_next_to_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert [render(tmp_path / "package") for _ in range(2)] == [("2", 1), ("2", 0)]
    assert len(list((tmp_path / "cache" / "templates").iterdir())) == 1 and not (tmp_path / "package").exists()
