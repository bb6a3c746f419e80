"""Write the pages of docs/ that come from the registries.

`python scripts/write_docs.py` writes them; `--check` writes nothing and exits 1 when a page is not as it should be.

Written are the pages of docs/reference, the tables of columns in docs/export.md and docs/report.md, and of names in
docs/versa.md (each between its two marks), and a page in docs/codecs for each family of codecs that no other page there
mentions. The first line of a written page says that it is written; a page without that line belongs to a person and is
never changed. bench/table.py writes the results of the benches in docs/.
"""

from __future__ import annotations

import argparse
import ast
import csv
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer.main
import typer.testing
import yaml

import codec_bench
from codec_bench import features, metrics, rewards
from codec_bench.api.metric_names import COST
from codec_bench.cli.app import app
from codec_bench.codecs import catalogue
from codec_bench.config import read_config
from codec_bench.config.option import options_of
from codec_bench.config.registry import Spec, load_attribute
from codec_bench.config.request import REQUESTS, Command
from codec_bench.messages.errors import UserError
from codec_bench.metrics.sensitivity import MEASURE, NOTABLE, in_words, shifts_in_spreads
from codec_bench.models import KINDS, ModelRow, list_models
from codec_bench.models.endpoints.accounts import PARTS
from codec_bench.report.result_columns import CSV_COLUMNS, SYSTEM_COLUMNS
from codec_bench.store.rows import TABLE_COLUMNS
from codec_bench.text.rules import get_rule

DOCS = Path(__file__).parents[1] / "docs"
WRITTEN = "<!-- Written by scripts/write_docs.py from the registries. Do not edit: run the script. -->\n"
# With which weights a test compares a metric with its reference, and the head of that column.
WEIGHTS, COMPARISON = ("published", "stand-in"), "weights in the comparison"
# The verbs whose options are declared in a schema, each with its command.
VERBS: dict[str, Command] = {"evaluate": "eval", "score": "score", "run_benchmark": "run", "profile": "profile"}


def pages() -> dict[Path, str]:
    """What each written page should hold."""
    reference = {
        "metrics": metrics_page(),
        "codecs": codecs_page(),
        "benchmarks": benchmarks_page(),
        "model_cards": model_cards_page(),
        "models": models_page(),
        "presets": presets_page(),
        "weights": weights_page(),
        "commands": commands_page(),
        "api": api_page(),
    }
    texts = {DOCS / "reference" / f"{name}.md": WRITTEN + text for name, text in reference.items()}
    columns = [(code(name), column.means) for name, column in TABLE_COLUMNS.items()]
    of_summary = [(code(column.name), column.means) for column in CSV_COLUMNS]
    head = ("column", "what it holds")
    tables = {"columns": table(head, columns), "summary": table(head, of_summary)}
    texts[DOCS / "export.md"] = marked("export.md", **tables)
    rows = [(code(column.name), ", ".join(column.places), column.means) for column in SYSTEM_COLUMNS]
    texts[DOCS / "report.md"] = marked("report.md", beside=table(("column", "where", "content"), rows))
    with (Path(__file__).with_name("versa_names.csv")).open(encoding="utf-8", newline="") as file:
        of_versa = [tuple(row.values()) for row in csv.DictReader(file)]
    head = ("VERSA's configuration", "VERSA's name", "here", "largest difference", "what differs, or why there is none")
    texts[DOCS / "versa.md"] = marked("versa.md", names=table(head, of_versa))
    texts[DOCS / "metrics" / "text_rules.md"] = marked("metrics/text_rules.md", signs=signs_table())
    texts.update(family_pages())
    return texts


def left_over(expected: dict[Path, str]) -> list[Path]:
    """Written pages that nothing asks for any more."""
    return [page for page in DOCS.rglob("*.md") if page not in expected and page.read_text("utf-8").startswith(WRITTEN)]


# --- pieces


def listed(*words: str) -> Any:
    """What `codec-bench WORDS --json` prints, which a reader can repeat."""
    return json.loads(printed(*words))


@cache
def printed(*words: str) -> str:
    """The output of `codec-bench WORDS --json`."""
    done = typer.testing.CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    if done.exit_code:
        sys.exit(f"codec-bench {' '.join(words)} --json ended with {done.exit_code}: {done.output}")
    return str(done.stdout)


def custom_names(kind: str) -> list[dict[str, Any]]:
    """The rows of `codec-bench list KIND`, without those of other packages."""
    foreign = {name for plugin in listed("list", "plugins") for name in plugin["adds"].split(", ")}
    rows = [row for row in listed("list", kind) if row["name"] not in foreign]
    for row in rows:
        if str(row.get("measures") or row.get("what")).startswith("broken:"):
            sys.exit(f"codec-bench list {kind}: {row}")
    return rows


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def plain(text: Any) -> str:
    """Text that is shown as it is, inside of a table too."""
    if isinstance(text, (list, tuple)):
        return ", ".join(plain(one) for one in text)
    text = " ".join(str(text if text is not None else "").split())
    parts = text.split("`")  # text between backticks is already code
    parts[::2] = [re.sub(r"([*<]|(?<!\w)_|_(?!\w))", r"\\\1", piece_of_text) for piece_of_text in parts[::2]]
    return "`".join(parts).replace("|", "\\|")


def marked(page: str, **tables: str) -> str:
    """A hand-written page with new tables, each between two marks."""
    text = (DOCS / page).read_text("utf-8")
    for name, content in tables.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, rest = text.split(begin)
        _, after = rest.split(end)
        text = before + begin + content + end + after
    return text


def code(*texts: Any) -> str:
    """Names in the type of code, joined by commas."""
    return ", ".join("`" + str(text).replace("|", "\\|") + "`" for text in texts if text not in (None, ""))


# --- codecs


def codecs_page() -> str:
    """The table of codec families, one family a row."""
    codecs = custom_names("codecs")
    rows = []
    for name, family in sorted(catalogue.families().items()):
        members = [row for row in codecs if row["name"] in family.variants or row["name"].split("@")[0] == name]
        rates = sorted({rate / 1000 for row in members for rate in row["rates_hz"]})
        frames = sorted({row["frame_rate_hz"] for row in members if row["frame_rate_hz"]})
        kbps = sorted({row["bitrate_bps"] / 1000 for row in members if row["bitrate_bps"]})
        rows.append(
            (
                code(name),
                " ".join(code(variant) for variant in family.variants),
                family.points_text(),
                ", ".join(f"{rate:g}" for rate in rates) if len(rates) < 5 else f"{rates[0]:g} to {rates[-1]:g}",
                ", ".join(map(str, sorted({count for row in members for count in row["channels"]}))),
                ", ".join(f"{rate:.5g}" for rate in frames),
                ", ".join(f"{rate:.3g}" for rate in kbps),
                family.licence.code + (f"; {family.licence.weights}" if family.licence.weights else ""),
            )
        )
    head = (
        "family",
        "variants",
        "points (kbps)",
        "rates (kHz)",
        "channels",
        "frames/s",
        "kbps",
        "licence of code; of weights",
    )
    return (
        "# Codecs\n\n[Names of codecs](../codecs/names.md) says how to name one. `codec-bench show NAME` prints its "
        "facts.\n\n" + table(head, rows)
    )


def family_pages() -> dict[Path, str]:
    """A page for each codec family that no hand-written page names as code."""
    by_hand = [page for page in (DOCS / "codecs").glob("*.md") if page.name != "names.md"]
    texts = [page.read_text("utf-8") for page in by_hand]
    known = "\n".join(text for text in texts if not text.startswith(WRITTEN)).lower()
    return {
        DOCS / "codecs" / f"{name.replace('-', '_')}.md": WRITTEN + family_page(name, family)
        for name, family in sorted(catalogue.families().items())
        if not any(re.search(rf"`{re.escape(word.lower())}(?!\w)", known) for word in (name, *family.variants))
    }


def family_page(name: str, family: Any) -> str:
    """What the registry knows of a family of codecs."""
    rows = [
        (
            code(row["name"]),
            ", ".join(f"{rate:g}" for rate in row["rates_hz"]),
            ", ".join(map(str, row["channels"])),
            f"{row['frame_rate_hz']:.5g}" if row["frame_rate_hz"] else "",
            f"{row['bitrate_bps'] / 1000:.3g}" if row["bitrate_bps"] else "",
        )
        for row in custom_names("codecs")
        if row["name"] in family.variants or row["name"].split("@")[0] == name
    ]
    weights = f"\n\nLicence of the weights: {family.licence.weights}." if family.licence.weights else ""
    points = f"\n\nOperating points after an `@`, in kbps: {family.points_text()}." if family.points_text() else ""
    return (
        f"# {name}\n\n{plain(family.summary)}.\n\n"
        + table(("name", "rates (Hz)", "channels", "frames/s", "kbps"), rows)
        + f"\nDescribed in: {plain(family.paper)}.{points}\n\nLicence of the code: {family.licence.code}.{weights}\n"
    )


# --- reference


def page_of_metric(name: str) -> str:
    """The link to a metric's page: it is in the title, or first in a table."""
    named = re.compile(rf"(# .*|\| )`{re.escape(name)}[`\[]")
    best = min(((index, page) for page, index, line in headings() if named.match(line)), default=None)
    return f"[{best[1]}](../metrics/{best[1]}.md)" if best else ""


@cache
def headings() -> list[tuple[str, int, str]]:
    """Titles and table rows of the metrics' pages: (page, line number, line)."""
    pages = [(page.stem, page.read_text("utf-8")) for page in (DOCS / "metrics").glob("*.md")]
    lines = [(page, index, line) for page, text in pages for index, line in enumerate(text.splitlines())]
    return [one for one in lines if one[2].startswith(("# ", "| `"))]


def languages(count: Any) -> str:
    """A feature's languages, or their number where there are many."""
    return "many" if isinstance(count, str) and count.isdigit() else plain(count)


def moved() -> str:
    """The largest shifts of the metrics by kind of change, in their spreads."""
    known = shifts_in_spreads()
    kinds = list(dict.fromkeys(kind for shifts in known.values() for kind in shifts))

    def cell(shift: float) -> str:
        return f"**{in_words(shift)}**" if shift >= NOTABLE else "" if shift < 0.005 else f"{shift:.2f}"

    return table(
        ("metric", *kinds), [(code(name), *(cell(shifts[kind]) for kind in kinds)) for name, shifts in known.items()]
    )


def not_moved() -> str:
    """Metrics that score clips by a model and have no row of `moved`, by model.

    Each has the command that measures it.
    """
    known = shifts_in_spreads()
    groups: dict[str, str] = {}
    shared: dict[tuple[str, ...], list[str]] = {}
    for row in custom_names("metrics"):
        if row["kind"] == "group":
            groups[row["measures"]] = row["name"]
        elif row["name"] not in known:
            with suppress(UserError):  # it has no form without brackets
                metric = metrics.build_metric(row["name"])
                if metric.estimate_features and metric.aggregate in ("mean", "ratio"):
                    shared.setdefault(metric.estimate_features, []).append(row["name"])
    requests = {",".join(sorted(members.split(", "))): name for members, name in groups.items()}
    rows = []
    for names in shared.values():
        joined = ",".join(sorted(names))
        rows.append((code(*names), code(MEASURE.format(requests.get(joined, joined)))))
    return table(("not measured: no weights at hand", "the command that measures them"), rows)


def metrics_page() -> str:
    """The table of metrics and the table of features."""
    kinds = {
        "single": "the estimate",
        "pair": "estimate and reference",
        "text": "a transcript of the estimate, and a text",
        "set": "all items together",
    }
    rows, groups = [], []
    for row in custom_names("metrics"):
        if row["kind"] == "group":
            groups.append((code(row["name"]), code(*row["measures"].split(", "))))
            continue
        variants = row.get("variants") or ""
        rows.append(
            (
                code(row["name"]),
                plain(row["measures"]),
                kinds.get(row["kind"], row["kind"]),
                row["better"],
                row["unit"],
                code(*(f"[{variant}]" for variant in variants.split(", ") if variant)),
                "" if row[COST] is None else f"{row[COST]:g}",
                page_of_metric(row["name"]),
            )
        )
    marks = compared(DOCS.parent / "tests")
    computed = [
        (code(row["name"]), plain(row["what"]), languages(row["languages"]), weights_words(row["name"], marks))
        for row in custom_names("features")
    ]
    rules = [(code(row["name"]), plain(row["what"])) for row in custom_names("rules")]
    head = ("name", "what it measures", "what it reads", "better", "unit", "variants", COST, "page")
    return (
        "# Metrics\n\n"
        "The names that `--metrics` takes, as `codec-bench list metrics` lists them. An error rate needs the name of "
        "a\n"
        "recogniser in brackets: `wer[whisper-large-v3]`. `codec-bench show NAME` prints the protocol of a metric, "
        "its\n"
        "paper and the implementation that it agrees with. The metrics of the answers of a model (accuracy, BLEU and\n"
        "others) are on the page [answers](../metrics/answers.md).\n\n"
        f"“{COST}” is the processor time that a metric alone takes for an hour of sound, in seconds, measured on two "
        f"cores of\n"
        "an AMD EPYC with the embedded speech; of error rates with Whisper tiny.en. Metrics that share a model share "
        "most of it. It is\n"
        "empty where the weights were not at hand.\n\n" + table(head, rows) + "\n## Where they come from\n\n"
        "The licence is that of the weights that a metric reads in its default form. Metrics without one read no "
        "weights, or their\n"
        "brackets name the model ([weights](weights.md)). Where no paper is named, the page of the metric has the "
        "definition.\n\n"
        "A test compares each metric with what it agrees with, and both are given the signals that the metric reads: "
        "one channel, at its rate\n"
        "([how they are made](../data.md#full-scale-and-silence)). The last column says which weights that test uses:\n"
        "\n"
        "- *published*: the weights that people use.\n"
        "- *stand-in*: made-up weights in the published layout, given to both programs. Such a test shows that the "
        "arithmetic is\n"
        "  the same. It does not show that the published file loads, nor what scores it gives.\n"
        "- *published, stand-in*: both. The test with published weights is skipped on a machine that lacks them.\n"
        "- *none needed*: the metric reads no weights, or the test gives it what a model would have computed. The "
        "model in the\n"
        "  brackets has a separate row under [features](#features).\n\n"
        "The column is read from the marks of the tests (`@pytest.mark.compares`). A metric without such a test cannot "
        "be listed.\n\n"
        + table(("metrics", "paper", "agrees with", "licence of the weights", COMPARISON), sources(marks))
        + "\n## What moves them\n\n"
        "How far a metric moves when nothing that a listener would mind has changed, in units of its spread over five "
        "codecs: 1 means that the\n"
        "change moves it as far as these codecs typically differ. [Stability](../stability.md) says how it is "
        "measured.\n\n"
        + moved()
        + "\nThe weights of these metrics could not be had where the table was made. Made-up weights would say nothing "
        "of the metric, so there are no\n"
        "rows for them. Each command needs the weights alone (`codec-bench weights fetch NAME`) and takes the embedded "
        "clips. Add `--data FOLDER` for\n"
        "`emotion_accuracy`, which needs clips whose ids name an emotion, and for `watermark_kept` and "
        "`watermark_bits`, which need clips that carry a\n"
        'mark. Error rates are measured with the recogniser in brackets (`"wer[whisper-small]"`). Statistics of sets '
        "have no value for a clip, and\n"
        "`bitrate` hears no sound.\n\n"
        + not_moved()
        + "\n## Groups\n\nA group asks for several metrics at once.\n\n"
        + table(("name", "metrics"), groups)
        + "\n## Features\n\n"
        "A feature is something expensive that one model computes once per signal, and that several metrics share.\n"
        "Recognisers (features with languages) and speaker encoders are named in brackets: `wer[NAME]`, `sim[NAME]`.\n"
        "\n" + table(("name", "what it is", "languages", COMPARISON), computed) + "\n## Rules for texts\n\n"
        "A rule says how texts are made comparable before errors are counted. It is named after an `@`:\n"
        "`wer[whisper-large-v3]@seed-tts`. [Error rates](../metrics/error_rate.md) describes them.\n\n"
        + table(("name", "what it does"), rules)
    )


def sources(marks: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """The metrics' sources. Metrics with the same source share a row."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for name in (row["name"] for row in custom_names("metrics") if row["kind"] != "group"):
        read: list[str] = []
        try:
            metric = metrics.build_metric(name)
            read = [Spec.parse(feature).name for feature in (*metric.estimate_features, *metric.reference_features)]
        except UserError:  # it has no form without brackets
            metric = metrics.REGISTRY.resolve(name)
        facts = (metric.paper, metric.source, ", ".join(metrics.licences_of(name)), weights_words(name, marks, read))
        shared.setdefault(facts, []).append(name)
    return [(code(*names), *map(plain, facts)) for facts, names in shared.items()]


def compared(tests: Path) -> dict[str, set[str]]:
    """The weights with which metrics and features were compared, by the tests' marks.

    The tests are read and not run. A name in a mark may be a pattern: `whisper-*` stands for every feature of such a
    name.
    """
    names = [*metrics.REGISTRY.names(), *features.REGISTRY.names()]
    by_name: dict[str, set[str]] = {}
    for file in sorted(tests.rglob("test_*.py")):
        text = file.read_text("utf-8")
        for test in ast.walk(ast.parse(text)) if "compares" in text else ():
            for mark in test.decorator_list if isinstance(test, ast.FunctionDef) else ():
                if not (isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.compares"):
                    continue
                weights = ast.literal_eval({option.arg: option.value for option in mark.keywords}["weights"])
                for pattern in map(ast.literal_eval, mark.args):
                    meant = [name for name in names if fnmatchcase(name, pattern)]
                    if not meant or weights not in (*WEIGHTS, "none"):
                        sys.exit(f"{file}: {test.name} is marked as a comparison of {pattern} with weights {weights}")
                    for name in meant:
                        by_name.setdefault(name, set()).add(weights)
    return by_name


def weights_words(name: str, marks: dict[str, set[str]], read: Sequence[str] = ()) -> str:
    """The weights with which a metric or feature was compared, with its features'."""
    known = set().union(*(marks.get(one, set()) for one in (name, *read)))
    if not known or (known == {"none"} and read and metrics.licences_of(name)):
        sys.exit(f"no test with the mark `compares` says with which weights {name} was compared (CONTRIBUTING.md)")
    return ", ".join(word for word in WEIGHTS if word in known) or "none needed"


def benchmarks_page() -> str:
    """The tables of benchmarks, suites, prompts, rubrics and steps."""
    by_category: dict[str, list[dict[str, Any]]] = {}
    for row in custom_names("benchmarks"):
        by_category.setdefault(row["category"], []).append(row)
    parts = [
        "# Benchmarks\n\n"
        "The names that `codec-bench run` takes, as `codec-bench list benchmarks` lists them. `codec-bench show NAME`\n"
        "prints a definition with its data, prompt and published numbers. A number of questions or a licence that the "
        "publisher\n"
        "of the data does not state is unknown. How to define a custom benchmark: "
        "[definitions](../definitions.md).\n"
    ]
    head = ("name", "language", "questions", "answer", "primary metric", "licence of the data")
    for category, members in sorted(by_category.items()):
        rows = [
            (
                code(row["name"]),
                row["language"],
                row["questions"],
                row["gives"],
                code(row["primary"]),
                plain(row["licence"]),
            )
            for row in members
        ]
        parts.append(f"\n## {category}\n\n" + table(head, rows))
    suites = [
        (code(row["name"]), row["benchmarks"], plain(row["what"]), code(*listed("show", row["name"])["benchmarks"]))
        for row in custom_names("suites")
    ]
    prompts = [
        (code(row["name"]), plain(row["what"]), code(*row.get("variants", "").split(", ")))
        for row in custom_names("prompts")
    ]
    rubrics = [(code(row["name"]), row["range"], plain(row["what"])) for row in custom_names("rubrics")]
    steps = [(code(row["name"]), plain(row["what"])) for row in custom_names("steps")]
    return "".join(
        [
            *parts,
            "\n## Suites\n\nA suite is a list of benchmarks with a name: `codec-bench run --suite NAME`.\n\n",
            table(("name", "benchmarks", "what it covers", "which"), suites),
            "\n## Rubrics\n\nA rubric defines the question to a judge, a model that rates answers: `rating[NAME]`.\n\n",
            table(("name", "range", "what it rates"), rubrics),
            "\n## Prompts\n\nA definition names one of these prompts or writes its own. Some models and families have "
            "a variant.\n\n",
            table(("name", "what it asks", "variants"), prompts),
            "\n## Steps of post-processing\n\nA step reads something out of an answer before it is scored. All of them "
            "are\n"
            "described on the page [answers](../metrics/answers.md#post-processing).\n\n",
            table(("name", "what it does"), steps),
        ]
    )


SIGNS = (
    ("Arabic vowel signs", "ar", "مُحَمَّد"), ("Arabic tatweel", "ar", "محـــمد"), ("danda", "hi", "राम। श्याम॥"),
    ("Devanagari digits", "hi", "कमरा ७"), ("Thai digits", "th", "ห้อง ๗"), ("full-width letters", "ja", "ＡＢＣ駅"),
    ("emoji", "en", "well done 👍🏽"), ("joined emoji", "en", "the 👩‍👩‍👧 came"),
    ("a tag in square brackets", "en", "[laughs] well"), ("a tag in angle brackets", "en", "<happy>well</happy>"),
    ("a tag in round brackets", "en", "(sighs) well"), ("a tag in round brackets", "zh", "(叹气) 好"),
    ("an accent", "en", "a naïve café"),
    ("a mark of direction", "he", "שלום\u200f עולם"),
)  # fmt: skip
"""What people meet in texts: what it is, the language, and a text with it."""
SHOWN_RULES = ("by-language", "whisper-en", "whisper-basic", "untagged/by-language")


def signs_table() -> str:
    """Show texts with signs that are not spoken, as each of some rules normalises them."""
    rows = []
    for label, language, text in SIGNS:
        left = []
        for name in SHOWN_RULES:
            (compared,) = get_rule(name).compare(reference=[text], estimate=[""], language=[language])
            unknown = compared.note is not None and compared.note.code == "unknown_language"
            shown = compared.reference.replace("\u200d", "[U+200D]").replace("\u200f", "[U+200F]")
            left.append("not its language" if unknown else code(shown) or "nothing")
        rows.append((label, language, code(text), *left))
    return table(("what", "language", "text", *map(code, SHOWN_RULES)), rows)


def model_cards_page() -> str:
    """What model cards print of sound, and what of it is defined here."""
    benchmarks, suites = ([row["name"] for row in custom_names(kind)] for kind in ("benchmarks", "suites"))
    held = codec_bench.show("model-card-2026")["benchmarks"]
    parts = [
        "# What model cards print\n\n"
        "The cards of 2025 and 2026 print scores on sets of sound. These tables say under which name each is defined "
        "here, or why it is not.\n"
        "`codec-bench run --suite model-card-2026 --model NAME` runs what is defined, and fills one row of such a "
        "table for a model of yours. FLEURS in\n"
        "all of its languages and the Open ASR leaderboard are separate suites, which the tables name.\n"
        "The README of each benchmark states how a number here compares with a published one.\n"
    ]
    for card in yaml.safe_load(Path(__file__).with_name("model_cards.yaml").read_text("utf-8")):
        rows = []
        for printed, names in card["have"].items():
            for name in names:
                matches = [one for one in benchmarks if fnmatchcase(one, name)]
                if not matches and name not in suites:
                    sys.exit(f"scripts/model_cards.yaml: {card['card']}: there is no benchmark or suite '{name}'")
                if absent := [one for one in matches if one not in held]:
                    sys.exit(
                        f"scripts/model_cards.yaml: {card['card']}: the suite model-card-2026 lacks {', '.join(absent)}"
                    )
            rows.append((plain(printed), code(*names)))
        rows += [(plain(printed), f"not defined: {plain(why)}") for printed, why in card.get("lack", {}).items()]
        parts.append(f"\n## {card['card']}\n\nSource: {card['source']}.\n\n" + table(("what it prints", "here"), rows))
    return "".join(parts)


def models_page() -> str:
    """The table of models."""
    rows = [
        (
            code(row["name"]),
            plain(row["what"]),
            code(row["reached by"]),
            plain(row.get("takes", "")),
            plain(row.get("gives", "")),
            plain(row.get("weights", "")),
        )
        for row in custom_names("models")
    ]
    models = list_models()
    ends = [
        (
            code(row.name), plain(row.served.at), str(row.served.until or "not announced"),
            code(row.served.successor) if row.served.successor else "", plain(row.served.source),
            str(row.served.looked_up),
        )
        for row in models if row.served is not None
    ]  # fmt: skip
    return (
        "# Models\n\n"
        "The names that `--model` and `--judge` take, as `codec-bench list models` lists them. A custom model is "
        "a\n"
        "class in a file (`./mine.py:MyModel`) or a YAML file (`./mine.yaml`, see [isolated](../isolated.md)).\n\n"
        + table(("name", "what it is", "reached by", "takes", "gives", "licence of the weights"), rows)
        + "\n## How long services serve them\n\nWhat the vendors announced, and when it was looked up. `run` refuses a "
        "model"
        " that is shut down, at the address of its\nvendor unless `--anyway` is set; its recorded answers can always "
        "be"
        " scored. `validate NAME` notes a shutdown from 60\ndays before. Models that anybody can serve have no such "
        "day.\n\n"
        + table(("name", "service", "until", "successor", "source", "looked up"), ends)
        + prices_table(models)
        + checked_tables(models)
    )


def prices_table(models: Sequence[ModelRow]) -> str:
    """What vendors charge, as the configs say."""
    rows = [
        (
            code(row.name), *(row.prices.get(kind, "") for kind in PARTS), str(row.prices.get("until", "")),
            plain(row.prices.get("source", "")), str(row.prices.get("date", "")),
        )
        for row in models if row.prices is not None
    ]  # fmt: skip
    missing = [row.name for row in models if row.prices is None and row.served is not None]
    return (
        "\n## What they cost\n\nUS dollars for a million tokens, a minute of sound that is sent, or a million "
        "characters that"
        " are spoken; audio tokens\nwithout a separate price cost as much as text. `--max-cost-usd` and the costs "
        "in"
        " reports go by these, `--batch` by half of\nthem. Another model or address has no prices until they are set:"
        " `--set NAME.prices='{input: 1, output: 4}'`. Prices in other\n"
        "currencies, and those that depend on a subscription or"
        " were not found at the vendor, are excluded. "
        f"No prices are known of {code(*missing)}.\n\n" + table(("name", *PARTS, "until", "source", "looked up"), rows)
    )


def checked_tables(models: Sequence[ModelRow]) -> str:
    """What the models' adapters were checked against, and where facts come from."""
    ways = [
        (code(kind), plain(checked))
        for kind, path in KINDS.items()
        if (checked := getattr(load_attribute(path), "checked", ""))
    ]
    facts = [(code(row.name), plain(row.checked.source), str(row.checked.looked_up)) for row in models if row.checked]
    # Recognisers rest on checkpoints of their own page, cascades on models of this one, and a way to any model names
    # none.
    named = {
        row.name for row in models if {"model", "weights", "load"} & read_config("model", row.name)["options"].keys()
    }
    others = [row.name for row in models if row.checked is None and row.served is None and row.name in named]
    return (
        "\n## What was checked\n\nThese were not tried with a key of the vendor. What is sent fits the types or the "
        "documentation"
        " that the vendor publishes, and what\nthe types write is read.\n\n"
        + table(("reached by", "checked against"), ways)
        + "\nWhere the facts of models with open weights were read, and what was not found there. What vLLM serves is "
        "what its"
        " registry lists\n(vllm/model_executor/models/registry.py 0002bff). Recognisers of this process rest on their"
        " [checkpoints](weights.md), and cascades on\nother models.\n\n"
        + table(("name", "where", "looked up"), facts)
        + (f"\nNot looked up: {code(*others)}.\n" if others else "")
    )


def presets_page() -> str:
    """What each preset asks for."""
    parts = [
        "# Presets\n\nA preset is a list of metrics with a name: `codec-bench eval --preset NAME`. `--metrics` adds "
        "further ones.\n"
    ]
    for row in custom_names("presets"):
        preset = read_config("preset", row["name"])
        metrics = "".join(f"- {code(metric)}\n" for metric in preset["metrics"])
        codecs = f"Codecs: {code(*preset['codecs'])}.\n\n" if "codecs" in preset else ""
        parts.append(f"\n## {row['name']}\n\n{plain(row['summary'])}\n\n{codecs}{metrics}")
    return "".join(parts)


def weights_page() -> str:
    """The table of checkpoints."""
    rows = []
    for row in listed("weights", "list"):
        sources = [row["hub"], row["modelscope"] and f"{row['modelscope']} (ModelScope)"]
        urls = [file["url"].split("/")[2] for file in row["files"] if file["url"]]
        origins = [*filter(None, sources), *dict.fromkeys(urls), *(["by hand"] if row["manual"] else [])]
        licence = row["licence"] + (" (non-commercial)" if row["non_commercial"] else "")
        size = row["size"] or row["about"]
        size = f"{'' if row['size'] else 'about '}{size / 1e6:,.0f} MB" if size else ""
        rows.append(
            (code(row["name"]), plain(row["summary"]), plain(origins), size, plain(licence), code(*row["used_by"]))
        )
    return (
        "# Weights\n\n"
        "The checkpoints that `codec-bench weights fetch NAME` gets. A size stands here where a source states it.\n"
        "[Weights](../weights.md) says where they are looked for and how they are checked.\n\n"
        + table(("name", "what it is", "source", "size", "licence", "used by"), rows)
    )


# --- commands


def commands_page() -> str:
    """Every command with its options, from the program's own help."""
    parts = [
        "# Commands\n\n"
        "What `codec-bench COMMAND --help` prints. Data goes to standard output and everything else to standard "
        "error.\n"
        "The exit code is 0 when the command succeeded, 2 when the input needs a correction, and 3 when it "
        "finished\n"
        "and some items failed.\n"
    ]
    for words, command in commands(typer.main.get_command(app), ()):
        parts.append(f"\n## codec-bench {' '.join(words)}\n\n{plain(command.help)}\n")
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
        usage = " ".join(argument_word(one) for one in arguments)
        parts.append(f"\n```text\ncodec-bench {' '.join(words)}{' ' + usage if usage else ''} [OPTIONS]\n```\n")
        rows = [(code(argument_word(one)), plain(one.help), default(one)) for one in arguments]
        rows += [(option_word(one), plain(one.help), default(one)) for one in options]
        if rows:
            parts.append("\n" + table(("argument or option", "what it does", "default"), rows))
    return "".join(parts)


def commands(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands below a group, in the order of its `--help`."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


def argument_word(one: Any) -> str:
    """An argument as a usage line shows it."""
    word = one.name.upper() + ("..." if one.nargs == -1 else "")
    return word if one.required else f"[{word}]"


def option_word(one: Any) -> str:
    """An option with its other spellings."""
    return " ".join(code(spelling) for spelling in [*one.opts, *one.secondary_opts])


def default(one: Any) -> str:
    """Return the default of an option."""
    if one.required:
        return "required"
    if one.default is None or one.default is False:
        return ""
    if one.default is True:
        return code(one.opts[0])
    return code(one.default)


# --- the public API


def api_page() -> str:
    """The names of the package and where the site shows their docstrings."""
    functions = [n for n in codec_bench.__all__ if inspect.isfunction(getattr(codec_bench, n))]
    classes = [n for n in codec_bench.__all__ if n not in functions]

    def public(name: str) -> str:
        # A module of the same name would be described in its place: the home of the definition is unambiguous.
        home = getattr(codec_bench, name).__module__ if find_spec(f"codec_bench.{name}") else "codec_bench"
        return f"{home}.{name}"

    def row(path: str) -> tuple[str, str]:
        module, _, name = path.rpartition(".")
        item = getattr(__import__(module, fromlist=[name]), name)
        return f"[{code(name)}](#{path})", plain((inspect.getdoc(item) or "").split("\n\n")[0])

    def section(title: str, text: str, paths: Sequence[str]) -> str:
        entries = "".join(f"\n::: {path}\n{arguments(path.rpartition('.')[2])}" for path in paths)
        return f"\n## {title}\n\n{text}\n\n{table(('name', 'what it is'), [row(path) for path in paths])}{entries}"

    return (
        "# Python\n\n"
        "`import codec_bench` gives the names below and loads no large package; a name is loaded when it is first "
        "used. On the\n"
        "site each table is followed by the full description of its names. In a terminal the same text is printed by\n"
        '`python -c "import codec_bench; help(codec_bench.evaluate)"`.\n'
        + section("Functions", "`from codec_bench import NAME`", [public(name) for name in functions])
        + section("Classes", "`from codec_bench import NAME`", [public(name) for name in classes])
        + section(
            "Rewards", "`from codec_bench.rewards import NAME`", [f"codec_bench.rewards.{n}" for n in rewards.__all__]
        )
    )


def arguments(name: str) -> str:
    """A verb's arguments by its schema, which the site cannot read from sources."""
    if name not in VERBS:
        return ""
    parameters = inspect.signature(getattr(codec_bench, name)).parameters
    rows = [
        (code(one.there), plain(one.python or one.help), "" if one.default in (..., None, "") else code(one.default))
        for one in options_of(REQUESTS[VERBS[name]]).values()
        if one.of == "verb" and one.there in parameters
    ]
    return "\n" + table(("argument", "what it is", "default"), rows)


# --- the built site


def loads(site: Path) -> list[str]:
    """Addresses on other hosts that a built site would load, with the files."""
    loaded = []
    tag = re.compile(r"""<(?:script|img|iframe|audio|video|source|embed|link)\b[^>]*?\b(?:src|href)=["']?([^"'\s>]+)""")
    style = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")
    for file in sorted(site.rglob("*")):
        pattern = {".html": tag, ".css": style}.get(file.suffix)
        if pattern is not None:
            targets = pattern.findall(file.read_text("utf-8"))
            loaded += [f"{file}: {one}" for one in targets if re.match(r"(https?:)?//", one)]
    return loaded


def main() -> None:
    """Write the pages; `--check` compares them, `--site` checks a built site."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is out of date")
    parser.add_argument("--site", type=Path, help="only check that this built site loads nothing from another host")
    options = parser.parse_args()
    if options.site is not None:
        if not (options.site / "index.html").is_file():
            sys.exit(f"{options.site} is no built site: it has no index.html")
        elsewhere = loads(options.site)
        sys.exit("loaded from another host:\n" + "\n".join(elsewhere) if elsewhere else 0)
    expected = pages()
    late = [page for page, text in expected.items() if not page.is_file() or page.read_text("utf-8") != text]
    late += left_over(expected)
    if options.check:
        names = ", ".join(str(page.relative_to(DOCS.parent)) for page in sorted(late))
        sys.exit(f"out of date: {names}; run: python scripts/write_docs.py" if late else 0)
    for page in late:
        if page in expected:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(expected[page], "utf-8")
        else:
            page.unlink()
        print(page.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
