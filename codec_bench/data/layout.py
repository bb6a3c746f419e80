"""Configurations, splits, files and types of a data set in the hub's layout."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

from codec_bench.data.hub import CONVERTED, Repository, hub_trouble
from codec_bench.messages.errors import MissingExtra, UserError, server_status

_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<of>\d{5})(?P<rest>.*)")
_CARDS = ("README.md", ".huggingface.yaml")


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One configuration of a data set.

    Args:
        splits: the paths of the data files of every split, in order.
        features: the types of the columns by name, as the data set's card declares them.
        sizes: the number of rows of each split, as the card declares it.
        builder: the `datasets` builder that reads files other than Parquet, or None.
    """

    splits: Mapping[str, tuple[str, ...]]
    features: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    builder: Any = None


def read_layout(repository: Repository, config: str | None, data_dir: str | None = None) -> Layout:
    """Find the splits of a configuration and their files, as `datasets` does.

    Args:
        config: the configuration; None takes the default one, or the only one.
        data_dir: the only folder of the repository to read.

    Raises:
        MissingExtra: the library is not installed.
        UserError: there is no such configuration, or no data file.
    """
    if repository.converted:
        if data_dir is not None:
            raise UserError(
                "conversion_without_folder",
                name=repository.name,
                folder=data_dir,
                hint="leave out the revision, so that the repository itself is read",
            )
        return _converted_layout(repository, config)
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("hub_layout", "datasets", "hub") from error
    from datasets.utils import logging

    logging.set_verbosity_error()  # our own message explains the error
    getLogger("huggingface_hub.repocard").setLevel(ERROR)  # a README next to data need not be a card
    source = repository.root if repository.root is not None else f"hf://datasets/{repository.repo}"
    revision = {} if repository.root is not None else {"revision": repository.revision}

    def build(source: str) -> Any:
        try:
            # The library needs a cache folder, although nothing is prepared on disk.
            with tempfile.TemporaryDirectory() as scratch:
                return datasets.load_dataset_builder(source, config, data_dir=data_dir, cache_dir=scratch, **revision)
        except Exception as error:
            raise _layout_error(error, repository, config, source, revision) from error

    if repository.partial:
        with tempfile.TemporaryDirectory() as empty:
            base = _fill_stand_ins(repository, os.path.realpath(empty))
            builder = build(base)
            splits = {name: _with_missing(paths) for name, paths in _files_of(builder, Repository("", base)).items()}
        if not all(path.endswith(".parquet") for paths in splits.values() for path in paths):
            builder = build(source)
    else:
        builder = build(source)
        splits = _files_of(builder, repository)
    sizes = {str(name): info.num_examples for name, info in (builder.info.splits or {}).items() if info.num_examples}
    return Layout(splits, dict(builder.info.features or {}), sizes, builder)


def _files_of(builder: Any, repository: Repository) -> dict[str, tuple[str, ...]]:
    files = builder.config.data_files or {}
    return {str(split): tuple(map(repository.path_of, paths)) for split, paths in files.items()}


def _fill_stand_ins(repository: Repository, folder: str) -> str:
    """Write the card and an empty file for each file of a partially cached repository.

    `datasets` then finds the splits of the whole repository. Without a list of files, those in the cache count, and a
    stand-in for each pattern of the card without a file: reading it names the missing file.

    Args:
        folder: an empty folder, which is also returned.
    """
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    root = Path(str(repository.root))
    names = set(repository.files) or {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    if not repository.files and (root / _CARDS[0]).is_file():
        configs = MetadataConfigs.from_dataset_card_data(DatasetCard.load(root / _CARDS[0]).data)
        patterns = [pattern for one in configs.values() for pattern in _patterns(one.get("data_files"))]
        for pattern in patterns:
            if not any(fnmatch.fnmatch(name, pattern) for name in names):
                stand_in = pattern.replace("**", "*").replace("*", "MISSING")
                names.add(stand_in if "." in os.path.basename(stand_in) else f"{stand_in}.parquet")
    for name in names:
        file = os.path.normpath(os.path.join(folder, name))
        if file.startswith(folder + os.sep):
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "wb"):
                pass
    for card in _CARDS:
        if (root / card).is_file():
            shutil.copyfile(root / card, os.path.join(folder, card))
    return folder


def _patterns(data_files: Any) -> list[str]:
    """Flatten the file patterns of a card's `data_files`, in any of its forms."""
    if isinstance(data_files, str):
        return [data_files]
    if isinstance(data_files, Mapping):
        return _patterns(data_files["path"] if "path" in data_files else list(data_files.values()))
    return [pattern for item in data_files or () for pattern in _patterns(item)]


def _layout_error(
    error: Exception, repository: Repository, config: str | None, source: str, revision: Mapping[str, Any]
) -> UserError:
    """Explain why a data set cannot be opened, as a UserError.

    Args:
        error: the exception of `datasets`.
        source, revision: its arguments.
    """
    import datasets

    if repository.root is None and server_status(error) is not None:
        return hub_trouble(error, str(repository.repo), repository.revision)
    if isinstance(error, RuntimeError) and "scripts" in str(error):
        return UserError(
            "data_set_is_script",
            name=repository.name,
            hint=f"use the hub's conversion to Parquet (revision {CONVERTED}), or a folder of Parquet files",
        )
    names: list[str] = []
    if isinstance(error, ValueError):
        try:
            names = datasets.get_dataset_config_names(source, **revision)
        except Exception:  # the first error says more
            names = []
    if names and config is None and len(names) > 1:
        return UserError("several_configurations", name=repository.name, hint=f"name one: {', '.join(names)}")
    if names and config is not None and config not in names:
        return UserError("no_configuration", name=repository.name, config=config, hint=f"there are: {', '.join(names)}")
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return UserError("splits_unknown", name=repository.name, reason=reason)


def _converted_layout(repository: Repository, config: str | None) -> Layout:
    """The splits of the hub's conversion to Parquet: files CONFIG/SPLIT/0000.parquet.

    A split whose first part alone was converted is called `partial-SPLIT`.
    """
    paths = repository.files or (
        path.relative_to(str(repository.root)).as_posix() for path in Path(str(repository.root)).rglob("*")
    )
    splits_of: dict[str, dict[str, list[str]]] = {}
    for path in sorted(paths):
        parts = path.split("/")
        if len(parts) == 3 and path.endswith(".parquet"):
            splits_of.setdefault(parts[0], {}).setdefault(parts[1], []).append(path)
    if config is None and len(splits_of) > 1 and "default" not in splits_of:
        raise UserError("several_configurations", name=repository.name, hint=f"name one: {', '.join(splits_of)}")
    chosen = config or ("default" if "default" in splits_of else next(iter(splits_of), None))
    if chosen not in splits_of:
        raise UserError(
            "no_configuration", name=repository.name, config=chosen, hint=f"there are: {', '.join(splits_of)}"
        )
    return Layout({split: tuple(paths) for split, paths in splits_of[chosen].items()})


def _with_missing(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Complete the files of a split by their numbers, such as `-00001-of-00004`."""
    matches = [match for path in paths if (match := _SHARD.fullmatch(path)) is not None]
    if not matches or len(matches) < len(paths):
        return paths
    first = matches[0]
    if any(match["stem"] != first["stem"] or match["of"] != first["of"] for match in matches):
        return paths
    here = {int(match["number"]): path for match, path in zip(matches, paths)}
    name = "{stem}-{{:05d}}-of-{of}{rest}".format(**first.groupdict())
    return tuple(here.get(number) or name.format(number) for number in range(int(first["of"])))
