"""An option of `eval` is added to a copy of the project: the schema, the place that acts on it and the changelog are
all it touches.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project_copy import copied, printed_by, sums

CHANGELOG = {"CHANGELOG.md": (("### Added\n", "### Added\n- One more option.\n"),)}
# What is written for each: in these files, after the text on the left stands the text on the right.
ADDED = {
    "an argument of the verb": CHANGELOG | {
        "codec_bench/config/request.py": (
            ('"""The options of `eval`."""\n', '"""The options of `eval`."""\n\n    title: Text | None = option(None, "What the run is called.")\n'),
        ),
        "codec_bench/api/evaluate.py": (
            ("    seed: int = 0,\n    limit: int | None = None,\n", "    seed: int = 0,\n    limit: int | None = None,\n    title: str | None = None,\n"),
            ("    options: Mapping[str, Mapping[str, Any]] | None = None,\n    by: str | Sequence[str] | None = None,\n    out: str | os.PathLike[str] | None = None,\n    growing", "    options: Mapping[str, Mapping[str, Any]] | None = None,\n    by: str | Sequence[str] | None = None,\n    title: str | None = None,\n    out: str | os.PathLike[str] | None = None,\n    growing"),
        ),
    },
    "a field of Running": CHANGELOG | {
        "codec_bench/config/shared_options.py": (
            ("    check: Flag = option(\n", '    started_by: Text = option("nobody", "Who started the run.", of="running")\n    check: Flag = option(\n'),
        ),
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=ADDED)
def grown(request, tmp_path_factory):
    """A copy of the project with one more option, how its program is run, and the files that changed."""
    copy, environment = copied(tmp_path_factory.mktemp("grown"))
    before = sums(copy)
    for file, changes in ADDED[request.param].items():
        text = (copy / file).read_text("utf-8")
        for old, new in changes:
            assert text.count(old) >= 1, (file, old)
            text = text.replace(old, new, 1)
        (copy / file).write_text(text, "utf-8")
    after = sums(copy)

    return request.param, environment, {file for file in after if after[file] != before.get(file)}, copy


RUN = "eval --codec g711-ulaw --data embedded --metrics si_sdr --limit 1 --no-cache --out typed"


def test_an_option_touches_at_most_three_files(grown):
    _, _, changed, _ = grown
    assert len(changed) <= 3 and "CHANGELOG.md" in changed


def test_it_can_be_typed_and_written_into_a_file_and_has_its_effect(grown):
    kind, environment, _, copy = grown
    folder = copy.parent
    flag, text = (
        ("--title", "What the run is called.") if kind.startswith("an") else ("--started-by", "Who started the run.")
    )
    key = flag.lstrip("-").replace("-", "_")
    (folder / "run.yaml").write_text(
        f"codec: g711-ulaw\ndata: embedded\nmetrics: si_sdr\nlimit: 1\ncache: false\n{key}: Bea\n"
    )
    helps, _, _, details = printed_by(
        copy, environment, ["eval", "--help"], [*RUN.split(), flag, "Ada"], "eval --config run.yaml --out filed".split(),
        "import codec_bench, inspect; from codec_bench.engine.running import Running\n"
        "print(codec_bench.read_arguments('run.yaml', 'eval'))\n"
        "print(inspect.getdoc(codec_bench.evaluate), inspect.getdoc(Running))",
    )  # fmt: skip
    assert text in " ".join(helps.split())
    assert recorded(folder / "typed")[key] == "Ada"
    assert recorded(folder / "filed")[key] == "Bea"
    assert f"'{key}': 'Bea'" in details and f"    {key}: {text[0].lower()}{text[1:]}" in details


def recorded(run: Path) -> dict[str, object]:
    """The arguments in the record, which follow the table of options by themselves."""
    return json.loads((run / "run.json").read_text("utf-8"))["arguments"]
