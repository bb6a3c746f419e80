"""The mutator changes what it says, the changed module is the one that is imported, and a
survivor is counted as one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("mutation", HERE / "mutation.py")
mutation = importlib.util.module_from_spec(_spec)
sys.modules["mutation"] = mutation
_spec.loader.exec_module(mutation)

SOURCE = '''"""A text with 1 in it."""

MOST: int = 3


def kept(value: float, most: int = MOST) -> float:
    """Not above."""
    if not value < 0.5 and value > 0:
        print(f"{value + 1}")
        return value * 2
    for step in range(most):
        if step == -1:
            continue
    raise ValueError("above " + str(most - 1))
'''


def test_mutants_are_the_changes_that_could_be_observed():
    by_name = {(m.line, m.before, m.after) for m in mutation.mutants(SOURCE)}
    assert by_name == {
        (3, "3", "4"),
        (8, "not value < 0.5 and value > 0", "(not (not value < 0.5 and value > 0))"),
        (8, "not value < 0.5 and value > 0", "(not value < 0.5 or value > 0)"),
        (8, "not value < 0.5", "(value < 0.5)"),
        (8, "value < 0.5", "(value <= 0.5)"),
        (8, "0.5", "1.0"),
        (8, "value > 0", "(value >= 0)"),
        (8, "0", "1"),
        (9, 'print(f"{value + 1}")', "pass"),
        (10, "return value * 2", "return None"),
        (10, "value * 2", "(value / 2)"),
        (10, "2", "3"),
        (12, "step == -1", "(not step == -1)"),
        (12, "step == -1", "(step != -1)"),
        (12, "-1", "1"),
        (12, "1", "2"),
        (13, "continue", "break"),
    }
    for mutant in mutation.mutants(SOURCE):
        assert mutant.of(SOURCE) != SOURCE
        compile(mutant.of(SOURCE), "mutant", "exec")


def test_the_first_modules_have_tests():
    assert set(mutation.FIRST) <= set(mutation.candidates())


def test_a_mutant_is_what_a_new_process_imports(tmp_path):
    path = mutation.ROOT / "codec_bench" / "text" / "language.py"
    target = tmp_path / "mutant.json"
    target.write_text(json.dumps({"path": str(path), "source": "PLANTED = 7\n"}))
    environment = {**os.environ, "CODEC_BENCH_MUTANT": str(target)}
    environment["PYTHONPATH"] = os.pathsep.join((str(HERE / "hook"), str(mutation.ROOT)))
    command = [sys.executable, "-c", "from codec_bench.text import language; print(language.PLANTED)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "7\n", done.stderr
    assert "PLANTED" not in path.read_text("utf-8")


def test_a_mutant_is_what_the_tests_import(tmp_path):
    (tmp_path / "test_planted.py").write_text(
        "from codec_bench.text import language\n\ndef test_it():\n    assert not hasattr(language, 'PLANTED')\n"
    )
    path = mutation.ROOT / "codec_bench" / "text" / "language.py"
    model = {"path": str(path), "source": path.read_text("utf-8") + "\nPLANTED = 7\n"}
    program = f"import sys; sys.path[:0] = [{str(mutation.ROOT)!r}, {str(HERE)!r}]\n"
    program += "import mutation; from pathlib import Path\n"
    program += f"tests = Path({str(tmp_path)!r}, 'test_planted.py')\n"
    program += f"print(*(mutation.outcome(tests, model, 60)[0] for model in (None, {model!r})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "passed failed\n", done.stderr


def test_survivors_killed_and_equivalent_mutants_are_counted_apart(tmp_path, monkeypatch):
    module = "text/language"
    source = (mutation.ROOT / "codec_bench" / f"{module}.py").read_text("utf-8")
    every = mutation.mutants(source)
    survivor, same = every[0], every[-1]
    line = source.splitlines()[same.line - 1].strip()
    monkeypatch.setattr(mutation, "known", lambda: {(module, line, same.after): "it is"})

    def spoken(tests: Path, model: dict[str, str] | None, limit_s: float) -> tuple[str, float]:
        if model is not None and "planted" in model["source"]:
            return ("passed" if unseen else "failed"), 0.1
        return ("passed" if model is None or model["source"] == survivor.of(source) else "failed"), 0.1

    unseen = []
    monkeypatch.setattr(mutation, "outcome", spoken)
    result = mutation.examine(module, 1_000, 1, 1.0)
    alike = sum((source.splitlines()[m.line - 1].strip(), m.after) == (line, same.after) for m in every)
    assert (result.equivalent, len(result.survivors)) == (alike, 1)
    assert result.killed == len(every) - alike - 1
    monkeypatch.setattr(mutation, "HERE", tmp_path)
    mutation.retained([result])
    again = [mutation.Result(name, 2, killed=3) for name in ("text/gone", "text/normalise")]
    again = mutation.retained([*again, mutation.Result(module, 1, survivors=["x"])])
    assert [(one.module, one.killed, one.survivors) for one in again] == [(module, 0, ["x"]), ("text/normalise", 3, [])]
    assert f"| {module} | 1 | {len(every)} | {alike} | {result.killed} | 1 |" in mutation.page([result])
    unseen.append(True)
    with pytest.raises(SystemExit):
        mutation.examine(module, 1_000, 1, 1.0)
    monkeypatch.setattr(mutation, "outcome", lambda *args: ("failed", 0.1))
    assert mutation.examine(module, 1_000, 1, 1.0) is None, "tests that fail without a mutant show nothing"


@pytest.mark.parametrize(
    "one", yaml.safe_load((HERE / "equivalent.yaml").read_text("utf-8")) or [], ids=lambda one: one["line"]
)
def test_equivalent_mutants_are_of_the_source_as_it_is(one):
    assert set(one) == {"module", "line", "after", "reason"} and one["reason"].endswith(".")
    source = (mutation.ROOT / "codec_bench" / f"{one['module']}.py").read_text("utf-8")
    places = {number for number, line in enumerate(source.splitlines(), 1) if line.strip() == one["line"]}
    by_name = {mutant.after for mutant in mutation.mutants(source, places)}
    assert one["after"] in by_name, "the line has changed: look at it again"
