"""Finds a local checkpoint and loads its network, without untrusted code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any, cast

from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.weights.catalogue import Checkpoint, File
from codec_bench.weights.find import LocalCheckpoint, places
from codec_bench.weights.pretrained import load_pretrained

CONFIG = "config.json"
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
DTYPES = ("auto", "float32", "bfloat16", "float16")


def locate(name: str, weights: str, revision: str | None = None) -> LocalCheckpoint:
    """Find the checkpoint of a model on this machine.

    Args:
        name: the name of the model, for messages.
        weights: a folder, or a hub id `OWNER/NAME`, looked up in the weight folders.
        revision: commit, tag or branch of a hub copy; not checked for a folder.

    Raises:
        WeightsError: files are missing; the hint is the command that fetches them.
    """
    folder = Path(weights).expanduser()
    if folder.is_dir():
        files = [file for file in (CONFIG, *WEIGHT_FILES) if (folder / file).is_file()]
        if CONFIG not in files or len(files) < 2:
            missing = CONFIG if CONFIG not in files else " or ".join(WEIGHT_FILES)
            raise WeightsError("model_weights_lack", weights=weights, model=name, files=missing)
        return LocalCheckpoint(folder, str(folder), (CONFIG, *_shards(folder, files[1])))
    if weights.count("/") != 1 or weights.startswith((".", "/", "~")):
        raise WeightsError(
            "no_weights_of_model", weights=weights, model=name, hint="give a folder or a hub id OWNER/NAME"
        )
    first, *others = WEIGHT_FILES
    net = File.model_validate({"path": first, "or": [{"path": path} for path in others]})
    entry = Checkpoint(
        name=weights, version=1, summary="", hub=weights, revision=revision, licence="",
        files=(File(path=CONFIG), net),
    )  # fmt: skip
    for folder, used in places(entry):
        paths = entry.inside(folder)
        if paths is not None and _is_of(folder, revision):
            return LocalCheckpoint(folder, used, (CONFIG, *_shards(folder, paths[1])))
    fetch = f"hf download {weights}" + (f" --revision {revision}" if revision else "")
    raise WeightsError(
        "weights_not_on_machine",
        weights=weights,
        model=name,
        hint=f"fetch them: {fetch}; or name their folder: --set {name}.weights=FOLDER",
    )


def _is_of(folder: Path, revision: str | None) -> bool:
    """Whether a folder of the Hugging Face cache is of a revision; True for others."""
    if revision is None or folder.parent.name != "snapshots":
        return True
    reference = folder.parent.parent / "refs" / revision
    commit = reference.read_text().strip() if reference.is_file() else revision
    return folder.name.startswith(commit)


def _shards(folder: Path, file: str) -> list[str]:
    """Return the files of weights: the file, or an index and its shards, all present."""
    if not file.endswith(".index.json"):
        return [file]
    try:
        parts = sorted(set(json.loads((folder / file).read_text("utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise WeightsError("not_a_weights_index", path=folder / file, cause=error) from error
    missing = [shard for shard in parts if not (folder / shard).is_file()]
    if missing:
        raise WeightsError(
            "weights_incomplete",
            folder=folder,
            missing=len(missing),
            files=len(parts),
            example=missing[0],
            hint="fetch them again; files that are complete are not downloaded again",
        )
    return [file, *parts]


def read_config(folder: Path) -> dict[str, Any]:
    """Read the checkpoint's config.json.

    Raises:
        WeightsError: the file is not a JSON object with a `model_type`.
    """
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError("file_not_readable", path=folder / CONFIG, cause=error) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise WeightsError("model_type_missing", path=folder / CONFIG)
    return config


def parse_dtype(name: str, dtype: str, device: str, config: dict[str, Any]) -> str:
    """Return a dtype's name; `auto` is float32 on the CPU, else the checkpoint's.

    A checkpoint without one is loaded in bfloat16.

    Args:
        name: name of the model for messages.
        config: the checkpoint's `config.json`.

    Raises:
        UserError: the dtype is unknown.
    """
    if dtype not in DTYPES:
        raise UserError("model_dtype", model=name, dtype=dtype, hint=f"expected {', '.join(DTYPES)}")
    if dtype != "auto":
        return dtype
    if device == "cpu":
        return "float32"
    inner = config.get("thinker_config") or {}
    declared = config.get("dtype") or config.get("torch_dtype") or inner.get("dtype") or inner.get("torch_dtype")
    return declared if declared in DTYPES[1:] else "bfloat16"


@dataclass(frozen=True, slots=True)
class As:
    """A class of transformers for `load_pretrained`, with dtype, without some parts.

    Args:
        without: prefixes of tensors that are not loaded.
        changes: names and values that replace those of the configuration.
        trust: whether code in the checkpoint may run.
    """

    net_class: str
    dtype: str
    without: Sequence[str] = ()
    changes: tuple[tuple[str, Any], ...] = ()
    trust: bool = False

    @property
    def config_class(self) -> Any:
        """An object that reads the configuration and applies `changes`."""
        return _Configured(self)

    def from_pretrained(self, folder: str, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Load the network from a folder; also return transformers' loading report.

        Tensors that are omitted on purpose are not in the report.
        """
        import torch
        import transformers

        options |= {"dtype": getattr(torch, self.dtype), "trust_remote_code": self.trust}
        kind = getattr(transformers, self.net_class)
        if issubclass(kind, transformers.PreTrainedModel):
            # Qwen2.5-Omni's own method mistakes the loading report for the network; annotations hide `__func__`.
            load = cast(MethodType, transformers.PreTrainedModel.from_pretrained).__func__
            net, report = load(kind, folder, **options)
        else:
            net, report = kind.from_pretrained(folder, **options)
        unexpected = [
            name for name in report.get("unexpected_keys") or () if not str(name).startswith(tuple(self.without))
        ]
        return net, {**report, "unexpected_keys": unexpected}


@dataclass(frozen=True, slots=True)
class _Configured:
    of: As

    def from_pretrained(self, folder: str, **options: Any) -> Any:
        """Read the configuration of a folder, with the values that `changes` replaces."""
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(folder, trust_remote_code=self.of.trust, **options)
        for key, value in self.of.changes:
            setattr(config, key, value)
        return config


def load_net(loader: As, folder: Path, model_type: str, device: str) -> Any:
    """Load a network onto a device, in evaluation mode and without gradients.

    Raises:
        WeightsError: the weights do not fit the network.
    """
    net = load_pretrained(loader, str(folder), {"model_type": model_type})
    return net.to(device).eval().requires_grad_(False)


def codec_of(folder: Path) -> LocalCheckpoint | None:
    """Find the audio codec that a checkpoint's processor names; None if it names none.

    Raises:
        WeightsError: it is not on this machine.
    """
    config = read_settings(folder, "audio_tokenizer_config.json") or read_settings(folder, "processor_config.json").get(
        "audio_tokenizer"
    )
    named = (config or {}).get("audio_tokenizer_name_or_path")
    if named is None:
        return None
    inside = folder / named
    return locate("the codec of the model", str(inside if inside.is_dir() else named))


def read_settings(folder: Path, name: str) -> Mapping[str, Any]:
    """Read a JSON object of the checkpoint; empty if the file is missing.

    Raises:
        WeightsError: the file cannot be read.
    """
    file = folder / name
    if not file.is_file():
        return {}
    try:
        read = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError("file_not_readable", path=file, cause=error) from error
    return read if isinstance(read, dict) else {}
