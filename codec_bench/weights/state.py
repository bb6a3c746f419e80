"""Reading tensors from checkpoints. No pickled code is run, and errors name the tensors that do not fit."""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

from codec_bench.config import load_yaml
from codec_bench.errors import UserError, WeightsError, first_of

MOST_GROWTH = 2
"""How many times its own size an archive may unpack to.

`torch.save` does not compress, so that its archives do not grow.
"""
LONGEST_WORD = 2048
_LONG = re.compile(rb"[^\x00-\x20\x7f]{%d}" % (LONGEST_WORD + 1))
_PICKLES = 5
_NO_PICKLES = (".safetensors", ".onnx")
_ALIGNMENT = 64
"""The bytes at whose multiples torch places tensors."""
NAMED = 3
"""How many differences a message names."""


def load_state(path: Path, *, key: str | None = None) -> dict[str, Any]:
    """The tensors of a checkpoint by name, on the CPU.

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
            f"the weights in '{path}' cannot be read: {type(error).__name__}: {reason}",
            hint="the file may be cut short or another kind of file: codec-bench weights verify",
        ) from error
    if key is not None:
        if not isinstance(state, Mapping) or key not in state:
            raise WeightsError(f"the weights in '{path}' have no entry '{key}'")
        state = state[key]
    if not isinstance(state, Mapping):
        raise WeightsError(f"the weights in '{path}' are a {type(state).__name__}; expected tensors by name")
    return {str(name): value for name, value in state.items() if isinstance(value, torch.Tensor)}


def load_configuration(path: Path) -> Any:
    """What the YAML file next to a checkpoint holds.

    Raises:
        WeightsError: it is no YAML file.
    """
    try:
        return load_yaml(path)
    except UserError as error:
        raise WeightsError(error.message) from error


def _onnx_tensors(path: Path) -> dict[str, Any]:
    import onnx
    import torch
    from onnx import numpy_helper

    held = onnx.load(str(path), load_external_data=False).graph.initializer
    return {tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy()) for tensor in held}


def check_archive(path: Path) -> None:
    """Refuses an archive that unpacks to much more than its size, by its directory and before anything is unpacked.

    It also refuses tensors that are compressed, since the directory may lie of what they unpack to, and words of more
    than `LONGEST_WORD` characters. torch searches the messages of its errors, which quote such words, for a time that
    grows with the square of their length.

    Raises:
        WeightsError: it does, or holds such a word.
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
    except Exception:  # zipfile raises many kinds for a damaged archive; whoever reads it says what it is
        return
    if not fit:
        raise WeightsError(f"the weights in '{path}' hold a word of more than {LONGEST_WORD} characters")
    if grows:
        raise WeightsError(
            f"the weights in '{path}' have {size} bytes and would unpack to {unpacked}",
            hint=f"an archive of torch.save does not grow when it is read; at most {MOST_GROWTH} times its size is taken",
        )
    if packed:
        raise WeightsError(
            f"the tensors in '{path}' are compressed", hint="torch.save does not compress; save them with it"
        )


def _words_fit(path: Path) -> bool:
    """Whether the pickles at the start of a file of torch.save before version 1.6 hold no long word."""
    with path.open("rb") as file:
        read = 0
        try:
            for _ in range(_PICKLES):
                for _, held, _ in pickletools.genops(file):
                    read = file.tell()
                    if isinstance(held, str) and _LONG.search(held.encode("utf-8", "replace")):
                        return False
        except Exception:  # it is no such file, or a damaged one, whose next word or two may have no end
            file.seek(read)
            pickled = path.suffix not in _NO_PICKLES
            return not (pickled and any(_LONG.search(file.readline()) for _ in range(2)))
    return True


def unfilled(build: Callable[[], Any]) -> Any:
    """A module whose weights have shapes and no memory, for `load_into`.

    No time is spent on random values, and the weights are in memory once, not twice. What the constructor computes
    keeps its values: only tensors that it leaves open, or draws, have none.

    Args:
        build: makes the module. Each tensor without a value must be in its `state_dict`, since no other gets one.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    class WithoutMemory(TorchFunctionMode):
        # Without memory, torch imports its compiler (70 MB) to draw nothing: so nothing is drawn.
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
    """The tensors of a folder in the layout of transformers: of model.safetensors, else of pytorch_model.bin.

    They reach the device in the type of the file, which is often half of the bytes, and get theirs there.

    Args:
        folder: that holds the files. shapes: of the tensors that it must have, by name.
        dtype: the name of their type in torch. device: that takes them. unused: names of tensors that it may have.

    Raises:
        WeightsError: a file is missing or broken, or tensors are missing, left over or of another shape.
    """
    import torch

    names = ("model.safetensors", "pytorch_model.bin")
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise WeightsError(f"the folder '{folder}' has no {' or '.join(names)}")
    state = load_state(path)
    check_shapes(state, shapes, path=folder, unused=unused)
    kind = getattr(torch, dtype)
    if device == "cpu":
        return {name: _cast(state.pop(name), kind) for name in shapes}
    return {name: state.pop(name).to(device).to(kind) for name in shapes}


def check_shapes(
    state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], *, path: Path, unused: Sequence[str] = ()
) -> None:
    """Compares tensors with the shapes that they must have.

    Raises:
        WeightsError: tensors are missing, left over or of another shape. The message names the first of each.
    """
    missing = [name for name in shapes if name not in state]
    extra = [name for name in state if name not in shapes and name not in unused]
    others = [
        f"{name} {tuple(state[name].shape)} (expected {shape})"
        for name, shape in shapes.items()
        if name in state and tuple(state[name].shape) != shape
    ]
    wrong = [
        f"{problem} {first_of(names, NAMED)}"
        for problem, names in (("lack", missing), ("have left over", extra), ("have another shape of", others))
        if names
    ]
    if wrong:
        raise WeightsError(f"the weights in '{path}' are not those of this model: they {'; they '.join(wrong)}")


def load_into(net: Any, state: Mapping[str, Any], *, path: Path, unused: Sequence[str] = ()) -> None:
    """Loads tensors into a module, in float32. The module's tensors and those given must be the same.

    Args:
        net: the module. If it is `unfilled`, the tensors given become its own.
        state: the tensors by name.
        path: the file that they come from, for messages.
        unused: names of tensors in the published file that the module does not have.

    Raises:
        WeightsError: tensors are missing, left over or of another shape. The message names the first of each.
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
    """The tensor as a new module would hold it, so that products have the same digits; in a file, tensors lie anyhow."""
    value = value.to(dtype)
    return value if value.is_contiguous() and value.data_ptr() % _ALIGNMENT == 0 else value.contiguous().clone()


def without(state: Mapping[str, Any], *, starts: tuple[str, ...] = (), ends: tuple[str, ...] = ()) -> dict[str, Any]:
    """The tensors whose names neither start nor end with one of these."""
    return {name: value for name, value in state.items() if not name.startswith(starts) and not name.endswith(ends)}
