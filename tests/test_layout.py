"""The structure of the project: links, directions of imports between rooms, the cost of an import, forbidden words."""

from __future__ import annotations

import ast
import fnmatch
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "codec_bench"
LINKED = ("benchmarks", "configs", "kernels")

# From the bottom up: a package (a room) imports from its own layer and from those below it.
LAYERS = (
    ("messages", "machine", "config"),
    ("decoding",),
    ("types",),
    ("audio", "text", "data", "weights", "kernels", "workers"),
    ("networks", "codecs", "features", "metrics", "store", "stats"),
    ("engine", "models"),
    ("benchmark", "report"),
    ("api", "terminal"),
    ("cli", "apps", "rewards", "torchmetrics", "__main__"),
)
# Rooms that see less than their layer allows.
ONLY = {
    "types": {"decoding", "messages"},
    "decoding": {"messages", "config"},
    "kernels": set(),
    "networks": {"kernels", "messages", "machine", "types"},
    "stats": {"kernels", "store", "types", "messages"},
    "report": {"store", "stats", "types", "messages"},
    "cli": {room for layer in LAYERS for room in layer} - {"apps"},
}
# Applications import the core, and each other only so.
BETWEEN_APPS = {("building", "listening"), ("site", "leaderboards")}
# Of applications, under a name of their own.
PUBLIC_MODULES = {"codec_bench.rewards": "serving"}
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
HEAVY = ("torch", "torchaudio", "numba", "transformers", "onnxruntime")


@cache
def project_files() -> tuple[Path, ...]:
    """Every file of the project, relative to its root, without what .gitignore leaves out."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines() if line]
    results = []
    for here, folders, files in os.walk(ROOT):
        for names in (folders, files):
            names[:] = [n for n in names if n != ".git" and not any(fnmatch.fnmatch(n, p) for p in ignored)]
        results += [Path(here, name).relative_to(ROOT) for name in files]
    return tuple(sorted(results))


@cache
def imports_of(file: Path, *, top_level_only: bool = False) -> tuple[str, ...]:
    """Dotted names that a Python file imports; with `top_level_only` those that importing the file runs."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    package = module_name(file).split(".")
    if file.name != "__init__.py":
        package.pop()
    names, waiting = [], list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            # The imported name may be a module itself; whether it is one is for the caller to see.
            names += [".".join([*base, alias.name]) for alias in node.names]
        elif top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        elif top_level_only and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        else:  # an import is a statement, and these hold statements
            waiting += [inner for block in BLOCKS for inner in getattr(node, block, ())]
    return tuple(names)


def module_name(file: Path) -> str:
    """`codec_bench/data/source.py` and `kernels/stoi/cpu.py` as they are imported."""
    parts = list(file.with_suffix("").parts)
    if parts[0] in LINKED:
        parts.insert(0, "codec_bench")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def own_files() -> dict[str, Path]:
    """Every module of the package, the linked rooms included, by its dotted name."""
    rooms = ("codec_bench", *LINKED)
    return {module_name(file): file for file in project_files() if file.suffix == ".py" and file.parts[0] in rooms}


def own_imports(file: Path, **options) -> set[str]:
    """Modules of the package that a file imports."""
    modules = own_files()
    results = set()
    for name in imports_of(file, **options):
        if name.split(".")[0] == "codec_bench":
            results.add(name if name in modules else name.rpartition(".")[0])
    return results


def room_of(module: str) -> str:
    return [*module.split("."), "(package)"][1]


@pytest.mark.parametrize("name", LINKED)
def test_the_linked_rooms_are_there(name):
    link = PACKAGE / name
    assert link.is_symlink() and os.readlink(link) == f"../{name}", (
        f"codec_bench/{name} must be a symbolic link to ../{name}; on Windows clone with 'git clone -c "
        f"core.symlinks=true'"
    )
    assert any(file.parts[0] == name for file in project_files()), f"{name}/ holds no file, so git would not keep it"
    assert not (ROOT / name / "__init__.py").exists(), f"{name}/ must not be importable by its bare name"


def test_every_file_belongs_to_a_room():
    rooms = {room for layer in LAYERS for room in layer} | {"(package)"}
    strangers = {room_of(module) for module in own_files()} - rooms - set(LINKED)
    assert not strangers, f"say in LAYERS where {', '.join(sorted(strangers))} stands"


def test_imports_point_downwards():
    level = {room: at for at, layer in enumerate(LAYERS) for room in layer}
    wrong = []
    for module, file in own_files().items():
        here = room_of(module)
        if here == "(package)":  # names everything, and imports it on access
            continue
        for target in sorted(own_imports(file)):
            there = room_of(target)
            if there == here:
                continue
            if there == "(package)":
                allowed = level[here] >= level["api"]
            elif here in ONLY:
                allowed = there in ONLY[here]
            else:
                allowed = level[there] <= level[here]
            if not allowed:
                wrong.append(f"{file} imports {target}")
    assert not wrong, "\n".join(wrong)


def test_the_core_imports_no_application_and_they_only_those_that_are_drawn():
    wrong = []
    for module, file in own_files().items():
        here = application_of(module)
        for target in sorted(own_imports(file)):
            there = application_of(target)
            if there is None or there == here or module == "codec_bench":  # the package's face names everything
                continue
            if here is None or (here, there) not in BETWEEN_APPS:
                wrong.append(f"{file} imports {target}")
    assert not wrong, "\n".join(wrong)


def application_of(module: str) -> str | None:
    """The application that a module belongs to; None for the core."""
    if module in PUBLIC_MODULES:
        return PUBLIC_MODULES[module]
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["apps"] and len(parts) > 2 else None


def test_nothing_is_called_upward_through_loaded_modules():
    wrong = []
    for file in own_files().values():
        text = (ROOT / file).read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "modules" in text else ():
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
                if "codec_bench" in ast.unparse(node.slice):
                    wrong.append(f"{file}:{node.lineno}")
    assert not wrong, "\n".join(wrong)


def test_folders_and_files_of_a_room_have_an_order():
    """A folder counts as one, with all that is in it; the face of a room names what is in it and does not count."""
    modules = own_files()
    places = {module.rpartition(".")[0] for module in modules if module.count(".") > 1}
    for index in sorted(places - {"codec_bench"}):
        graph: dict[str, set[str]] = {}
        for module, file in modules.items():
            here = _item(module, index)
            for target in own_imports(file) if here else ():
                there = _item(target, index)
                if there and there != here:
                    graph.setdefault(here, set()).add(there)
        for item in graph:
            circle = _reached(graph, item) & {other for other in graph if item in _reached(graph, other)}
            assert not circle, f"in {index}, {', '.join(sorted(circle))} import each other, directly or through others"


def _item(module: str, position: str) -> str:
    """The file or folder of a place that a module is or lies in; empty for the place's face and for what lies
    elsewhere.
    """
    if not module.startswith(f"{position}."):
        return ""
    return module[len(position) + 1 :].split(".")[0]


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    reached, waiting = set(), [start]
    while waiting:
        for target in graph.get(waiting.pop(), set()) - reached:
            reached.add(target)
            waiting.append(target)
    return reached


def test_no_two_rooms_import_each_other():
    graph: dict[str, set[str]] = {}
    for module, file in own_files().items():
        here = room_of(module)
        graph.setdefault(here, set()).update({room_of(t) for t in own_imports(file) if here != "(package)"} - {here})
    for room in graph:
        back = sorted(_reached(graph, room) & {other for other in graph if room in _reached(graph, other)})
        assert not back, f"{room} and {', '.join(back)} import each other, directly or through others"


def test_no_files_import_each_other_in_a_circle():
    modules = own_files()
    graph = {module: sorted(own_imports(file) - {module}) for module, file in modules.items()}
    finished: set[str] = set()

    def visit(module: str, variant: tuple[str, ...]) -> None:
        assert module not in variant, " -> ".join([*variant[variant.index(module) :], module])
        if module not in finished:
            for target in graph.get(module, ()):
                visit(target, (*variant, module))
            finished.add(module)

    for module in graph:
        if module != "codec_bench":  # the package's face names everything, and imports it on access
            visit(module, ())


def test_what_names_things_imports_nothing_heavy():
    # From the package, the tables of names and the command line, along every import that runs at once.
    modules = own_files()
    tables = re.compile(r'"(codec_bench\.[\w.]+):\w+"')
    waiting = ["codec_bench", *(m for m in modules if m.count(".") == 1 and m != "codec_bench.kernels")]
    for module in list(waiting):
        if module in modules:
            waiting += tables.findall((ROOT / modules[module]).read_text("utf-8"))
    reached: dict[str, str] = dict.fromkeys(waiting, "a table of names")
    wrong = []
    while waiting:
        module = waiting.pop()
        if module not in modules:
            continue
        for name in imports_of(modules[module], top_level_only=True):
            if name.split(".")[0] in HEAVY:
                wrong.append(f"{modules[module]} imports {name} (reached through {reached[module]})")
        for target in own_imports(modules[module], top_level_only=True):
            if target not in reached:
                reached[target] = module
                waiting.append(target)
    assert not wrong, "\n".join(wrong)


def test_tables_name_modules_that_exist():
    modules = own_files()
    named = {
        (path, *pair)
        for path in modules.values()
        for pair in re.findall(r'"(codec_bench\.[\w.]+):(\w+)"', (ROOT / path).read_text("utf-8"))
    }
    assert len(named) > 200
    for path, module, name in sorted(named, key=str):
        assert module in modules, f"{path} names {module}, which is no file"
        tree = ast.parse((ROOT / modules[module]).read_text("utf-8"))
        defined = {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        }
        defined |= {
            node.id
            for line in tree.body
            if isinstance(line, ast.Assign)
            for node in line.targets
            if isinstance(node, ast.Name)
        }
        assert name in defined, f"{path} names {module}:{name}, which {modules[module]} does not define"


def fresh(code: str, cwd: Path) -> str:
    """What a new interpreter writes, started away from the repository."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_is_light(tmp_path):
    code = """
        import sys
        before = set(sys.modules)
        import codec_bench
        print(*sorted(set(sys.modules) - before))
    """
    loaded = fresh(code, tmp_path).split()
    heavy = {"torch", "torchaudio", "numba", "transformers", "onnxruntime", "scipy", "av", "numpy", "pyarrow"}
    assert not heavy & set(loaded), "import codec_bench loads what only its parts need"
    assert len(loaded) < 20, "every module costs time, and every command begins with this"


def test_every_public_name_can_be_had(tmp_path):
    code = """
        import codec_bench
        for name in codec_bench.__all__:
            getattr(codec_bench, name)
        print(len(codec_bench.__all__))
    """
    assert int(fresh(code, tmp_path)) >= 7


def test_the_rooms_are_not_importable_by_their_bare_names(tmp_path):
    # transformers looks for a package called `kernels`, and breaks on ours.
    code = """
        import importlib.util
        for name in ("kernels", "benchmarks", "configs"):
            spec = importlib.util.find_spec(name)
            for place in (spec.submodule_search_locations or []) if spec else []:
                print(place)
    """
    ours = [path for path in fresh(code, tmp_path).splitlines() if Path(path).resolve().is_relative_to(ROOT)]
    assert not ours


def test_every_kernel_is_a_package():
    folders = {file.parts[1] for file in project_files() if file.parts[0] == "kernels" and len(file.parts) > 2}
    assert folders
    for folder in folders:
        assert (ROOT / "kernels" / folder / "__init__.py").is_file(), f"kernels/{folder} has no __init__.py"


def test_nothing_mentions_the_machine_it_was_written_on():
    places = ["work", "tmp", "root", r"home/\w+", r"Users/\w+", "opt/venv"]
    pattern = re.compile(r"(?<![\w.~-])/(" + "|".join(places) + r")\b(?!\.)")
    results = []
    for file in project_files():
        if file == Path(__file__).resolve().relative_to(ROOT) or (ROOT / file).is_symlink():
            continue
        try:
            text = (ROOT / file).read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if not pattern.search(text):
            continue
        results += [
            f"{file}:{n}: {line.strip()[:100]}" for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)
        ]
    assert not results, "\n".join(results)


def test_lines_of_python_have_at_most_120_characters():
    """Also those of strings and tables, which `ruff format` leaves as they are."""
    wrong = []
    for file in project_files():
        if file.suffix == ".py":
            lines = (ROOT / file).read_text("utf-8").split("\n")
            wrong += [f"{file}:{n}: {len(line)} characters" for n, line in enumerate(lines, 1) if len(line) > 120]
    assert not wrong, "\n".join(wrong)


def test_continued_lines_of_arguments_are_indented():
    """A line that is not would be no part of its argument in the reference."""
    section = re.compile(r"^( *)(?:Args|Attributes):\n((?:\1 .*\n|\n)+)", re.MULTILINE)
    wrong = []
    for file in own_files().values():
        for indent, lines in section.findall((ROOT / file).read_text("utf-8")):
            entries = [line.strip() for line in lines.splitlines() if re.match(rf"{indent} {{4}}\S", line)]
            wrong += [f"{file}: {entry}" for entry in entries if not re.match(r"[*`\w\[\], .()]+?:", entry)]
    assert not wrong, "\n".join(wrong)


def test_refused_words_name_nothing():
    refused = {"task", "evaluator", "helper", "manager", "util", "utils", "common", "tasks", "helpers", "managers"}
    wrong = []
    for module, file in own_files().items():
        words = [word for item in module.split(".") for word in item.lower().split("_")]
        for name in re.findall(r"^\s*class\s+(\w+)", (ROOT / file).read_text("utf-8"), re.MULTILINE):
            words += [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
        wrong += [f"{file}: {word}" for word in sorted(refused & set(words))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "room",
    sorted({p.parent for p in (ROOT / "codec_bench").rglob("*.py")} - {ROOT / "codec_bench"}),
    ids=lambda room: room.relative_to(ROOT).as_posix(),
)
def test_a_room_of_several_files_says_which_to_open(room):
    """And names every file and folder, and none that is not there."""
    files = {path.name for path in room.glob("*.py")}
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
    assert len(files) < 6 or "Which file to open" in text
    # A name without a folder is one of this room's, or of a folder within it.
    named = {name for name in re.findall(r"`([a-z0-9_]+\.py)`", text.partition("Which file to open")[2])}
    assert named <= files | {path.name for path in room.rglob("*.py")}
    # One codec, metric or model a file needs no guide: then the text says what the files are that it does not name.
    alike = re.search("[Ee]very other file is|a file of its own name|A family is a file", " ".join(text.split()))
    parts = {f"{path.parent.name}/" for path in room.glob("*/__init__.py")} | (
        set() if alike else files - {"__init__.py"}
    )
    assert not {item for item in parts if f"`{item}" not in text}


def test_refused_names_are_listed():
    spec = importlib.util.spec_from_file_location("check_names", ROOT / "scripts" / "check_names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lists = {"anywhere": ["told", "left_out"], "alone": ["part"], "allowed": ["kernels/a.py:told"]}
    source = "part = parts = 1\ndef f(told, *, untold): row.left_out_rows = leftOut = 1\nclass Told: pass\n"
    sources = {"kernels/a.py": source, "codec_bench/text/a.py": "told = 1", "codec_bench/audio/parted.py": "untold = 1"}
    assert sorted(module.find_violations(lists, sources)) == [
        "codec_bench/text/a.py:1: told",
        "kernels/a.py:1: part",
        "kernels/a.py:2: leftOut",
        "kernels/a.py:2: left_out_rows",
        "kernels/a.py:3: Told",
    ]
