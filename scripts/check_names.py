"""List identifiers with a word of `refused_names.yaml`, for `make check`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
LISTS = Path(__file__).with_name("refused_names.yaml")


def list_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each identifier that a file defines, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, (ast.alias, ast.ExceptHandler, ast.MatchAs)):
            name = node.asname if isinstance(node, ast.alias) else node.name
            if name:
                yield name, node.lineno


def split_words(name: str) -> str:
    """`_leftOut_s` as `_left_out_s_`: lower case, a `_` around each word."""
    return f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower().strip('_')}_"


def find_violations(lists: dict, sources: dict[str, str]) -> list[str]:
    """One line for each refused name."""
    anywhere, alone = "|".join(lists["anywhere"]), "|".join(lists["alone"])
    refused = re.compile(f"_({anywhere})_|^_({alone})_$")
    return [
        f"{path}:{line}: {name}"
        for path, source in sources.items()
        for name, line in [(Path(path).stem, 1), *list_names(ast.parse(source))]
        if refused.search(split_words(name)) and f"{path}:{name}" not in lists["allowed"]
    ]


def main() -> int:
    """Print the violations; the exit status is 1 where there are any."""
    paths = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    sources = {path: (ROOT / path).read_text("utf-8") for path in paths.split()}
    problems = find_violations(yaml.safe_load(LISTS.read_text("utf-8")), sources)
    print("\n".join(problems), file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
