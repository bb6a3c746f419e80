"""Finds what a name stands for: in the project's tables, in installed packages, or in a Python file or module.

Conventions
    A name may carry an argument and an operating point: `wer[pocketsphinx]`, `encodec-24khz@6`.
    A table maps a name to `package.module:Attribute`. The module is imported when the name is used, not before.
    Another package adds names through the entry-point group `codec_bench`: each entry point names a module that holds
    any of the dictionaries `CODECS`, `FEATURES`, `METRICS`, `ANSWER_METRICS`, `MODELS` (name to dotted path).
    Own code needs no registration: `./my_codec.py:MyCodec` and `package.module:Class` can stand wherever a name can.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from codec_bench.errors import UnknownName, UserError

Lent = TypeVar("Lent")
ENTRY_POINT_GROUP = "codec_bench"
TABLES = ("CODECS", "FEATURES", "METRICS", "ANSWER_METRICS", "MODELS")
_SPEC = re.compile(r"^(?P<name>[^\[\]@]+)(\[(?P<argument>[^\[\]]+)\])?(@(?P<point>[^@\[\]]+))?$")


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed name: `wer[pocketsphinx]` has the argument `pocketsphinx`, `encodec-24khz@6` the point `6`."""

    text: str
    name: str
    argument: str | None = None
    point: str | None = None

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Splits a name into its parts.

        Raises:
            UserError: the name is not of the form NAME, NAME[ARGUMENT] or NAME@POINT.
        """
        text = text.strip()
        if is_own_code(text):
            return cls(text, text)
        match = _SPEC.match(text)
        if match is None:
            raise UserError(f"'{text}' is not a name", hint="expected NAME, NAME[ARGUMENT] or NAME@POINT")
        return cls(text, match["name"].strip(), match["argument"], match["point"])


def is_own_code(text: str) -> bool:
    """Whether a name is own code (`./file.py:Class` or `package.module:Class`) and not a registered name."""
    head, colon, attribute = text.rpartition(":")
    return (
        bool(colon)
        and attribute.isidentifier()
        and (head.endswith(".py") or all(p.isidentifier() for p in head.split(".")))
    )


def code_hash(name: str) -> str:
    """64 bits of the SHA-256 of the file that a name of own code names, in hexadecimal; empty if it names no file."""
    path = Path(name.rpartition(":")[0]).expanduser()
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def source_hash(cls: type) -> str | None:
    """64 bits of the SHA-256 of the source of a class and of its bases in the same module, in hexadecimal.

    None if the source of one of them cannot be read, as after `exec` or `type(...)`.
    """
    texts = [_source(one) for one in cls.__mro__ if one.__module__ == cls.__module__]
    read = [text for text in texts if text is not None]
    return hashlib.sha256("\n".join(read).encode()).hexdigest()[:16] if len(read) == len(texts) else None


def _source(cls: type) -> str | None:
    """The source of a class. A notebook has no file, so the cell of the class is found by its methods."""
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
    """An entry point of another package: its tables, or the error that its import raised."""

    name: str
    target: str
    tables: Mapping[str, Mapping[str, str]]
    error: str | None = None


@cache
def plugins() -> tuple[Plugin, ...]:
    """Every installed package that adds names. One that cannot be imported is listed with its error and adds none."""
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
    """The applications that come with the package, each a folder of `apps/`.

    The core finds them here and names none.
    """
    names = sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent / "apps")]))
    return tuple(importlib.import_module(f"{__package__}.apps.{name}") for name in names)


class Command(NamedTuple):
    """A command of the program, which is imported when it is typed.

    Args:
        group: the group of `--help` that it stands in.
        help: what it does, in a line: the first of its function's docstring.
        path: of the function or of the group of commands, as `package.module:name`.
        common: whether many people type it; the common ones stand first in their group.
    """

    group: str
    help: str
    path: str
    common: bool = False


def added(key: str) -> dict[str, Any]:
    """What the applications add under a key by name: a `Command` under `COMMANDS`, else a path."""
    return {name: path for module in applications() for name, path in getattr(module, key, {}).items()}


def doc_summary(documented: Any) -> str:
    """The first paragraph of a docstring, on one line; empty where there is none."""
    return " ".join(inspect.cleandoc(documented.__doc__ or "").partition("\n\n")[0].split())


def load_attribute(path: str) -> Any:
    """Imports `package.module:Name` or `./file.py:Name`.

    Raises:
        UserError: the file, module or attribute does not exist, or its import raised an exception.
    """
    head, _, attribute = path.rpartition(":")
    try:
        module = (
            _load_file(str(Path(head).expanduser().resolve()), code_hash(path))
            if head.endswith(".py")
            else _import_module(head)
        )
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"'{path}' cannot be imported: {type(error).__name__}: {error}") from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        names = [n for n, v in vars(module).items() if inspect.isclass(v) and v.__module__ == module.__name__]
        raise UserError(f"'{head}' has no '{attribute}'", hint=f"it has {', '.join(names) or 'no class'}") from None


def _import_module(name: str) -> Any:
    """A module by its name, also one of the current folder, as `python -m` finds it."""
    with _current_folder():
        return importlib.import_module(name)


@contextmanager
def _current_folder() -> Iterator[None]:
    """Inside, modules are looked for in the current folder after all other places."""
    here = os.getcwd()
    is_new = here not in sys.path
    if is_new:
        sys.path.append(here)
        importlib.invalidate_caches()
    try:
        yield
    finally:
        if is_new and here in sys.path:
            sys.path.remove(here)


@cache
def _load_file(path: str, content: str) -> Any:
    """The module of a file of own code, which is imported again when its content has changed."""
    if not Path(path).is_file():
        raise UserError(f"there is no file '{path}'")
    name = f"codec_bench_own_{Path(path).stem}_{abs(hash(path)):x}"
    loader = SourceFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None  # Python loads every file that ends in .py
    module = importlib.util.module_from_spec(spec)
    linecache.cache.pop(path, None)  # lines of an earlier content
    sys.modules[name] = module  # dataclasses and pickling look the module up by name
    try:
        # Not by the loader: it takes compiled code of a file with the same size and the same second of change.
        exec(loader.source_to_code(Path(path).read_bytes(), path), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def call_with_known(factory: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Calls a class with the options that its signature takes. Other options are left out if they are None.

    Raises:
        UserError: the class does not take an option that has a value.
    """
    parameters = inspect.signature(factory).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return factory(**options)
    unknown = [k for k, v in options.items() if k not in parameters and v is not None and k != "device"]
    if unknown:
        takes = ", ".join(parameters) or "no option"
        raise UserError(
            f"'{getattr(factory, '__name__', factory)}' does not take '{unknown[0]}'", hint=f"it takes {takes}"
        )
    return factory(**{k: v for k, v in options.items() if k in parameters})


def lent(to: Any, value: Lent) -> Lent:
    """What a feature or a metric is given: the thing itself if it is ours, and a copy if it is somebody else's code.

    Others read the same memory, also in other processes. Ours write into nothing, which a test shows; the copy costs
    little beside what a scorer does.

    Args:
        to: what gets it. value: signals or inputs.
    """
    return value if type(to).__module__.partition(".")[0] == __package__ else deepcopy(value)


def declared_methods(name: str) -> frozenset[str]:
    """The methods of a class of own code and of its bases in the same file, found without running anything.

    Empty if the file cannot be found or read, or holds no such class.
    """
    head, _, attribute = name.rpartition(":")
    path = Path(head).expanduser()
    try:
        if path.suffix != ".py":
            with _current_folder():
                spec = importlib.util.find_spec(head)
            path = Path(spec.origin) if spec is not None and spec.origin else path
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError, ImportError):
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
        room: what one of them is called in messages, such as `metric`.
        key: the name of the dictionary in a plugin's module, such as `METRICS`.
        table: the project's own names.
    """

    def __init__(self, room: str, key: str, table: Mapping[str, str]) -> None:
        self.room, self.key, self.built_in = room, key, dict(table)

    def table(self) -> dict[str, str]:
        """Every registered name with its dotted path.

        Raises:
            UserError: two packages add the same name.
        """
        merged, owner = dict(self.built_in), dict.fromkeys(self.built_in, "codec-bench")
        for plugin in plugins():
            for name, path in plugin.tables.get(self.key, {}).items():
                if name in merged:
                    raise UserError(
                        f"two packages add the {self.room} '{name}': {owner[name]} and {plugin.target}",
                        hint="uninstall one of them, or give the name in one of them up",
                    )
                merged[name], owner[name] = path, plugin.target
        return merged

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self.table())

    def is_foreign(self, name: str) -> bool:
        """Whether a name is of somebody else's code: own code, or a name that another package adds."""
        return is_own_code(name) or (name not in self.built_in and name in self.table())

    def resolve(self, name: str) -> Any:
        """The class that a name, a dotted path or a file names.

        Raises:
            UnknownName: there is no such name; the message suggests the nearest.
        """
        if is_own_code(name):
            return load_attribute(name)
        table = self.table()
        if name not in table:
            raise UnknownName(self.room, name, table)
        return load_attribute(table[name])
