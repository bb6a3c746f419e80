"""`doctor --compile` leaves no kernel for a later process to compile."""

from __future__ import annotations

import importlib
from pathlib import Path

from numba.core.dispatcher import Dispatcher

import codec_bench.kernels
from codec_bench.api import compile_kernels as module
from codec_bench.api.compile_kernels import compile_kernels
from codec_bench.api.doctor import embedded_clip


def dispatchers() -> dict[str, Dispatcher]:
    """Every compiled function of the kernels by name, without those that numba copies into their callers."""
    root, output = Path(next(iter(codec_bench.kernels.__path__))), {}
    for path in sorted(root.rglob("*.py")):
        if "jit(" in path.read_text("utf-8") and "compilation" not in path.parts:
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            loaded = importlib.import_module(f"codec_bench.kernels.{name}")
            output |= {
                f"{name}.{key}": value
                for key, value in vars(loaded).items()
                if isinstance(value, Dispatcher)
                and value.py_func.__module__ == loaded.__name__
                and value.targetoptions.get("inline") != "always"
            }
    return output


def test_every_kernel_is_compiled():
    messages = []
    finding = compile_kernels(embedded_clip(), messages.append)
    assert finding.state == "ok" and messages[: len(module.COMPILED_METRICS)] == list(module.COMPILED_METRICS)
    known = dispatchers()
    assert len(known) > 20
    # Code that was on disk before is loaded for the outermost functions alone.
    assert [n for n, one in known.items() if not one.overloads and not one._cache._cache_file._load_index()] == []


def test_a_metric_that_cannot_run_is_named(monkeypatch):
    monkeypatch.setattr(module, "COMPILED_METRICS", ("no_such_metric",))
    finding = compile_kernels(embedded_clip(), lambda name: None)
    assert finding.state == "note" and "no_such_metric" in finding.found
