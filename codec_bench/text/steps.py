"""Steps that text rules are made of: small functions of one text, each with a name.

Conventions
    A step is a function from text to text. Its name always stands for the same behaviour, because the names of protocols
    depend on the names of their steps. A step that needs an optional package imports it when it is first used.
    Steps are combined by name: `get_normaliser("lower,delete-punctuation")` (see `codec_bench.text.normalise`).

Where the steps are
    `own_steps`: the project's own. `cardinals`: numbers as words, `cardinals-XX` for each language. `folds`: spellings that
    the rule `by-language` writes in one way. `published_steps`: those of published rules.
"""

from __future__ import annotations

from functools import cache

from codec_bench.errors import UnknownName
from codec_bench.text import cardinals, folds, own_steps, published_steps
from codec_bench.text.own_steps import Step


def get_step(name: str) -> Step:
    """The step of that name.

    Raises:
        UnknownName: there is none. MissingExtra: it needs a package that is not installed.
    """
    if name not in _STEPS:
        raise UnknownName("text step", name, _STEPS)
    return _built(name)


def step_names() -> list[str]:
    """The names that `get_step` knows."""
    return sorted(_STEPS)


@cache
def _built(name: str) -> Step:
    return _STEPS[name]()


_STEPS = {**own_steps.STEPS, **cardinals.steps(), **folds.STEPS, **published_steps.STEPS}
