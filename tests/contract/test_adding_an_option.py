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
            ('"""The options of `eval`."""\n',
                '"""The options of `eval`."""\n\n    title: Text | None = option(None, "What the run is called.")\n'),
        ),
        "codec_bench/api/evaluate.py": (
            ("    seed: int = 0,\n    limit: int | None = None,\n",
                "    seed: int = 0,\n    limit: int | None = None,\n    title: str | None = None,\n"),
            ("    options: Mapping[str, Mapping[str, Any]] | None = None,\n"
             "    by: str | Sequence[str] | None = None,\n"
             "    out: str | os.PathLike[str] | None = None,\n    growing",
             "    options: Mapping[str, Mapping[str, Any]] | None = None,\n"
             "    by: str | Sequence[str] | None = None,\n    title: str | None = None,\n"
             "    out: str | os.PathLike[str] | None = None,\n    growing"),
        ),
    },
    "a field of Running": CHANGELOG | {
        "codec_bench/config/shared_options.py": (
            ("    check: Flag = option(\n",
                '    started_by: Text = option("nobody", "Who started the run.", of="running")\n'
                '    check: Flag = option(\n'),
        ),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A copy of the project with one more option of each kind, the files that each changed, and what its program prints
    for each.
    """
    copy, environment = copied(tmp_path_factory.mktemp("grown"))
    changed, steps = {}, []
    for kind, recipe in ADDED.items():
        before = sums(copy)
        for file, changes in recipe.items():
            text = (copy / file).read_text("utf-8")
            for old, new in changes:
                assert text.count(old) >= 1, (file, old)
                text = text.replace(old, new, 1)
            (copy / file).write_text(text, "utf-8")
        after = sums(copy)
        changed[kind] = {file for file in after if after[file] != before.get(file)}
        key = TEXTS[kind][0].lstrip("-").replace("-", "_")
        (copy.parent / f"{key}.yaml").write_text(
            f"codec: g711-ulaw\ndata: embedded\nmetrics: si_sdr\nlimit: 1\ncache: false\n{key}: Bea\n"
        )
        steps += [
            [*RUN.split(), f"typed_{key}", TEXTS[kind][0], "Ada"],
            f"eval --config {key}.yaml --out filed_{key}".split(),
            f"import codec_bench; print(codec_bench.read_arguments('{key}.yaml', 'eval'))",
        ]
    helps, details, *printed = printed_by(
        copy, environment, ["eval", "--help"],
        "import codec_bench, inspect; from codec_bench.engine.running import Running\n"
        "print(inspect.getdoc(codec_bench.evaluate), inspect.getdoc(Running))",
        *steps,
    )  # fmt: skip
    return changed, copy.parent, helps, details, dict(zip(ADDED, printed[2::3], strict=True))


RUN = "eval --codec g711-ulaw --data embedded --metrics si_sdr --limit 1 --no-cache --out"
TEXTS = {
    "an argument of the verb": ("--title", "What the run is called."),
    "a field of Running": ("--started-by", "Who started the run."),
}


@pytest.mark.parametrize("kind", ADDED)
def test_an_option_touches_at_most_three_files(grown, kind):
    assert len(grown[0][kind]) <= 3 and "CHANGELOG.md" in grown[0][kind]


@pytest.mark.parametrize("kind", ADDED)
def test_it_can_be_typed_and_written_into_a_file_and_has_its_effect(grown, kind):
    _, folder, helps, details, arguments = grown
    flag, text = TEXTS[kind]
    key = flag.lstrip("-").replace("-", "_")
    assert text in " ".join(helps.split())
    assert recorded(folder / f"typed_{key}")[key] == "Ada"
    assert recorded(folder / f"filed_{key}")[key] == "Bea"
    assert f"'{key}': 'Bea'" in arguments[kind] and f"    {key}: {text[0].lower()}{text[1:]}" in details


def recorded(run: Path) -> dict[str, object]:
    """The arguments in the record, which follow the table of options by themselves."""
    return json.loads((run / "run.json").read_text("utf-8"))["arguments"]
