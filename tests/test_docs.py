"""The documentation says what is true: written pages are those of the registries, commands parse, links and names
resolve.
"""

from __future__ import annotations

import fnmatch
import importlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from codec_bench.codecs import catalogue
from codec_bench.engine import pool

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "write_docs.py"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
# Capitals stand for what a reader puts there.
PLACEHOLDER = re.compile(r"[A-Z][A-Z_/:]*(\.\.\.?)?$")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def fenced(text: str) -> Iterator[str]:
    """What stands between fences; those of `text` show the form of a command or what it prints."""
    for result in re.finditer(r"^(```+)([^\n]*)\n(.*?)^\1\s*$", text, flags=re.MULTILINE | re.DOTALL):
        if result[2] != "text":
            yield result[3]


def commands(text: str) -> Iterator[list[str]]:
    """The words of every command of the program in a page, without pipes and comments."""
    for block in fenced(text):
        for line in block.replace("\\\n", "").splitlines():
            if re.match(r"(\$ )?codec-bench( |$)", line):
                words = shlex.split(line.removeprefix("$ "), comments=True)
                ends = [i for i, word in enumerate(words) if word in ("|", ">", ">>", "&", "&&", ";")]
                yield words[1 : ends[0]] if ends else words[1:]


def shown_files(text: str) -> Iterator[tuple[str, str]]:
    """The files that a page shows whole: their name, and what they hold."""
    for result in re.finditer(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, flags=re.MULTILINE | re.DOTALL):
        yield result[1], result[2]


def run_script(*options: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, options)]
    return pool.subprocess.run(command, cwd=Path.cwd(), capture_output=True, text=True, timeout=500)


def test_written_pages_are_those_of_the_registries():
    done = run_script("--check")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("write_docs", SCRIPT)
    built = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(built)
    return built


def test_what_a_metric_was_compared_with_is_read_from_the_marks_of_tests(script, tmp_path):
    head = "import pytest\n\n\n"
    (tmp_path / "test_one.py").write_text(
        head + '@pytest.mark.compares("stoi", "whisper-tiny*", weights="stand-in")\n@pytest.mark.long\ndef test_it():\n'
        "    pass\n"
    )
    (tmp_path / "test_two.py").write_text(
        head + '@pytest.mark.compares("stoi", weights="published")\ndef test_it(): ...\n'
    )
    marks = script.compared(tmp_path)
    assert marks == {"stoi": {"stand-in", "published"}, "whisper-tiny": {"stand-in"}, "whisper-tiny.en": {"stand-in"}}
    assert script.weights_words("stoi", marks) == "published, stand-in"
    assert script.weights_words("wer", {"wer": {"none"}}) == "none needed"
    assert script.weights_words("utmos", {"utmos-of-a-feature": {"stand-in"}}, ["utmos-of-a-feature"]) == "stand-in"
    with pytest.raises(SystemExit, match="weights pesq_wb was compared"):
        script.weights_words("pesq_wb", marks)
    with pytest.raises(
        SystemExit, match="weights utmos was compared"
    ):  # it reads weights: without them nothing was compared
        script.weights_words("utmos", {"utmos": {"none"}}, ["utmos"])
    for wrong in ('"no-such-metric", weights="none"', '"stoi", weights="real"'):
        (tmp_path / "test_two.py").write_text(head + f"@pytest.mark.compares({wrong})\ndef test_it(): ...\n")
        with pytest.raises(SystemExit, match="is marked as a comparison"):
            script.compared(tmp_path)


def test_every_metric_and_feature_is_compared_by_a_test(script):
    from codec_bench import features, metrics

    marks = script.compared(ROOT / "tests")
    assert all(script.weights_words(name, marks) for name in features.REGISTRY.names())
    listed = {name for row in script.sources(marks) for name in re.findall("`([^`]+)`", row[0])}
    assert listed >= {*metrics.TABLE}


def test_pages_state_which_weights_the_tests_compare_with(script):
    """The sentence "Weights in the comparison:

    `NAME`, ... (WORDS); ..." of a page; a name in full counts before a pattern.
    """
    from codec_bench import features

    marks, text = script.compared(ROOT / "tests"), {}
    for page in (ROOT / "docs" / "metrics").glob("*.md"):
        for sentence in re.findall(r"Weights in the comparison: (.*?\))\.", page.read_text("utf-8"), flags=re.DOTALL):
            for names, words in re.findall(r"([^;(]+) \(([^)]+)\)", sentence):
                for pattern in re.findall("`([^`]+)`", names):
                    meant = [n for n in (*marks, pattern) if fnmatch.fnmatchcase(n, pattern) and ("*" not in n)]
                    assert meant, f"{page.name}: {pattern}"
                    for name in meant:
                        text.setdefault(name, set()).add((len(pattern) if "*" in pattern else 99, words))
    text = {name: max(by_name)[1] for name, by_name in text.items()}
    assert text == {name: script.weights_words(name, marks) for name in text}
    expected = {name for name in features.REGISTRY.names() if marks[name] != {"none"}}
    assert expected - text.keys() == set(), "no page says with which weights these were compared"


def test_a_table_of_agreements_names_the_weights_in_the_same_row():
    tables = [
        (page, line)
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for line in page.read_text("utf-8").splitlines()
        if line.startswith("|") and "| agrees with |" in line
    ]
    unsaid = [str(page) for page, head in tables if "weights" not in head]
    assert len(tables) >= 3 and unsaid == [str(ROOT / "docs" / "metrics" / "answers.md")], (
        "rules of text have no weights"
    )


def test_the_readme_is_read_in_three_minutes():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 600


def test_every_page_is_in_the_navigation_and_every_guide_on_the_start_page():
    def targets(entry: object) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        else:
            for one in entry.values() if isinstance(entry, dict) else entry:
                yield from targets(one)

    named = list(targets(yaml.safe_load((ROOT / "docs" / ".nav.yml").read_text("utf-8"))))
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in DOCS]
    assert [page for page in pages if not any(fnmatch.fnmatchcase(page, one) for one in named)] == []
    linked = re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / "index.md").read_text("utf-8"))
    guides = [page for page in pages if not re.match("(codecs|metrics|reference)/|index", page)]
    assert [page for page in guides if page not in linked] == []


def test_every_extra_is_on_the_page_about_installing():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (ROOT / "docs" / "install.md").read_text("utf-8")
    for extra in project["optional-dependencies"].keys() - {"dev", "docs"}:
        assert f"`{extra}`" in text, extra
    assert f"codec_bench-{project['version']}-py3" in text


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
        f" voice       pitch   accuracy[label] (primary)   {entry['value']:.3f}   {low:.3f} to {high:.3f}     0.50   "
        f"{entry['n']}"
        f"        {entry['failed']}               {entry['counting_failures']['value']:.3f}\n"
    )
    tutorial = (ROOT / "docs" / "tutorials" / "audio_model.md").read_text("utf-8")
    assert line in tutorial
    shutil.copy("voice/rows.jsonl", "telling/rows.jsonl")
    models = ["./telling_models.py:Brief", "./telling_models.py:Wordy"]
    details = run_benchmark(
        benchmark="./telling", model=models, baseline=models[0], judge="./long_judge.py:LongJudge", out="runs/telling"
    )
    entry = details.runs["telling", "wordy"].summary()["systems"]["wordy"]["metrics"]["rating[pair-answers]"]
    low, high = entry["ci95"]
    assert (
        f" telling     wordy   rating[pair-answers] (primary)    {entry['value']:.2f}   {low:.2f} to {high:.2f}*   32 "
        in tutorial
    )


def test_yaml_in_the_docs_parses():
    shown = [
        (page, text)
        for page in DOCS
        for text in re.findall(r"^```ya?ml[^\n]*\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    ]
    assert len(shown) > 10
    for page, text in shown:
        assert yaml.safe_load(text) is not None, name_of(page)


def test_the_example_of_a_definition_is_valid(tmp_path):
    from codec_bench.benchmark.definition.validate import validate_benchmark

    (shown,) = re.findall(
        r"^```yaml\n(# my_bench/.*?)^```$", (ROOT / "docs/definitions.md").read_text("utf-8"), re.M | re.S
    )
    (tmp_path / "benchmark.yaml").write_text(shown)
    (tmp_path / "README.md").write_text("# Door sounds\n")
    (tmp_path / "rows.jsonl").write_text('{"file": "a.wav", "what": "opens"}\n')
    assert validate_benchmark(str(tmp_path), with_rows=False) == []


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


def test_a_command_that_does_not_parse_is_detected():
    with pytest.raises(Exception, match="--no-such-option"):
        parsed(["eval", "--codec", "opus-6k", "--data", "embedded", "--no-such-option"])


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=name_of)
def test_commands_name_what_there_is(page):
    from codec_bench import codecs, metrics
    from codec_bench.benchmark import has_benchmark, suite_names
    from codec_bench.config import config_names
    from codec_bench.config.registry import Spec
    from codec_bench.models import model_names
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
    result = list(commands(page.read_text("utf-8")))
    assert result or page.name != "README.md"
    for words in result:
        for option, value in pairwise(words):
            if option not in known or value.startswith("-"):
                continue
            for name in re.split(r",(?![^\[]*\])", value):
                actual = "/" in name.split("@")[0] or name == "unprocessed"  # a file of the reader's
                assert actual or not name or PLACEHOLDER.match(name) or known[option](name), f"{option} {name}"


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
            results: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for item in parts[cut:]:
            if not hasattr(results, item):
                return False
            results = getattr(results, item)
        return True
    return False
