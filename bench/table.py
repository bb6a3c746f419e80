"""Writes every measured number of the documentation from the rows in data/, and says where a text and the rows differ.

    python bench/table.py           writes the tables and numbers in README.md and docs/, and data/README.md
    python bench/table.py --check   writes nothing; exits with 1 where a text is not what the rows say

`claims.yaml` says which rows stand for which claim. A text takes its numbers between two marks, as HTML comments:
`rows: NAME` and `rows end` around a table, `row: NAME` and `/row` around a number in a sentence. The check also fails where
a row was changed or removed by hand, and where README.md or docs/ hold a ratio of speed that stands between no marks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from common import DATA, FIELDS, ROOT, digest, read_rows

CLAIMS = yaml.safe_load((Path(__file__).parent / "claims.yaml").read_text("utf-8"))
SECTIONS = ("metrics", "networks", "codecs", "models", "engine")
OLDER = Path(__file__).parent / "older_rows.json"
OLD_FIELDS = FIELDS[: FIELDS.index("run")]
NOT_QUIET = "not measured on a quiet machine yet"
BLOCK = re.compile(r"(<!-- rows: ([\w-]+) -->\n).*?(<!-- rows end -->)", re.DOTALL)
INLINE = re.compile(r"(<!-- row: ([\w, -]+?) -->).*?(<!-- /row -->)", re.DOTALL)
UNBOUND = re.compile(
    r"(?<![\w@.×-])\d+(?:\.\d+)?x\b(?! a\b)|\d(?:\.\d+)? times (?:as fast|as slow|as long|faster|slower|less time)"
)
Row = dict[str, str]


@dataclass(frozen=True)
class Claim:
    """One claim: how its row is found, and how it is said."""

    name: str
    command: str
    case: str
    variant: str
    what: str
    than: str
    against: str | None = None
    note: tuple[str, ...] = ()
    value: str = "ratio"
    says: str = "{}x"
    reads: str = ""
    per: int = 1
    readme: bool = False
    timing: bool = True

    @property
    def stem(self) -> str:
        """The bench that measures it, and the file of its rows."""
        return CLAIMS["commands"][self.command]["run"].split()[0].removeprefix("bench_").removesuffix(".py")


@cache
def claims() -> dict[str, Claim]:
    """The claims by name, in the order of claims.yaml."""
    found = {name: Claim(name, **told) for section in SECTIONS for name, told in CLAIMS[section].items()}
    return {name: Claim(**{**vars(claim), "note": tuple(claim.note)}) for name, claim in found.items()}


@cache
def rows_of(stem: str) -> list[Row]:
    """The rows of a bench; none where it has no file."""
    return read_rows(stem) if (DATA / f"{stem}.csv").exists() else []


def quiet(row: Row) -> bool:
    """Whether a row counts as measured on a quiet machine: little load before the bench began, and a clean tree."""
    return bool(row["run"]) and row["tree"] == "clean" and float(row["load"]) <= CLAIMS["quiet_load"]


@dataclass(frozen=True)
class Found:
    """The rows that stand for a claim."""

    claim: Claim
    row: Row
    base: Row | None

    @property
    def quiet(self) -> bool:
        """Whether they were measured on a quiet machine, or do not depend on it."""
        return quiet(self.row) or not self.claim.timing

    def value(self) -> str:
        """What the claim says, as in `7.5x`."""
        return self.claim.says.format(self._numbers()[0])

    def spread(self) -> str:
        """Between which values the middle three fifths of the passes lie."""
        low, high = self._numbers()[1:]
        if self.row["p20"] == self.row["p80"]:
            return "one pass" if self.row["p50"] else "–"
        return f"{low} to {high}" if low and high else "–"

    def _numbers(self) -> tuple[str, str, str]:
        claim, row, base = self.claim, self.row, self.base
        if claim.value == "note":
            match = re.search(claim.reads, row["note"])
            if match is None:
                raise SystemExit(f"claims.yaml, {claim.name}: {claim.reads!r} is not in the note {row['note']!r}")
            return match[1], "", ""
        p20, p50, p80 = (float(row[name] or row["p50"]) for name in ("p20", "p50", "p80"))
        if base is not None:
            of20, of50, of80 = (float(base[name] or base["p50"]) for name in ("p20", "p50", "p80"))
            numbers = of50 / p50, of20 / p80, of80 / p20
        elif claim.value == "recorded":
            ratio = float(row["ratio_to_baseline"])
            numbers = ratio, ratio * p20 / p50, ratio * p80 / p50
        elif claim.value == "rate":
            count = float(row["n"])
            return f"{count / p50:,.0f}", f"{count / p80:,.0f}", f"{count / p20:,.0f}"
        elif claim.value == "ms":
            numbers = 1000 * p50, 1000 * p20, 1000 * p80
        else:
            numbers = tuple(seconds * claim.per / float(row["n"]) for seconds in (p50, p20, p80))
        digits = 2 if claim.value == "recorded" else None
        return tuple(short(number, digits) for number in numbers)

    def passes(self) -> str:
        """How many passes were made of each side."""
        return self.row["repeats"] or ("1" if self.row["p20"] == self.row["p80"] else "not recorded")

    def where(self) -> str:
        """The machine and the day, and the reason where it was not quiet."""
        row = self.row
        said = f"{re.sub(r'[(]R[)]| Processor', '', row['machine']).strip()}, {row['cores']} cores"
        if row["date"]:
            said += f", {row['date'][:10]}"
        if self.quiet:
            return said
        if not row["run"]:
            return f"{said}; {NOT_QUIET}"
        why = f"load {row['load']}" if float(row["load"]) > CLAIMS["quiet_load"] else f"tree {row['tree']}"
        return f"{said}; {NOT_QUIET} ({why})"


def short(number: float, digits: int | None = None) -> str:
    """Two significant digits: 250, 11, 7.5, 0.85."""
    if digits is not None:
        return f"{number:.{digits}f}"
    size = abs(number)
    return f"{number:.2f}" if size < 1 else f"{number:.1f}" if size < 10 else f"{float(f'{number:.2g}'):.0f}"


def complete(row: Row) -> bool:
    """Whether a row has a median and its spread. Rows without a spread were entered by hand, or have one number."""
    return bool(row["p50"] and row["p20"] and row["p80"])


def standing(claim: Claim) -> Found | None:
    """The rows that stand for a claim: the newest complete ones of a quiet machine, else the newest complete ones."""
    rows = rows_of(claim.stem)
    found = []
    for place, row in enumerate(rows):
        named = row["case"] == claim.case and row["variant"] == claim.variant
        if not named or not all(part in row["note"] for part in claim.note):
            continue
        if claim.against is None:
            if row["p50"]:
                found.append(Found(claim, row, None))
            continue
        same = [
            (abs(at - place), other) for at, other in enumerate(rows)
            if other["variant"] == claim.against and complete(other)
            and all(other[name] == row[name] for name in ("case", "n", "run", "commit", "machine"))
        ]  # fmt: skip
        if complete(row) and same:
            found.append(Found(claim, row, min(same, key=lambda pair: pair[0])[1]))
    return next((one for one in reversed(found) if one.quiet), found[-1] if found else None)


def table(names: list[str]) -> str:
    """A table of claims, one a line."""
    lines = ["| what | against | result | middle of the passes | passes | measured on |", "|---|---|--:|---|--:|---|"]
    for name in names:
        claim, found = claims()[name], standing(claims()[name])
        if found is None:
            lines.append(f"| {claim.what} | {claim.than} | – | – | – | {NOT_QUIET} |")
        else:
            said = (found.value(), found.spread(), found.passes(), found.where())
            lines.append(f"| {claim.what} | {claim.than} | {' | '.join(said)} |")
    return "\n".join(lines) + "\n"


def noise_table() -> str:
    """How often pitch agrees with Praat, by the level of noise, from the newest row of each."""
    cells: dict[tuple[str, str], str] = {}
    for row in rows_of("pitch"):
        if (level := re.fullmatch(r"noise (\S+) dB below", row["case"])) is None:
            continue
        both = []
        for text, pattern in (
            (row["note"], r"mean ([\d.]+) %, least ([\d.]+) %"),
            (row["agreement"], r"on ([\d.]+) % .*least ([\d.]+) %"),
        ):
            mean, least = (f"{float(number):.1f} %" for number in re.search(pattern, text).groups())
            both.append(mean if mean == least else f"{mean} ({least})")
        cells[level[1], row["n"]] = " | ".join(both)
    lines = [
        "| noise | voicing, 6 real recordings | pitch to 0.2 % | voicing, 32 embedded clips | pitch to 0.2 % |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {level} dB | {cells[level, '6']} | {cells[level, '32']} |" for level in ("40", "30", "20", "10", "5", "0")
    ]
    return "\n".join(lines) + "\n"


def searches_table() -> str:
    """Error rate and processor time of PocketSphinx's searches, from the newest run that has all of them."""
    found = list(runs("pocketsphinx"))
    if not found:
        return f"The searches were {NOT_QUIET}.\n"
    rows = next((rows for _, rows in reversed(found) if quiet(rows[0])), found[-1][1])
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        length, rate, share = re.fullmatch(
            r"(.+); word error rate (.+); (\S+) of the audio's time", row["note"]
        ).groups()
        cells.setdefault(row["variant"], {})[f"{row['case']}, {row['n']} utterances, {length}"] = f"{rate}, {share}"
    heads = list(next(iter(cells.values())))
    lines = [f"| search | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(of.values())} |" for name, of in cells.items()]
    state = "" if quiet(rows[0]) else f" The times were {NOT_QUIET}."
    return "\n".join(lines) + f"\n\nMeasured on {rows[0]['machine']}, {rows[0]['date'][:10]}.{state}\n"


def example_table() -> str:
    """The summary of the example's newest run: a line for each metric, a column for each system."""
    from codec_bench.report import numbers

    found = list(runs("example"))
    if not found:
        return "The run was not measured yet.\n"
    run, rows = found[-1]
    entries: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["unit"] == "value":
            ends = [float(row["p20"]), float(row["p80"])] if row["p20"] else None
            value = float(row["p50"]) if row["p50"] else None
            entry = {**json.loads(row["note"]), "value": value, "ci95": ends, "n": int(row["n"])}
            entries.setdefault(row["case"], {})[row["variant"]] = entry
    systems = list(next(iter(entries.values())))
    lines = [f"| metric | {' | '.join(systems)} |", "|---" + "|--:" * len(systems) + "|"]
    for metric, of in entries.items():
        factor, unit = numbers.shown_unit(next(iter(of.values()))["unit"])
        arrow = numbers.ARROWS[next(iter(of.values()))["higher_is_better"]]
        places = numbers.decimals(of.values(), factor)
        counts = sorted({entry["n"] for entry in of.values() if entry["n"]})
        head = " ".join(filter(None, (f"`{metric}`", arrow, unit)))
        head += (
            f", n={'–'.join(map(str, counts))}"
            if counts != [max(e["n"] for m in entries.values() for e in m.values())]
            else ""
        )
        cells = []
        for system in systems:
            entry = of.get(system)
            if entry is None or entry["value"] is None:
                cells.append("–")
                continue
            value = numbers.number(factor * entry["value"], places)
            cells.append(f"{value} {numbers.spread(entry, places, factor)}".strip().replace("*", "\\*"))
        lines.append(f"| {head} | {' | '.join(cells)} |")
    told = dict.fromkeys(e["note"] for of in entries.values() for e in of.values() if e["note"] and e["ci95"])
    text = "\n".join(lines) + "\n" + "".join(f"\n\\* The interval {note}.\n" for note in told)
    for row in rows:
        if row["unit"] == "difference":
            value, low, high = (numbers.number(float(row[name]), 3, sign=True) for name in ("p50", "p20", "p80"))
            text += f"\n{row['case']}: {value} ({low} to {high}), over {row['n']} pairs.\n"
    return f"{text}\nMade by run `{run}` of `bench/bench_example.py` at revision {rows[0]['commit']}.\n"


def block(name: str) -> str:
    """What stands between the marks of this name."""
    if name == "example":
        return example_table()
    if name == "searches":
        return searches_table()
    if name == "pitch-noise":
        return noise_table()
    if name == "readme":
        return table([claim.name for claim in claims().values() if claim.readme])
    return table(list(CLAIMS[name]))


def sentence(names: str) -> str:
    """The number of a claim for a sentence, or from the least to the greatest of several."""
    found = [standing(claims()[name.strip()]) for name in names.split(",")]
    if None in found:
        return f"({NOT_QUIET})"
    values = sorted({one.value() for one in found}, key=lambda text: float(text.removesuffix("x").split()[0]))
    said = values[0] if len(values) == 1 else f"{values[0].removesuffix('x')} to {values[-1]}"
    said = re.sub(r"(?<=\d)x$", " times", said)
    return said if all(one.quiet for one in found) else f"{said} ({NOT_QUIET})"


def written(text: str) -> str:
    """A page with its marked numbers as the rows have them."""
    text = BLOCK.sub(lambda match: match[1] + block(match[2]) + match[3], text)
    return INLINE.sub(lambda match: match[1] + sentence(match[2]) + match[3], text)


def data_page() -> str:
    """data/README.md: the rule, which row stands for which claim, and the runs."""
    lines = [
        "<!-- Written by bench/table.py from the rows. Do not edit: run the script. -->",
        "# What was measured",
        "",
        "Each file holds the rows of one bench. A bench appends them (`append_rows` in `bench/common.py`); nobody edits or",
        "removes one. The id of a run ends in a digest of its rows, and `bench/older_rows.json` has one of the rows from before",
        "runs had ids, so `python bench/table.py --check` finds a row that was changed by hand.",
        "",
        "## Which row stands for a claim",
        "",
        f"The newest complete rows of a quiet machine do. Quiet means: the load average over one minute was at most {CLAIMS['quiet_load']}",
        "before the bench began, and the tree was as committed (rows that other benches had just added do not count). Complete means: the",
        "row and the one that it is compared with are from the same run, and both have a median and a spread. Where there are no such",
        f"rows, the newest complete ones stand in, and the text says “{NOT_QUIET}”. `python bench/measure.py` measures what is missing.",
        "",
        "Rows from before runs had ids have no load, so they never count as quiet. Eight rows of `dnsmos.csv`, whose note says",
        "“idle machine”, were entered by hand; they have no spread, so they stand for nothing. Rows that were removed by hand in",
        "earlier revisions (of `dnsmos`, `error_rate`, `ge2e`, `wavlm_sv` and `codecs`) are in the history; the commands of the",
        "same names measure them anew.",
        "",
        "| claim | file | case | variant, against | run | state |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for claim in claims().values():
        found = standing(claim)
        run = "–" if found is None else found.row["run"] or f"before runs had ids, at {found.row['commit']}"
        state = NOT_QUIET if found is None or not found.quiet else f"quiet, load {found.row['load']}"
        sides = claim.variant if claim.against is None else f"{claim.variant}, {claim.against}"
        lines.append(f"| {claim.name} | {claim.stem}.csv | {claim.case} | {sides} | {run} | {state} |")
    lines += [
        "",
        "`intervals.csv` also holds counts of a simulation (docs/design/intervals.md), and `pitch.csv` shares of frames in",
        "noise (docs/metrics/pitch.md). They do not depend on how fast the machine is, so the newest rows stand.",
        "",
        "## Runs",
        "",
        "| file | run | rows | revision | tree | load | machine |",
        "|---|---|--:|---|---|--:|---|",
    ]
    for stem in stems():
        older = [row for row in rows_of(stem) if not row["run"]]
        if older:
            lines.append(f"| {stem}.csv | before runs had ids | {len(older)} | | | | |")
        for run, rows in runs(stem):
            one = rows[0]
            lines.append(
                f"| {stem}.csv | {run} | {len(rows)} | {one['commit']} | {one['tree']} | {one['load']} | {one['machine']} |"
            )
    return "\n".join(lines) + "\n"


def stems() -> list[str]:
    """The benches that have rows."""
    return sorted(path.stem for path in DATA.glob("*.csv"))


def runs(stem: str) -> Iterator[tuple[str, list[Row]]]:
    """The runs of a bench in their order, each with its rows."""
    found: dict[str, list[Row]] = {}
    for row in rows_of(stem):
        if row["run"]:
            found.setdefault(row["run"], []).append(row)
    yield from found.items()


def older_digests() -> dict[str, dict[str, Any]]:
    """Count and hash of the rows from before runs had ids, by bench."""
    found = {}
    for stem in stems():
        cells = [[row[name] for name in OLD_FIELDS] for row in rows_of(stem) if not row["run"]]
        if cells:
            found[stem] = {"rows": len(cells), "sha256": hashlib.sha256(json.dumps(cells).encode()).hexdigest()}
    return found


def damaged() -> Iterator[str]:
    """What was changed in the rows by another hand than a bench's."""
    for stem in stems():
        for run, rows in runs(stem):
            if run.rpartition("-")[2] != digest(rows):
                yield f"bench/data/{stem}.csv: the rows of run {run} are not those that the bench wrote; measure it again"
    older = json.loads(OLDER.read_text("utf-8"))
    now = older_digests()
    for stem in older.keys() | now.keys():
        if older.get(stem) != now.get(stem):
            yield f"bench/data/{stem}.csv: rows from before runs had ids were changed or removed; restore them"


def pages() -> list[Path]:
    """The texts that may hold measured numbers: the README and the pages that people write."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def unbound(text: str) -> list[str]:
    """Ratios of speed in a text that stand between no marks, each with its line."""
    text = INLINE.sub("", BLOCK.sub("", text))
    outside = re.sub(r"```.*?```|<!-- study: begin -->.*?<!-- study: end -->", "", text, flags=re.DOTALL)
    return [
        f"{match[0]!r} in {line.strip()[:100]!r}" for line in outside.splitlines() for match in UNBOUND.finditer(line)
    ]


def wrong() -> Iterator[str]:
    """Everything that the check finds."""
    yield from damaged()
    for page in pages():
        text = page.read_text("utf-8")
        if written(text) != text:
            yield f"{page.relative_to(ROOT)} does not say what the rows say; run `python bench/table.py`"
        for found in unbound(text):
            yield f"{page.relative_to(ROOT)}: {found} is a measured ratio without a claim in bench/claims.yaml"
    page = DATA / "README.md"
    if not page.exists() or page.read_text("utf-8") != data_page():
        yield "bench/data/README.md does not say what the rows say; run `python bench/table.py`"
    measured = {told["run"].split()[0] for told in CLAIMS["commands"].values()}
    for script in sorted(Path(__file__).parent.glob("bench_*.py")):
        if script.name not in measured:
            yield f"bench/{script.name} has no command in bench/claims.yaml"


def main() -> None:
    """Writes or checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where text and rows differ")
    if parser.parse_args().check:
        found = list(wrong())
        sys.stderr.write("".join(f"{line}\n" for line in found))
        sys.exit(1 if found else 0)
    for page in pages():
        text = page.read_text("utf-8")
        if (new := written(text)) != text:
            page.write_text(new, "utf-8")
            sys.stderr.write(f"{page.relative_to(ROOT)} written\n")
    (DATA / "README.md").write_text(data_page(), "utf-8")


if __name__ == "__main__":
    main()
