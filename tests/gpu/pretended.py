"""A GPU that is not there: tensors say that they are on `cuda:0`, and their numbers are computed on the CPU.

    with pretended() as seen:
        codec = load_codec("dac-16khz", device="cuda:0", weights="random")
        codec.encode(batch)
    seen.waits, seen.uploads         # where the host waited for the device, and where it sent something there

What a real device would refuse is refused here: an operation on tensors of both places, NumPy's view of a tensor on the
device, a tensor of another stream that was not waited for. So is what it would get wrong in silence: launches of Triton
kernels that use memory which is not theirs (`pretended_launches.py`), memory that another stream could take meanwhile
(`pretended_memory.py`). What is copied to pinned memory is there only once its event was waited for, and an upload from
memory that is not pinned is a wait. Values can be compared with the CPU's. docs/design/kernels.md says what it cannot
see.

How it works: a tensor on the device is a wrapper (a subclass of Tensor) around one on the CPU. A dispatch mode sees
every operation of torch, unwraps what it is given, lets the CPU compute, and wraps what comes out. Operations of the
network that torch would decompose by device, recurrent layers and Triton kernels, are replaced as wholes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, partial
from typing import Any
from unittest import mock

import torch
from pretended_launches import Kernel, kernels_of
from pretended_memory import Block, Memory, Stream, fill_of, poisoned
from pretended_seen import Seen, line
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

HERE, THERE = torch.device("cpu"), torch.device("cuda:0")
# What a device can only answer when all earlier work is done, since the shape of the result depends on the values.
_WAITING = {
    "nonzero", "_unique", "_unique2", "unique_dim", "unique_consecutive", "masked_select", "equal", "is_nonzero",
    "bincount",
    "repeat_interleave.Tensor", "_linalg_check_errors",
}  # fmt: skip
_EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_PRODUCTS = {"convolution", "mm", "addmm", "bmm", "baddbmm"}


class Mixed(RuntimeError):
    """An operation that a real device would refuse."""


class There(torch.Tensor):
    """A tensor on the pretended device.

    Attributes
        kept: the tensor on the CPU that holds its numbers. made: the stream that made it, and the step of this stream.
        block: the piece of memory that it lies in.
    """

    retained: torch.Tensor
    built: tuple[Stream, int]
    block: Block

    @staticmethod
    def __new__(cls, retained: torch.Tensor) -> There:
        output = torch.Tensor._make_wrapper_subclass(
            cls, retained.shape, strides=retained.stride(), storage_offset=retained.storage_offset(),
            dtype=retained.dtype,
            layout=retained.layout, device=torch.device("meta"), dispatch_device=True,
        )  # fmt: skip
        output.retained = retained
        output.built = _now().stream.step()
        output.block = _now().block(retained)
        return output

    device = property(lambda self: THERE)
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: True)
    is_meta = property(lambda self: False)

    def __repr__(self) -> str:
        return f"There({self.retained!r})"

    def __getitem__(self, index: Any) -> Any:
        # torch would make tensors of lists on the device, for which it would start CUDA.
        one = tuple(torch.tensor(item) if isinstance(item, list) else item for item in _as_tuple(index))
        return super().__getitem__(one)

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.cpu().numpy()
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it to the host first"
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def numbers(self) -> torch.Tensor:
        """For tests: what stands in it, without a wait."""
        return self.retained.clone()

    def record_stream(self, stream: Stream) -> None:
        self.block.recorded.add(stream)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __deepcopy__(self, _: Any) -> torch.Tensor:
        return self.clone()

    def data_ptr(self) -> int:
        raise Mixed("the address of a tensor on the device was asked for")

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _now().run(function, args, kwargs or {})


class Event:
    """An event of the pretended device."""

    def __init__(self) -> None:
        self.after: dict[Stream, int] = {}

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or _now().stream
        self.after = {**stream.after, stream: stream.steps}
        self.stream, self.copies = stream, len(stream.copies)

    def synchronize(self) -> None:
        _now().seen.waits[f"event {line()}"] += 1
        _now().memory.host.wait_event(self)
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
        self.memory = Memory()
        seen.early = self.memory.early
        self.stream = Stream()
        self.launches = seen.checks

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and to say so at each operation takes as long as many operations

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(function, args, kwargs or {})

    def block(self, retained: torch.Tensor) -> Block:
        """The piece of memory that a tensor of the device lies in; a new one belongs to the current stream."""
        return self.memory.block(retained, self.stream)

    def run(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """One operation of torch, wherever its tensors are."""
        name, overload = _names(function)
        tensors = _tensors([args, kwargs])
        there = [tensor for tensor in tensors if isinstance(tensor, There)]
        requests = None
        if kwargs:
            if kwargs.get("pin_memory"):
                return self.memory.pin(function(*args, **{**kwargs, "pin_memory": False}))
            kwargs = {key: value for key, value in kwargs.items() if key != "pin_memory"}
            requests = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
        if name == "device":
            return THERE
        if name == "_has_compatible_shallow_copy_type":
            return False
        self.use(name, there)
        if name in ("_to_copy", "copy_"):
            return self._copied(function, args, kwargs, requests)
        if not there and (requests is None or requests.type != "cuda"):
            return function(*args, **kwargs)
        if name == "_local_scalar_dense":
            self._waits("item")
            return function(there[0].retained)
        if name == "_fused_sdp_choice":
            return 0  # attention as plain products
        self._check(name, args, tensors, requests, kwargs.get("generator"))
        if name in _WAITING or f"{name}.{overload}" in _WAITING or _counts_first(name, args):
            self._waits(name)
        self.seen.launches += 1
        if name in _PRODUCTS:
            self.seen.computes(name, there)
            self.seen.multiplied(by_cudnn=name == "convolution")
        if name == "histc":  # a CPU counts no integers
            args = (args[0].retained.float(), *args[1:])
        options = {key: HERE if key == "device" else value for key, value in kwargs.items()}
        here, named = _mapped(_retained, args), _mapped(_retained, options)
        built = function(*here, **named)
        if name in _EMPTY:
            poisoned(built)
        known = {id(tensor.retained): tensor for tensor in there}  # what is written in place is given back as it was
        return _mapped(lambda leaf: known[id(leaf)] if id(leaf) in known else _wrapped(leaf), built)

    def use(self, name: str, there: list[There]) -> None:
        """Notes that the current stream uses tensors, and refuses what it may not use yet."""
        for tensor in there:
            if not self.stream.sees(tensor.built) and not self.memory.host.sees(tensor.built):
                raise Mixed(f"{name} of a tensor of another stream that was not waited for {line()}")
            if tensor.block.owner is not self.stream:
                tensor.block.uses[self.stream] = (self.stream.step()[1], line())

    def _copied(self, function: Any, args: Any, kwargs: dict[str, Any], requests: torch.device | None) -> Any:
        """A copy, which may go from one place to the other."""
        onto = function._schema.name.endswith("copy_")
        source, to = (args[1], args[0].device) if onto else (args[0], requests or args[0].device)
        # As torch does: a copy whose target is made for it goes to pinned memory with `non_blocking`.
        free = bool((*args[2:], kwargs.get("non_blocking", False))[0] if onto else kwargs.get("non_blocking", False))
        options = {key: value for key, value in kwargs.items() if key != "device"}
        if to.type == "cpu" and isinstance(source, There):
            if free and (not onto or self.memory.is_pinned(args[0])):
                return self._later(source, args[0] if onto else _copy(function, source.retained, **options))
            self._waits("copy")
        elif to.type == "cuda" and not isinstance(source, There) and source.numel():
            self._uploads("")
            if not free or not self.memory.is_pinned(source):
                self._waits("upload")
        # A copy between places is always a copy, which the CPU alone would not make for an equal type.
        call, inputs = (function, _mapped(_retained, args)) if onto else (_copy, (function, _retained(source)))
        built = call(*inputs, **options)
        if onto:
            return args[0]
        return There(built) if to.type == "cuda" else built

    def _later(self, source: There, here: torch.Tensor) -> torch.Tensor:
        """A copy to pinned memory, whose numbers are there only after an event was waited for."""
        values = source.retained.clone()
        self.stream.copies.append(lambda: here.copy_(values))
        return here.fill_(fill_of(here))

    def _waits(self, kind: str) -> None:
        self.seen.waits[f"{kind} {line()}"] += 1
        self.memory.host.wait_stream(self.stream)

    def synchronize(self, _: Any = None) -> None:
        """As `torch.cuda.synchronize`: the host waits for all streams."""
        self._waits("synchronize")
        self.memory.wait()

    def _uploads(self, kind: str, count: int = 1) -> None:
        self.seen.uploads[f"{kind}{line()}"] += count

    def _check(self, name: str, args: Any, tensors: list[Any], requests: Any, generator: Any) -> None:
        strangers = [tensor for tensor in tensors if not isinstance(tensor, There) and tensor.dim()]
        indices = name.startswith(("index", "_index_put")) and isinstance(args[0], There)
        if strangers and indices and isinstance(args[1], (list, tuple)):  # a real device takes them, and uploads them
            self._uploads("index ", len(strangers))
            self._waits("index of the host")
        elif strangers and name not in ("_pad_packed_sequence",):
            raise Mixed(
                f"{name} of tensors in both places: {[(str(t.device), tuple(t.shape)) for t in tensors]} {line()}"
            )
        if requests is not None and requests.type == "cpu":
            raise Mixed(f"{name} on the CPU of a tensor on the device {line()}")
        if generator is not None and generator.device.type != "cuda":
            raise Mixed(f"{name}: Expected a 'cuda' device type for generator but found 'cpu' {line()}")


_devices: list[_Device] = []


def _copy(function: Any, source: torch.Tensor, **options: Any) -> torch.Tensor:
    built = function(source, **options)
    return built.clone() if built is source else built


def _now() -> _Device:
    return _devices[-1]


def _retained(leaf: Any) -> Any:
    return leaf.retained if isinstance(leaf, There) else leaf


def _wrapped(leaf: Any) -> Any:
    return There(leaf) if isinstance(leaf, torch.Tensor) and not isinstance(leaf, There) else leaf


@cache
def _names(function: Any) -> tuple[str, str]:
    """The name of an operation, and that of its overload."""
    return function._schema.name.split("::")[1], function._overloadname


def _tensors(trees: Iterable[Any]) -> list[Any]:
    """All tensors in what an operation is given."""
    tensors: list[Any] = []
    for tree in trees:
        if type(tree) in _PLAIN:
            continue
        if isinstance(tree, torch.Tensor):
            tensors.append(tree)
        elif isinstance(tree, (tuple, list, dict)) and tree:
            tensors += _tensors(tree.values() if isinstance(tree, dict) else tree)
    return tensors


_PLAIN = {int, float, bool, str, type(None), torch.dtype, torch.layout, torch.memory_format, torch.device}


def _mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    """As torch's `tree_map`, which takes ten times as long for what almost every operation is given; what no tensor can
    be stays as it is.
    """
    kind = type(tree)
    if kind in _PLAIN:
        return tree
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if kind is tuple or kind is list:
        return kind([item if type(item) in _PLAIN else _mapped(change, item) for item in tree])
    if kind is dict:
        return {key: _mapped(change, item) for key, item in tree.items()}
    return _pytree.tree_map(change, tree) if isinstance(tree, (tuple, list, dict)) else change(tree)


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _counts_first(name: str, args: Any) -> bool:
    """Whether a device must count the places that are true before it can take or write what is there."""
    if name == "index_put_" and args[2].numel() == 1:  # then it is filled where the mask is true
        return False
    indices = args[1] if name in ("index", "index_put_") else ()
    return any(isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in indices or ())


def _unwrapping(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch that is not decomposed, such as a whole LSTM: all its tensors are in one place."""

    def complete(*args: Any, **kwargs: Any) -> Any:
        tensors = _tensors([args, kwargs])
        there = [tensor for tensor in tensors if isinstance(tensor, There)]
        if not there:
            return call(*args, **kwargs)
        # The sizes of a packed sequence are on the CPU on every device.
        strangers = [t for t in tensors if not isinstance(t, There) and t.is_floating_point()]
        if strangers:
            raise Mixed(f"{call.__name__} of tensors in both places {line()}")
        _now().seen.launches += 1
        _now().seen.multiplied(by_cudnn=True)
        here, named = _mapped(_retained, (args, kwargs))
        built = call(*here, **named)
        return _mapped(lambda leaf: _wrapped(leaf) if leaf.is_floating_point() else leaf, built)

    return complete


def _noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch whose shapes are noted before it is decomposed."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        _now().seen.computes(name, [leaf for leaf in _tensors([args, kwargs]) if isinstance(leaf, There)])
        return call(*args, **kwargs)

    return noted


def _as_kernel(name: str, real: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """What launches Triton kernels: its launches are checked, and the same in torch computes the values unless all
    programs run.
    """

    def build(*args: Any, **kwargs: Any) -> Any:
        device = _now()
        device.seen.kernels[name] += 1
        result = real(*args, **kwargs)
        if result.is_meta or device.launches.complete:
            return result
        here, named = _mapped(_retained, (args, kwargs))
        values = There(plain(*here, **named))
        assert (values.shape, values.dtype) == (result.shape, result.dtype), (
            f"{name} gives {result.shape}, in torch {values.shape}"
        )
        return values

    return build


def launching(kernel: Any, *, half: bool = False) -> Kernel:
    """A Triton kernel whose launches on the pretended device are checked; `half` if it takes half precision."""
    known = (torch.float32, torch.int64, *((torch.float16, torch.bfloat16) if half else ()))
    return Kernel(kernel, partial(_mapped, partial(_options, known)), _now().launches)


def _options(known: tuple[torch.dtype, ...], leaf: Any) -> Any:
    """What a kernel is given: a tensor on the device, of a type that it knows.

    One without memory stands for any size.
    """
    if isinstance(leaf, torch.Tensor):
        if not isinstance(leaf, There) and not leaf.is_meta:
            raise Mixed(f"Pointer argument of a Triton kernel is on the CPU: {tuple(leaf.shape)} {line()}")
        if leaf.dtype not in known:
            raise Mixed(f"a Triton kernel is given {leaf.dtype} {line()}")
    if isinstance(leaf, There):
        _now().use("a Triton kernel", [leaf])
    return _retained(leaf)


class _Recurrent:
    """torch._VF with recurrent layers that run as wholes."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        result = getattr(self._functions, name)
        return (
            _unwrapping(result) if name in ("lstm", "gru", "_pack_padded_sequence", "_pad_packed_sequence") else result
        )


def _sent(make: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.tensor(values, device=...)`, which is an upload."""

    def build(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None or torch.device(device).type != "cuda":
            return make(*args, **kwargs, **({} if device is None else {"device": device}))
        if isinstance(args[0], torch.Tensor):
            return args[0].to(device, kwargs.get("dtype"))
        numbers = _mapped(lambda leaf: leaf.item() if isinstance(leaf, There) else leaf, args)
        return make(*numbers, **kwargs).to(device)

    return build


def _attended(q: Any, k: Any, v: Any, gate: Any, by_distance: Any, counts: Any) -> Any:
    """What the kernel of gated attention gives, by torch's attention."""
    from codec_bench.networks.speech_transformer import AttentionBias

    return AttentionBias(counts, q.shape[2], q.shape[1], by_distance).attended(q, k, v, gate)


@contextmanager
def pretended() -> Iterator[Seen]:
    """`cuda:0` exists inside, and what happens there is counted."""
    from codec_bench.kernels import first_launch
    from codec_bench.kernels.convolve import cpu as convolve_plain
    from codec_bench.kernels.convolve import gpu as convolve
    from codec_bench.kernels.first_launch import gpu as smallest
    from codec_bench.kernels.gated_attention import gpu as gated
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
        _devices.append(device)
        stack.callback(_devices.pop)
        for where, name, instead in (
            (torch.cuda, "_lazy_init", lambda: None),
            *((torch.cuda, name, answer) for name, answer in device.memory.answers().items()),
            (torch.cuda, "synchronize", device.synchronize),
            (torch.cuda, "device_count", lambda: 1),
            (torch.cuda, "is_available", lambda: True),
            (torch.cuda, "current_device", lambda: 0),
            (torch.cuda, "get_device_capability", lambda *_: (8, 0)),
            # What is drawn on the device comes from the CPU's generator, which `fork_rng` keeps too.
            (torch.cuda, "get_rng_state", lambda _=None: torch.get_rng_state()),
            (torch.cuda, "set_rng_state", lambda state, _=None: None),
            (torch.cuda, "set_device", lambda _: None),
            (torch.cuda, "Stream", Stream),
            (torch.cuda, "Event", Event),
            (torch.cuda, "stream", _on),
            (torch.cuda, "current_stream", lambda _=None: device.stream),
            (torch, "tensor", _sent(torch.tensor)),
            (torch, "as_tensor", _sent(torch.as_tensor)),
            (
                torch.nn.functional,
                "scaled_dot_product_attention",
                _noted("attention", torch.nn.functional.scaled_dot_product_attention),
            ),
            (torch, "lstm_cell", _unwrapping(torch.lstm_cell)),
            (torch, "inference_mode", lambda mode=True: torch.no_grad() if mode else nullcontext()),
            (torch.backends.cudnn, "is_acceptable", lambda tensor: False),
            (torch.nn.modules.rnn, "_VF", _Recurrent(torch.nn.modules.rnn._VF)),
            (torch.nn.utils.rnn, "_VF", _Recurrent(torch.nn.utils.rnn._VF)),
            (first_launch, "triton_fault", lambda _: None),
            *(
                (module, name, launching(kernel, half=module is gated))
                for module in (smallest, convolve, gated, mask, rvq)
                for name, kernel in kernels_of(module).items()
            ),
            (rvq, "_multiprocessors", lambda _: (8, 108)),
            (torch.cuda, "device_of", lambda _: nullcontext()),
            (convolve, "convolve", _as_kernel("convolve", convolve.convolve, convolve_plain.convolve)),
            (gated, "attend", _as_kernel("attend", gated.attend, _attended)),
            (mask, "activate", _as_kernel("activate", mask.activate, mask_plain.activate)),
            *(
                (rvq, name, _as_kernel(name, getattr(rvq, name), getattr(rvq_plain, name)))
                for name in ("search_euclidean", "search_factorised", "lookup_euclidean")
            ),
        ):
            stack.enter_context(mock.patch.object(where, name, instead))
        stack.enter_context(
            torch.backends.cudnn.flags(enabled=False, allow_tf32=True)
        )  # as torch sets it, but without cuDNN
        stack.enter_context(device)
        yield seen
