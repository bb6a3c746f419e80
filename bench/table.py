"""Write every measured number of the docs from data/; report differences.

    python bench/table.py           writes the tables and numbers in README.md and docs/, and data/README.md
    python bench/table.py --check   writes nothing; exits with 1 where a text is not what the rows say

`claims.yaml` says which rows support a claim. HTML comments mark the numbers of a text: `rows: NAME` and `rows end`
around a table, `row: NAME` and `/row` around a number. The check also fails for rows that were changed by hand, and for
ratios of speed without marks in README.md or docs/.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import string
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import common
import yaml
from common import QUIET_SHARE, ROOT, Row, digest, git, rows_of

from codec_bench.metrics.costs import COSTS, FIELDS

NOT_QUIET = "not measured on a quiet machine yet"
COSTS_OF_STAGES = "{device costs}"
"""In the note of a claim: the digest of the stages' costs, so rows of older costs support no claim."""
GPU = "NVIDIA H200"  # of sentences and of the virtual clock; others, and several, have separate lines
NOT_COMPARABLE = "no rows of one commit, size and precision"
PRECISION = re.compile(r"bfloat16|float16|float32")
DEVICE_COSTS = ROOT / "tests" / "golden" / "device_costs.csv"
CLAIMS = yaml.safe_load((Path(__file__).parent / "claims.yaml").read_text("utf-8"))
SECTIONS = ("metrics", "codecs", "gpu", "models", "scale", "records")
BLOCK = re.compile(r"(<!-- rows: ([\w-]+) -->\n).*?(<!-- rows end -->)", re.DOTALL)
INLINE = re.compile(r"(<!--\s*row:\s*([\w, -]+?)\s*-->).*?(<!--\s*/row\s*-->)", re.DOTALL)
UNBOUND = re.compile(
    r"(?<![\w@.×-])\d+(?:\.\d+)?x\b(?! a\b)|\d(?:\.\d+)? times (?:as fast|as slow|as long|faster|slower|less time)"
)


def quiet(row: Row) -> bool:
    """Whether a row is of a quiet machine and of a clean tree."""
    return row["tree"] == "clean" and float(row["load"]) <= QUIET_SHARE * int(row["cores"])


@dataclass(frozen=True)
class Claim:
    """One claim of claims.yaml."""

    name: str
    command: str
    case: str
    variant: str
    subject: str
    than: str
    against: str | None = None
    note: tuple[str, ...] = ()
    value: str = "ratio"
    says: str = "{}x"
    reads: str = ""
    unit: str = ""
    timing: bool = True
    varies: tuple[str, ...] = ()
    head: str = ""

    @property
    def stem(self) -> str:
        """The bench that measures it, and the file of its rows."""
        return Path(CLAIMS["commands"][self.command]["run"].split()[0]).stem.removeprefix("bench_")

    @property
    def gpu(self) -> bool:
        """Whether rows of a machine with a GPU stand for it, and no others."""
        return bool(CLAIMS["commands"][self.command].get("gpu"))


@cache
def claims() -> dict[str, Claim]:
    """The claims by name, in the order of claims.yaml."""
    output, head = {}, ""
    for name, settings in (pair for section in SECTIONS for pair in CLAIMS[section].items()):
        head = head if re.match(r"the same\b|peak memory of the same", settings["subject"]) else name
        lists = {field: tuple(settings.get(field, ())) for field in ("note", "varies")}
        output[name] = Claim(name, **{**settings, **lists, "head": head})
    return output


@dataclass(frozen=True)
class Standing:
    """The rows that stand for a claim."""

    claim: Claim
    row: Row
    base: Row | None

    def is_comparable(self, other: Standing) -> bool:
        """Whether its row may stand in a comparison with the other's."""
        same = ["commit", "machine", "gpu", *(() if "size" in self.claim.varies else ("n",))]
        precisions = [sorted(set(PRECISION.findall(one.row["case"] + one.row["note"]))) for one in (self, other)]
        return all(self.row[name] == other.row[name] for name in same) and (
            "precision" in self.claim.varies or precisions[0] == precisions[1]
        )

    @property
    def quiet(self) -> bool:
        """Whether they were measured on a quiet machine, or do not depend on it."""
        return quiet(self.row) or not self.claim.timing

    def value(self) -> str:
        """What the claim says, as in `7.5x`."""
        return self.claim.says.format(self._numbers()[0])

    def spread(self) -> str:
        """The range of the middle three fifths of the passes; empty for one pass."""
        low, high = self._numbers()[1:]
        return f"{low} to {high}" if self.row["p20"] != self.row["p80"] and low and high else ""

    def _numbers(self) -> tuple[str, str, str]:
        claim, row, base = self.claim, self.row, self.base
        if claim.value in ("note", "agreement"):
            match = re.search(claim.reads, row[claim.value])
            if match is None:
                column = f"the {claim.value} {row[claim.value]!r}"
                raise SystemExit(f"claims.yaml, {claim.name}: {claim.reads!r} is not in {column}")
            return match[1], "", ""
        p20, p50, p80 = (float(row[name] or row["p50"]) for name in ("p20", "p50", "p80"))
        if base is not None:
            of20, of50, of80 = (float(base[name] or base["p50"]) for name in ("p20", "p50", "p80"))
            numbers = of50 / p50, of20 / p80, of80 / p20
        elif claim.value == "recorded":
            ratio = float(row["ratio_to_baseline"])
            numbers = ratio, ratio * p20 / p50, ratio * p80 / p50
        else:
            factor = {"given": 1, "ms": 1e3, "share": 100}[claim.value]
            numbers = factor * p50, factor * p20, factor * p80
        show = {"recorded": "{:.2f}".format, "share": "{:.1f}".format}.get(claim.value, short)
        return tuple(show(number) for number in numbers)

    def where(self) -> str:
        """The machine and the day, and the reason where it was not quiet."""
        measured_on = place_of(self.row, self.claim.gpu)
        return measured_on if self.quiet else f"{measured_on}; {NOT_QUIET} (load {self.row['load']})"


def place_of(row: Row, on_gpu: bool = False) -> str:
    """The machine, the day and the commit of a row."""
    gpu = f"{row['gpu']}, " if on_gpu else ""
    machine = re.sub(r"[(]R[)]| Processor", "", row["machine"]).strip()
    return f"{gpu}{machine}, {row['cores']} cores, {row['date'][:10]}, {row['commit']}"


def short(number: float) -> str:
    """Two significant digits: 250, 11, 7.5, 0.85."""
    size = abs(number)
    return f"{number:.2f}" if size < 1 else f"{number:.1f}" if size < 10 else f"{float(f'{number:.2g}'):.0f}"


def complete(row: Row) -> bool:
    """Whether a row has a median and its spread; rows of one number have none."""
    return bool(row["p50"] and row["p20"] and row["p80"])


def measurements(claim: Claim) -> Iterator[Standing]:
    """A claim's complete rows, oldest first, of clean trees only."""
    rows = rows_of(claim.stem)
    notes = [note.replace(COSTS_OF_STAGES, costs_id()) for note in claim.note]
    for index, row in enumerate(rows):
        named = row["case"] == claim.case and row["variant"] == claim.variant and claim.gpu == (row["gpu"] != "none")
        if not named or row["tree"] != "clean" or claim.unit not in ("", row["unit"]):
            continue
        if not all(note in row["note"] for note in notes):
            continue
        if claim.against is None:
            if row["p50"] and (claim.value != "recorded" or row["ratio_to_baseline"]):
                yield Standing(claim, row, None)
            continue
        same = [
            (abs(at - index), other) for at, other in enumerate(rows)
            if other["variant"] == claim.against and complete(other)
            and all(other[name] == row[name] for name in ("case", "n", "run", "commit", "machine"))
        ]  # fmt: skip
        if complete(row) and same:
            yield Standing(claim, row, min(same, key=lambda pair: pair[0])[1])


def standing(claim: Claim, gpu: str = GPU) -> Standing | None:
    """The newest rows of a quiet machine (and of this GPU), else the newest, comparable with the first line's."""
    candidates = [one for one in measurements(claim) if not claim.gpu or one.row["gpu"] == gpu]
    if claim.head not in ("", claim.name) and (first := standing(claims()[claim.head], gpu)):
        candidates = [one for one in candidates if one.is_comparable(first)]
    return next((one for one in reversed(candidates) if one.quiet), candidates[-1] if candidates else None)


def table(names: list[str]) -> str:
    """A table of claims, one a line, and how many claims have no rows."""
    listed = [claims()[name] for name in names]
    on_gpu = [claim for claim in listed if claim.gpu]
    gpus = sorted({one.row["gpu"] for claim in on_gpu for one in measurements(claim)} - {GPU})
    pairs = [*((GPU, claim) for claim in listed), *((gpu, claim) for gpu in gpus for claim in on_gpu)]
    standings = [(gpu, claim, standing(claim, gpu)) for gpu, claim in pairs]
    heads = {(gpu, claim.head) for gpu, claim, row in standings if row is not None}
    rows, missing = [], dict.fromkeys((NOT_QUIET, NOT_COMPARABLE), 0)
    for gpu, claim, row in standings:
        if row is not None:
            count = row.row["repeats"] if row.row["repeats"] not in ("", "1") else ""
            passes = f"{row.spread()} ({count})" if row.spread() else count
            rows.append((claim.subject, claim.than, row.value(), passes, row.where()))
            continue
        why = NOT_COMPARABLE if any(measurements(claim)) else NOT_QUIET
        if (gpu, claim.name) in heads:  # a later line of its comparison has rows
            rows.append((claim.subject, claim.than, why, "", ""))
        elif gpu == GPU:
            missing[why] += 1
    text = with_places(("what", "against", "result", "middle of passes (their number)", "on"), rows) if rows else ""
    counts = "; ".join(f"{why}: {count}" for why, count in missing.items() if count)
    return text + (f"\nLines without a result ({counts}) are in `bench/data/README.md`.\n" if counts else "")


def with_places(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table without empty columns, with letters for machine and day."""
    rows = list(rows)
    letters = dict(zip(dict.fromkeys(row[-1] for row in rows if row[-1]), string.ascii_lowercase))
    shown = letters if len(letters) > 1 else {}
    cells = [(*row[:-1], shown.get(row[-1], "")) for row in rows]
    filled = [column for column in zip(head, *cells, strict=True) if any(column[1:])]
    head, *cells = zip(*filled, strict=True)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in cells)]
    explained = "; ".join(f"{letter}: {machine}" if shown else machine for machine, letter in letters.items())
    return "\n".join(lines) + (f"\n\nMeasured on {explained}.\n" if explained else "\n")


def records_table() -> str:
    """Size and time of records of 10 and 100 million scores, by the claims."""
    lines = ["| | 10^7 scores | 10^8 scores |", "|---|--:|--:|"]
    for name in CLAIMS["records"]:
        if name.startswith("ten-"):
            pair = [standing(claims()[other]) for other in (name, name.replace("ten-", "hundred-"))]
            values = (NOT_QUIET if one is None or not one.quiet else one.value() for one in pair)
            lines.append(f"| {claims()[name].subject} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def drift_table() -> str:
    """Differences in half precision from float32, and of batches from single items."""
    rows = [row for row in rows_of("precision") if row["unit"] != "share" and row["tree"] == "clean"]
    newest = {(row["case"], row["unit"], row["variant"]): row for row in rows}.values()
    lines = [
        (f"{row['case']}, {row['unit']}", row["variant"], row["n"], row["p50"],
            row["agreement"].removeprefix("at most "), place_of(row))
        for row in newest
    ]  # fmt: skip
    text = with_places(("what", "compared", "of how many", "middle", "greatest", "on"), lines)
    return text + "".join(f"{note[:1].upper()}{note[1:]}.\n" for note in dict.fromkeys(row["note"] for row in newest))


CORE_HOUR, GPU_HOUR = 0.04, 3.0  # prices in dollars, as examples: the documentation says that they are


def cost_table() -> str:
    """The cost of a million utterances, in proportion to measured figures."""
    each = {
        "PESQ, STOI, DNSMOS and WER of given transcripts, 2.6 s of speech: hours of a core":
            ("whole-codecs-seconds", 2 / 132 / 3600),
        "the same: dollars": ("whole-codecs-seconds", 2 / 132 / 3600 * CORE_HOUR),
        "WER (Whisper large-v3), SIM, UTMOS and DNSMOS in float16, 4.7 s of speech: hours of an H200, "
        "by a run of 1,088": ("gpu-seed", 1 / 1088 / 3600),
        "the same H200: dollars": ("gpu-seed", GPU_HOUR / 1088 / 3600),
        "planning, scheduling and writing: hours of a core": ("million-main", 1 / 1000 / 3600),
        "record with three scores an utterance: GB": ("million-bytes", 1e-9),
        "`report`: minutes": ("ten-report", 1 / 3_333_334 / 60),
        "`compare`: minutes": ("ten-compare", 1 / 3_333_334 / 60),
    }  # fmt: skip
    lines, counts = ["| one system | 10^6 utterances | 10^7 | 10^8 |", "|---|--:|--:|--:|"], (1e6, 1e7, 1e8)
    for label, (claim, factor) in each.items():
        row = standing(claims()[claim])
        values = [NOT_QUIET] * 3 if row is None else [two_digits(float(row.row["p50"]) * factor * n) for n in counts]
        label += f" ({NOT_QUIET})" if row is not None and not row.quiet else ""
        lines.append(f"| {label} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def two_digits(number: float) -> str:
    """Two significant digits with separators: 0.31, 2.4, 1,300."""
    return f"{float(f'{number:.2g}'):,.10g}"


def design_table(stem: str) -> str:
    """The designs of a study with what was counted of each, from the newest rows."""
    rows = [r for r in rows_of(stem) if r["case"].startswith("design: ") and r["tree"] == "clean"]
    newest = {row["case"]: row for row in rows}
    values = {(r["case"], r["unit"]): r["p50"] for r in rows if r["commit"] == newest[r["case"]]["commit"]}
    units = list(dict.fromkeys(unit for _, unit in values))
    lines = []
    for case, row in newest.items():
        cells = (f"{float(values[case, unit]):.3f}" if (case, unit) in values else "–" for unit in units)
        lines.append((case.removeprefix("design: "), *cells, place_of(row)))
    return with_places(("design", *units, "on"), lines)


def block(name: str) -> str:
    """The table between the marks of this name."""
    if name in ("intervals", "gate"):
        return design_table(name)
    builders = {"drift": drift_table, "costs": cost_table, "records": records_table}
    return builders[name]() if name in builders else table(list(CLAIMS[name]))


def sentence(names: str) -> str:
    """A claim's number for a sentence, or the range of several."""
    measurements = [standing(claims()[name.strip()]) for name in names.split(",")]
    if None in measurements:
        return f"({NOT_QUIET})"
    if not all(one.is_comparable(measurements[0]) for one in measurements):
        return f"({NOT_COMPARABLE})"
    values = sorted({one.value() for one in measurements}, key=lambda text: float(text.removesuffix("x").split()[0]))
    shown = values[0] if len(values) == 1 else f"{values[0].removesuffix('x')} to {values[-1]}"
    shown = re.sub(r"(?<=\d)x$", " times", shown)
    return shown if all(one.quiet for one in measurements) else f"{shown} ({NOT_QUIET})"


def written(text: str) -> str:
    """A page with its marked numbers as the rows have them."""
    text = BLOCK.sub(lambda match: match[1] + block(match[2]) + match[3], text)
    return INLINE.sub(lambda match: match[1] + sentence(match[2]) + match[3], text)


DATA_PAGE = f"""<!-- Written by bench/table.py from the rows. Do not edit: run the script. -->
# What was measured

Each file holds the rows of one bench, and each line below the row that stands for a claim. A bench appends rows
(`append_rows` in `bench/common.py`); nobody edits or removes one. The id of a run ends in a digest of its rows, so
`python bench/table.py --check` finds a row that was changed by hand, and git one that was removed.

The newest complete rows of a quiet machine stand for a claim. Quiet means: the load average over one minute was at most
{QUIET_SHARE} of each core before the bench began. Complete means: the row and the one that it is compared with are from
the same run, and both have a median and a spread. Where there are no such rows, the newest complete ones stand in, and
the text says “{NOT_QUIET}”. A row of a changed tree (other than new rows and texts)
stands for nothing. Lines of a table that begin with “the same” are one comparison: their rows have the commit, machine,
size and precision of its first line, unless the claim says that size or precision `varies`.

| claim | file | case | variant, against | run | state |
|---|---|---|---|---|---|"""


def data_page() -> str:
    """data/README.md: the rule, which row stands for which claim, and the runs."""
    lines = [DATA_PAGE]
    for claim in claims().values():
        measurement = standing(claim)
        run = "–" if measurement is None else measurement.row["run"]
        state = NOT_QUIET if measurement is None or not measurement.quiet else f"quiet, load {measurement.row['load']}"
        state = NOT_COMPARABLE if measurement is None and any(measurements(claim)) else state
        sides = claim.variant if claim.against is None else f"{claim.variant}, {claim.against}"
        lines.append(f"| {claim.name} | {claim.stem}.csv | {claim.case} | {sides} | {run} | {state} |")
    return "\n".join(lines) + "\n"


def costs() -> str:
    """codec_bench/metrics/costs.csv: each metric's cost, from its newest quiet row."""
    of: dict[str, dict[str, str]] = {}
    for row in (row for row in rows_of("metrics") if row["tree"] == "clean"):
        if quiet(row) or row["variant"] not in of or not quiet(of[row["variant"]]):
            of[row["variant"]] = row
    lines = [f"{name},{float(of[name]['p50']):.2g}" for name in sorted(of)]
    return "\n".join([",".join(FIELDS), *lines]) + "\n"


DEVICE_STAGES = {
    ("float32", "Speaker"): ("sim",),
    ("float32", "Naturalness"): ("utmos",),
    ("float32", "Quality"): ("dnsmos",),
    ("half", "Recogniser"): ("whisper-torch-encoder", "whisper-torch-decoder"),
    ("half", "Speaker"): ("sim-float16",),
    ("half", "Naturalness"): ("utmos-float16",),
    ("half", "Quality"): ("dnsmos",),
}
"""The cases of gpu_stages.csv that a stage of the virtual clock consists of."""


def costs_id() -> str:
    """The digest of `device_costs()`, as `bench_device.py` writes it into its rows."""
    return hashlib.sha256(device_costs().encode()).hexdigest()[:10]


def device_costs() -> str:
    """tests/golden/device_costs.csv: the newest row of each stage on a GPU."""
    lines = ["precision,stage,batch_s,audio_s,tree,run"]
    batches = [row for row in rows_of("gpu_stages") if (row["variant"], row["gpu"]) == ("batch", GPU)]
    newest = {r["case"]: r for r in sorted(batches, key=lambda r: (r["tree"] == "clean", r["date"]))}
    for (precision, stage), cases in DEVICE_STAGES.items():
        rows = [newest[case] for case in cases if case in newest]
        if len(rows) < len(cases) or len({(row["n"], row["commit"]) for row in rows}) != 1:
            continue
        (audio_s,) = re.findall(r"([0-9.]+) s of audio", rows[0]["note"])
        batch_s = sum(float(row["p50"]) for row in rows)
        lines.append(f"{precision},{stage},{batch_s:.5g},{audio_s},{rows[0]['tree']},{rows[0]['run']}")
    return "\n".join(lines) + "\n"


def pages() -> list[Path]:
    """Texts with measured numbers: the README and hand-written pages."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def unbound(text: str) -> list[str]:
    """Ratios of speed in a text that stand between no marks, each with its line."""
    text = INLINE.sub("", BLOCK.sub("", text))
    lines = re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
    return [f"{match[0]!r} in {line.strip()[:100]!r}" for line in lines for match in UNBOUND.finditer(line)]


def outdated() -> dict[Path, str]:
    """The files that do not say what the rows say, each with the text that does."""
    expected = {page: written(page.read_text("utf-8")) for page in pages()}
    expected |= {common.DATA / "README.md": data_page(), COSTS: costs(), DEVICE_COSTS: device_costs()}
    return {path: text for path, text in expected.items() if not path.exists() or path.read_text("utf-8") != text}


def damaged() -> Iterator[str]:
    """Rows that were changed by hand: since the last commit, or within a run."""
    for line in (git("diff", "--numstat", "HEAD", "--", str(common.DATA / "*.csv")) or "").splitlines():
        _, removed, file = line.split("\t")
        if removed != "0":
            yield f"{file}: {removed} committed rows were changed or removed; restore them"
    for path in sorted(common.DATA.glob("*.csv")):
        runs: dict[str, list[Row]] = {}
        for row in rows_of(path.stem):
            runs.setdefault(row["run"], []).append(row)
        for run, rows in runs.items():
            if run.rpartition("-")[2] != digest(rows):
                wrong_run = f"the rows of run {run} are not those that the bench wrote"
                yield f"bench/data/{path.name}: {wrong_run}; measure it again"


def wrong() -> Iterator[str]:
    """All findings of the check."""
    yield from damaged()
    for path in outdated():
        yield f"{path.relative_to(ROOT)} does not say what the rows say; run `python bench/table.py`"
    for page in pages():
        for ratio in unbound(page.read_text("utf-8")):
            yield f"{page.relative_to(ROOT)}: {ratio} is a measured ratio without a claim in bench/claims.yaml"
    measured = {command["run"].split()[0] for command in CLAIMS["commands"].values()}
    for script in sorted(Path(__file__).parent.glob("bench_*.py")):
        if script.name not in measured:
            yield f"bench/{script.name} has no command in bench/claims.yaml"


def main() -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where text and rows differ")
    if parser.parse_args().check:
        errors = list(wrong())
        sys.stderr.write("".join(f"{line}\n" for line in errors))
        sys.exit(1 if errors else 0)
    for path, text in outdated().items():
        path.write_text(text, "utf-8")
        sys.stderr.write(f"{path.relative_to(ROOT)} written\n")


if __name__ == "__main__":
    main()
