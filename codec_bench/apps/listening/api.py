"""Exports and imports listening tests (`codec-bench listen`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codec_bench.config.option import names
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report.open_run import open_run
from codec_bench.store.record import Run

if TYPE_CHECKING:
    from codec_bench.apps.listening.outcome import ListeningOutcome
    from codec_bench.apps.listening.sheet import ListeningPlan, ListeningSheet

MUSHRA_LONGEST_S = 12.0
"""Longest audio recommended by ITU-R BS.1534-3, section 5.1."""
KEEPABLE = ("edited", "screened")
_Path = str | os.PathLike[str]


def export_listening(
    *,
    runs: Run | _Path | Sequence[Run | _Path],
    kind: str,
    out: _Path | None = None,
    form: str = "page",
    systems: str | Sequence[str] | None = None,
    items: int = 20,
    training: int = 0,
    repeats: int = 0,
    by: str | Sequence[str] | None = None,
    reference: bool | None = None,
    anchors: str | Sequence[str] = ("3.5k", "7k"),
    scale: str | None = None,
    audio: Mapping[str, _Path] | None = None,
    longest_s: float | None = None,
    sound_mb: float = 100.0,
    title: str = "Listening test",
    instructions: str | None = None,
    checks: str | Sequence[str] = (),
    gold: _Path | None = None,
    traps: int = 0,
    session: int | None = None,
    session_minutes: float | None = None,
    digits: _Path | None = None,
    loudness_lufs: float | None = None,
    screening: str | Sequence[str] | None = None,
    seed: int = 0,
) -> ListeningSheet:
    """Write a listening or reading test: a page without a server, and its key.

    The page embeds its audio, plays it in sync, works by keyboard or mouse, keeps answers in the browser, and saves
    them to a file for `import_listening`. It has no names of systems, samples or runs. The order of trials and versions
    differs by rater.

    Args:
        runs: one run or several, or their folders: of codecs, or of one benchmark. Of several, the items that all have.
        kind: `mushra` (sliders, hidden reference and two anchors), `bs1116` (small impairments: which of two is the
            reference, and the grade of the other), `rating` (one value for each), `dcr` (the difference from a
            reference), `ccr` (the second of a version and its reference, compared with the first), `cmos` (the same for
            two systems), `p835` (speech, background and overall), `p804` (five dimensions, speech and overall), `abx`
            (which of two is X), `preference` (A, B or no difference), `options` (which option an answer means), or
            `review` (accept, edit or drop questions).
        out: the page, or for webMUSHRA a folder. The key has its name with the ending `.key.json`. None for
            `listening/KIND.html` (`listening/webmushra`) in the first run.
        form: `page`, or `webmushra` for its configuration and audio, for tests of the kind `mushra`.
        systems: systems to judge; None for all, in a MUSHRA test without the unprocessed audio, its hidden reference.
        items: number of rated items, one trial each (`mushra`, `options` and `rating`: one for each system;
            `preference`: one for each pair).
        training: further items for practice, one trial each, before all others.
        repeats: trials shown twice, to measure a rater's consistency.
        by: columns by whose values items are drawn evenly, such as `speaker,duration`; None for the speaker.
        reference: whether raters can play the reference. None: yes for `mushra` and `preference`. With a reference the
            values of `rating` are DMOS, without one MOS. A question's audio is always playable.
        anchors: of a MUSHRA test: `3.5k`, `7k` or both; empty for none, against ITU-R BS.1534-3.
        scale: of a rating: `0-5` or `1-5`; None for the first.
        audio: folders with the audio of systems that the run did not save, by system; files match samples by stem.
        longest_s: items with a longer reference are excluded; None for 12 s in a MUSHRA test and no limit in others.
        sound_mb: limit of audio in the page in megabytes; the error for more says how many items fit.
        title, instructions: for raters; None for instructions of the kind. A blank line begins a new paragraph.
        checks: before the test: `qualification`, `hearing`, `headphones`, `environment` (ITU-T P.808).
        gold: a CSV of gold questions with the columns `audio` and `answer`, or one column of answers for each scale
            (and `reference` where one is played).
        traps: number of sounds that break off into beeps, whose number is the answer.
        session: trials between breaks; None for no breaks.
        session_minutes: minutes between breaks, at the end of a trial.
        digits: a folder with recordings of the digits in the raters' language, named 0 to 9, for the check `hearing`;
            None for English.
        loudness_lufs: target loudness of all audio (ITU-R BS.1770); None changes no level.
        screening: the preregistered rules that exclude raters: `constant`, `hasty`, `repeats`, `always-first`, `gold`,
            `trap`, the names of the checks, `bs1534-3`, `bs1116-3`, or `none`. None for those of the kind. All others
            only mark raters.
        seed: of all draws. The same call writes the same page.

    Returns:
        The files, their size, number of trials, and excluded items with reasons.

    Raises:
        UserError: a run, system, column or option does not exist, no item can be used, or the audio is too large.

    Examples:
        >>> from codec_bench import export_listening
        >>> run = "runs/small"  # of evaluate's example
        >>> made = export_listening(runs=run, kind="preference", items=4, out="sheets/preference.html")
        >>> made.systems, made.items, made.trials, made.key.name
        (('g711-ulaw', 'g722'), 4, 4, 'preference.key.json')
    """
    from codec_bench.apps.listening.checks import CHECKS, read_gold
    from codec_bench.apps.listening.kinds import kind_of, scale_of, scales_of
    from codec_bench.apps.listening.material import UNPROCESSED, collect
    from codec_bench.apps.listening.screening import rules_of
    from codec_bench.apps.listening.sheet import ListeningPlan, write_sheet
    from codec_bench.apps.listening.sound import CUTOFFS_HZ
    from codec_bench.apps.listening.webmushra import write_webmushra

    if form not in ("page", "webmushra"):
        raise UnknownName("listening_format", form, ("page", "webmushra"))
    listening_kind = kind_of(kind)
    run_list = [runs] if isinstance(runs, Run | str | os.PathLike) else list(runs)
    if not run_list:
        raise UserError("test_without_run")
    opened = [run if isinstance(run, Run) else open_run(run) for run in run_list]
    low, check_names = tuple(names(anchors)), tuple(names(checks))
    for kind_of_name, selected, known in (("anchor", low, CUTOFFS_HZ), ("rater_check", check_names, CHECKS)):
        for name in selected:
            if name not in known:
                raise UnknownName(kind_of_name, name, known)
    requested = names(systems) if systems is not None else []
    if listening_kind.hidden and not requested:
        requested = [name for run in opened for name in run.systems if name != UNPROCESSED]
    paragraphs = listening_kind.instructions
    if instructions is not None:
        blocks = instructions.replace("\r", "").split("\n\n")
        paragraphs = tuple(" ".join(block.split()) for block in blocks if block.strip())
    ends = scale_of(kind, scale)
    has_reference = listening_kind.open == "must" or reference is True
    is_scaled = listening_kind.answer == "number" and not listening_kind.labels
    if (gold is not None or traps) and not is_scaled:
        raise UserError(
            "gold_needs_scale", kind=kind, hint="take rating, dcr, p835 or p804, or leave --gold and --traps out"
        )
    gold_items = []
    if gold is not None:
        scales = scales_of(listening_kind, ends, has_reference=has_reference, answers=False)
        gold_items = read_gold(Path(gold), listening_kind, scales, ends, open=has_reference)
    plan = ListeningPlan(
        listening_kind, ends, low if kind == "mushra" else (), reference, items, training, repeats,
        MUSHRA_LONGEST_S if longest_s is None and kind == "mushra" else longest_s, sound_mb, title, paragraphs, seed,
        check_names, tuple(gold_items), traps, session, loudness_lufs,
        None if screening is None else rules_of(names(screening)),
        session_minutes, None if digits is None else Path(digits),
    )  # fmt: skip
    _check(plan)
    material = collect(
        opened, requested, needs_answers=listening_kind.needs_answers, without_systems=kind == "review",
        by=names(by or ()), folders=audio
    )  # fmt: skip
    default = opened[0].folder / "listening" / (f"{kind}.html" if form == "page" else form)
    write = write_sheet if form == "page" else write_webmushra
    return write(material, plan, default if out is None else Path(out))


def _check(plan: ListeningPlan) -> None:
    """Raise UserError for options that contradict each other or are out of range."""
    if plan.kind.open == "must" and plan.reference is False:
        raise UserError(
            "kind_needs_reference", kind=plan.kind.name, hint="take the kind rating, or leave --without-reference out"
        )
    if plan.kind.open == "no" and plan.reference is True:
        raise UserError("kind_without_reference", kind=plan.kind.name, hint="leave --with-reference out")
    if plan.digits is not None and "hearing" not in plan.checks:
        raise UserError("digits_without_check", hint="add --checks hearing")
    if plan.loudness_lufs is not None and not -70 < plan.loudness_lufs <= 0:
        raise UserError("loudness_out_of_range", value=plan.loudness_lufs)
    for label, count, least in (
        ("items", plan.items, 1), ("training", plan.training, 0), ("repeats", plan.repeats, 0),
        ("traps", plan.traps, 0),
        ("session", 1 if plan.session is None else plan.session, 1), ("sound_mb", plan.sound_mb, 0.01),
        ("session_minutes", 1 if plan.session_minutes is None else plan.session_minutes, 0.01),
        ("longest_s", plan.longest_s if plan.longest_s is not None else 1, 0.01),
    ):  # fmt: skip
        if not count >= least:
            raise UserError("listening_count", name=label, value=count, least=least)


def import_listening(
    files: _Path | Sequence[_Path],
    *,
    key: _Path | None = None,
    run: Run | _Path | None = None,
    screening: str | Sequence[str] | None = None,
    keep: str | Sequence[str] = (),
    csv: _Path | None = None,
) -> ListeningOutcome:
    r"""Read the answers of raters to a listening test, and analyse them.

    All problems are counted: unreadable or changed files, files of another test, raters with several files, unknown
    ids, values out of range, repeated answers, and missing ones.

    Args:
        files: files that the page saved, or results of webMUSHRA (`mushra.csv`).
        key: the key of the test. None to look for it in `run`.
        run: a run, or its folder, into which the page was written.
        screening: the rules that exclude raters, or `none`. None for the preregistered ones; others are reported as
            chosen afterwards. All rules mark raters.
        keep: count in spite of problems: `edited` for the answers of changed files, `screened` for raters that
            post-screening would exclude. Exclusions are listed either way.
        csv: a file for the ratings, one row for each answer; None writes none.

    Returns:
        The values of the systems with intervals over raters and over items, comparisons, facts of raters, the problems,
        and all ratings with their status.

    Raises:
        UserError: there is no key, it was changed, or none of the files holds answers to its test.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import export_listening, import_listening
        >>> from codec_bench.apps.listening.key import read_key
        >>> run = "runs/small"  # of evaluate's example
        >>> made = export_listening(runs=run, kind="mushra", items=2, form="webmushra", out="sheets/webmushra")
        >>> ratings = {"(reference)": 100, "g722": 80, "g711-ulaw": 60, "(7k anchor)": 40, "(3.5k anchor)": 20}
        >>> rows = ["session_test_id,session_uuid,trial_id,rating_stimulus,rating_score"]
        >>> for trial in read_key(made.key).trials:
        ...     for one in trial.stimuli:
        ...         name = "reference" if one.system == "(reference)" else one.id
        ...         rows.append(f"{made.sheet},ann,{trial.id},{name},{ratings[one.system]}")
        >>> written = Path("mushra.csv").write_text("\n".join(rows))
        >>> found = import_listening("mushra.csv", key=made.key)
        >>> {one.system: one.value for one in found.systems if one.system.startswith("g7")}
        {'g711-ulaw': 60.0, 'g722': 80.0}
    """
    from codec_bench.apps.listening.answers import read_files, sheets_of
    from codec_bench.apps.listening.key import find_key, read_key
    from codec_bench.apps.listening.kinds import kind_of
    from codec_bench.apps.listening.outcome import outcome_of
    from codec_bench.apps.listening.ratings import COLUMNS, exclude_raters, unblind
    from codec_bench.apps.listening.screening import rules_of, screen
    from codec_bench.store.export import opened, write_csv

    paths = [Path(files)] if isinstance(files, str | os.PathLike) else [Path(file) for file in files]
    keep_statuses = names(keep)
    for name in keep_statuses:
        if name not in KEEPABLE:
            raise UnknownName("answer_status", name, KEEPABLE)
    if (key is None) == (run is None):
        raise UserError("no_key_named", hint="--key FILE or --run RUN")
    if not any(path.is_file() for path in paths):
        raise UserError(
            "no_answer_file",
            paths=[str(path) for path in paths[:3]],
            hint="name the files that raters have sent back",
        )
    if run is not None:
        key = find_key(run.folder if isinstance(run, Run) else Path(run), sheets_of(paths))
    assert key is not None
    loaded_key = read_key(Path(key))
    read, problems = read_files(paths, loaded_key)
    if not read:
        details = "; ".join(f"{one.file}: {one.detail}" for one in problems[:3]) or "no file is named"
        raise UserError("no_answers_to_test", sheet=loaded_key.sheet, causes=details)
    rows, wrong = unblind(read, loaded_key, keep_statuses)
    before = kind_of(loaded_key.kind).screening if loaded_key.screening is None else loaded_key.screening
    rules = before if screening is None else rules_of(names(screening))
    screenings = screen(rows, loaded_key, rules)
    if "screened" not in keep_statuses:
        rows = exclude_raters(rows, {one.rater for one in screenings if one.marked and one.rule in rules})
    outcome = outcome_of(loaded_key, rows, [*problems, *wrong], screenings, rules)
    if set(rules) != set(before):
        late = Diagnostic("screening_changed", before=before, rules=rules)
        outcome = replace(outcome, notes=(late, *outcome.notes))
    if csv is None:
        return outcome
    with opened(Path(csv)) as file:
        write_csv(file, COLUMNS, [row[: len(COLUMNS)] for row in rows])
    return replace(outcome, csv=Path(csv))
