"""The card of a built data set (`README.md`) and the benchmark definition beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codec_bench.apps.building.funnel import Funnel
from codec_bench.apps.building.out import SPLIT, funnel_text, spread, table_text, yaml_text
from codec_bench.apps.building.recipe import Recipe
from codec_bench.benchmark.definition.validate import validate_benchmark
from codec_bench.errors import UserError

_HUB_LICENCES = {
    "apache-2.0", "mit", "gpl-3.0", "cc0-1.0", "cc-by-3.0", "cc-by-sa-3.0", "cc-by-nc-3.0", "cc-by-nc-sa-3.0", "cc-by-4.0", "cc-by-sa-4.0",
    "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odc-by", "odbl", "cdla-permissive-2.0", "cdla-sharing-1.0",
}  # fmt: skip
"""Licences by the names that the hub has for them: https://huggingface.co/docs/hub/repositories-licenses."""


def benchmark_text(recipe: Recipe, groups: Sequence[str], kept: int) -> str:
    """The benchmark definition, which `codec-bench run` takes as it is.

    Args:
        recipe: what was asked for. groups: columns that name subsets. kept: the number of items.
    """
    form = recipe.form
    # The folder's name may not be one for a benchmark; and under a name of its own, a set with a looser check never stands in one line
    # with that of the strict one.
    name = re.sub(r"[^a-z0-9]+", "-", recipe.full_title.lower()).strip("-")
    return yaml_text(
        {
            "version": 1,
            "name": name or "data-set",
            "title": recipe.full_title,
            "summary": recipe.summary,
            "category": "Audio QA benchmark",
            "kind": form.kind,
            "language": recipe.language,
            "licence": recipe.licence,
            "paper": recipe.paper,
            "data": {
                "path": ".",
                "split": SPLIT,
                "columns": form.columns | {name: name for name in groups},
                "optional": list(groups),
                **({"speaker": form.unit} if form.unit else {}),
                "id": "id",
                "size": kept,
            },
            "prompt": form.prompt,
            "postprocess": list(form.postprocess),
            "metrics": list(form.metrics),
            "primary": form.metrics[0],
            "subsets": {name: name for name in groups},
        }
    )


def check_benchmark(recipe: Recipe) -> None:
    """Checks before anything is made that `codec-bench run` will take the definition.

    Raises:
        UserError: the recipe names a prompt or a metric that there is not.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "benchmark.yaml"
        file.write_text(benchmark_text(recipe, [], 1), encoding="utf-8")
        (Path(folder) / "README.md").write_text(recipe.title, encoding="utf-8")  # the card comes later
        found = validate_benchmark(str(file))
    if found:
        raise UserError(
            f"prompt and metrics of the recipe make no benchmark: {'; '.join(one.message for one in found)}",
            hint=found[0].hint,
        )


def card_text(
    recipe: Recipe, facts: Mapping[str, Any], funnel: Funnel, numbers: Mapping[str, Sequence[float]], review: str = ""
) -> str:
    """The card: how the data set was made, the funnel, the sources with their licences, and the spread of its numbers.

    Args:
        recipe: what was asked for. facts: as `Maker.facts`, and the versions of the tools. funnel: what became of the items.
        numbers: the values of the columns that hold numbers. review: a sentence on the check by people; empty if there was none.
    """
    front: dict[str, Any] = {"pretty_name": recipe.full_title}
    front |= _front_licence(recipe.licence) if recipe.licence else {}
    front |= {"language": [recipe.language]} if recipe.language else {}
    front["configs"] = [{"config_name": "default", "data_files": [{"split": SPLIT, "path": f"data/{SPLIT}-*"}]}]
    parts = [
        f"---\n{yaml_text(front)}---\n\n# {recipe.full_title}\n\n{recipe.summary}\n",
        f"{funnel.kept:,} of {funnel.items:,} items were kept. `benchmark.yaml` is the definition that "
        "`codec-bench run` takes; `dropped.jsonl` has the reason of every item that was dropped.\n",
        f"{review}\n" if review else "",
        f"Licence: {recipe.licence}.\n" if recipe.licence else "",
        f"Follows {recipe.paper}.\n" if recipe.paper else "",
        "## What became of the items\n",
        funnel_text(funnel),
        "## Sources\n",
        _sources_text(facts["sources"]),
        "## Numbers\n",
        table_text(
            ("column", "least", "25 %", "median", "75 %", "greatest"),
            [(name, *spread(values)) for name, values in numbers.items()],
        ),
    ]
    if recipe.choices:
        chosen = "".join(f"- {choice}\n" for choice in recipe.choices)
        parts += ["## What was chosen\n", chosen]
    tools = {name: value for name, value in facts.items() if name != "sources"}
    parts += [
        "## How it was made\n",
        f"The recipe:\n\n```yaml\n{yaml_text(recipe.model_dump(mode='json'))}```\n",
        f"The tools:\n\n```yaml\n{yaml_text(tools)}```\n",
    ]
    return "\n".join(part for part in parts if part)


def _front_licence(licence: str) -> dict[str, str]:
    """A licence as the hub names it; one that it has no name for is `other`, with a name in the form that the hub asks for."""
    name = re.sub(r"[^a-z0-9.]+", "-", licence.lower()).strip("-.")
    return {"license": name} if name in _HUB_LICENCES else {"license": "other", "license_name": name or "other"}


def _sources_text(sources: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for source in sources:
        licences = ", ".join(f"{text} ({count:,})" for text, count in source["licences"].items())
        left = ", ".join(f"{count:,}: {reason}" for reason, count in source["left_out"].items()) or "none"
        rows.append((source["name"], source["recordings"], source["taken"], licences, left, source["fingerprint"]))
    return table_text(("source", "records", "taken", "licences", "left out", "fingerprint"), rows)
