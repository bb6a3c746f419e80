"""Launches of Triton kernels on the pretended device: checked where they are made, by programs that Triton's
interpreter runs.

A real device refuses a grid that is too large, and says nothing of a program that reads or writes beside a tensor. Here
every argument has a range of addresses of its own, so each address that a program uses is known to be inside the tensor
that it was made from, or not: exact guards on both sides. A number of 32 bits that overflows gives such an address, or
is noticed itself where the tensor has no memory (`device="meta"`) and may be as large as no machine's.

The programs of a launch run in random order. What one wrote, no other may have read or written, except by atomics. If
all programs run, they do so twice from the same memory, in two orders, and both must give the same bits: atomic sums of
floats do not. Where a test does not ask for all, the first program and the last one run.

What this cannot see: what the programs of a launch do to one another inside a block of threads (barriers, shared
memory), rounding (products are computed in full float32), and what the compiler makes of a kernel (`test_compiled.py`
counts that).
"""

from __future__ import annotations

import ctypes
import math
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction, mangle_type

GRID = (2**31 - 1, 65_535, 65_535)
_BITS = 44
_MIDDLE = 1 << (_BITS - 1)


class Wrong(RuntimeError):
    """A launch that a real device would refuse, or whose programs use memory that is not theirs or each other's."""


@dataclass
class _Buffer:
    """A tensor that a launch was given, and the range of addresses that stands for it.

    Attributes
        address: of its first number, as passed to the kernel. size: bytes up to the end of its last number.
    """

    name: str
    tensor: torch.Tensor
    address: int
    size: int = field(init=False)

    def __post_init__(self) -> None:
        steps = zip(self.tensor.shape, self.tensor.stride(), strict=True)
        last = sum((length - 1) * stride for length, stride in steps)
        self.size = (last + 1) * self.tensor.element_size() if self.tensor.numel() else 0

    @property
    def real(self) -> int:
        """The address of its first number in this process; one of its own if it has no memory."""
        return self.address if self.tensor.is_meta else self.tensor.data_ptr()


class _Programs:
    """The programs of one launch, and what they use.

    Args:
        kernel: its name. buffers: the tensors that it was given.
    """

    def __init__(self, kernel: str, buffers: list[_Buffer]) -> None:
        self.kernel, self.buffers = kernel, {buffer.address >> _BITS: buffer for buffer in buffers}
        self.now: tuple[int, ...] = ()
        self._written: dict[tuple[int, ...], list[np.ndarray]] = {}
        self._read: dict[tuple[int, ...], list[np.ndarray]] = {}
        self._added: list[np.ndarray] = []

    def refuse(self, kind: str) -> None:
        """Raises an error that names the kernel and the program."""
        raise Wrong(f"Triton's {self.kernel}, program {self.now}: {kind}")

    def result(self, addresses: np.ndarray, mask: np.ndarray, width: int, kind: str) -> tuple[np.ndarray, bool]:
        """The places in this process of the addresses that a program uses, and whether they have memory."""
        mask = np.broadcast_to(mask, addresses.shape)
        places, real = np.zeros_like(addresses), True
        keys = addresses >> np.uint64(_BITS)
        for key in _distinct(keys[mask]):
            actual = mask & (keys == key)
            buffer = self.buffers.get(int(key))
            if buffer is None:
                self.refuse(f"{kind} at an address of no tensor")
                continue
            offset = addresses[actual].astype(np.int64) - buffer.address
            outside = (offset < 0) | (offset + width > buffer.size)
            if outside.any():
                self.refuse(
                    f"{kind} {int(outside.sum())} numbers outside '{buffer.name}' {tuple(buffer.tensor.shape)}: at byte"
                    f" {int(offset[outside][0])} of {buffer.size}"
                )
            places[actual] = (offset + buffer.real).astype(np.uint64)
            real = real and not buffer.tensor.is_meta
        return places, real

    def reads(self, ptrs: Any, mask: Any, other: Any, *_: Any) -> Any:
        """In place of the interpreter's masked load."""
        kind = interpreter._get_np_dtype(ptrs.get_element_ty())
        places, real = self.result(ptrs.data, mask.data, np.dtype(kind).itemsize, "reads")
        values = np.zeros_like(ptrs.data, dtype=kind) if other is None else other.data
        self._read.setdefault(self.now, []).append(places[np.broadcast_to(mask.data, places.shape)])
        if real:
            values = interpreter._interpreter.load(places, mask.data, values, kind)
        return interpreter.TensorHandle(np.array(values), ptrs.get_element_ty())

    def writes(self, ptrs: Any, value: Any, mask: Any, *_: Any) -> None:
        """In place of the interpreter's masked store."""
        places, real = self.result(ptrs.data, mask.data, value.data.itemsize, "writes")
        actual = np.broadcast_to(mask.data, places.shape)
        values = np.broadcast_to(value.data, places.shape)[actual]
        used = _distinct(places[actual])
        if used.size < values.size:
            _, first, back = np.unique(places[actual], return_index=True, return_inverse=True)
            if not np.array_equal(values[first][back], values, equal_nan=values.dtype.kind == "f"):
                self.refuse("writes different numbers to one place")
        self._written.setdefault(self.now, []).append(used)
        if real:
            interpreter._interpreter.store(places, value.data, mask.data)

    def adds(self, kind: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        """In place of the interpreter's atomic operation."""
        places, real = self.result(ptr.data, mask.data, val.data.itemsize, "adds to")
        self._added.append(places[np.broadcast_to(mask.data, places.shape)])
        builder = interpreter.InterpreterBuilder
        kinds = builder.ir_rmw_op_to_interpreter_rmw_op[kind], builder.ir_sem_to_interpreter_sem[sem]
        if not real:
            return val
        built = interpreter._interpreter.atomic_rmw(kinds[0], places, val.data, mask.data, kinds[1])
        return interpreter.TensorHandle(built, val.dtype.scalar)

    def check(self) -> None:
        """Raises an error if a program used what another wrote."""
        written = {program: _distinct(np.concatenate(parts)) for program, parts in self._written.items()}
        everything = np.sort(np.concatenate([_NONE, *written.values()]))
        if (twice := everything[1:][everything[1:] == everything[:-1]]).size:
            raise Wrong(f"Triton's {self.kernel}: two programs write to the same place, {_distinct(twice).size} times")
        others = np.sort(np.concatenate([everything, *self._added]))
        for program, parts in self._read.items():
            actual = written.get(program, _NONE)
            if any(not _within(item[_within(item, others)], actual).all() for item in parts):
                raise Wrong(f"Triton's {self.kernel}: program {program} reads what another program writes")
        if any(_within(item, everything).any() for item in self._added):
            raise Wrong(f"Triton's {self.kernel}: a place is added to and written")


_NONE = np.empty(0, np.uint64)


def _distinct(values: np.ndarray) -> np.ndarray:
    """As `np.unique`, which hashes: several times slower for as many addresses as a program uses."""
    if not values.size or (values == values[0]).all():
        return values[:1]
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])]


def _within(places: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which places are among those of a sorted array."""
    if not known.size:
        return np.zeros(places.shape, bool)
    result = (places >= known[0]) & (places <= known[-1])
    near = places[result]
    result[result] = known[np.searchsorted(known, near)] == near
    return result


class Called:
    """A function of Triton that kernels call, as the interpreter runs it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.fn = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _rewritten(self.fn)(*args, **kwargs)


_called = cache(Called)


class _Rewriter(interpreter.FunctionRewriter):  # type: ignore[misc]
    """The interpreter's, which would ask Triton's compiler where a function stands."""

    def _get_jit_fn_file_line(self) -> tuple[str, int]:
        return self.fn.__code__.co_filename, self.fn.__code__.co_firstlineno


@cache
def _rewritten(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel's function as the interpreter runs it, with names of its own module that the interpreter does not
    change.
    """
    names = {
        name: _called(value.fn)
        if isinstance(value, JITFunction)
        else _called(value.kernel.fn)
        if isinstance(value, Kernel)
        else value
        for name, value in function.__globals__.items()
    }
    copied = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copied.__module__, copied.__annotations__ = function.__module__, function.__annotations__
    built: Callable[..., Any] = _Rewriter(copied).rewrite_ast()
    return built


@contextmanager
def _interpreting(programs: _Programs, overflow: bool) -> Iterator[None]:
    """Triton's language is the interpreter's inside, and its memory is checked."""
    builder = interpreter.interpreter_builder
    names = types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
    with ExitStack() as stack:
        stack.callback(interpreter._patch_lang(names).restore)
        for module in (tl, tl.standard):
            for name, value in list(vars(module).items()):
                if isinstance(value, JITFunction):
                    stack.enter_context(mock.patch.object(module, name, _called(value.fn)))
        for name, instead in (
            ("create_masked_load", programs.reads), ("create_masked_store", programs.writes),
            ("create_atomic_rmw", programs.adds), ("options", interpreter.InterpreterOptions(debug=overflow)),
        ):  # fmt: skip
            stack.enter_context(mock.patch.object(builder, name, instead))
        for where, name, instead in _quick_types():
            stack.enter_context(mock.patch.object(where, name, instead))
        # The interpreter's own takes a number from an array of one, which NumPy no longer gives.
        stack.enter_context(mock.patch.object(tl.core.tensor, "__index__", lambda self: int(self.handle.data.item())))
        yield


def _quick_types() -> Iterator[tuple[Any, str, Any]]:
    """Triton's types and shapes, each made once: to make them anew takes two thirds of the interpreter's time."""
    core, np_dtype = tl.core, interpreter._get_np_dtype
    types: dict[Any, Any] = {}
    shapes: dict[Any, Any] = {(): (core.tuple([]), core.constexpr(1))}
    dtypes: dict[str, np.dtype[Any]] = {}
    make_type = core.block_type.__init__

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        key = id(element_ty), tuple([getattr(size, "value", size) for size in shape])
        if key not in types:
            make_type(self, element_ty, shape)
            types[key] = element_ty, dict(vars(self))  # the first keeps the id from being another's
        vars(self).update(types[key][1])

    def tensor(self: Any, handle: Any, type: Any) -> None:
        key = tuple(type.shape.values) if type.is_block() else ()
        if key not in shapes:
            shapes[key] = core.tuple([core.constexpr(size) for size in key]), core.constexpr(math.prod(key))
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = shapes[key]

    def dtype_of(kind: Any) -> Any:
        if kind.name not in dtypes:
            dtypes[kind.name] = np_dtype(kind)
        return dtypes[kind.name]

    yield core.block_type, "__init__", block_type
    yield core.tensor, "__init__", tensor
    yield interpreter, "_get_np_dtype", dtype_of


@dataclass
class Launches:
    """How the launches of a test are checked.

    Attributes
        whole: whether all programs run. known: launches that were checked before, which are not checked again.
    """

    complete: bool = False
    known: set[Any] = field(default_factory=set)

    def launch(self, kernel: JITFunction, grid: tuple[int, ...], args: Any, options: Any) -> None:
        """Checks a launch; the tensors are on the CPU, or have no memory."""
        inputs = dict(zip(kernel.arg_names, args)) | {
            name: options[name] for name in kernel.arg_names if name in options
        }
        name = kernel.fn.__name__.strip("_")
        if any(not 0 <= size <= most for size, most in zip(grid, GRID)):
            raise Wrong(f"Triton's {name}: a grid of {grid}, and a device takes {GRID} at most")
        sign = (kernel.fn, grid, *(_sign(value) for value in inputs.values()))
        if not math.prod(grid) or (not self.complete and sign in self.known):
            return
        self.known.add(sign)
        tensors = [(key, value) for key, value in inputs.items() if isinstance(value, torch.Tensor)]
        buffers = [_Buffer(key, value, (index << _BITS) + _MIDDLE) for index, (key, value) in enumerate(tensors, 1)]
        virtual = any(buffer.tensor.is_meta for buffer in buffers)
        constant = {param.name for param in kernel.params if param.is_constexpr}
        addresses = {buffer.name: buffer for buffer in buffers}
        details = {
            key: value
            if key in constant
            else _pointer(addresses[key])
            if key in addresses
            else interpreter._implicit_cvt(value)
            for key, value in inputs.items()
        }
        run = partial(self._run, kernel, (*grid, 1, 1)[:3], details, buffers, virtual)
        if self.complete and not virtual:
            before = [_bytes(buffer) for buffer in buffers]
            run(seed=1)
            first = [_bytes(buffer) for buffer in buffers]
            for buffer, held in zip(buffers, before, strict=True):
                ctypes.memmove(buffer.tensor.untyped_storage().data_ptr(), held, len(held))
            run(seed=2)
            if first != [_bytes(buffer) for buffer in buffers]:
                raise Wrong(f"Triton's {name}: the numbers depend on the order of its programs")
        else:
            run(seed=1)

    def _run(self, kernel: JITFunction, grid: Any, model: Any, buffers: Any, virtual: bool, seed: int) -> None:
        programs = _Programs(kernel.fn.__name__.strip("_"), buffers)
        rng, count = np.random.default_rng(seed), math.prod(grid)
        order = rng.permutation(count if self.complete and not virtual else sorted({0, count - 1}))
        with _interpreting(programs, overflow=virtual):
            builder = interpreter.interpreter_builder
            builder.set_grid_dim(*grid)
            for index in order.tolist():
                programs.now = index % grid[0], index // grid[0] % grid[1], index // grid[0] // grid[1]
                builder.set_grid_idx(*programs.now)
                try:
                    _rewritten(kernel.fn)(**model)
                except AssertionError as error:  # the interpreter's own check of overflow
                    programs.refuse(str(error))
        programs.check()


def _sign(value: Any) -> Any:
    return (tuple(value.shape), value.stride(), value.dtype) if isinstance(value, torch.Tensor) else value


def _pointer(buffer: _Buffer) -> Any:
    kind = tl.str_to_ty(mangle_type(buffer.tensor), None)
    return tl.tensor(interpreter.TensorHandle(np.array([buffer.address], np.uint64), kind), kind)


def _bytes(buffer: _Buffer) -> bytes:
    storage = buffer.tensor.untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes())


class Kernel:
    """In place of a Triton kernel of a module.

    Args:
        kernel: the kernel. taken: gives the tensors of the CPU for those of the device. launches: checks.
    """

    def __init__(self, kernel: JITFunction, parameters: Callable[[Any], Any], launches: Launches) -> None:
        self.kernel, self._parameters, self._launches = kernel, parameters, launches

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launched(*args: Any, **options: Any) -> None:
            self._launches.launch(self.kernel, tuple(grid), self._parameters(args), self._parameters(options))

        return launched


def kernels_of(module: Any) -> dict[str, JITFunction]:
    """The kernels of a module that are launched: functions that Triton compiles, by name."""
    return {name: value for name, value in vars(module).items() if isinstance(value, JITFunction)}
