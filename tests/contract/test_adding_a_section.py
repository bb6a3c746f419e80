"""A section of a run's page, a statistic of the summary and a control are added to a copy of the project by the
recipes, which name all that they touch, and each is shown."""

from __future__ import annotations

import csv
import json

import pytest
from project_copy import copied, printed_by, sums

# What is written for each: in these files, after the text on the left stands the text on the right; a file without one
# is new.
SECTION = {
    "codec_bench/report/longest/__init__.py": '"""The longest sample of each system, as it is shown."""\n',
    "codec_bench/report/longest/rows.py": (
        '"""Rows of the longest samples."""\n\n\ndef longest_rows(labels):\n'
        '    return [f"The longest of {label}" for label in labels]\n'
    ),
    "codec_bench/report/longest/longest.html.j2": (
        '<section id="longest"><h2>Longest</h2>{% for row in longest %}<p>{{ row }}</p>{% endfor %}</section>\n'
    ),
    "codec_bench/report/page/sections.py": (
        (
            "from codec_bench.report.page.columns import",
            "from codec_bench.report.longest.rows import longest_rows\nfrom codec_bench.report.page.columns import",
        ),
        (
            "SECTIONS = (\n",
            'SECTIONS = (\n    PageSection("codec_bench.report.longest", "longest",\n'
            '            lambda tables: {"longest": longest_rows(one.label for one in tables.systems)}, lambda held: '
            '"Longest"),\n',
        ),
    ),
}
STATISTIC = {
    "codec_bench/stats/largest.py": (
        '"""The largest value."""\n\n\ndef largest(sums):\n    return float(sums[:, 0].max())\n'
    ),
    "codec_bench/stats/summary_types.py": (
        ("    flagged: int = UNSET\n", "    flagged: int = UNSET\n    largest: float = UNSET\n"),
    ),
    "codec_bench/stats/summary.py": (
        (
            "from codec_bench.stats.recorded import",
            "from codec_bench.stats.largest import largest\nfrom codec_bench.stats.recorded import",
        ),
        (
            "        counting_failures=counting,\n",
            "        counting_failures=counting,\n        largest=largest(parts.sums),\n",
        ),
    ),
    "codec_bench/report/result_columns.py": (
        (
            "CSV_COLUMNS = (\n",
            'CSV_COLUMNS = (\n    CsvColumn("largest", "The largest.", lambda name, metric, entry, system: '
            "entry.largest),\n",
        ),
    ),
}
CONTROL = {
    "codec_bench/store/controls.py": (
        ("    SHUFFLED: ", '    "reversed": "reversed sound",\n    SHUFFLED: '),
        ("ANOTHER, SHUFFLED, LEVEL), ", 'ANOTHER, SHUFFLED, LEVEL, "reversed"), '),
    ),
    "codec_bench/benchmark/controls.py": (
        (
            "        if self.replacement == SHUFFLED:\n",
            '        if self.replacement == "reversed":\n            return Audio(audio.samples[:, ::-1].copy(), '
            "audio.sample_rate_hz)\n"
            "        if self.replacement == SHUFFLED:\n",
        ),
    ),
    "codec_bench/config/run_request.py": ((" or level (all audio", ", reversed or level (all audio"),),
}
RECIPES = {"section": SECTION, "statistic": STATISTIC, "control": CONTROL}
RUN = "eval --codec g711-ulaw --data embedded --metrics si_sdr --limit 2 --no-cache --out run"
REVERSED = """
import numpy as np
from codec_bench.audio.clip import Clip
from codec_bench.benchmark.controls import apply_control
from codec_bench.store.controls import Control
from codec_bench.types import Audio, Message, Request
asked = Request('a', (Message('user', ('?', Clip(Audio(np.arange(4, dtype='f4') / 8, 8000)))),))
control = Control('reversed')
changed = apply_control(asked, control, 0, 'a', lambda: asked)
print(control.words, changed.messages[0].content[1].read().samples.tolist())
"""


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A copy of the project with one more of each kind: the files of the project that each kind changed, its folder,
    and what was printed.
    """
    copy, environment = copied(tmp_path_factory.mktemp("grown"))
    changed = {}
    for kind, recipe in RECIPES.items():
        before = sums(copy)
        for file, changes in recipe.items():
            if isinstance(changes, str):
                (copy / file).parent.mkdir(exist_ok=True)
                (copy / file).write_text(changes, "utf-8")
                continue
            text = (copy / file).read_text("utf-8")
            for old, new in changes:
                assert text.count(old) >= 1, (file, old)
                text = text.replace(old, new, 1)
            (copy / file).write_text(text, "utf-8")
        after = sums(copy)
        changed[kind] = {file for file in before if after[file] != before[file]}
    printed = printed_by(copy, environment, RUN.split(), "export run --summary --format csv".split(), REVERSED)
    return changed, copy.parent / "run", printed


@pytest.mark.parametrize(("kind", "most"), [("section", 1), ("statistic", 3), ("control", 3)])
def test_so_many_files_that_were_there_are_touched(grown, kind, most):
    assert 1 <= len(grown[0][kind]) <= most


def test_a_section_has_its_link_and_its_place(grown):
    page = (grown[1] / "report.html").read_text("utf-8")
    assert '<a href="#longest">Longest</a>' in page and "<p>The longest of g711-ulaw</p>" in page


def test_a_statistic_is_in_the_summary_and_its_csv(grown):
    _, folder, (_, table, _) = grown
    held = json.loads((folder / "summary.json").read_text("utf-8"))["systems"]["g711-ulaw"]["metrics"]
    rows = {row["metric"]: row for row in csv.DictReader(table.splitlines())}
    assert held["si_sdr"]["largest"] > held["si_sdr"]["value"]
    assert float(rows["si_sdr"]["largest"]) == held["si_sdr"]["largest"]


def test_a_control_has_its_words_and_gives_its_sound(grown):
    assert grown[2][2].strip() == "reversed sound [[0.375, 0.25, 0.125, 0.0]]"
