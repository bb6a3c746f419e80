"""Upload of a built data set to the Hugging Face hub, with its checks.

Everything is checked before anything is made or sent: the name's form, the token, the licences. Only the files of the
data set are sent; the record and the keys of review sheets stay local.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.apps.building.data_set import SPLIT
from codec_bench.apps.building.page import PAGE
from codec_bench.apps.building.recipe import Recipe
from codec_bench.errors import UserError, hub_fault

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NOT_NAMED = re.compile(r"\s*|.*\b(unknown|not (known|named)|unclear)\b.*", re.IGNORECASE | re.DOTALL)
_SENT = (f"data/{SPLIT}-*.parquet", "README.md", "benchmark.yaml", "dropped.jsonl", "funnel.json", PAGE)
_WRITE = (
    "a token that may write is made at https://huggingface.co/settings/tokens; give it as HF_TOKEN, or type: hf auth "
    "login"
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a data set is pushed to; the token is never printed."""

    repository: str
    private: bool
    token: str

    def __repr__(self) -> str:
        return f"Target({self.repository!r}, private={self.private})"


def target_of(repository: str, recipe: Recipe, sources: Sequence[Mapping[str, Any]], *, private: bool) -> Target:
    """Check name, licences and token before the build; raises UserError."""
    from huggingface_hub import get_token

    if not _REPOSITORY.fullmatch(repository):
        raise UserError(f"'{repository}' is no name of a repository", hint="expected OWNER/NAME")
    if recipe.licence is None or _NOT_NAMED.fullmatch(recipe.licence):
        raise UserError(
            f"the recipe '{recipe.title}' does not name the licence under which the data set is given on, so it is not "
            f"pushed",
            hint="name it with 'licence' in the recipe",
        )
    for source in sources:
        for licence, count in source["licences"].items():
            if _NOT_NAMED.fullmatch(licence):
                raise UserError(
                    f"the licence of {count:,} records of '{source['name']}' is not named ('{licence}'), so the data "
                    f"set is not pushed",
                    hint="name it with 'licences' (of texts: 'licence') in the recipe, or leave these records out",
                )
    token = get_token()
    if token is None:
        raise UserError("there is no token of the Hugging Face hub, so the data set cannot be pushed", hint=_WRITE)
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
                f"the data set '{target.repository}' exists already and is public, so nothing was pushed",
                hint="make it private in its settings on the hub, or give another name",
            )
        api.upload_folder(
            repo_id=target.repository, repo_type="dataset", folder_path=folder, allow_patterns=list(_SENT),
            delete_patterns=f"data/{SPLIT}-*.parquet", commit_message="Built by codec-bench",
        )  # fmt: skip
    except UserError:
        raise
    except Exception as error:  # the classes of huggingface_hub's and its HTTP library's errors change between releases
        raise _trouble(error, target, api.endpoint) from error
    finally:
        if silent:
            enable_progress_bars()
    return str(url)


def _trouble(error: Exception, target: Target, endpoint: str) -> UserError:
    fault, message = hub_fault(error)
    match fault:
        case "missing" | "gated" | "revision":
            return UserError(
                f"'{endpoint}' does not let this token write the data set '{target.repository}': it answered {message}",
                hint=_WRITE,
            )
        case "server":
            return UserError(
                f"'{target.repository}' could not be pushed: '{endpoint}' answered {message}",
                hint="give the same command again later; what was built stays",
            )
        case _:
            return UserError(
                f"'{target.repository}' could not be pushed to '{endpoint}': {message}",
                hint="check the network and its proxy, and give the same command again; what was built stays",
            )
