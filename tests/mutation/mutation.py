"""Plants one error at a time in modules of the package and counts how many the tests of each module find.

    make mutate
    python tests/mutation/mutation.py [--modules 20] [--mutants 15] [--seed 1] [--only text/chinese_numbers]

Five modules are always taken, the others by the seed, from those whose tests stand at the same place under tests/. A
mutant changes one comparison, operator, condition, number, returned value or call in the source as it is imported; no
file is changed. A mutant that no test fails on survives. Mutants that change nothing that could be observed are listed
with the reason in equivalent.yaml and do not count. The result of every module that was examined is kept in
results.json beside this file, and results.md shows all of them. It takes up to two hours, one process at a time, so it
is no part of `make test`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import importlib
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIRST = ("text/chinese_numbers", "features/speakers/ge2e", "stats/summary", "store/answers", "features/dnsmos")
FIRST_LIMIT = 5
"""How many times as long as of other modules the tests of these may take."""
GOAL = 0.85
# What most tests import, loaded once before each mutant has a process of its own.
LOADED = (
    "numpy",
    "scipy.signal",
    "scipy.stats",
    "soundfile",
    "yaml",
    "torch",
    "hypothesis",
    "pytest",
    "numba",
    "aiohttp",
)
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.MatMult: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: where it begins and ends in the source (characters), and what stands there then."""

    line: int
    start: int
    end: int
    before: str
    after: str

    def of(self, source: str) -> str:
        """The whole source with the change."""
        return source[: self.start] + self.after + source[self.end :]


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    new = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        new.ops[0] = COMPARISONS[type(node.ops[0])]()
        yield new
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        new.op = OPERATORS[type(node.op)]()
        yield new
    elif isinstance(node, ast.BoolOp):
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        yield ast.Constant(
            not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value * 2 or 1.0
        )
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Break | ast.Continue):
        yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()


def looked_at(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose change could be observed: no annotations, decorators, texts of messages or parts of f-strings."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        parts = [*getattr(node, "bases", []), *node.body]
        if (args := getattr(node, "args", None)) is not None:
            parts = [*args.defaults, *(default for default in args.kw_defaults if default), *node.body]
    elif isinstance(node, ast.AnnAssign):
        parts = [node.value] if node.value else []
    else:
        parts = list(ast.iter_child_nodes(node))
        yield node
    for item in parts:
        yield from looked_at(item)


def mutants(source: str, lines: Collection[int] | None = None) -> list[Mutant]:
    """Every mutant of a source that is still Python, in the order of the source; of these lines alone, if they are
    given.
    """
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    raw = source.encode()

    def position(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    tree, result = ast.parse(source), []
    for node in looked_at(tree):
        for new in changes(node):
            where = node.test if isinstance(node, ast.If | ast.While | ast.IfExp) else node
            start, end = position(where.lineno, where.col_offset), position(where.end_lineno, where.end_col_offset)
            after = ast.unparse(ast.fix_missing_locations(new))
            if isinstance(new, ast.expr) and not isinstance(new, ast.Constant | ast.Name | ast.Call | ast.Attribute):
                after = f"({after})"
            mutant = Mutant(where.lineno, start, end, source[start:end], after)
            if lines is not None and mutant.line not in lines:
                continue
            try:
                ast.parse(mutant.of(source))
            except SyntaxError:
                continue
            result.append(mutant)
    return sorted(result, key=lambda one: (one.start, one.end, one.after))


@dataclass
class Result:
    """What became of one module's mutants."""

    module: str
    seed: int
    killed: int = 0
    equivalent: int = 0
    survivors: list[str] = field(default_factory=list)

    @property
    def counted(self) -> int:
        """Mutants that are not equivalent."""
        return self.killed + len(self.survivors)


def tests_of(module: str) -> Path:
    """The tests of a module, at the same place under tests/."""
    room, _, stem = module.rpartition("/")
    return ROOT / "tests" / room / f"test_{stem}.py"


def candidates() -> list[str]:
    """The modules that have tests at their place."""
    package = ROOT / "codec_bench"
    names = sorted(path.relative_to(package).with_suffix("").as_posix() for path in package.rglob("*.py"))
    return [name for name in names if tests_of(name).exists()]


def drawn_by(seed: int) -> list[str]:
    """The modules that are not always taken, in an order of the seed's.

    A module more or less leaves the others in their order.
    """
    order = {name: hashlib.sha256(f"{seed} {name}".encode()).hexdigest() for name in candidates() if name not in FIRST}
    return sorted(order, key=order.__getitem__)


def outcome(tests: Path, model: dict[str, str] | None, limit_s: float) -> tuple[str, float]:
    """Runs the tests in a process of its own: `passed`, `failed` or `too long`, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        if model is not None:
            target = Path(folder, "mutant.json")
            target.write_text(json.dumps(model), "utf-8")
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            os.setsid()
            quiet = os.open(Path(folder, "said"), os.O_WRONLY | os.O_CREAT)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            if model is not None:
                sys.path.insert(0, str(HERE / "hook"))
                hook = importlib.import_module("sitecustomize") if "sitecustomize" not in sys.modules else _hook()
                hook.install(str(target))
                os.environ[hook.VARIABLE] = str(target)
                paths = (str(HERE / "hook"), str(ROOT), os.environ.get("PYTHONPATH", ""))
                os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
            import pytest

            # Rewriting of assertions has a loader of its own, which would read the package as it is.
            code = pytest.main(
                ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--assert=plain", "--rootdir", str(ROOT), str(tests)]
            )
            os._exit(int(code))
        while time.monotonic() - start < limit_s:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return ("passed" if code == 0 else "failed"), time.monotonic() - start
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "too long", limit_s


def _hook():
    spec = importlib.util.spec_from_file_location("hook", HERE / "hook" / "sitecustomize.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def known() -> dict[tuple[str, str, str], str]:
    """The reasons of equivalent mutants by module, line of source and what stands there in
    place of what it replaces.
    """
    details = yaml.safe_load((HERE / "equivalent.yaml").read_text("utf-8")) or []
    return {(one["module"], one["line"], one["after"]): one["reason"] for one in details}


def examine(module: str, count: int, seed: int, limit_s: float) -> Result | None:
    """Runs a sample of a module's mutants; None where its tests fail without a mutant, or take too long."""
    path, tests = ROOT / "codec_bench" / f"{module}.py", tests_of(module)
    source = path.read_text("utf-8")
    texts, baseline_s = outcome(tests, None, limit_s)
    if texts != "passed":
        sys.stdout.write(f"{module}: left out, its tests {texts} without a mutant (limit {limit_s:.0f} s)\n")
        sys.stdout.flush()
        return None
    broken = {"path": os.path.realpath(path), "source": "raise RuntimeError('planted')\n"}
    if outcome(tests, broken, limit_s)[0] == "passed":
        raise SystemExit(f"{module}: its tests pass with a source that cannot be imported, so mutants show nothing")
    every, result, equivalents = mutants(source), Result(module, seed), known()
    lines = source.splitlines()
    for mutant in sorted(
        random.Random(f"{seed} {module}").sample(every, min(count, len(every))), key=lambda m: m.start
    ):
        line = lines[mutant.line - 1].strip()
        if (module, line, mutant.after) in equivalents:
            result.equivalent += 1
            continue
        options = {"path": os.path.realpath(path), "source": mutant.of(source)}
        texts, _ = outcome(tests, options, max(20.0, 4 * baseline_s))
        if texts == "passed":
            result.survivors.append(f"{module}.py:{mutant.line}: `{mutant.before}` became `{mutant.after}` in `{line}`")
        else:
            result.killed += 1
    sys.stdout.write(
        f"{module}: {result.killed} of {result.counted} killed, {result.equivalent} equivalent; tests take "
        f"{baseline_s:.1f} s\n"
    )
    sys.stdout.write("".join(f"    {text}\n" for text in result.survivors))
    sys.stdout.flush()
    return result


def retained(results: list[Result]) -> list[Result]:
    """Puts results in the place of earlier ones in results.json, by module; returns those of modules that exist."""
    folder = HERE / "results.json"
    before = [Result(**one) for one in json.loads(folder.read_text("utf-8"))] if folder.exists() else []
    every = {one.module: one for one in (*before, *results)}
    collected = [every[name] for name in sorted(every) if (ROOT / "codec_bench" / f"{name}.py").exists()]
    folder.write_text(json.dumps([vars(one) for one in collected], ensure_ascii=False, indent=1) + "\n", "utf-8")
    return collected


def page(results: list[Result]) -> str:
    """The results as a table, with the survivors."""
    killed, counted = sum(r.killed for r in results), sum(r.counted for r in results)
    lines = [
        "<!-- Written by tests/mutation/mutation.py. Do not edit: run `make mutate`. -->",
        "# Mutants that the tests find",
        "",
        f"{killed} of {counted} mutants that are not equivalent were killed ({killed / max(1, counted):.0%}).",
        "",
        "| module | seed | mutants | equivalent | killed | survived |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {r.module} | {r.seed} | {r.counted + r.equivalent} | {r.equivalent} | {r.killed} | {len(r.survivors)} |"
        for r in results
    ]
    lines += ["", "Survivors:", "", *(f"- {text}" for r in results for text in r.survivors)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs the mutants and writes the results; exits with 1 where fewer are killed than the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", type=int, default=20)
    parser.add_argument("--mutants", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=30.0, help="modules whose tests take longer are left out")
    parser.add_argument("--only", nargs="+", default=(), help="these modules alone")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in LOADED:
        importlib.import_module(name)
    drawn = drawn_by(options.seed)
    results: list[Result] = []
    for module in options.only or (*FIRST, *drawn):
        if len(results) == options.modules:
            break
        limit_s = options.limit_s * (FIRST_LIMIT if module in FIRST else 1)
        if (result := examine(module, options.mutants, options.seed, limit_s)) is not None:
            results.append(result)
            (HERE / "results.md").write_text(page(retained([result])), "utf-8")
    sys.stdout.write(page(results))
    sys.exit(0 if sum(r.killed for r in results) >= GOAL * sum(r.counted for r in results) else 1)


if __name__ == "__main__":
    main()
