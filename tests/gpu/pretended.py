"""A GPU that is not there: tensors say that they are on `cuda:0`, and their numbers are computed on the CPU.

    with pretended() as seen:
        codec = load_codec("dac-16khz", device="cuda:0", weights="random")
        codec.encode(batch)
    seen.waits, seen.uploads         # where the host waited for the device, and where it sent something there

What a real device would refuse is refused here: an operation on tensors of both places, NumPy's view of a tensor on the
device, a Triton kernel that is given a tensor of the CPU or of another type than it reads, a tensor of another stream that
was not waited for. What is copied to pinned memory is there only once its event was waited for. CUDA graphs are recorded and
replayed (`pretended_graphs.py`). Values can be compared with the CPU's. It shows nothing about speed, autocast or rounding of
a real device, nor about memory that is freed too early.

How it works: a tensor on the device is a wrapper (a subclass of Tensor) around one on the CPU. A dispatch mode sees every
operation of torch, unwraps what it is given, lets the CPU compute, and wraps what comes out. Operations of the network
that torch would decompose by device, recurrent layers and Triton kernels, are replaced as wholes.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pretended_graphs
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

HERE, THERE = torch.device("cpu"), torch.device("cuda:0")
_ROOT = Path(__file__).resolve().parents[2]
# What a device can only answer when all earlier work is done, since the shape of the result depends on the values.
_WAITING = {
    "nonzero", "_unique", "_unique2", "unique_dim", "unique_consecutive", "masked_select", "equal", "is_nonzero",
    "repeat_interleave.Tensor",
}  # fmt: skip
_PRODUCTS = {"convolution", "mm", "addmm", "bmm", "baddbmm"}


class Mixed(RuntimeError):
    """An operation that a real device would refuse."""


class There(torch.Tensor):
    """A tensor on the pretended device.

    Attributes
        kept: the tensor on the CPU that holds its numbers. made: the stream that made it, and the step of this stream.
    """

    kept: torch.Tensor
    made: tuple[Stream, int]

    @staticmethod
    def __new__(cls, kept: torch.Tensor) -> There:
        made = torch.Tensor._make_wrapper_subclass(
            cls, kept.shape, strides=kept.stride(), storage_offset=kept.storage_offset(), dtype=kept.dtype,
            layout=kept.layout, device=torch.device("meta"), dispatch_device=True,
        )  # fmt: skip
        made.kept = kept
        made.made = _now().stream.step()
        return made

    device = property(lambda self: THERE)
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)

    def __repr__(self) -> str:
        return f"There({self.kept!r})"

    def __getitem__(self, index: Any) -> Any:
        # torch would make tensors of lists on the device, for which it would start CUDA.
        one = tuple(torch.tensor(part) if isinstance(part, list) else part for part in _as_tuple(index))
        return super().__getitem__(one)

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.cpu().numpy()
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it to the host first"
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def data_ptr(self) -> int:
        raise Mixed("the address of a tensor on the device was asked for")

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _now().run(function, args, kwargs or {})


@dataclass
class Seen:
    """What happened on the device.

    Attributes
        waits, uploads: how often each line of the project made the host wait, or sent numbers to the device.
        launches: how many operations ran there; a replay is one. captures, replays: of CUDA graphs. kernels: how often each Triton kernel was launched.
        rough: lines that multiplied where TensorFloat-32 was allowed.
    """

    waits: Counter[str] = field(default_factory=Counter)
    uploads: Counter[str] = field(default_factory=Counter)
    launches: int = 0
    captures: int = 0
    replays: int = 0
    kernels: Counter[str] = field(default_factory=Counter)
    rough: Counter[str] = field(default_factory=Counter)

    def multiplied(self, *, by_cudnn: bool) -> None:
        """Notes a product, with the precision that is allowed now."""
        operation = torch.backends.cudnn.conv if by_cudnn else torch.backends.cuda.matmul
        if operation.fp32_precision == "tf32":
            self.rough[_line()] += 1

    def forget(self) -> None:
        """Begins to count again."""
        for counts in (self.waits, self.uploads, self.kernels, self.rough):
            counts.clear()
        self.launches = self.captures = self.replays = 0


class Stream:
    """A stream of the pretended device: how many steps it has taken, and which steps of others it has waited for.

    Copies to the host that nobody has waited for are in `copies`.
    """

    def __init__(self, device: Any = None) -> None:
        self.steps = 0
        self.after: dict[Stream, int] = {}
        self.copies: list[Callable[[], Any]] = []

    def step(self) -> tuple[Stream, int]:
        self.steps += 1
        return self, self.steps

    def sees(self, made: tuple[Stream, int]) -> bool:
        return made[0] is self or self.after.get(made[0], 0) >= made[1]

    def wait_stream(self, other: Stream) -> None:
        event = Event()
        event.record(other)
        self.wait_event(event)

    def wait_event(self, event: Event) -> None:
        for stream, steps in event.after.items():
            self.after[stream] = max(steps, self.after.get(stream, 0))


class Event:
    """An event of the pretended device. Its time is the number of launches, in place of milliseconds."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.after: dict[Stream, int] = {}
        self.launches = 0

    def elapsed_time(self, later: Event) -> float:
        return float(later.launches - self.launches)

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or _now().stream
        self.launches = _now().seen.launches
        self.after = {**stream.after, stream: stream.steps}
        self.stream, self.copies = stream, len(stream.copies)

    def synchronize(self) -> None:
        _now().seen.waits[f"event {_line()}"] += 1
        for copy in self.stream.copies[: self.copies]:
            copy()
        self.stream.copies = self.stream.copies[self.copies :]


@contextmanager
def _on(stream: Stream) -> Iterator[None]:
    before, _now().stream = _now().stream, stream
    try:
        yield
    finally:
        _now().stream = before


class _Device(TorchDispatchMode):
    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen = seen
        self.stream = Stream()
        self.capture: Any = None

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(function, args, kwargs or {})

    def run(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """One operation of torch, wherever its tensors are."""
        name, overload = function._schema.name.split("::")[1], function._overloadname
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        there = [tensor for tensor in tensors if isinstance(tensor, There)]
        kwargs = {key: value for key, value in kwargs.items() if key != "pin_memory"}
        asked = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
        if name == "device":
            return THERE
        if name == "_has_compatible_shallow_copy_type":
            return False
        if any(not self.stream.sees(tensor.made) for tensor in there):
            raise Mixed(f"{name} of a tensor of another stream that was not waited for {_line()}")
        if name in ("_to_copy", "copy_"):
            return self._copied(function, args, kwargs, asked)
        if not there and (asked is None or asked.type != "cuda"):
            return function(*args, **kwargs)
        if name == "_local_scalar_dense":
            self._waits("item")
            return function(there[0].kept)
        if name == "_fused_sdp_choice":
            return 0  # attention as plain products
        self._check(name, args, tensors, asked, kwargs.get("generator"))
        if name in _WAITING or f"{name}.{overload}" in _WAITING or (name == "index" and _by_booleans(args[1])):
            self._waits(name)
        self.seen.launches += 1
        if name in _PRODUCTS:
            self.seen.multiplied(by_cudnn=name == "convolution")
        if name == "histc":  # a CPU counts no integers
            args = (args[0].kept.float(), *args[1:])
        given = {key: HERE if key == "device" else value for key, value in kwargs.items()}
        made = self.ran(function, *tree_map(_kept, (args, given)))
        known = {id(tensor.kept): tensor for tensor in there}  # what is written in place is given back as it was
        return tree_map(lambda leaf: known[id(leaf)] if id(leaf) in known else _wrapped(leaf), made)

    def _copied(self, function: Any, args: Any, kwargs: dict[str, Any], asked: torch.device | None) -> Any:
        """A copy, which may go from one place to the other."""
        source = args[1] if function._schema.name.endswith("copy_") else args[0]
        if function._schema.name.endswith("copy_"):
            to, call, given = args[0].device, function, tree_map(_kept, args)
            if to.type == "cpu" and isinstance(source, There) and (*args[2:], kwargs.get("non_blocking", False))[0]:
                if self.capture is not None:
                    raise RuntimeError(f"{pretended_graphs.REFUSED}: a copy to the host {_line()}")
                values = source.kept.clone()
                self.stream.copies.append(lambda: args[0].copy_(values))
                return args[0].fill_(math.nan if args[0].is_floating_point() else -1)
        else:
            # A copy between places is always a copy, which the CPU alone would not make for an equal type.
            to, call, given = asked or source.device, _copy, (function, _kept(source))
        if to.type == "cuda" and not isinstance(source, There) and source.numel():
            self._uploads("")
        elif to.type == "cpu" and isinstance(source, There):
            self._waits("copy")
        options = {key: value for key, value in kwargs.items() if key != "device"}
        if to.type == "cuda" or isinstance(source, There):
            made = self.ran(call, given, options)
        else:
            made = call(*given, **options)
        if function._schema.name.endswith("copy_"):
            return args[0]
        return There(made) if to.type == "cuda" else made

    def ran(self, call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """What an operation on the tensors of the CPU gives; it is recorded if a graph is being captured."""
        made = call(*args, **kwargs)
        if self.capture is not None:
            self.capture.note(call, args, kwargs, made)
        return made

    def _waits(self, what: str) -> None:
        if self.capture is not None:
            raise RuntimeError(f"{pretended_graphs.REFUSED}: {what} {_line()}")
        self.seen.waits[f"{what} {_line()}"] += 1

    def _uploads(self, what: str, count: int = 1) -> None:
        if self.capture is not None:
            raise RuntimeError(f"{pretended_graphs.REFUSED}: an upload {_line()}")
        self.seen.uploads[f"{what}{_line()}"] += count

    def _check(self, name: str, args: Any, tensors: list[Any], asked: Any, generator: Any) -> None:
        strangers = [tensor for tensor in tensors if not isinstance(tensor, There) and tensor.dim()]
        indices = name.startswith(("index", "_index_put")) and isinstance(args[0], There)
        if strangers and indices and isinstance(args[1], (list, tuple)):  # a real device takes them, and uploads them
            self._uploads("index ", len(strangers))
        elif strangers and name not in ("_pad_packed_sequence",):
            raise Mixed(
                f"{name} of tensors in both places: {[(str(t.device), tuple(t.shape)) for t in tensors]} {_line()}"
            )
        if asked is not None and asked.type == "cpu":
            raise Mixed(f"{name} on the CPU of a tensor on the device {_line()}")
        if generator is not None and generator.device.type != "cuda":
            raise Mixed(f"{name}: Expected a 'cuda' device type for generator but found 'cpu' {_line()}")


_devices: list[_Device] = []


def _copy(function: Any, source: torch.Tensor, **options: Any) -> torch.Tensor:
    made = function(source, **options)
    return made.clone() if made is source else made


def _now() -> _Device:
    return _devices[-1]


def _kept(leaf: Any) -> Any:
    return leaf.kept if isinstance(leaf, There) else leaf


def _wrapped(leaf: Any) -> Any:
    return There(leaf) if isinstance(leaf, torch.Tensor) and not isinstance(leaf, There) else leaf


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _by_booleans(indices: Any) -> bool:
    return any(isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in indices or ())


def _line() -> str:
    """The innermost line of the project that led here."""
    frame = sys._getframe(1)
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_ROOT) and file != Path(__file__) and "site-packages" not in file.parts:
            return f"{file.relative_to(_ROOT)}:{frame.f_lineno}"
        frame = frame.f_back
    return "outside the project"


def _unwrapping(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch that is not decomposed, such as a whole LSTM: all its tensors are in one place."""

    def whole(*args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        there = [tensor for tensor in tensors if isinstance(tensor, There)]
        if not there:
            return call(*args, **kwargs)
        # The sizes of a packed sequence are on the CPU on every device.
        strangers = [t for t in tensors if not isinstance(t, There) and t.is_floating_point()]
        if strangers:
            raise Mixed(f"{call.__name__} of tensors in both places {_line()}")
        _now().seen.launches += 1
        _now().seen.multiplied(by_cudnn=True)
        made = _now().ran(call, *tree_map(_kept, (args, kwargs)))
        return tree_map(lambda leaf: _wrapped(leaf) if leaf.is_floating_point() else leaf, made)

    return whole


def _as_kernel(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """A Triton kernel: what it is given must be on the device, and float32 or int64; the same in torch computes it."""

    def made(*args: Any, **kwargs: Any) -> Any:
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor) and not isinstance(leaf, There):
                raise Mixed(f"Pointer argument of Triton's {name} is on the CPU: {tuple(leaf.shape)} {_line()}")
            if isinstance(leaf, There) and leaf.dtype not in (torch.float32, torch.int64):
                raise Mixed(f"Triton's {name} is given {leaf.dtype} {_line()}")
        _now().seen.kernels[name] += 1
        return plain(*args, **kwargs)

    return made


class _Recurrent:
    """torch._VF with recurrent layers that run as wholes."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._functions, name)
        return _unwrapping(found) if name in ("lstm", "gru", "_pack_padded_sequence", "_pad_packed_sequence") else found


def _sent(make: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.tensor(values, device=...)`, which is an upload."""

    def made(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None or torch.device(device).type != "cuda":
            return make(*args, **kwargs, **({} if device is None else {"device": device}))
        if isinstance(args[0], torch.Tensor):
            return args[0].to(device, kwargs.get("dtype"))
        numbers = tree_map(lambda leaf: leaf.item() if isinstance(leaf, There) else leaf, args)
        return make(*numbers, **kwargs).to(device)

    return made


@contextmanager
def pretended() -> Iterator[Seen]:
    """`cuda:0` exists inside, and what happens there is counted."""
    from codec_bench.kernels import first_launch
    from codec_bench.kernels.codebook import gpu as codebook
    from codec_bench.kernels.mask import cpu as mask_plain
    from codec_bench.kernels.mask import gpu as mask
    from codec_bench.kernels.rvq import gpu as rvq
    from codec_bench.kernels.rvq import plain as rvq_plain
    from codec_bench.networks import log_mel

    torch._C._ensureCUDADeviceGuardSet()  # without a driver, the guards of a CUDA device then do nothing
    seen = Seen()
    device = _Device(seen)
    first_launch.triton_fault.cache_clear()
    log_mel._analysis_on.cache_clear()
    with ExitStack() as stack:
        stack.callback(log_mel._analysis_on.cache_clear)
        for where, name, instead in (
            (torch.cuda, "_lazy_init", lambda: None),
            (torch.cuda, "empty_cache", lambda: None),
            (torch.cuda, "device_count", lambda: 1),
            (torch.cuda, "is_available", lambda: True),
            (torch.cuda, "current_device", lambda: 0),
            (torch.cuda, "get_device_capability", lambda *_: (8, 0)),
            (torch.cuda, "set_device", lambda _: None),
            (torch.cuda, "Stream", Stream),
            (torch.cuda, "Event", Event),
            (torch.cuda, "stream", _on),
            (torch.cuda, "current_stream", lambda _=None: device.stream),
            (torch, "tensor", _sent(torch.tensor)),
            (torch, "as_tensor", _sent(torch.as_tensor)),
            (torch, "lstm_cell", _unwrapping(torch.lstm_cell)),
            (torch, "inference_mode", lambda mode=True: torch.no_grad() if mode else nullcontext()),
            (torch.backends.cudnn, "is_acceptable", lambda tensor: False),
            (torch.nn.modules.rnn, "_VF", _Recurrent(torch.nn.modules.rnn._VF)),
            (torch.nn.utils.rnn, "_VF", _Recurrent(torch.nn.utils.rnn._VF)),
            (first_launch, "triton_fault", lambda _: None),
            *pretended_graphs.patches(_now, _on),
            (codebook, "histogram", _as_kernel("histogram", codebook.histogram_plain)),
            (mask, "activate", _as_kernel("activate", mask_plain.activate)),
            *(
                (rvq, name, _as_kernel(name, getattr(rvq_plain, name)))
                for name in ("search_euclidean", "search_factorised", "lookup_euclidean")
            ),
        ):
            stack.enter_context(mock.patch.object(where, name, instead))
        stack.enter_context(
            torch.backends.cudnn.flags(enabled=False, allow_tf32=True)
        )  # as torch sets it, but without cuDNN
        _devices.append(device)
        stack.callback(_devices.pop)
        stack.enter_context(device)
        yield seen
