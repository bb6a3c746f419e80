"""Hash the code of a name: its file and the local modules that it imports.

Local modules lie outside the standard library and the folders of installed packages. A class of an installed package
counts the modules of that package that its file imports.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from codec_bench.messages.errors import UserError

_INSTALLED = {"site-packages", "dist-packages"}
_KNOWN: dict[bytes, tuple[tuple[int, str, tuple[str, ...]], ...]] = {}
"""The imports of files by the SHA-256 of their content."""


def is_custom_code(text: str) -> bool:
    """Whether a name is custom code (`./file.py:Class` or `package.module:Class`)."""
    head, colon, attribute = text.rpartition(":")
    return (
        bool(colon)
        and attribute.isidentifier()
        and (head.endswith(".py") or all(p.isidentifier() for p in head.split(".")))
    )


def code_hash(name: str) -> str:
    """64 bits of the SHA-256 of a custom class's file and its local imports, in hex.

    Empty if there is no such file. Modules that are named only at run time do not count.
    """
    file = find_code(name)
    if file is None:
        return ""
    root = file.resolve()
    digest = hashlib.sha256(root.read_bytes())
    for path in sorted(_find_imports(root)):
        digest.update(f"{os.path.relpath(path, root.parent)}\0".encode("utf-8", "surrogateescape"))
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def file_hash(name: str) -> str:
    """64 bits of the SHA-256 of a custom class's file alone, in hex; empty without one."""
    file = find_code(name)
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file is not None else ""


def find_code(name: str) -> Path | None:
    """The file of a custom class; of a module, its top package is not imported."""
    head = name.rpartition(":")[0]
    if head.endswith(".py"):
        path = Path(head).expanduser()
        return path if path.is_file() else None
    with import_folders():
        files = _files_of(head.split("."), _locate(head.partition(".")[0]))
    last = head.rpartition(".")[2]
    return next((file for file in files[-1:] if last in (file.stem, file.parent.name)), None)


@contextmanager
def import_folders(first: str | None = None) -> Iterator[None]:
    """Put a folder at the front of the import path, and the current one at its end, for the block."""
    added = [(0, first)] if first is not None and first not in sys.path else []
    if (here := os.getcwd()) not in sys.path:
        added.append((len(sys.path) + 1, here))
    for position, folder in added:
        sys.path.insert(position, folder)
    if added:
        importlib.invalidate_caches()
    try:
        yield
    finally:
        for _, folder in added:
            if folder in sys.path:
                sys.path.remove(folder)


def check_imports(root: Path) -> None:
    """Raise UserError if a file got another module in place of one next to it."""
    for level, module, _ in _imports(root.read_bytes()):
        top = module.partition(".")[0]
        near = _files_of([top], [root.parent])
        loaded = getattr(sys.modules.get(top), "__file__", None)
        if (
            level == 0
            and top != "codec_bench"
            and near
            and loaded is not None
            and Path(loaded).resolve() != near[0].resolve()
        ):
            raise UserError("module_taken", path=root, name=top, near=near[0], loaded=loaded, hint="rename one of them")


def _find_imports(root: Path) -> set[Path]:
    """The local files that a file imports, also through others, without itself."""
    package = root.parent
    while (package / "__init__.py").is_file():
        package = package.parent
    top_package = root.relative_to(package).parts[0] if root.parent != package else None
    files, waiting = {root}, [root]
    with import_folders(str(root.parent)):
        while waiting:
            path = waiting.pop()
            for level, module, names in _imports(path.read_bytes()):
                if level:
                    folder = path.parents[level - 1] if level <= len(path.parents) else None
                    starts = [folder] if folder is not None else []
                    parts = module.split(".") if module else []
                else:
                    parts = module.split(".")
                    # A module of this name that the process has imported may be another one.
                    folders = [] if parts[0] in sys.builtin_module_names else [root.parent, *_locate(parts[0])]
                    starts = [package] if parts[0] == top_package else folders
                for words in [parts, *([*parts, name] for name in names)]:
                    for file in _files_of(words, starts):
                        file = file.resolve()
                        is_sibling = top_package is not None and file.is_relative_to(package / top_package)
                        if (is_sibling or not _is_installed(file)) and file not in files:
                            files.add(file)
                            waiting.append(file)
    return files - {root}


def _imports(content: bytes) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """The imports of a file, also those in functions: level, module, imported names."""
    digest = hashlib.sha256(content).digest()
    if digest not in _KNOWN:
        try:
            _KNOWN[digest] = tuple(_imports_below(ast.parse(content)))
        except (SyntaxError, ValueError):
            _KNOWN[digest] = ()
    return _KNOWN[digest]


def _imports_below(node: ast.AST) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The imports of a syntax tree, without those for type checkers, which never run."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Import):
            yield from ((0, alias.name, ()) for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            yield (one.level, one.module or "", tuple(alias.name for alias in one.names))
        elif isinstance(one, ast.If) and "TYPE_CHECKING" in ast.dump(one.test):
            waiting += one.orelse
        else:
            waiting += ast.iter_child_nodes(one)


def _locate(top: str) -> list[Path]:
    """The folders that hold a top-level module or package."""
    if top == "codec_bench" or top in sys.builtin_module_names:
        return []
    with suppress(ImportError, ValueError, AttributeError):
        spec = find_spec(top)
        if spec is not None:
            packages = list(spec.submodule_search_locations or ())
            single = [spec.origin] if not packages and spec.has_location and spec.origin else []
            return [Path(entry).parent for entry in [*packages, *single]]
    return []


def _files_of(parts: list[str], starts: list[Path]) -> list[Path]:
    """The files of a dotted name below the first folder that has it, its packages first."""
    for start in starts:
        files, folder = [], start
        for word in parts:
            module, package = folder / f"{word}.py", folder / word / "__init__.py"
            files += [file for file in ([package] if package.is_file() else [module]) if file.is_file()]
            folder = folder / word
        if not parts:
            files = [file for file in [start / "__init__.py"] if file.is_file()]
        if files:
            return files
    return []


def _is_installed(path: Path) -> bool:
    return bool(_INSTALLED & set(path.parts)) or any(path.is_relative_to(folder) for folder in _installed_folders())


@cache
def _installed_folders() -> tuple[Path, ...]:
    """The folders of the standard library and of installed packages."""
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(Path(folder).resolve() for folder in {*folders, *site.getsitepackages(), site.getusersitepackages()})
