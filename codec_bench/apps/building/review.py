"""The review by people: sheets of questions to accept, edit or drop.

A sheet is a page of the kind `review`, as `listen export` writes it, with its key in the record's folder. One drop is
enough. Of several edits, that of the reviewer first in the alphabet counts. `review.jsonl` holds the decisions without
names; every write of the data set applies them.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codec_bench.apps.building.item import BuildItem, Failure, ItemMaker
from codec_bench.apps.building.record import FOLDER, Distinct
from codec_bench.apps.building.sources import LETTERS
from codec_bench.apps.listening.answers import OTHER_TEST, AnswerProblem, read_files
from codec_bench.apps.listening.key import SUFFIX, read_key
from codec_bench.apps.listening.kinds import kind_of
from codec_bench.apps.listening.material import ListeningItem, Material
from codec_bench.apps.listening.ratings import Rating, counted_rows, unblind
from codec_bench.apps.listening.sheet import ListeningPlan, write_sheet
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.store.files import write_text

DECISIONS, SHEETS = "review.jsonl", "review"
EACH = 100
"""Questions of one sheet."""
_SOUND_MB = 400.0
_WHY = "Why it is dropped"
_HEADINGS = {"question": "Question", "choices": "Options", "answer_text": "Expected answer"}
_DONE = {"accept": "accepted", "edit": "edited"}


@dataclass(frozen=True, slots=True)
class Decision:
    """The reviewers' decision `accept`, `edit` or `drop`, with edits by column."""

    decision: str
    reviewers: int = 1
    edits: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


class Reviewed:
    """The items of a record after the review, with decisions by item key."""

    def __init__(self, record: Distinct, decisions: Mapping[str, Decision]) -> None:
        self._record, self.decisions = record, decisions
        self.sound_bytes = record.sound_bytes

    def outcomes(self, keys: Sequence[str], *, sounds: bool = False) -> Iterator[BuildItem]:
        """Implement `BuildRecord.outcomes`, with reviewers' drops and edits applied."""
        for item in self._record.outcomes(keys, sounds=sounds):
            decision = self.decisions.get(item.key)
            yield item if decision is None or item.row is None else _apply_decision(item, item.row, decision)

    def sentence(self, item_count: int) -> str:
        """Describe the review for the card; empty without one.

        Args:
            item_count: usable items, to state how many nobody reviewed.
        """
        if not self.decisions:
            return ""
        counts = Counter(one.decision for one in self.decisions.values())
        stay = counts["accept"] + counts["edit"]
        waiting = max(0, item_count - stay)
        counts_text = ", ".join(f"{word}: {counts[name]:,}" for name, word in (*_DONE.items(), ("drop", "dropped")))
        reviewed = (
            f"People reviewed {len(self.decisions):,} questions ({counts_text}) and accepted "
            f"{100 * stay / len(self.decisions):.1f} % of them."
        )
        return reviewed + (f" Questions of the data set that nobody reviewed: {waiting:,}." if waiting else "")


def _apply_decision(item: BuildItem, row: Mapping[str, Any], decision: Decision) -> BuildItem:
    """Accept, edit or drop an item by a reviewer's decision; bad edits drop it too."""
    if decision.decision == "drop":
        return _dropped(item, Diagnostic("reviewer_dropped"), decision.why)
    new = {**row, "review": _DONE[decision.decision]}
    for name, text in decision.edits.items():
        new[name] = text.splitlines() if isinstance(row.get(name), list) else " ".join(text.split())
    if row.get("choices"):
        new |= _right_option(row, new, decision.edits)
        if len(new["choices"]) != len(row["choices"]) or len(set(new["choices"])) < len(row["choices"]):
            return _dropped(item, Diagnostic("edit_unusable"), Diagnostic("edited_options"))
    else:
        new["answer"] = new["answer_text"]
    if not new["question"] or not new["answer_text"]:
        return _dropped(item, Diagnostic("edit_unusable"), Diagnostic("edit_without_text"))
    return replace(item, row=new)


def _right_option(row: Mapping[str, Any], new: Mapping[str, Any], edits: Mapping[str, str]) -> dict[str, Any]:
    """Return options, letter and answer after an edit of the options or the answer.

    A new answer selects the option of the same text, or else replaces the right one.
    """
    options, index = list(new["choices"]), LETTERS.index(row["answer"])
    if "answer_text" in edits and new["answer_text"] in options:
        index = options.index(new["answer_text"])
    elif "answer_text" in edits and index < len(options):
        options[index] = new["answer_text"]
    right = options[index] if index < len(options) else ""
    return {"choices": options, "answer": LETTERS[index], "answer_text": right}


def _dropped(item: BuildItem, reason: Diagnostic, detail: str) -> BuildItem:
    failures = (*item.failures, Failure("review", reason, detail))
    return BuildItem(item.key, item.groups, failures, material=item.sound)


def write_sheets(
    record: Reviewed, maker: ItemMaker, keys: Sequence[str], out: Path, title: str, seed: int
) -> list[Path]:
    """Write sheets of all usable questions without a review, `EACH` at most on one.

    Args:
        title: for reviewers.
        seed: of the order of the questions.

    Returns:
        The sheets; their keys, which name the items, are written elsewhere.

    Raises:
        UserError: the maker's items have no editable texts, or a sheet cannot be written.
    """
    if "review" not in maker.columns:
        raise UserError("recipe_without_sheets", hint="recipes of the kinds described and mixture have them")
    waiting = [item.key for item in record.outcomes(keys) if item.is_usable and item.key not in record.decisions]
    pages = []
    for number, begin in enumerate(range(0, len(waiting), EACH), 1):
        with tempfile.TemporaryDirectory() as folder:
            items = [
                _reviewable(one, Path(folder)) for one in record.outcomes(waiting[begin : begin + EACH], sounds=True)
            ]
            kind = kind_of("review")
            plan = ListeningPlan(
                kind, (0, 0), (), None, len(items), 0, 0, None, _SOUND_MB, title, kind.instructions, seed
            )
            page = out / SHEETS / f"sheet-{number:03d}.html"
            written = write_sheet(Material(items, (), True, Counter(), ()), plan, page)
        # The key names the items and stays private; sheets may be sent as they are.
        key_file = out / FOLDER / SHEETS / f"{written.sheet}{SUFFIX}"
        key_file.parent.mkdir(parents=True, exist_ok=True)
        written.key.replace(key_file)
        pages.append(page)
    return pages


def _reviewable(item: BuildItem, folder: Path) -> ListeningItem:
    """Convert a usable item to one of a sheet; its audio is written into `folder`."""
    assert item.row is not None and item.sound is not None, "only usable items are reviewed"
    sound = folder / f"{item.key}.flac"
    sound.write_bytes(item.sound)
    row = item.row
    return ListeningItem(
        item.key, None, (), row.get("duration_s"), {}, sound, ((_HEADINGS["question"], row["question"]),),
        tuple(row.get("choices") or ()), (), (row["answer_text"],),
    )  # fmt: skip


def read_decisions(out: Path) -> dict[str, Decision]:
    """Read the decisions of a data set; empty without any."""
    path = out / DECISIONS
    if not path.exists():
        return {}
    try:
        lines = path.read_text("utf-8-sig").split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
        decisions = {row.pop("id"): Decision(**row) for row in rows}
        if any(one.decision not in ("accept", "edit", "drop") for one in decisions.values()):
            raise ValueError("a decision is none of accept, edit and drop")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UserError(
            "not_a_decision_file",
            path=path,
            cause=error,
            hint="delete it, and give the reviewers' files again with --reviewed",
        ) from error
    return decisions


def take_answers(files: Sequence[Path], out: Path) -> tuple[dict[str, Decision], list[str]]:
    """Read reviewers' files, and add their decisions to those stored in `out`.

    Returns:
        All decisions, and problems of the files as sentences.

    Raises:
        UserError: no file holds answers to a sheet of this data set.
    """
    rows: list[Rating] = []
    all_problems: list[AnswerProblem] = []
    used: set[str] = set()
    keys = sorted((out / FOLDER / SHEETS).glob(f"*{SUFFIX}"))
    for path in keys:
        key = read_key(path)
        read, problems = read_files(files, key)
        used |= {file.name for file in read}
        ratings, wrong = unblind(read, key)
        rows += counted_rows(ratings)
        all_problems += (*problems, *wrong)
    relevant = [one for one in all_problems if one.what != OTHER_TEST or one.file not in used]
    notes = sorted({f"{one.file}: {one.what}: {one.detail}" for one in relevant})
    if not rows:
        raise UserError(
            "no_review_answers",
            folder=out,
            reasons="; ".join(notes[:3]) or Diagnostic("no_sheet_written"),
            hint="build with --review writes the sheets; reviewers save the files that --reviewed takes",
        )
    decisions = {**read_decisions(out), **_decisions(rows)}
    lines = [{"id": key, "decision": one.decision, "reviewers": one.reviewers, "edits": dict(one.edits), "why": one.why}
             for key, one in sorted(decisions.items())]  # fmt: skip
    write_text(out / DECISIONS, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return decisions, notes


def _decisions(rows: Sequence[Rating]) -> dict[str, Decision]:
    """Merge several reviewers' answers: any drop counts first, then any edit."""
    columns = {heading: name for name, heading in _HEADINGS.items()}
    by_item: dict[str, list[Rating]] = defaultdict(list)
    for row in rows:
        by_item[row.id].append(row)
    decisions = {}
    for key, answers in by_item.items():
        answers.sort(key=lambda row: row.rater.casefold())
        texts = [json.loads(row.text) if row.text else {} for row in answers]
        choice = next((name for name in ("drop", "edit") if any(row.choice == name for row in answers)), "accept")
        chosen: dict[str, str] = next((text for row, text in zip(answers, texts) if row.choice == choice), {})
        edits = {columns[name]: text for name, text in chosen.items() if name in columns} if choice == "edit" else {}
        decisions[key] = Decision(choice, len(answers), edits, chosen.get(_WHY, "") if choice == "drop" else "")
    return decisions
