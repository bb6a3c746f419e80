"""Resolve names in the project's tables, installed packages, or Python files.

A name may have an argument and an operating point: `wer[pocketsphinx]`, `encodec-24khz@6`. A table maps a name to
`package.module:Attribute`, imported on use. Other packages add names by the entry-point group `codec_bench`: a module
with any of the dictionaries `CODECS`, `FEATURES`, `METRICS`, `ANSWER_METRICS`, `MODELS`. Custom code
(`./my_codec.py:MyCodec`, `package.module:Class`) needs no registration.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from codec_bench.config.custom_code import (
    check_imports,
    code_hash,
    file_hash,
    find_code,
    import_folders,
    is_custom_code,
)
from codec_bench.messages.errors import UnknownName, UserError

Lent = TypeVar("Lent")
ENTRY_POINT_GROUP = "codec_bench"
TABLES = ("CODECS", "FEATURES", "METRICS", "ANSWER_METRICS", "MODELS")
_PATH = re.compile(r"(?P<before>[^\[\]@]+\[)?(?P<path>[^\[\]+]+\.(?:py|yaml|yml))(?P<after>(?::\w+)?(?:\].*)?)")
_SPEC = re.compile(r"^(?P<name>[^\[\]@]+)(\[(?P<argument>[^\[\]]+)\])?(@(?P<point>[^@\[\]]+))?$")


class LocatedName(str):
    """A name in a file, with a path that begins at the file's folder.

    It equals the name as written, so records do not depend on the current folder. `Spec.parse` resolves the path.

    Args:
        name: such as `./mine.py:Mine`, `./mine.yaml` or `wer[./mine.py:Mine]`.
        folder: of the file.
    """

    __slots__ = ("folder",)
    folder: str

    def __new__(cls, name: str, folder: str) -> LocatedName:
        """The name as a text; `folder` may be relative to the current one."""
        self = super().__new__(cls, name)
        self.folder = os.path.abspath(folder)
        return self

    def __reduce__(self) -> tuple[type[LocatedName], tuple[str, str]]:
        return LocatedName, (str(self), self.folder)

    @property
    def resolved(self) -> str:
        """The name with an absolute path."""
        match = _PATH.fullmatch(self)
        if match is None:
            return str(self)
        path = os.path.join(self.folder, os.path.expanduser(match["path"]))
        return f"{match['before'] or ''}{os.path.normpath(path)}{match['after']}"


def locate_name(name: str, folder: str) -> str:
    """A name in a file of `folder`; plain if it has no path, or in the current folder."""
    is_here = os.path.abspath(folder) == os.getcwd()
    return name if is_here or _PATH.fullmatch(name) is None else LocatedName(name, folder)


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed name: `wer[whisper]` has an argument, `encodec-24khz@6` a point."""

    text: str
    name: str
    argument: str | None = None
    point: str | None = None

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Split a name into its parts, or raise UserError."""
        if isinstance(text, LocatedName):
            return replace(cls.parse(text.resolved), text=text)
        text = text.strip()
        if is_custom_code(text):
            return cls(text, text)
        match = _SPEC.match(text)
        if match is None:
            raise UserError("not_a_name", name=text, hint="expected NAME, NAME[ARGUMENT] or NAME@POINT")
        return cls(text, match["name"].strip(), match["argument"], match["point"])


def source_hash(cls: type) -> str | None:
    """64 bits of the SHA-256 of the source of a class and its bases in its module.

    None if one source cannot be read, as after `exec` or `type(...)`.
    """
    texts = [_source(one) for one in cls.__mro__ if one.__module__ == cls.__module__]
    read = [text for text in texts if text is not None]
    return hashlib.sha256("\n".join(read).encode()).hexdigest()[:16] if len(read) == len(texts) else None


def _source(cls: type) -> str | None:
    """The source of a class; in a notebook, its methods find the cell."""
    for method in vars(cls).values():
        code = getattr(inspect.unwrap(method), "__code__", None) if inspect.isfunction(method) else None
        lines = linecache.getlines(code.co_filename) if code is not None else []
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:  # the file has changed since it was imported
            return None
        for node in ast.walk(tree):
            if code is not None and isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                if node.lineno <= code.co_firstlineno <= (node.end_lineno or 0):
                    return ast.get_source_segment("".join(lines), node)
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of another package: its tables, or the error of its import."""

    name: str
    target: str
    tables: Mapping[str, Mapping[str, str]]
    error: str | None = None


@cache
def plugins() -> tuple[Plugin, ...]:
    """Every installed package that adds names; a broken one has an error instead."""
    result = []
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (p.name, p.value)):
        try:
            module = point.load()
        except Exception as error:  # a broken package must not stop this one
            result.append(Plugin(point.name, point.value, {}, f"{type(error).__name__}: {error}"))
            continue
        tables = {key: dict(getattr(module, key)) for key in TABLES if hasattr(module, key)}
        result.append(Plugin(point.name, point.value, tables))
    return tuple(result)


@cache
def applications() -> tuple[ModuleType, ...]:
    """The applications of the package, each a folder of `apps/`; the core names none."""
    names = sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).resolve().parents[1] / "apps")]))
    return tuple(importlib.import_module(f"codec_bench.apps.{name}") for name in names)


class Command(NamedTuple):
    """A command of the program, imported on use.

    Args:
        group: of `--help`. help: the first line of its function's docstring. path: `package.module:name`.
        common: whether it is listed first in its group.
    """

    group: str
    help: str
    path: str
    common: bool = False


def added(key: str) -> dict[str, Any]:
    """An application's entries by name: `Command` for the key `COMMANDS`, else paths."""
    return {name: path for module in applications() for name, path in getattr(module, key, {}).items()}


def doc_summary(documented: Any) -> str:
    """The first paragraph of a docstring, on one line, or ""."""
    return " ".join(inspect.cleandoc(documented.__doc__ or "").partition("\n\n")[0].split())


def load_attribute(path: str) -> Any:
    """Import `package.module:Name` or `./file.py:Name`, or raise UserError."""
    head, _, attribute = path.rpartition(":")
    try:
        if head.endswith(".py"):
            module = _load_file(str(Path(head).expanduser().resolve()), file_hash(path))
        else:
            with nullcontext() if head in sys.modules else import_folders():
                module = importlib.import_module(head)
    except UserError:
        raise
    except Exception as error:
        raise UserError("not_imported", path=path, type=type(error).__name__, cause=error) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        names = [n for n, v in vars(module).items() if inspect.isclass(v) and v.__module__ == module.__name__]
        raise UserError(
            "file_without_attribute", path=head, name=attribute, hint=f"it has {', '.join(names) or 'no class'}"
        ) from None


@cache
def _load_file(path: str, content: str) -> Any:
    """The module of a file of custom code, imported again when its content changes."""
    if not Path(path).is_file():
        raise UserError("no_file", path=path)
    name = f"codec_bench_own_{Path(path).stem}_{abs(hash(path)):x}"
    loader = SourceFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None  # Python loads every file that ends in .py
    module = importlib.util.module_from_spec(spec)
    linecache.cache.pop(path, None)  # lines of an earlier content
    sys.modules[name] = module  # dataclasses and pickling look the module up by name
    try:
        # Not by the loader: it takes compiled code of a file with the same size and the same second of change.
        with import_folders(str(Path(path).parent)):
            exec(loader.source_to_code(Path(path).read_bytes(), path), module.__dict__)
        check_imports(Path(path))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def call_with_known(factory: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Call a class with its own options; UserError for others with a value."""
    parameters = inspect.signature(factory).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return factory(**options)
    unknown = [k for k, v in options.items() if k not in parameters and v is not None and k != "device"]
    if unknown:
        takes = ", ".join(parameters) or "no option"
        raise UserError(
            "unknown_option", name=getattr(factory, "__name__", factory), option=unknown[0], hint=f"it takes {takes}"
        )
    return factory(**{k: v for k, v in options.items() if k in parameters})


def is_foreign(thing: Any) -> bool:
    """Whether an object is of a class outside this package."""
    return type(thing).__module__.partition(".")[0] != "codec_bench"


def lent(to: Any, value: Lent) -> Lent:
    """The value for our own code; a copy for foreign code, which may modify it.

    Other processes read the same memory. Our code never writes to inputs, as a test checks; the copy is cheap.
    """
    return deepcopy(value) if is_foreign(to) else value


def declared_methods(name: str) -> frozenset[str]:
    """The methods of a custom class and its bases in that file, without running it.

    Empty if the file cannot be read, or holds no such class.
    """
    path, attribute = find_code(name), name.rpartition(":")[2]
    if path is None:
        return frozenset()
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return frozenset()
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    methods: set[str] = set()
    waiting = [attribute]
    while waiting:
        node = classes.pop(waiting.pop(), None)
        if node is not None:
            methods |= {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
            waiting += [base.id for base in node.bases if isinstance(base, ast.Name)]
    return frozenset(methods)


class Registry:
    """The names of one kind of thing, such as codecs or metrics.

    Args:
        room: the kind in messages, such as `metric`. key: of a plugin's dictionary, such as `METRICS`.
        table: the project's own names.
    """

    def __init__(self, room: str, key: str, table: Mapping[str, str]) -> None:
        self.room, self.key, self.built_in = room, key, dict(table)

    def table(self) -> dict[str, str]:
        """Every registered name with its dotted path; a UserError if two packages add one."""
        merged, owner = dict(self.built_in), dict.fromkeys(self.built_in, "codec-bench")
        for plugin in plugins():
            for name, path in plugin.tables.get(self.key, {}).items():
                if name in merged:
                    raise UserError(
                        "added_twice",
                        room=self.room,
                        name=name,
                        one=owner[name],
                        other=plugin.target,
                        hint="uninstall one of them, or give the name in one of them up",
                    )
                merged[name], owner[name] = path, plugin.target
        return merged

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self.table())

    def is_foreign(self, name: str) -> bool:
        """Whether a name is custom code, or added by another package."""
        return is_custom_code(name) or (name not in self.built_in and name in self.table())

    def code_hash(self, name: str) -> str:
        """The hash of the code of custom code, or of another package's name; empty for the project's own."""
        if is_custom_code(name):
            return code_hash(name)
        return code_hash(self.table()[name]) if self.is_foreign(name) else ""

    def resolve(self, name: str) -> Any:
        """The class of a name, a dotted path or a file, or an UnknownName."""
        if is_custom_code(name):
            return load_attribute(name)
        table = self.table()
        if name not in table:
            raise UnknownName(self.room, name, table)
        return load_attribute(table[name])
