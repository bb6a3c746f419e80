"""`codec-bench listen export|import`: listening and reading tests for people."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.config.option import SEVERAL
from codec_bench.messages.errors import UserError, on_disk
from codec_bench.terminal.groups import command_group
from codec_bench.terminal.options import By, Json
from codec_bench.terminal.request import columns

if TYPE_CHECKING:
    from codec_bench.apps.listening.outcome import ListeningOutcome, SystemValue

listen_app = command_group("listen", "Make listening tests for people, read the answers.")


@listen_app.command("export")
def export(
    runs: Annotated[list[Path], typer.Argument(help="One run folder or several: of codecs, or of one benchmark.")],
    kind: Annotated[str,
        typer.Option("--kind", help="mushra, bs1116, rating, dcr, ccr, cmos, p835, p804, abx, preference, options or "
                                    "review.")] = "mushra",
    out: Annotated[Path | None,
        typer.Option("--out", help="The page, or a folder for webMUSHRA. The key gets its name with .key.json. "
                                   "Default: listening/KIND.html in the first run.")] = None,
    form: Annotated[str,
        typer.Option("--format", help="page, or webmushra for a configuration with its sounds.")] = "page",
    systems: Annotated[str | None, typer.Option("--systems", help="Only these, with commas. Default: all."),
        SEVERAL] = None,
    items: Annotated[int, typer.Option("--items", help="How many items count.")] = 20,
    training: Annotated[int, typer.Option("--training", help="How many further items are for practice.")] = 0,
    repeats: Annotated[int, typer.Option("--repeats", help="How many trials are shown twice.")] = 0,
    by: By = None,
    reference: Annotated[bool | None,
        typer.Option("--with-reference/--without-reference", help="Whether the reference can be played. Default: for "
                                                                  "mushra and preference.")] = None,
    anchors: Annotated[str,
        typer.Option("--anchors", help="Anchors of a MUSHRA test: 3.5k, 7k, both with a comma, or nothing."),
        SEVERAL] = "3.5k,7k",
    scale: Annotated[str | None, typer.Option("--scale", help="Scale of a rating: 0-5 (the default) or 1-5.")] = None,
    audio: Annotated[list[str] | None,
        typer.Option("--audio", help="SYSTEM=FOLDER: the audio of a system that the run did not keep.")] = None,
    longest_s: Annotated[float | None,
        typer.Option("--longest-s", help="Leave out items with a longer reference. Default: 12 for mushra, else no "
                                         "limit.")] = None,
    sound_mb: Annotated[float, typer.Option("--sound-mb", help="The most megabytes of sound in the page.")] = 100.0,
    title: Annotated[str, typer.Option("--title", help="What raters see above the instructions.")] = "Listening test",
    instructions: Annotated[Path | None,
        typer.Option("--instructions", help="A text file in place of the kind's own instructions.")] = None,
    checks: Annotated[str,
        typer.Option("--checks", help="Before the test: qualification, hearing, headphones, environment, with commas."),
        SEVERAL] = "",
    gold: Annotated[Path | None,
        typer.Option("--gold", help="A CSV of gold questions: audio, and answer or a column for each scale.")] = None,
    traps: Annotated[int,
        typer.Option("--traps", help="How many sounds break off into beeps, whose number is the answer.")] = 0,
    session: Annotated[int | None,
        typer.Option("--session", help="Trials between breaks. Default: no breaks.")] = None,
    session_minutes: Annotated[float | None,
        typer.Option("--session-minutes", help="Minutes after which a rater gets a break, at the end of a "
                                               "trial. Default: never.")] = None,
    digits: Annotated[Path | None,
        typer.Option("--digits", help="A folder of recorded digits for the check of hearing: sound files named 0 to 9, "
                                      "in the raters' language. Default: English ones.")] = None,
    loudness_lufs: Annotated[float | None,
        typer.Option("--loudness-lufs", help="Bring all sounds to this loudness (ITU-R BS.1770). Default: no level is "
                                             "changed.")] = None,
    screening: Annotated[str | None,
        typer.Option("--screening", help="Rules that exclude raters, named before they answer; none for "
                                         "none. Default: those of the kind.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw of items and of the orders.")] = 0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Write a page on which people listen and rate, and its key of systems."""
    from codec_bench.apps.listening.api import export_listening
    from codec_bench.terminal.output import print_json, talk

    sheet = export_listening(
        runs=runs, kind=kind, out=out, form=form, systems=systems, items=items, training=training, repeats=repeats,
        by=columns(by), reference=reference, anchors=anchors, scale=scale, audio=_parse_folders(audio or []),
        longest_s=longest_s,
        sound_mb=sound_mb, title=title, instructions=_text(instructions), checks=checks, gold=gold, traps=traps,
        session=session, session_minutes=session_minutes, digits=digits, loudness_lufs=loudness_lufs,
        screening=screening, seed=seed,
    )  # fmt: skip
    counts = f"{sheet.trials - sheet.training:,} trials about {sheet.items:,} items"
    counts += f", with {sheet.repeats:,} shown a second time" if sheet.repeats else ""
    counts += f", after {sheet.training:,} for practice" if sheet.training else ""
    talk(f"{counts}; {sheet.sound_mb:.1f} MB of sound ({sheet.sound}), {sheet.page_mb:.1f} MB in all")
    for why, count in sheet.left_out.items():
        talk(f"{count:,} item{'s' if count != 1 else ''} excluded: {why}")
    for note in sheet.notes:
        talk(note)
    talk(f"key, which raters must not see: {sheet.key}")
    if as_json:
        print_json(sheet.as_dict())
    else:
        sys.stdout.write(f"{sheet.page}\n")


def _parse_folders(texts: Sequence[str]) -> dict[str, str]:
    """Parse `NAME=FOLDER` texts."""
    folders = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder):
            raise UserError("audio_form", text=text, hint="for example --audio generated=tts/")
        folders[name] = folder
    return folders


def _text(path: Path | None) -> str | None:
    if path is None:
        return None
    with on_disk("file_not_readable", path=path):
        return path.read_text("utf-8-sig")


@listen_app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Files that the page saved, or webMUSHRA's mushra.csv.")],
    key: Annotated[Path | None, typer.Option("--key", help="The key of the test.")] = None,
    run: Annotated[Path | None,
        typer.Option("--run", help="The run folder that the page was written into, in place of --key.")] = None,
    out: Annotated[Path | None,
        typer.Option("--out", help="A CSV for the ratings. Default: ratings.csv next to the first file.")] = None,
    screening: Annotated[str | None,
        typer.Option("--screening", help="Rules that exclude raters, or none. Default: those named when the "
                                         "test was written.")] = None,
    keep: Annotated[str,
        typer.Option("--keep", help="What counts all the same: edited, screened, or both with a comma."), SEVERAL] = "",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Read the answers of raters:

    MOS, DMOS, MUSHRA scores or preferences with intervals; exits with 3 if something was unusable.
    """
    from codec_bench.apps.listening.answers import REFUSED
    from codec_bench.apps.listening.api import import_listening
    from codec_bench.terminal.output import print_json, talk

    outcome = import_listening(
        files, key=key, run=run, screening=screening, keep=keep, csv=out or files[0].parent / "ratings.csv"
    )
    if as_json:
        print_json(outcome.as_dict())
    else:
        _print(outcome)
    talk(f"{len(outcome.ratings):,} ratings: {outcome.csv}")
    if any(problem.what in REFUSED for problem in outcome.problems):
        raise typer.Exit(3)


def _print(outcome: ListeningOutcome) -> None:
    """Print the tables and notes of an outcome."""
    from codec_bench.report.pairwise_preferences import strength_rows
    from codec_bench.terminal.output import console, table

    out = console()
    pairwise, several = any(one.other for one in outcome.systems), any(one.scale for one in outcome.systems)
    first = [*(["scale"] if several else []), "system", *(["other"] if pairwise else [])]
    heads = [*first, outcome.measure, "95 %", "over raters", "over items", "ratings", "raters", "items"]  # fmt: skip
    extra = _extra(outcome)
    rows = [
        [*([one.scale] if several else []), one.system, *([one.other] if pairwise else []), *_numbers(one, outcome),
            one.n, one.raters, one.items, *(cell(one) for _, cell in extra)]
        for one in outcome.systems
    ]  # fmt: skip
    heads += [name for name, _ in extra]
    out.print(table(heads, rows, numeric=heads[len(first) :]))
    if outcome.pairs:
        names = (*(["scale"] if several else []), "A", "B", "A − B", "95 %", "p", "p (Holm)", "pairs")
        pairs = [(*([pair.scale] if several else []), *_pair(pair)) for pair in outcome.pairs]
        out.print(table(names, pairs, numeric=names[-5:]))
    if outcome.strengths is not None and outcome.strengths.systems:
        of_strength, strong = strength_rows(outcome.strengths)
        out.print(table(of_strength, strong, numeric=of_strength[1:]))
    if outcome.first_preferred is not None:
        value, over, *_ = _numbers(outcome.first_preferred, outcome)
        out.print(f"shown as A and preferred: {value} {over} of {outcome.first_preferred.n} choices without ties")
    names = ("rater", "answered", "of", "minutes", "repeated", "repeats apart by", "excluded because", "marked because")
    facts = [
        (one.rater, one.answered, one.asked, f"{one.minutes:.1f}", one.repeats or "", _number(one.repeat_difference, 2),
            "; ".join(one.left_out), "; ".join(one.marked))
        for one in outcome.raters
    ]  # fmt: skip
    out.print(table(names, facts, numeric=names[1:6]))
    if outcome.problems:
        seen = [(one.what, one.count, one.file, one.rater, one.detail) for one in outcome.problems]
        out.print(table(("problem", "count", "file", "rater", "what"), seen, numeric=("count",)))
    for note in _notes(outcome):
        out.print(note)


def _extra(outcome: ListeningOutcome) -> list[tuple[str, Any]]:
    """Return further columns of the table as (heading, function of a value)."""
    from codec_bench.apps.listening.kinds import kind_of
    from codec_bench.report.numbers import probability

    columns: list[tuple[str, Any]] = []
    if outcome.kind == "mushra":
        columns.append(("rated below the hidden reference by", lambda one: _number(one.below_reference, 1)))
    kind = kind_of(outcome.kind)
    if kind.answer == "choice":
        which = "right, wrong" if kind.exact else "wins, losses, ties"
        columns.append((which, lambda one: ", ".join(str(n) for n in (one.choices or {}).values())))
    if kind.has_sides or kind.difference:
        p = "exact p" if kind.exact else "p"
        columns += [
            (p, lambda one: probability(one.exact_p if kind.exact else one.test.p if one.test else None)),
            ("p (Holm)", lambda one: probability(one.p_holm)),
        ]
    if outcome.kind == "review":
        columns.append(
            ("decisions", lambda one: ", ".join(f"{choice} {n}" for choice, n in (one.choices or {}).items()))
        )
    if any(one.uncounted is not None for one in outcome.systems):
        columns.append(("with excluded raters", lambda one: _number(one.uncounted, 2)))
    return columns


def _numbers(one: SystemValue, outcome: ListeningOutcome) -> tuple[str, ...]:
    """Format a value with its intervals: crossed, over raters and over items."""
    from codec_bench.apps.listening.kinds import kind_of

    places = kind_of(outcome.kind).places
    intervals = (one.interval, one.over_raters, one.over_items)
    return _number(one.value, places), *(_ends(interval.ends, places) for interval in intervals)


def _pair(pair: Any) -> tuple[Any, ...]:
    """Format the comparison of two systems as table cells."""
    from codec_bench.report.numbers import probability

    test = pair.test
    ends = None if test.low is None else [test.low, test.high]
    p, p_holm = probability(test.p), probability(pair.p_holm)
    return pair.a, pair.b, _number(test.difference, 2), _ends(ends, 2), p, p_holm, pair.n


def _number(value: float | None, places: int) -> str:
    from codec_bench.report.numbers import number

    return number(value, places)


def _ends(ends: Sequence[float] | None, places: int) -> str:
    return "–" if ends is None else f"[{_number(ends[0], places)}, {_number(ends[1], places)}]"


def _notes(outcome: ListeningOutcome) -> list[str]:
    """Explain missing intervals and the screening of raters, as sentences."""
    notes: list[str | None] = [
        interval.note for one in outcome.systems for interval in (one.interval, one.over_raters, one.over_items)
    ]
    notes += [pair.test.note for pair in outcome.pairs]
    notes += [outcome.strengths.note] if outcome.strengths is not None else []
    unique: list[str] = list(dict.fromkeys(note for note in notes if note))
    rules = ", ".join(outcome.screening) or "none"
    unique.append(
        f"excluded by the screening {rules}: {sum(bool(one.left_out) for one in outcome.raters)} of "
        f"{len(outcome.raters)} raters"
    )
    marks = Counter(one.rule for one in outcome.screened if one.marked)
    tested = Counter(one.rule for one in outcome.screened if one.marked is not None)
    unique += [f"rule {rule}: marks {marks[rule]} raters of {len(outcome.raters)}" for rule in tested]
    return unique + list(outcome.notes)
