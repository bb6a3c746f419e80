"""Build data sets: the function behind `codec-bench build`.

Build a data set: threads make items, each is recorded when done, and all are written at the end. An item passes its
stages (synthesis, checks, recognition) in one thread. Requests go to `Model.ask` on one event loop, with the pauses,
retries and batches of a benchmark's run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from codec_bench.apps.building.data_set import benchmark_text, card_text, check_benchmark, write_dropped, write_tables
from codec_bench.apps.building.described import Described
from codec_bench.apps.building.item import BuildItem, Funnel, ItemMaker
from codec_bench.apps.building.joined import Joined
from codec_bench.apps.building.mixtures import Mixtures
from codec_bench.apps.building.page import write_build_page
from codec_bench.apps.building.recipe import DescribedRecipe, Recipe
from codec_bench.apps.building.recipe_base import UNIT
from codec_bench.apps.building.recipe_spoken import JoinedRecipe, SpokenRecipe
from codec_bench.apps.building.record import FOLDER, BuildRecord, Distinct
from codec_bench.apps.building.review import Reviewed, read_decisions, take_answers, write_sheets
from codec_bench.apps.building.sources import EXCLUDED_BY_RECIPE
from codec_bench.apps.building.speech import MetricLoader
from codec_bench.apps.building.spoken import SpokenTexts
from codec_bench.messages.errors import UserError
from codec_bench.store.files import write_json, write_text
from codec_bench.store.folders import FolderLock

_AT_ONCE, _EVERY_S, _REPORT_S = 32, 2.0, 10.0
_TOOLS = ("numpy", "scipy", "soxr", "soundfile", "pyarrow")


def build(
    recipe: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    seed: int | None = None,
    limit: int | None = None,
    review: bool = False,
    reviewed: Sequence[str | os.PathLike[str]] = (),
    push: str | None = None,
    private: bool = False,
    notify: Callable[[str], None] = lambda _: None,
) -> BuildResult:
    """Build a data set by a recipe.

    The same recipe, sources, seed and versions give the same bytes. An interrupted build continues when it is called
    again with the same arguments.

    Args:
        recipe: a name (`codec-bench list recipes`), or the path of a YAML file.
        out: the folder of the data set.
        seed: replaces the recipe's.
        limit: make at most this many items.
        review: write review sheets to the folder `review`, where people accept, edit or drop questions (recipes of the
            kinds `described` and `mixture`).
        reviewed: the files that reviewers saved; their decisions are applied, also by later builds.
        push: the repository of the Hugging Face hub, OWNER/NAME, to upload the data set to.
        private: whether that repository is private.
        notify: receives sentences on progress.

    Raises:
        UnknownName: there is no such recipe.
        UserError: the recipe is wrong, a source cannot be read or has no licence, `out` holds another build, none of
            the reviewers' files answers a sheet of it, or the hub does not take the data set.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import build
        >>> recipe = '''
        ... version: 1
        ... kind: mixture
        ... title: Two voices
        ... summary: Which is louder.
        ... count: 2
        ... first: {data: embedded, is_what: the man, ids: [awb_01], licences: MIT}
        ... second: {data: embedded, is_what: the woman, ids: [slt_01], licences: MIT}
        ... gap_db: 6
        ... questions: {louder: {wordings: ["Which is louder?"], least: "1"}}
        ... '''
        >>> written = Path("recipe.yaml").write_text(recipe)
        >>> built = build("recipe.yaml", out="built")
        >>> built.funnel.items, built.funnel.usable
        (2, 2)
    """
    from codec_bench.api.load_metric import load_metric
    from codec_bench.apps.building.data_set import push as push_set
    from codec_bench.apps.building.data_set import target_of
    from codec_bench.apps.building.recipe import read_recipe

    if private and push is None:
        raise UserError("private_without_push", hint="give 'push' too")
    parsed, folder = read_recipe(os.fspath(recipe))
    parsed = parsed.limited(seed, limit)
    maker = make_maker(parsed, folder, load_metric)
    try:
        target = None if push is None else target_of(push, parsed, maker.facts()["sources"], private=private)
        built = build_items(parsed, maker, Path(out), notify, review=review, reviewed=[Path(file) for file in reviewed])
        if target is None:
            return built
        if not built.funnel.usable:
            notify("no item is usable, so nothing is pushed")
            return built
        notify(f"pushing {built.folder} to {target.repository}")
        return replace(built, pushed=push_set(built.folder, target))
    finally:
        maker.close()


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Result of `build`: the data set and what this call added.

    Args:
        num_new: the number of items that this call made; earlier calls made the others.
        target: how many items the recipe requests; None for all texts or recordings.
        pushed: the address on the hub.
        sheets: the review sheets that were written.
    """

    folder: Path
    funnel: Funnel
    num_new: int
    target: int | None = None
    pushed: str | None = None
    sheets: tuple[Path, ...] = ()

    @property
    def shortage(self) -> str:
        """Describe how many items are missing and why; empty if the data set is complete."""
        funnel = self.funnel
        if not funnel.usable:
            return f"0 of {funnel.items:,} items are usable, so no benchmark.yaml was written; {funnel.most_fell()}"
        reviewed = funnel.dropped["review"].total() if "review" in funnel.dropped else 0
        if self.target is not None and funnel.usable + reviewed < self.target:
            return f"the recipe asks for {self.target:,} items, and {funnel.usable:,} are usable; {funnel.most_fell()}"
        return ""


def make_maker(recipe: Recipe, folder: Path, load: MetricLoader) -> ItemMaker:
    """Create the maker of a recipe's items; its paths are relative to `folder`."""
    check_benchmark(recipe)
    if isinstance(recipe, SpokenRecipe):
        return SpokenTexts(recipe, folder, load)
    if isinstance(recipe, DescribedRecipe):
        return Described(recipe, folder)
    return Joined(recipe, folder, load) if isinstance(recipe, JoinedRecipe) else Mixtures(recipe, folder)


def build_items(
    recipe: Recipe,
    maker: ItemMaker,
    out: Path,
    notify: Callable[[str], None],
    *,
    review: bool = False,
    reviewed: Sequence[Path] = (),
) -> BuildResult:
    """Make all items that are not done yet, and write the data set into `out`.

    Args:
        review: write review sheets.
        reviewed: files that reviewers saved; their decisions are applied.

    Raises:
        UserError: the folder cannot be written, is being written by another process, or holds another build; or none of
            the reviewers' files answers a sheet of it.
    """
    lock = FolderLock(out / FOLDER)
    try:
        facts = {
            **maker.facts(),
            "versions": {"codec-bench": version("codec-bench"), **{t: version(t) for t in _TOOLS}},
        }
        record = BuildRecord(out, {"recipe": recipe.model_dump(mode="json"), **facts})
        try:
            for source in facts["sources"]:
                for excluded in source["left_out"]:
                    if excluded["reason"] != EXCLUDED_BY_RECIPE:
                        recordings = (
                            f"{excluded['count']:,} of {source['recordings']:,} recordings of '{source['name']}'"
                        )
                        notify(f"{recordings} are excluded, each because {excluded['reason']}")
            keys = list(maker.keys())
            done = record.done()
            waiting = [key for key in keys if key not in done]
            if done and waiting:
                notify(f"{len(keys) - len(waiting):,} of {len(keys):,} items are done already; the build goes on")
            _make(maker, waiting, record, notify)
            if reviewed:
                decisions, problems = take_answers(reviewed, out)
                for problem in problems:
                    notify(problem)
            else:
                decisions = read_decisions(out)
            after = Reviewed(Distinct(record, maker, keys, recipe), decisions)
            funnel = _write(recipe, maker, keys, after, out, facts)
            sheets = write_sheets(after, maker, keys, out, recipe.full_title, recipe.seed) if review else []
        finally:
            record.close()
    finally:
        lock.release()
    for sentence in funnel.never_usable():
        notify(sentence)
    return BuildResult(out, funnel, len(waiting), getattr(recipe, "count", None), sheets=tuple(sheets))


def _make(maker: ItemMaker, keys: Iterable[str], record: BuildRecord, notify: Callable[[str], None]) -> None:
    """Make items in threads, a few at a time, and add them to the record.

    Items finished before an error are added too.
    """
    pending_keys = iter(keys)
    new: list[BuildItem] = []
    written = reported_at = time.monotonic()
    count = 0
    with ThreadPoolExecutor(maker.parallel, "build") as pool:
        running: set[Future[BuildItem]] = set()
        try:
            while True:
                for key in pending_keys:
                    running.add(pool.submit(maker.make, key))
                    if len(running) >= 2 * maker.parallel:
                        break
                if not running:
                    break
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                new += _results(finished)
                for future in finished:
                    future.result()  # raises the error of an item; the others stay
                now = time.monotonic()
                if len(new) >= _AT_ONCE or now - written > _EVERY_S:
                    record.write(new)
                    count, written, new = count + len(new), now, []
                if now - reported_at > _REPORT_S:
                    notify(f"{count:,} items are made")
                    reported_at = now
        finally:
            started = [future for future in running if not future.cancel()]
            wait(started)
            record.write(new + _results(started))


def _results(futures: Iterable[Future[BuildItem]]) -> list[BuildItem]:
    """Return the finished items; the next build repeats those that an error stopped."""
    return [future.result() for future in futures if future.exception() is None]


def _write(
    recipe: Recipe, maker: ItemMaker, keys: list[str], record: Reviewed, out: Path, facts: Mapping[str, Any]
) -> Funnel:
    """Write the finished data set: tables, drops, funnel, definition, card and page."""
    funnel = Funnel.of(record.outcomes(keys), maker.steps)
    sounds = record.outcomes(keys, sounds=True)
    columns = {**maker.columns, **({UNIT: "text"} if recipe.duplicates == "keep" else {})}
    write_tables(out, sounds, columns, count=funnel.usable, size_bytes=record.sound_bytes())
    write_dropped(out, record.outcomes(keys), maker.steps)
    write_json(out / "funnel.json", funnel.as_dict())
    numbers = {name: list[float]() for name, kind in maker.columns.items() if kind == "number"}
    for outcome in record.outcomes(keys):
        for name, values in numbers.items():
            if outcome.row is not None and outcome.row.get(name) is not None:
                values.append(outcome.row[name])
    groups = [name for name in funnel.groups if name in maker.columns]
    if funnel.usable:
        write_text(out / "benchmark.yaml", benchmark_text(recipe, groups, funnel.usable))
    else:  # a definition of an earlier build would name items that are gone
        (out / "benchmark.yaml").unlink(missing_ok=True)
    write_text(out / "README.md", card_text(recipe, facts, funnel, numbers, record.sentence(funnel.usable)))
    write_build_page(out, recipe, maker, funnel, numbers, record, keys, facts["sources"])
    return funnel
