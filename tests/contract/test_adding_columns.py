"""A column of the export and one of the results are added to a copy of the project by the recipes: the table, a test
and the changelog are all that they touch, and the columns are in every format and table."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import pytest
from project_copy import copied, printed_by, sums

CHANGELOG = {"CHANGELOG.md": (("### Added\n", "### Added\n- One more column.\n"),)}
# What is written for each: in these files, after the text on the left stands the text on the right.
EXPORT = CHANGELOG | {
    "codec_bench/store/rows.py": (
        (
            "    denominator: float | None\n    speaker: str | None\n",
            "    denominator: float | None\n    bits: float | None\n    speaker: str | None\n",
        ),
        (
            '    "speaker": TableColumn(',
            '    "bits": TableColumn("How many bits were sent.", "i.bits"),\n    "speaker": TableColumn(',
        ),
    ),
    "tests/store/test_export.py": (("numerator,denominator,speaker", "numerator,denominator,bits,speaker"),),
}
RESULTS = CHANGELOG | {
    "codec_bench/report/result_columns.py": (
        (
            "SYSTEM_COLUMNS = (\n",
            'SYSTEM_COLUMNS = (\n    SystemColumn("x_real_time", "How much faster than real time.", lambda system: '
            '(system.timing or {}).get("times_real_time"), "is {:,.1f}_x".format),\n',
        ),
    ),
    "tests/report/test_paper.py": (('["system", "n", ', '["system", "x_real_time", "n", '),),
}
RUN = "eval --codec g711-ulaw,g711-alaw --data embedded --metrics si_sdr --limit 2 --no-cache --out run"


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A copy of the project with one more column of each kind, how its program is run, its folder, and the files that
    each kind changed.
    """
    copy, environment = copied(tmp_path_factory.mktemp("grown"))
    touched = {}
    for kind, recipe in (("export", EXPORT), ("results", RESULTS)):
        before = sums(copy)
        for file, changes in recipe.items():
            text = (copy / file).read_text("utf-8")
            for old, new in changes:
                assert text.count(old) >= 1, (file, old)
                text = text.replace(old, new, 1)
            (copy / file).write_text(text, "utf-8")
        after = sums(copy)
        touched[kind] = {file for file in after if after[file] != before.get(file)}

    return touched, environment, copy


@pytest.fixture(scope="module")
def ran(grown):
    """What a small run of the copy prints, and what shows it; the run is in the folder `run`."""
    _, environment, copy = grown
    files = [f"export run --format {form} --out all.{form}" for form in ("csv", "jsonl", "parquet")]
    tables = [f"export run --summary --format {form}" for form in ("markdown", "latex")]
    run, *_, markdown, latex, types, html = printed_by(
        copy, environment, *(command.split() for command in (RUN, *files, *tables)),
        "import codec_bench; print(codec_bench.open_run('run').to_pandas().dtypes)",
        "import codec_bench; print(codec_bench.open_run('run')._repr_html_())",
    )  # fmt: skip
    return {"run": run, "markdown": markdown, "latex": latex, "types": types, "html": html}


@pytest.mark.parametrize("kind", ["export", "results"])
def test_a_column_touches_at_most_three_files(grown, kind):
    touched = grown[0][kind]
    assert len(touched) <= 3 and "CHANGELOG.md" in touched and any(file.startswith("tests/") for file in touched)


def test_a_column_of_the_export_is_in_every_format(grown, ran):
    import pyarrow.parquet

    folder = grown[2].parent
    with (folder / "all.csv").open(newline="") as file:
        as_csv = [float(row["bits"]) for row in csv.DictReader(file)]
    as_json = [json.loads(line)["bits"] for line in (folder / "all.jsonl").read_text("utf-8").splitlines()]
    table = pyarrow.parquet.read_table(folder / "all.parquet")
    assert table.schema.field("bits").type == pyarrow.float64()
    assert len(as_csv) == 4 and min(as_csv) > 0
    assert as_csv == as_json == table["bits"].to_pylist()
    assert "bits float64" in " ".join(ran["types"].split())


def test_a_column_of_the_results_is_in_every_table(grown, ran):
    folder = grown[2].parent
    held = json.loads((folder / "run" / "summary.json").read_text("utf-8"))["systems"].values()
    cells = [f"is {system['timing']['times_real_time']:,.1f}_x" for system in held]
    page = (folder / "run" / "report.html").read_text("utf-8")
    markdown, latex = ran["markdown"], ran["latex"]
    assert "x_real_time" in ran["run"] and all(cell in ran["run"] for cell in cells)
    assert re.search(r"<th[^>]*>x_real_time</th>", page) and all(f"<td>{cell}</td>" in page for cell in cells)
    assert r"x\_real\_time" in markdown and r"x\_real\_time" in latex
    for cell in cells:
        assert cell.replace("_", r"\_") in markdown and cell.replace("_", r"\_") in latex
        assert cell in ran["html"]


def test_the_documentation_has_the_columns_from_the_tables(grown):
    _, environment, copy = grown
    command = [sys.executable, "-P", str(copy / "scripts" / "write_docs.py")]
    done = subprocess.run(command, cwd=copy.parent, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| `bits` | How many bits were sent. |" in (copy / "docs" / "export.md").read_text("utf-8")
    details = "| `x_real_time` | terminal, page, paper | How much faster than real time. |"
    assert details in (copy / "docs" / "report.md").read_text("utf-8")
