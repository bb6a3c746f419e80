"""The summary as a table for a paper: what each format holds, what is bold, and names that try to break out."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from refusals import refuses

from codec_bench.report.open_run import Run
from codec_bench.report.paper import (
    COLUMNS,
    export_summary,
    summary_html,
    summary_latex,
    summary_markdown,
    summary_rows,
)
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary

EVIL = r"_%&#${}~^\ [x] *y* <b>|`z`--- é"
BREAKING = (
    EVIL,
    "[2em] first",
    "*star",
    "two\nlines\r\tand a tab",
    "</td><script>x</script>",
    r"\end{table}",
    "\u202eright to left",
)


def entry(value, ci95=None, n=10, failed=0, note=None, unit="", better=True, protocol="m/1", common=None):
    return {
        "common": None if common is None else {"value": common[0], "ci95": None, "note": None, "n": common[1]},
        "value": value, "ci95": ci95, "note": note, "units": n, "n": n, "failed": failed, "missing": {}, "unit": unit,
        "higher_is_better": better, "protocol": protocol,
    }  # fmt: skip


def summary(**metrics):
    """A summary of {metric: {system: entry}}."""
    systems = dict.fromkeys(name for column in metrics.values() for name in column)
    held = {s: {"metrics": {m: column[s] for m, column in metrics.items() if s in column}} for s in systems}
    return {"schema": 1, "systems": held, "failures": {"items": 0, "scores": 0, "reasons": []}}


def markdown_rows(text: str) -> list[list[str]]:
    """The cells of a table in Markdown, with escapes undone."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in lines]
    return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in cells]


class LatexRefused(Exception):
    pass


def check_latex(text: str) -> list[int]:
    """Refuses what a LaTeX compiler would; returns the number of cells of each row of the table.

    Known are the commands that the table needs. A special character that is not part of one is refused.
    """
    known = {
        "begin", "end", "centering", "toprule", "midrule", "bottomrule", "textbf", "par", "smallskip", "footnotesize",
        "raggedright",
        "linewidth", "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar",
        "textendash",
        "symbol", "pm", "uparrow", "downarrow", "ldots",
    }  # fmt: skip
    tokens = re.findall(r"\\[a-zA-Z]+|\\.|.|\n", re.sub(r"^%.*\n", "", text, flags=re.MULTILINE))
    depth, math, cells, rows, open_ = 0, False, 1, [], []
    body = "".join(tokens)
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            open_.append(name)
        elif not open_ or open_.pop() != name:
            raise LatexRefused(f"\\end{{{name}}} ends nothing")
    if open_:
        raise LatexRefused(f"{open_} does not end")
    last = ""
    for token in tokens:
        if re.fullmatch(r"\\[a-zA-Z]+", token):
            if token[1:] not in known:
                raise LatexRefused(token)
        elif token == r"\\":
            rows.append(cells)
            cells = 1
        elif token[0] == "\\" and token[1] not in "_%&#${}":
            raise LatexRefused(token)
        elif token in "_#%~^":
            raise LatexRefused(f"a bare {token}")
        elif token == "&":
            cells += 1
        elif token == "$":
            math = not math
        elif token in "{}":
            depth += 1 if token == "{" else -1
            if depth < 0:
                raise LatexRefused("a brace too many")
        elif token in "[*" and last in (r"\\", r"\midrule", r"\toprule"):
            raise LatexRefused(f"{token} would be an argument of {last}")
        if token.strip():
            last = token
    if depth or math:
        raise LatexRefused("something is not closed")
    return rows


@pytest.fixture
def hostile():
    column = {name: entry(0.5 + n / 10, [0.4, 0.6 + n / 10], note="a & b_c 100 %") for n, name in enumerate(BREAKING)}
    return summary(**{EVIL: column, "rate": {name: entry(7.0, unit="100 % of $") for name in BREAKING}})


def test_the_csv_has_a_row_for_each_system_and_metric(demo_run, tmp_path):
    export_summary(demo_run, "csv", tmp_path / "x.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text("utf-8"))))
    assert tuple(rows[0]) == COLUMNS
    held = summarise(demo_run).as_dict()["systems"]
    assert [(r["system"], r["metric"]) for r in rows] == [(s, m) for s, e in held.items() for m in e["metrics"]]
    for row in rows:
        e = held[row["system"]]["metrics"][row["metric"]]
        low, high = e["ci95"] or (None, None)
        for name, value in (("value", e["value"]), ("ci95_low", low), ("ci95_high", high)):
            assert row[name] == ("" if value is None else repr(value))
        assert (row["n"], row["failed"], row["note"]) == (str(e["n"]), str(e["failed"]), e["note"] or "")
        assert (row["unit"], row["protocol"]) == (e["unit"], e["protocol"])
        assert row["higher_is_better"] == {True: "true", False: "false", None: ""}[e["higher_is_better"]]


def test_markdown_has_values_intervals_units_directions_and_protocols():
    text = summary_markdown(
        Summary.from_dict(
            summary(
                bitrate={"a": entry(12000.0, [11900.0, 12100.0], unit="bps", better=False, protocol="b/1")},
                si_sdr={
                    "a": entry(12.34, [12.0, 12.68], unit="dB", protocol="s/1"),
                    "b": entry(None, n=0, failed=10, protocol="s/1"),
                },
                rate={
                    "a": entry(0.5, [0.2, 0.9], note="few", n=8, failed=2, better=None),
                    "b": entry(0.25, n=9, failed=1),
                },
            )
        )
    )
    assert markdown_rows(text) == [
        ["system", "n", "bitrate (kbps) ↓", "si_sdr (dB) ↑", "rate"],
        ["---", "--:", "--:", "--:", "--:"],
        ["a", "10", "12.00 ±0.10", "12.3 ±0.3", "0.500 [0.200, 0.900]* (n = 8)"],
        ["b", "9", "–", "–", "0.250"],
    ]
    notes = re.sub(r"\\(.)", r"\1", text.split("\n\n")[1])
    assert "- ↑ higher is better, ↓ lower is better." in notes
    assert "unless a cell says otherwise" in notes
    assert "Protocols: bitrate is b/1; si_sdr is s/1; rate is m/1." in notes and notes.count("\n- ") == 1


def test_protocols_of_many_metrics_are_whole_and_no_note_of_a_paper():
    columns = {f"metric{n}": {"a": entry(0.5, protocol=f"metric{n}/a-long-protocol-id-{n}")} for n in range(20)}
    built = Summary.from_dict(summary(**columns))
    latex, markdown = summary_latex(built), summary_markdown(built)
    (comment,) = [line for line in latex.splitlines() if "protocol-id-0" in line]
    assert comment.startswith("% ") and all(f"a-long-protocol-id-{n}" in comment for n in range(20))
    assert "…" not in markdown and "a-long-protocol-id-10;" in markdown.replace("\\", "")


def test_bold_is_what_the_summary_says_is_the_best():
    standing = lambda best: {"standing": {"best": best, "compared": True, "why": None}}  # noqa: E731
    column = {
        "a": entry(0.8) | standing(False),
        "b": entry(0.9) | standing(True),
        "c": entry(0.9) | standing(True),
        "d": entry(0.95),
    }
    built = Summary.from_dict(summary(m=column))
    for pattern, text in (
        (r" \*\*(.*?)\*\* ", summary_markdown(built)),
        (r"\\textbf\{(.*?)\}", summary_latex(built)),
        (r"<b>(.*?)</b>", summary_html(built)),
    ):
        assert re.findall(pattern, text) == ["0.900", "0.900"]
        assert "Bold" in text


def test_what_is_not_finite_is_a_dash():
    inf = float("inf")
    column = {
        "a": entry(inf),
        "b": entry(-inf, [-inf, inf]),
        "c": entry(float("nan")),
        "d": entry(2.0, [1.0, inf]),
        "e": entry(None),
    }
    built = summary(m=column)
    assert [row[2] for row in markdown_rows(summary_markdown(Summary.from_dict(built)))[2:]] == [
        "–",
        "–",
        "–",
        "2.00",
        "–",
    ]
    assert summary_latex(Summary.from_dict(built)).count(r"\textendash{}") == 4 and "inf" not in summary_latex(
        Summary.from_dict(built)
    )
    assert [row[2:5] for row in summary_rows(Summary.from_dict(built))] == [[None] * 3] * 3 + [
        [2.0, None, None],
        [None] * 3,
    ]


def test_names_cannot_break_out_of_markdown(hostile):
    rows = markdown_rows(summary_markdown(Summary.from_dict(hostile)))
    assert {len(row) for row in rows} == {4}
    assert rows[0][2] == f"{EVIL} ↑" and rows[2][0] == EVIL
    assert rows[5][0] == "two�lines��and a tab"
    assert "<" not in re.sub(r"\\<", "", summary_markdown(Summary.from_dict(hostile)))


def test_names_cannot_break_out_of_latex(hostile):
    text = summary_latex(Summary.from_dict(hostile))
    assert check_latex(text) == [4] * (1 + len(BREAKING))
    assert r"\_\%\&\#\$\{\}\textasciitilde{}\textasciicircum{}\textbackslash{} {[}x] {*}y{*}" in text


@pytest.mark.parametrize(
    "broken", [r"a_b", r"\input{x}", r"50%", r"$x", r"{", r"\\ [2em]", r"\\ *", r"\end{table}", "a#", "~"]
)
def test_the_check_of_latex_finds_what_is_broken(hostile, broken):
    text = summary_latex(Summary.from_dict(hostile)).replace("rate (", f"{broken} rate (", 1)
    if "%" in broken:
        text = text.replace("50%", "50 %")
    with pytest.raises(LatexRefused):
        check_latex(text)


def test_a_compiler_takes_the_table(hostile, demo_run, tmp_path):
    if shutil.which("pdflatex") is None or not has_booktabs():
        pytest.skip("pdflatex with booktabs is not installed (Debian: texlive-latex-recommended)")
    tables = summary_latex(Summary.from_dict(hostile)) + summary_latex(Summary.from_dict(summarise(demo_run).as_dict()))
    page = (
        f"\\documentclass{{article}}\\usepackage[T1]{{fontenc}}\\usepackage{{booktabs}}\\begin{{document}}\n"
        f"{tables}\\end{{document}}\n"
    )
    (tmp_path / "x.tex").write_text(page, "utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "x.tex"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "x.pdf").stat().st_size > 5000


def has_booktabs() -> bool:
    return bool(subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).stdout.strip())


class Reader(HTMLParser):
    """The cells of a table in HTML, and every element and attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells, self.used = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.used |= {tag, *(f"{tag} {name}" for name, _ in attrs)}
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


def test_names_cannot_break_out_of_html(hostile):
    page = Reader(summary_html(Summary.from_dict(hostile)))
    assert page.used == {"table", "thead", "tbody", "tr", "th", "th style", "td", "small", "ul", "li"}
    assert page.cells[:4] == ["system", "n", f"{EVIL} ↑", "rate (100 % of $) ↑"]
    assert page.cells[4::4] == [name.translate(dict.fromkeys(map(ord, "\n\r\t\u202e"), "�")) for name in BREAKING]


def test_a_run_shows_its_table_in_a_notebook(demo_run):
    page = Reader(Run(demo_run.folder)._repr_html_())
    assert page.cells[0] == "system" and "opus-12k" in page.cells
    assert not page.used & {"script", "img", "a", "th onclick"}
    assert Run(demo_run.folder).summary() == summarise(demo_run).as_dict()


def test_a_run_without_items_has_a_table_of_dashes(make_run, tmp_path):
    run = make_run("empty", samples=0, audio=False)
    for form in ("csv", "markdown", "latex"):
        export_summary(run, form, tmp_path / form)
    rows = markdown_rows((tmp_path / "markdown").read_text("utf-8"))
    assert {cell for row in rows[2:] for cell in row[2:]} == {"–"} and {row[1] for row in rows[2:]} == {"0"}
    assert set(check_latex((tmp_path / "latex").read_text("utf-8"))) == {len(rows[0])}
    assert "<table>" in Run(run.folder)._repr_html_()


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_a_run_that_is_not_finished_says_so_below_its_table(make_run, demo_run, tmp_path, form):
    item = make_run("part", samples=4, systems=["opus-6k"], metrics=["stoi"], audio=False, finish=False, stop_after=3)
    for run, texts in ((item, True), (demo_run, False)):
        export_summary(run, form, tmp_path / "table")
        text = (tmp_path / "table").read_text("utf-8")
        assert ("the run is not finished: 3 of 4 items so far" in text) == texts == ("not finished" in text)


def test_formulas_are_neutralised_in_the_csv_alone(make_run, tmp_path, monkeypatch):
    from codec_bench.report import paper

    monkeypatch.setattr(paper, "summarise", lambda run: Summary.from_dict(summary(m={"=HYPERLINK(1)": entry(-0.5)})))
    run = make_run("formula", samples=1, audio=False)
    export_summary(run, "csv", tmp_path / "x.csv")
    row = list(csv.reader(open(tmp_path / "x.csv", encoding="utf-8")))[1]
    assert row[0] == "'=HYPERLINK(1)" and row[2] == "-0.5"
    options = Summary.from_dict(summary(m={"=HYPERLINK(1)": entry(-0.5)}))
    assert "'=HYPER" not in summary_latex(options) + summary_markdown(options)


@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
def test_a_format_that_a_summary_does_not_have_is_named(demo_run, form):
    with refuses("no_export_format", format=form, hint="csv, markdown, latex"):
        export_summary(demo_run, form, None)


def test_a_folder_that_is_not_there_is_named(demo_run, tmp_path):
    with refuses("file_not_writable", hint="there is no folder"):
        export_summary(demo_run, "latex", tmp_path / "nowhere" / "x.tex")


def test_the_mark_of_an_interval_is_explained_below_the_table():
    noted = Summary.from_dict(summary(m={"a": entry(0.5, [0.25, 0.75], note="resting on 3 speakers")}))
    for built in (summary_markdown(noted), summary_latex(noted)):
        assert "0.250" in built and "*" in built and "resting on 3 speakers" in built, built
