"""Finding published weights on this machine, and loading them without running anything that is in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.errors import WeightsError

_HUB_ID = re.compile(r"^(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?$")

# Each entry is a file that must be there, as the names that it may have.
Files = Sequence[Sequence[str]]


def cached_folder(repo: str, files: Files, revision: str | None = None) -> str | None:
    """The folder of a hub repository in the local cache if it holds the files, else None. Nothing is fetched."""
    from huggingface_hub import try_to_load_from_cache

    folder = None
    for names in files:
        found = [try_to_load_from_cache(repo, name, revision=revision) for name in names]
        here = [path for path in found if isinstance(path, str)]
        if not here:
            return None
        folder = str(Path(here[0]).parent)
    return folder


def locate(weights: str, files: Files) -> tuple[str, str]:
    """The folder that holds weights, and how to name them in a record.

    Args:
        weights: a folder, or a hub id such as `facebook/encodec_24khz`, optionally with `@REVISION`.

    Raises:
        WeightsError: a folder without the files, or a hub id that is not in the local cache, with the command that
            fetches it.
    """
    if Path(weights).expanduser().is_dir():
        folder = Path(weights).expanduser()
        missing = [" or ".join(names) for names in files if not any((folder / name).is_file() for name in names)]
        if missing:
            raise WeightsError(f"the weights folder '{weights}' has no {', and no '.join(missing)}")
        return str(folder), str(folder)
    match = _HUB_ID.match(weights)
    if match is None or weights.startswith("."):
        raise WeightsError(
            f"there are no weights '{weights}'", hint="expected a folder or a hub id such as facebook/encodec_24khz"
        )
    repo, revision = match["repo"], match["revision"]
    folder = cached_folder(repo, files, revision)
    if folder is None:
        at = f" --revision {revision}" if revision else ""
        raise WeightsError(
            f"the weights '{weights}' are not on this machine", hint=f"fetch them: hf download {repo}{at}"
        )
    return folder, f"{repo}@{Path(folder).name}"  # a snapshot's folder is named by its commit


def load_pretrained(model_class: Any, folder: str, facts: Mapping[str, Any]) -> Any:
    """Loads a transformers model from a folder, in float32, and refuses weights that do not fit it.

    safetensors are preferred; a `.bin` file is read with `weights_only`, so that nothing in it is run.

    Args:
        facts: what the configuration in the folder must say.

    Raises:
        WeightsError: the configuration is another model's, the file is broken, or tensors are missing, left over or of
            another shape.
    """
    import torch

    try:
        config = model_class.config_class.from_pretrained(folder, local_files_only=True)
        wrong = {
            key: getattr(config, key, None)
            for key, value in facts.items()
            if _differs(getattr(config, key, None), value)
        }
        if not wrong:
            with _quiet():
                net, report = model_class.from_pretrained(
                    folder,
                    config=config,
                    local_files_only=True,
                    output_loading_info=True,
                    ignore_mismatched_sizes=True,  # they are in the report, and raised below with their names
                    dtype=torch.float32,
                )
    except Exception as error:  # a broken file raises anything from ValueError to SafetensorError and UnpicklingError
        reason = str(error).split("\n")[0].split(". ")[0]
        raise WeightsError(f"the weights in '{folder}' cannot be loaded: {type(error).__name__}: {reason}") from error
    if wrong:
        says = ", ".join(f"{key} {got} (expected {facts[key]})" for key, got in wrong.items())
        raise WeightsError(f"the weights in '{folder}' are another model's: {says}")
    for key, what in (
        ("missing_keys", "lack"),
        ("unexpected_keys", "have left over"),
        ("mismatched_keys", "have another shape of"),
    ):
        names = sorted(str(name) for name in report.get(key) or ())
        if names:
            raise WeightsError(f"the weights in '{folder}' {what} {len(names)} tensors, such as {names[0]}")
    return net


def _differs(got: Any, expected: Any) -> bool:
    return list(got) != list(expected) if isinstance(expected, (list, tuple)) and got is not None else got != expected


class _quiet:
    """Silences transformers' progress bar and loading report: what they say is checked and raised here."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self._bar, self._level = logging.is_progress_bar_enabled(), logging.get_verbosity()
        logging.disable_progress_bar()
        logging.set_verbosity_error()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        logging.set_verbosity(self._level)
        if self._bar:
            logging.enable_progress_bar()
