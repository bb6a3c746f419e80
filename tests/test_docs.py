"""The documentation says what is true: written pages are those of the registries, commands parse, links and names resolve."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from codec_bench.codecs import catalogue

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "write_docs.py"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
# Capitals stand for what a reader puts there.
PLACEHOLDER = re.compile(r"[A-Z][A-Z_/:]*(\.\.\.?)?$")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def fenced(text: str) -> Iterator[str]:
    """What stands between fences; those of `text` show the form of a command or what it prints."""
    for found in re.finditer(r"^(```+)([^\n]*)\n(.*?)^\1\s*$", text, flags=re.MULTILINE | re.DOTALL):
        if found[2] != "text":
            yield found[3]


def commands(text: str) -> Iterator[list[str]]:
    """The words of every command of the program in a page, pipes and comments left out."""
    for block in fenced(text):
        for line in block.replace("\\\n", "").splitlines():
            if re.match(r"(\$ )?codec-bench( |$)", line):
                words = shlex.split(line.removeprefix("$ "), comments=True)
                ends = [i for i, word in enumerate(words) if word in ("|", ">", ">>", "&", "&&", ";")]
                yield words[1 : ends[0]] if ends else words[1:]


def shown_files(text: str) -> Iterator[tuple[str, str]]:
    """The files that a page shows whole: their name, and what they hold."""
    for found in re.finditer(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, flags=re.MULTILINE | re.DOTALL):
        yield found[1], found[2]


def run_script(*options: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", SCRIPT, *options], capture_output=True, text=True)


def test_written_pages_are_those_of_the_registries():
    done = run_script("--check")
    assert done.returncode == 0, done.stderr


def test_a_site_that_loads_from_another_host_is_refused(tmp_path):
    page = tmp_path / "index.html"
    page.write_text(
        '<link href="a.css"><script src="./a.js"></script><a href="https://example.org/">a link is no load</a>'
    )
    assert run_script("--site", tmp_path).returncode == 0
    page.write_text('<script async src="https://example.org/a.js"></script>')
    done = run_script("--site", tmp_path)
    assert done.returncode == 1 and "https://example.org/a.js" in done.stderr
    page.write_text("")
    (tmp_path / "a.css").write_text("@font-face{src:url(//example.org/a.woff2)}")
    done = run_script("--site", tmp_path)
    assert done.returncode == 1 and "//example.org/a.woff2" in done.stderr


def test_files_that_a_tutorial_shows_are_those_of_the_examples():
    shown = [file for page in DOCS for file in shown_files(page.read_text("utf-8"))]
    assert len(shown) > 5
    for name, text in shown:
        assert text == (ROOT / "examples" / name).read_text("utf-8"), name


def test_the_tutorial_of_a_model_that_answers_prints_what_comes_out(tmp_path, monkeypatch):
    from codec_bench import run_benchmark
    from codec_bench.data import REGISTERED

    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-P", "make_rows.py", str(REGISTERED["embedded"])], check=True)
    outcome = run_benchmark(benchmark="./voice", model="./pitch_model.py:PitchModel", out="runs/voice")
    row = json.loads((outcome.folder / "summary.json").read_text("utf-8"))["benchmarks"][0]
    entry = row["metrics"]["accuracy[label]"]
    low, high = entry["ci95"]
    line = (
        f" voice       pitch   accuracy[label] (primary)   {entry['value']:.3f}   {low:.3f} to {high:.3f}   {entry['n']}"
        f"        {entry['failed']}               {entry['counting_failures']['value']:.3f}\n"
    )
    assert line in (ROOT / "docs" / "tutorials" / "audio_model.md").read_text("utf-8")


def test_every_family_has_a_page():
    pages = "\n".join(
        page.read_text("utf-8") for page in (ROOT / "docs" / "codecs").glob("*.md") if page.stem != "names"
    ).lower()
    for name, family in catalogue.families().items():
        names = "|".join(re.escape(known.lower()) for known in (name, *family.variants))
        assert re.search(rf"(`|# )({names})\b", pages), name


def parsed(words: list[str]) -> dict[str, object]:
    """The options of a command line as the program reads them; fails where it would refuse them."""
    import typer.main

    from codec_bench.cli.app import app

    command = typer.main.get_command(app)
    context = command.make_context("codec-bench", list(words))
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]  # the name of the command, and what follows it
        if not rest:
            return context.params
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return {"command": context.info_name, **context.params}


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=name_of)
def test_commands_in_the_docs_parse(page, tmp_path, monkeypatch):
    text = page.read_text("utf-8")
    # What `--config` names: the files that the page shows, and the record of a run that it made before.
    monkeypatch.chdir(tmp_path)
    for name, content in re.findall(r"```yaml\n# (\S+\.yaml):[^\n]*\n(.*?)```", text, re.S):
        Path(name).write_text(content, encoding="utf-8")
    for name in re.findall(r"--config (\S+/run\.json)", text):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text('{"config": {"command": "evaluate", "systems": ["opus-12k"], "data": "embedded"}}')
    for words in commands(text):
        if "--help" in words or words == ["--version"]:
            continue
        try:
            parsed(words)
        except Exception as error:
            message = getattr(error, "message", error)
            pytest.fail(f"codec-bench {shlex.join(words)}: {type(error).__name__}: {message}")


def test_a_command_that_does_not_parse_is_found():
    with pytest.raises(Exception, match="--no-such-option"):
        parsed(["eval", "--codec", "opus-6k", "--data", "embedded", "--no-such-option"])


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=name_of)
def test_commands_name_what_there_is(page):
    from codec_bench import codecs, metrics
    from codec_bench.benchmark import has_benchmark, suite_names
    from codec_bench.config import config_names
    from codec_bench.models import model_names
    from codec_bench.registry import Spec
    from codec_bench.weights import checkpoint_names

    def is_metric(name: str) -> bool:
        return Spec.parse(name).name in (*metrics.REGISTRY.names(), *metrics.GROUPS, *metrics.group_names())

    small = [f"{ROOT / 'examples' / 'small_codec.py'}:Small{kbps}" for kbps in (8, 16, 24, 32)]
    called = {codecs.load_codec(name).info.name for name in small}  # what the codec of the tutorial calls itself

    known = {
        "--codec": codecs.has_codec,
        "--systems": lambda name: name == "unprocessed" or name in called or codecs.has_codec(name),
        "--metrics": lambda name: name == "none" or is_metric(name),
        "--preset": lambda name: name in config_names("preset"),
        "--model": lambda name: name in model_names(),
        "--judge": lambda name: name in model_names(),
        "--suite": lambda name: name in suite_names(),
        "run": has_benchmark,
        "leaderboard": lambda name: name in config_names("leaderboard"),
        "fetch": lambda name: name in checkpoint_names(),
    }
    found = list(commands(page.read_text("utf-8")))
    assert found or page.name != "README.md"
    for words in found:
        for option, value in pairwise(words):
            if option not in known or value.startswith("-"):
                continue
            for name in re.split(r",(?![^\[]*\])", value):
                own = "/" in name.split("@")[0] or name == "unprocessed"  # a file of the reader's
                assert own or not name or PLACEHOLDER.match(name) or known[option](name), f"{option} {name}"


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS], ids=name_of)
def test_links_resolve(page):
    text = re.sub(r"^(```+)[^\n]*\n.*?^\1\s*$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`(?!\])", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)}: there is no {target}"
        if ROOT / "docs" in page.parents:
            assert ROOT / "docs" in file.parents, f"{name_of(page)}: {target} is not part of the site"
        if anchor:
            assert anchor in anchors(file), f"{name_of(page)}: {target} has no such heading"


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can name: its headings, and what is documented from docstrings."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}
    return slugs | set(re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS], ids=name_of)
def test_files_and_modules_that_are_named_exist(page):
    for name in re.findall(r"`([^`\n]+)`", page.read_text("utf-8")):
        if re.fullmatch(
            r"(codec_bench|kernels|benchmarks|configs|bench|tests|scripts|examples|docs)/[a-z0-9_./-]*", name
        ):
            assert (ROOT / name).exists(), f"{name_of(page)}: there is no {name}"
        if re.fullmatch(r"codec_bench(\.\w+)+", name):
            assert resolves(name), f"{name_of(page)}: there is no {name}"


def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False
