"""The files of a data set: Parquet, a card (`README.md`), a benchmark definition.

Equal items give equal bytes: no file depends on time, machine, or the order in which items were made.

Upload of a built data set to the Hugging Face hub, with its checks.
Everything is checked before anything is made or sent: the name's form, the token, the licences. Only the files of the
data set are sent; the record and the keys of review sheets stay local.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from codec_bench.apps.building.item import BuildItem, Funnel, reason_of
from codec_bench.apps.building.page import PAGE
from codec_bench.apps.building.recipe import Recipe
from codec_bench.benchmark.definition.validate import validate_benchmark
from codec_bench.messages import to_json
from codec_bench.messages.errors import UserError, hub_fault, on_disk
from codec_bench.store.files import write_text

if TYPE_CHECKING:
    import pyarrow as pa

SPLIT = "test"
SHARD_BYTES = 400 << 20
_GROUP = 100
"""Rows of a row group, which viewers and readers fetch at once."""
_SOUND = "audio.bytes"
_DTYPES = {"text": "string", "number": "float64"}
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NOT_NAMED = re.compile(r"\s*|.*\b(unknown|not (known|named)|unclear)\b.*", re.IGNORECASE | re.DOTALL)
_SENT = (f"data/{SPLIT}-*.parquet", "README.md", "benchmark.yaml", "dropped.jsonl", "funnel.json", PAGE)
_WRITE = (
    "a token that may write is made at https://huggingface.co/settings/tokens; give it as HF_TOKEN, or type: hf auth "
    "login"
)


def write_tables(
    folder: Path, outcomes: Iterable[BuildItem], columns: Mapping[str, str], *, count: int, size_bytes: int
) -> list[Path]:
    """Write the usable items as Parquet files, and remove those of an earlier build.

    Args:
        outcomes: all items in order, with their audio; dropped ones are skipped.
        columns: as `ItemMaker.columns`.
        count: usable items.
        size_bytes: of their audio.
    """
    import pyarrow.parquet as pq

    data = folder / "data"
    shards = max(1, -(-size_bytes // SHARD_BYTES))
    each = -(-count // shards)
    usable = (outcome for outcome in outcomes if outcome.row is not None)
    schema = _schema(columns)
    # Audio is compressed already, without repetitions.
    small = ["id", "audio.path"]
    small += [f"{name}.list.element" if kind == "texts" else name for name, kind in columns.items()]
    options = {"compression": {_SOUND: "none", **dict.fromkeys(small, "zstd")}, "use_dictionary": small}
    written: list[Path] = []
    with on_disk("file_not_writable", path=data):
        data.mkdir(exist_ok=True)
        for number in range(shards):
            path = data / f"{SPLIT}-{number:05d}-of-{shards:05d}.parquet"
            partial = path.with_suffix(".part")
            with pq.ParquetWriter(partial, schema, **options) as writer:
                for rows in _batches(usable, min(each, count - number * each)):
                    writer.write_table(_table(rows, schema, columns), row_group_size=_GROUP)
            os.replace(partial, path)
            written.append(path)
        for other in set(data.glob("*.parquet")) - set(written):
            other.unlink()
    return written


def _batches(items: Iterator[BuildItem], count: int) -> Iterator[list[BuildItem]]:
    """Yield at most `count` items, in lists of limited size."""
    while count > 0:
        rows = list(islice(items, min(count, _GROUP)))
        if not rows:
            return
        count -= len(rows)
        yield rows


def _schema(columns: Mapping[str, str]) -> pa.Schema:
    """Build the Arrow schema, with the types that the Hugging Face hub reads."""
    import pyarrow as pa

    types = {"text": pa.string(), "texts": pa.list_(pa.string()), "number": pa.float64()}
    features: dict[str, Any] = {"id": {"dtype": "string", "_type": "Value"}, "audio": {"_type": "Audio"}}
    for name, kind in columns.items():
        value = {"dtype": _DTYPES.get(kind, "string"), "_type": "Value"}
        features[name] = {"feature": value, "_type": "List"} if kind == "texts" else value
    sound = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields = [("id", pa.string()), ("audio", sound), *((name, types[kind]) for name, kind in columns.items())]
    declared = json.dumps({"info": {"features": features}})
    return pa.schema(fields, metadata={"huggingface": declared})


def _table(rows: Sequence[BuildItem], schema: pa.Schema, columns: Mapping[str, str]) -> pa.Table:
    """Build the table of some usable items, with their audio."""
    import pyarrow as pa

    held: dict[str, list[Any]] = {
        "id": [one.key for one in rows],
        "audio": [{"bytes": one.sound, "path": f"{one.key}.flac"} for one in rows],
    }
    for name in columns:
        held[name] = [(one.row or {}).get(name) for one in rows]
    return pa.table(held, schema=schema)


def write_dropped(folder: Path, outcomes: Iterable[BuildItem], steps: Sequence[str]) -> None:
    """Write `dropped.jsonl`: for each dropped item its reason, and all its tries.

    Args:
        steps: of the build, in order; the try that came furthest gives the reason.
    """
    lines = []
    for one in outcomes:
        if not one.is_usable:
            last = reason_of(one, steps)
            tries = [{"step": f.step, "reason": f.reason, "detail": f.detail} for f in one.failures]
            line = {"id": one.key, "step": last.step, "reason": last.reason, **one.groups, "tries": tries}
            lines.append(json.dumps(to_json(line), ensure_ascii=False))
    write_text(folder / "dropped.jsonl", "".join(f"{line}\n" for line in lines))


def yaml_text(value: Any) -> str:
    """Format a value as YAML, without sorting mappings."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))


def table_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format a table in Markdown, with cells escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _spread(values: Sequence[float]) -> list[str]:
    """Format minimum, quartiles and maximum."""
    import numpy as np

    return [f"{value:.2f}" for value in np.percentile(values, [0, 25, 50, 75, 100])] if values else ["-"] * 5


def funnel_text(funnel: Funnel) -> str:
    """Format the counts of usable and dropped items by step as tables in Markdown."""
    parts = [
        table_text(("step", "items that reached it", "dropped because", "dropped"), funnel.rows()),
        f"There were {funnel.tries:,} tries for {funnel.items:,} items. Tries that failed, also those of items that "
        f"became usable:\n",
        table_text(("step", "reason", "tries"), funnel.counts(funnel.failed) or [("-", "none failed", 0)]),
    ]
    for name, held in funnel.as_dict()["groups"].items():
        rows = [(value, *counts.values()) for value, counts in held.items()]
        parts.append(table_text((name, "items", "kept", "tries"), rows))
    return "\n".join(parts)


_HUB_LICENCES = {
    "apache-2.0", "mit", "gpl-3.0", "cc0-1.0", "cc-by-3.0", "cc-by-sa-3.0", "cc-by-nc-3.0", "cc-by-nc-sa-3.0",
    "cc-by-4.0", "cc-by-sa-4.0",
    "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odc-by", "odbl", "cdla-permissive-2.0",
    "cdla-sharing-1.0",
}  # fmt: skip
"""Licences by the names that the hub has for them: https://huggingface.co/docs/hub/repositories-licenses."""


def benchmark_text(recipe: Recipe, groups: Sequence[str], item_count: int) -> str:
    """Format `benchmark.yaml`, which defines the data set as a benchmark.

    Args:
        groups: columns whose values name subsets.
    """
    form = recipe.form
    # The folder's name may not be one for a benchmark; and under a separate name, a set with a looser check never
    # shares a line with that of the strict one.
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
                **({"speaker": recipe.unit} if recipe.unit else {}),
                "id": "id",
                "size": item_count,
            },
            "prompt": form.prompt,
            "postprocess": list(form.postprocess),
            "metrics": list(form.metrics),
            "primary": form.metrics[0],
            "subsets": {name: name for name in groups},
        }
    )


def check_benchmark(recipe: Recipe) -> None:
    """Raise UserError if the recipe's benchmark definition would be refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"id", *recipe.form.columns.values(), *([recipe.unit] if recipe.unit else [])}
    with TemporaryDirectory() as folder:
        # Validate with an empty row, since the data are written later.
        (Path(folder) / "data").mkdir()
        pq.write_table(pa.table({name: [""] for name in sorted(columns)}), Path(folder) / "data" / f"{SPLIT}-0.parquet")
        file = Path(folder) / "benchmark.yaml"
        file.write_text(benchmark_text(recipe, [], 1), encoding="utf-8")
        front = yaml_text({"pretty_name": recipe.full_title})  # the hub's library warns of a card that begins otherwise
        (Path(folder) / "README.md").write_text(f"---\n{front}---\n", encoding="utf-8")
        problems = validate_benchmark(str(file), with_rows=False)
    if problems:
        raise UserError(
            "recipe_makes_no_benchmark", causes="; ".join(one.message for one in problems), hint=problems[0].hint
        )


def card_text(
    recipe: Recipe, facts: Mapping[str, Any], funnel: Funnel, numbers: Mapping[str, Sequence[float]], review: str = ""
) -> str:
    """Format the README: method, counts, sources, licences, spread of numbers.

    Args:
        facts: as `ItemMaker.facts`, and the versions of the tools.
        numbers: the values of the numeric columns.
        review: a sentence on the review by people, or empty.
    """
    front: dict[str, Any] = {"pretty_name": recipe.full_title}
    front |= _front_licence(recipe.licence) if recipe.licence else {}
    front |= {"language": [recipe.language]} if recipe.language else {}
    front["configs"] = [{"config_name": "default", "data_files": [{"split": SPLIT, "path": f"data/{SPLIT}-*"}]}]
    spreads = [(name, *_spread(values)) for name, values in numbers.items()]
    parts = [
        f"---\n{yaml_text(front)}---\n\n# {recipe.full_title}\n\n{recipe.summary}\n",
        f"{funnel.usable:,} of {funnel.items:,} items are usable. `dropped.jsonl` has the reason of every item that "
        "was dropped."
        + (" `benchmark.yaml` is the definition that `codec-bench run` takes.\n" if funnel.usable else "\n"),
        f"{review}\n" if review else "",
        f"Licence: {recipe.licence}.\n" if recipe.licence else "",
        f"Follows {recipe.paper}.\n" if recipe.paper else "",
        "## What became of the items\n",
        funnel_text(funnel),
        "## Sources\n",
        _sources_text(facts["sources"]),
        "## Numbers\n",
        table_text(("column", "least", "25 %", "median", "75 %", "greatest"), spreads),
    ]
    if recipe.choices:
        parts += ["## What was chosen\n", "".join(f"- {choice}\n" for choice in recipe.choices)]
    tools = {name: value for name, value in facts.items() if name != "sources"}
    parts += [
        "## How it was made\n",
        f"The recipe:\n\n```yaml\n{yaml_text(recipe.model_dump(mode='json'))}```\n",
        f"The tools:\n\n```yaml\n{yaml_text(tools)}```\n",
    ]
    return "\n".join(section for section in parts if section)


def _front_licence(licence: str) -> dict[str, str]:
    """Return a licence by the hub's name; others are `other`, with a name."""
    name = re.sub(r"[^a-z0-9.]+", "-", licence.lower()).strip("-.")
    return {"license": name} if name in _HUB_LICENCES else {"license": "other", "license_name": name or "other"}


def _sources_text(sources: Sequence[Mapping[str, Any]]) -> str:
    """Build the table of sources with licences and excluded records."""
    rows = []
    for source in sources:
        licences = ", ".join(f"{text} ({count:,})" for text, count in source["licences"].items())
        left = ", ".join(f"{one['count']:,}: {one['reason']}" for one in source["left_out"]) or "none"
        rows.append((source["name"], source["recordings"], source["taken"], licences, left, source["fingerprint"]))
    return table_text(("source", "records", "taken", "licences", "excluded", "fingerprint"), rows)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a data set is pushed to; the token is never printed."""

    repository: str
    private: bool
    token: str

    def __repr__(self) -> str:
        return f"Target({self.repository!r}, private={self.private})"


def target_of(repository: str, recipe: Recipe, sources: Sequence[Mapping[str, Any]], *, private: bool) -> Target:
    """Check name, licences and token of an upload before the build; raises UserError."""
    from huggingface_hub import get_token

    if not _REPOSITORY.fullmatch(repository):
        raise UserError("repository_form", name=repository, hint="expected OWNER/NAME")
    if recipe.licence is None or _NOT_NAMED.fullmatch(recipe.licence):
        raise UserError("recipe_without_licence", recipe=recipe.title, hint="name it with 'licence' in the recipe")
    for source in sources:
        for licence, count in source["licences"].items():
            if _NOT_NAMED.fullmatch(licence):
                raise UserError(
                    "source_licence_unnamed",
                    count=count,
                    source=source["name"],
                    licence=licence,
                    hint="name it with 'licences' (of texts: 'licence') in the recipe, or leave these records out",
                )
    token = get_token()
    if token is None:
        raise UserError("no_hub_token", hint=_WRITE)
    return Target(repository, private, token)


def push(folder: Path, target: Target) -> str:
    """Upload a data set, and return its address.

    A missing repository is created; data files of an earlier push are removed.

    Raises:
        UserError: the hub refuses the token or the repository, cannot be reached, or the repository is public although
            private was requested.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    silent = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if silent:
        disable_progress_bars()
    api = HfApi(token=target.token)
    try:
        url = api.create_repo(target.repository, repo_type="dataset", private=target.private or None, exist_ok=True)
        if target.private and not api.dataset_info(target.repository).private:
            raise UserError(
                "repository_is_public",
                name=target.repository,
                hint="make it private in its settings on the hub, or give another name",
            )
        api.upload_folder(
            repo_id=target.repository, repo_type="dataset", folder_path=folder, allow_patterns=list(_SENT),
            delete_patterns=f"data/{SPLIT}-*.parquet", commit_message="Built by codec-bench",
        )  # fmt: skip
    except UserError:
        raise
    except Exception as error:  # the classes of huggingface_hub's and its HTTP library's errors change between releases
        raise _push_error(error, target, api.endpoint) from error
    finally:
        if silent:
            enable_progress_bars()
    return str(url)


def _push_error(error: Exception, target: Target, endpoint: str) -> UserError:
    """Convert an error of the hub to one with a hint."""
    fault, message = hub_fault(error)
    match fault:
        case "missing" | "gated" | "revision":
            return UserError("push_forbidden", endpoint=endpoint, name=target.repository, cause=message, hint=_WRITE)
        case "server":
            return UserError(
                "push_refused",
                name=target.repository,
                endpoint=endpoint,
                cause=message,
                hint="give the same command again later; what was built stays",
            )
        case _:
            return UserError(
                "push_failed",
                name=target.repository,
                endpoint=endpoint,
                cause=message,
                hint="check the network and its proxy, and give the same command again; what was built stays",
            )
