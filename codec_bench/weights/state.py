"""Reads tensors of checkpoints without running pickled code."""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

from codec_bench.config import load_yaml
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, WeightsError

MOST_GROWTH = 2
"""The most growth of an archive when unpacked; `torch.save` does not compress."""
LONGEST_WORD = 2048
_LONG = re.compile(rb"[^\x00-\x20\x7f]{%d}" % (LONGEST_WORD + 1))
_PICKLES = 5
_NO_PICKLES = (".safetensors", ".onnx")
_ALIGNMENT = 64
"""The alignment of torch's tensors in bytes."""


def load_state(path: Path, *, key: str | None = None) -> dict[str, Any]:
    """Load the tensors of a checkpoint by name, on the CPU.

    Args:
        path: a safetensors file, an ONNX file, or a file of torch.save, which is read with `weights_only`.
        key: the entry that holds the tensors, or None if the file holds nothing else.

    Raises:
        WeightsError: the file is broken, or has no such entry.
    """
    import torch

    check_archive(path)
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        elif path.suffix == ".onnx":
            state = _onnx_tensors(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path))
    except Exception as error:  # a broken file raises anything from EOFError to UnpicklingError and SafetensorError
        reason = str(error).split("\n")[0].split(". ")[0]
        raise WeightsError(
            "weights_not_read",
            path=path,
            type=type(error).__name__,
            reason=reason,
            hint="the file may be cut short or another kind of file: codec-bench weights verify",
        ) from error
    if key is not None:
        if not isinstance(state, Mapping) or key not in state:
            raise WeightsError("no_weights_entry", path=path, key=key)
        state = state[key]
    if not isinstance(state, Mapping):
        raise WeightsError("weights_not_tensors", path=path, type=type(state).__name__)
    return {str(name): value for name, value in state.items() if isinstance(value, torch.Tensor)}


def load_configuration(path: Path) -> Any:
    """Load the YAML file next to a checkpoint, or raise WeightsError."""
    try:
        return load_yaml(path)
    except UserError as error:
        raise WeightsError(error.message) from error


def _onnx_tensors(path: Path) -> dict[str, Any]:
    """Read the tensors of an ONNX file by name."""
    import onnx
    import torch
    from onnx import numpy_helper

    held = onnx.load(str(path), load_external_data=False).graph.initializer
    return {tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy()) for tensor in held}


def check_archive(path: Path) -> None:
    """Refuse dangerous archives before unpacking them.

    Refused are archives that grow, compressed tensors (their directory may lie), and words over `LONGEST_WORD`
    characters: torch quotes them in errors, and searches its messages in quadratic time.

    Raises:
        WeightsError: the archive is refused.
    """
    try:
        with ZipFile(path) as archive:
            entries = archive.infolist()
            unpacked, size = sum(entry.file_size for entry in entries), path.stat().st_size
            grows = unpacked > MOST_GROWTH * size
            read = [e for e in entries if e.filename.endswith("data.pkl") or "/data/" in e.filename]
            packed = any(entry.compress_type for entry in read)
            pickles = (
                [archive.read(e) for e in read if e.filename.endswith("data.pkl")] if not (grows or packed) else []
            )
            fit = not any(_LONG.search(pickled) for pickled in pickles)
    except BadZipFile:
        grows, packed, fit = False, False, _words_fit(path)
    except Exception:  # zipfile raises many kinds for a damaged archive; its reader reports it
        return
    if not fit:
        raise WeightsError("word_too_long", path=path, most=LONGEST_WORD)
    if grows:
        raise WeightsError(
            "weights_unpack_too_large",
            path=path,
            size=size,
            unpacked=unpacked,
            hint=f"an archive of torch.save does not grow when it is read; the limit is {MOST_GROWTH} times its size",
        )
    if packed:
        raise WeightsError("tensors_compressed", path=path, hint="torch.save does not compress; save them with it")


def _words_fit(path: Path) -> bool:
    """Whether the first pickles of a torch.save file before 1.6 hold no long word."""
    with path.open("rb") as file:
        read = 0
        try:
            for _ in range(_PICKLES):
                for _, held, _ in pickletools.genops(file):
                    read = file.tell()
                    if isinstance(held, str) and _LONG.search(held.encode("utf-8", "replace")):
                        return False
        except Exception:  # another or a damaged file, whose next words may have no end
            file.seek(read)
            pickled = path.suffix not in _NO_PICKLES
            return not (pickled and any(_LONG.search(file.readline()) for _ in range(2)))
    return True


def unfilled(build: Callable[[], Any]) -> Any:
    """Build a module whose weights have shapes and no memory, for `load_into`.

    No time goes to random values, and the weights are in memory once. Computed values stay: only empty or random
    tensors have none, and each of these must be in the `state_dict`.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    class WithoutMemory(TorchFunctionMode):
        # Random values on the meta device would import torch's compiler (70 MB), so none are drawn.
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            options = kwargs or {}
            if func in (torch.empty, torch.rand, torch.randn) and options.get("device") is None:
                return torch.empty(*args, **{**options, "device": "meta"})
            if func in (torch.nn.init.normal_, torch.Tensor.normal_):
                tensor = args[0] if args else options["tensor"]
                return tensor if tensor.is_meta else func(*args, **options)
            return func(*args, **options)

    with WithoutMemory():
        net = build().eval()
    state = net.state_dict()
    missing = [name for name, buffer in net.named_buffers() if name not in state and buffer.is_meta]
    assert not missing, f"no file holds {missing}, which would have no value"
    return net


def load_tensors(
    folder: Path, shapes: Mapping[str, tuple[int, ...]], *, dtype: str, device: str, unused: Sequence[str] = ()
) -> dict[str, Any]:
    """Load a folder's tensors in transformers' layout: safetensors, else a .bin file.

    They reach the device in the file's dtype, which is often half of the bytes, and are cast there.

    Args:
        shapes: of the required tensors, by name.
        dtype: the name of their type in torch. unused: names of tensors that may be present.

    Raises:
        WeightsError: a file is missing or broken, or tensors are missing, left over or of another shape.
    """
    import torch

    names = ("model.safetensors", "pytorch_model.bin")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise WeightsError("folder_lacks", folder=folder, names=" or ".join(names))
    state = load_state(path)
    check_shapes(state, shapes, path=folder, unused=unused)
    kind = getattr(torch, dtype)
    if device == "cpu":
        return {name: _cast(state.pop(name), kind) for name in shapes}
    return {name: state.pop(name).to(device).to(kind) for name in shapes}


def check_shapes(
    state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], *, path: Path, unused: Sequence[str] = ()
) -> None:
    """Compare tensors with the required shapes.

    Raises:
        WeightsError: tensors are missing, left over or of another shape. The message names the first of each.
    """
    missing = [name for name in shapes if name not in state]
    extra = [name for name in state if name not in shapes and name not in unused]
    reshaped = [
        f"{name} {tuple(state[name].shape)} (expected {shape})"
        for name, shape in shapes.items()
        if name in state and tuple(state[name].shape) != shape
    ]
    if missing or extra or reshaped:
        difference = Diagnostic("tensors_differ", missing=missing, extra=extra, reshaped=reshaped)
        raise WeightsError("tensors_wrong", path=path, difference=difference)


def load_into(net: Any, state: Mapping[str, Any], *, path: Path, unused: Sequence[str] = ()) -> None:
    """Load tensors into a module, in float32. Both must have the same tensors.

    Args:
        net: the module. If it is `unfilled`, the tensors become its own.
        path: the file that they come from, for messages.
        unused: names of tensors in the published file that the module does not have.

    Raises:
        WeightsError: as `check_shapes`.
    """
    import torch

    current = net.state_dict()
    check_shapes(state, {name: tuple(value.shape) for name, value in current.items()}, path=path, unused=unused)
    with torch.no_grad():
        is_unfilled = any(value.is_meta for value in current.values())
        net.load_state_dict(
            {name: _cast(state[name], value.dtype) if is_unfilled else state[name] for name, value in current.items()},
            assign=is_unfilled,
        )
    net.float().eval()


def _cast(value: Any, dtype: Any) -> Any:
    """Cast and align a tensor as in a new module, so products have the same digits."""
    value = value.to(dtype)
    return value if value.is_contiguous() and value.data_ptr() % _ALIGNMENT == 0 else value.contiguous().clone()


def without(state: Mapping[str, Any], *, starts: tuple[str, ...] = (), ends: tuple[str, ...] = ()) -> dict[str, Any]:
    """Drop the tensors whose names start or end with one of these."""
    return {name: value for name, value in state.items() if not name.startswith(starts) and not name.endswith(ends)}
