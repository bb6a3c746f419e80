"""The examples of docstrings are run: every public name and every metric's family has one, and
it gives what it says.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import codec_bench
from codec_bench.metrics import TABLE

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FAMILIES = sorted({target.partition(":")[0] for target in TABLE.values()})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """One folder for all examples. It holds the run of the example of `evaluate`, which others open."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        check(codec_bench.evaluate, importlib.import_module(codec_bench.evaluate.__module__))
    return folder


@pytest.fixture
def working_folder(path, monkeypatch):
    enter(path, monkeypatch)


def enter(folder, patch):
    patch.chdir(folder)
    patch.setenv("CODEC_BENCH_CACHE", str(folder / "cache"))
    patch.setenv("OMP_NUM_THREADS", "1")
    patch.delenv("CODEC_BENCH_DATA", raising=False)


def check(built, module) -> None:
    """Runs the examples of a docstring, with the names of its module."""
    text = inspect.getdoc(built) or ""
    named = {**vars(module), "__name__": "examples"}
    test = doctest.DocTestParser().get_doctest(text, named, built.__qualname__, module.__file__, None)
    assert test.examples and any(example.want for example in test.examples), f"{built.__qualname__} has no example"
    assert "Examples:" in text.splitlines(), f"{built.__qualname__} has examples outside a section 'Examples:'"
    messages: list[str] = []
    failed = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=messages.append).failed
    assert not failed, "".join(messages)


@pytest.mark.parametrize("name", codec_bench.__all__)
def test_the_example_of_a_public_name_gives_what_it_says(name, working_folder):
    built = getattr(codec_bench, name)
    check(built, importlib.import_module(built.__module__))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_example_of_a_metric_family_gives_what_it_says(family, working_folder):
    """A class of the module, or one that it makes others of, shows a number."""
    module = importlib.import_module(family)
    shown = [
        built
        for built in vars(module).values()
        if inspect.isclass(built) and built.__module__ == family and ">>>" in (built.__doc__ or "")
    ]
    assert shown, f"no class in {Path(module.__file__ or family).name} has an example"
    for built in shown:
        check(built, module)
