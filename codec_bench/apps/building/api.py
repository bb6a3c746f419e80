"""Build data sets: the function behind `codec-bench build`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codec_bench.errors import UserError

if TYPE_CHECKING:
    from codec_bench.apps.building.build import Built


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
) -> Built:
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
    from codec_bench.apps.building.build import build_items, make_maker
    from codec_bench.apps.building.push import push as push_set
    from codec_bench.apps.building.push import target_of
    from codec_bench.apps.building.recipe import read_recipe

    if private and push is None:
        raise UserError("'private' says who may see a pushed data set, and none is pushed", hint="give 'push' too")
    parsed, folder = read_recipe(os.fspath(recipe))
    parsed = parsed.limited(seed, limit)
    maker = make_maker(parsed, folder, load_metric)
    try:
        target = None if push is None else target_of(push, parsed, maker.facts()["sources"], private=private)
        built = build_items(parsed, maker, Path(out), notify, review=review, reviewed=[Path(file) for file in reviewed])
        if target is None:
            return built
        if not built.funnel.usable:
            notify("no item was kept, so nothing is pushed")
            return built
        notify(f"pushing {built.folder} to {target.repository}")
        return replace(built, pushed=push_set(built.folder, target))
    finally:
        maker.close()
