"""Speed, memory and complexity of a codec, measured in a fresh process.

    load_s               seconds to load codec and libraries; depends on the file cache of the machine.
    real_time_factor     seconds of computing per second of audio, one clip at a time; median after a warm-up call.
    audio_hours_per_hour hours of audio through encoder and decoder in one hour, in batches of similar lengths.
    memory               largest resident size of the process, and of tensors on the GPU.
Timings compare only on one machine with one number of threads; both are recorded.

Parameters and multiply-accumulates per second of encoder and decoder.
A parameter counts for each side that reads it, and once in the total. Buffers such as codebooks are separate.
Multiply-accumulates are those of torch's matrix products, convolutions, attention and recurrent layers: half of
`torch.utils.flop_counter`'s operations, plus the fused layers that it omits. Element-wise operations, normalisation,
activations, lookups, sums, sorting and Fourier transforms are not counted; their operators are listed with the elements
written. Computation outside torch is invisible.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import decode, encode
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_DEPTH = 4
# Operators that move or select numbers and compute nothing.
_FREE = (
    "view", "reshape", "permute", "transpose", "t.", "expand", "slice", "select", "squeeze", "unsqueeze", "alias",
    "detach", "clone",
    "copy", "empty", "zeros", "ones", "full", "arange", "as_strided", "cat", "stack", "split", "chunk", "_to_copy",
    "lift", "item",
    "_local_scalar", "is_nonzero", "pad", "constant", "contiguous", "unfold", "index_put", "index.", "resolve",
    "scalar_tensor",
    "unbind", "flip", "roll", "repeat", "gather", "scatter", "fill", "new_", "embedding", "where", "masked_fill",
    "_reshape", "_unsafe_view", "reflection_pad", "replication_pad",
)  # fmt: skip


class PeakMemory:
    """The peak memory of this process and its GPU tensors since creation."""

    def __init__(self, device: str) -> None:
        self._gpu = device if device.startswith("cuda") and "torch" in sys.modules else None
        self.since_start = True
        try:
            _CLEAR.write_text("5")  # forget the highest resident size so far
            self.since_start = False
        except OSError:
            pass  # then the peak is that since the start of the process
        if self._gpu:
            import torch

            torch.cuda.reset_peak_memory_stats(self._gpu)

    def result(self) -> dict[str, Any]:
        """Return the peaks in bytes, and whether they cover the process since its start."""
        out: dict[str, Any] = {"resident_bytes": _peak_resident(), "resident_since_start": self.since_start}
        if self._gpu:
            import torch

            out["gpu_bytes"] = int(torch.cuda.max_memory_allocated(self._gpu))
        return out


def _peak_resident() -> int:
    """Return the peak resident memory of this process in bytes."""
    try:
        match = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
    except OSError:
        match = None
    if match:
        return int(match[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def threads() -> dict[str, Any]:
    """Return the thread counts of torch and OpenMP, and the usable cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    out: dict[str, Any] = {"cores": cores}
    if "torch" in sys.modules:
        import torch

        out["torch"] = torch.get_num_threads()
    if os.environ.get("OMP_NUM_THREADS"):
        out["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
    return out


def load(build: Callable[[], Any], device: str) -> tuple[Any, dict[str, Any]]:
    """Build a codec; return it, and the seconds and memory that loading took."""
    memory = PeakMemory(device)
    start = perf_counter()
    codec = build()
    return codec, {"load_s": perf_counter() - start, "memory": memory.result()}


def measure_single(codec: Any, material: ProfileClips, settings: Settings, device: str) -> dict[str, Any]:
    """Measure encoding and decoding of one clip: median real-time factors and memory."""
    clip = material.exactly(settings.clip_s)
    decode(codec, encode(codec, [clip]), [clip])
    memory = PeakMemory(device)
    encode_s, decode_s = [], []
    for _ in range(max(1, settings.repeats)):
        start = perf_counter()
        codes = codec.encode([clip])
        middle = perf_counter()
        codec.decode(codes)
        encode_s.append(middle - start)
        decode_s.append(perf_counter() - middle)
    both = np.asarray(encode_s) + np.asarray(decode_s)
    return {
        "clip_s": clip.duration_s,
        "repeats": len(both),
        "encode_real_time_factor": float(np.median(encode_s)) / clip.duration_s,
        "decode_real_time_factor": float(np.median(decode_s)) / clip.duration_s,
        "real_time_factor": float(np.median(both)) / clip.duration_s,
        "fastest": float(both.min()) / clip.duration_s,
        "slowest": float(both.max()) / clip.duration_s,
        "memory": memory.result(),
    }


class BatchClock:
    """Sums the time and memory of batches of at most `batch_s` padded seconds."""

    def __init__(self, device: str, batch_s: float) -> None:
        self._device, self.batch_s = device, batch_s
        self._memory: PeakMemory | None = None
        self._peak: dict[str, Any] = {}
        self._encode_s = self._decode_s = self._audio_s = 0.0
        self._items = self._batches = 0

    def begin(self) -> None:
        """Start measuring the memory of a batch; `add` ends it."""
        self._memory = PeakMemory(self._device)

    def add(self, audio_s: float, items: int, encode_s: float, decode_s: float) -> None:
        """Add one batch: its audio in seconds, items, and times of encoding and decoding."""
        self._audio_s += audio_s
        self._items += items
        self._batches += 1
        self._encode_s += encode_s
        self._decode_s += decode_s
        for key, value in (self._memory.result() if self._memory else {}).items():
            self._peak[key] = max(self._peak.get(key, 0), value)

    def result(self) -> dict[str, Any]:
        """Return throughput as hours of audio per hour, with the totals and peak memory."""
        wall_s = self._encode_s + self._decode_s
        per_hour = lambda seconds: self._audio_s / seconds if seconds > 0 else None  # noqa: E731
        return {
            "audio_hours_per_hour": per_hour(wall_s),
            "encode_hours_per_hour": per_hour(self._encode_s),
            "decode_hours_per_hour": per_hour(self._decode_s),
            "audio_s": self._audio_s,
            "items": self._items,
            "batches": self._batches,
            "batch_s": self.batch_s,
            "memory": self._peak,
        }


def measure_complexity(codec: Any, material: ProfileClips, settings: Settings) -> dict[str, Any]:
    """Count multiply-adds of encoder and decoder per second of audio, and parameters.

    Raises:
        NotApplicable: no torch module is found in the codec.
    """
    modules = _modules(codec)
    if not modules:
        raise NotApplicable(Diagnostic("no_module"))
    clip = material.exactly(min(settings.clip_s, 4.0))
    counter = _counting()
    with counter(modules) as of_encoder:
        codes = encode(codec, [clip])
    with counter(modules) as of_decoder:
        decode(codec, codes, [clip])
    total = _state(modules)
    return {
        "clip_s": clip.duration_s,
        "encoder": of_encoder.result(clip.duration_s),
        "decoder": of_decoder.result(clip.duration_s),
        "parameters": total["parameters"],
        "buffers": total["buffers"],
        "unused_parameters": total["parameters"] - count_parameters(of_encoder.used | of_decoder.used, modules),
    }


def _modules(codec: Any) -> list[Any]:
    """Find the outermost torch modules in the attributes of a codec, recursively."""
    if "torch" not in sys.modules:
        return []
    from torch import nn

    by_id: dict[int, Any] = {}
    seen: set[int] = set()

    def look(value: Any, depth: int) -> None:
        """Record the modules in `value` and its members, down to `_DEPTH` levels."""
        if id(value) in seen or depth > _DEPTH:
            return
        seen.add(id(value))
        if isinstance(value, nn.Module):
            by_id[id(value)] = value
            return
        has_fields = hasattr(value, "__dict__") and not isinstance(value, type)
        fields = value if isinstance(value, dict) else vars(value) if has_fields else {}
        for member in value if isinstance(value, list | tuple) else fields.values():
            look(member, depth + 1)

    look(codec, 0)
    inside = {id(member) for module in by_id.values() for member in module.modules() if member is not module}
    return [module for key, module in by_id.items() if key not in inside]


def _state(modules: list[Any]) -> dict[str, int]:
    """Count `parameters` and other float `buffers` of modules, each storage once."""
    parameters = {p.untyped_storage().data_ptr(): p.numel() for m in modules for p in m.parameters()}
    tensors = [b for m in modules for b in m.buffers() if b.is_floating_point() and b.numel() > 1]
    buffers = {b.untyped_storage().data_ptr(): b.numel() for b in tensors}
    others = sum(n for key, n in buffers.items() if key not in parameters)
    return {"parameters": sum(parameters.values()), "buffers": others}


def count_parameters(used: set[int], modules: list[Any]) -> int:
    """Count the numbers in parameters whose storage is in `used`."""
    sizes = {p.untyped_storage().data_ptr(): p.numel() for m in modules for p in m.parameters()}
    return sum(n for key, n in sizes.items() if key in used)


def _counting() -> Any:
    """Build the context manager that counts torch's multiply-adds; imports torch late."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import flop_registry

    fused = _fused()

    class Counting(TorchDispatchMode):
        def __init__(self, modules: list[Any]) -> None:
            super().__init__()
            self._modules = modules
            self._storages = {p.untyped_storage().data_ptr() for m in modules for p in m.parameters()}
            self.used: set[int] = set()
            self.macs = 0
            self.by_kind: Counter[str] = Counter()
            self.uncounted: Counter[str] = Counter()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            packet = func._overloadpacket
            if packet not in flop_registry and packet not in fused and func is not torch.ops.prim.device.default:
                with self:  # in inference mode a composite operation is not split into its parts before
                    parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            out = func(*args, **kwargs)
            tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            places = {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.layout is torch.strided}
            self.used |= places & self._storages
            name = str(packet).removeprefix("aten.")
            if packet in fused:
                macs = fused[packet](args)
            elif packet in flop_registry:
                macs = flop_registry[packet](*args, **kwargs, out_val=out) // 2
            else:
                if not any(f"{name}.".startswith(free) for free in _FREE):
                    self.uncounted[name] += sum(t.numel() for t in tree_leaves(out) if isinstance(t, torch.Tensor))
                return out
            self.macs += macs
            self.by_kind[name] += macs
            return out

        def result(self, seconds: float) -> dict[str, Any]:
            return {
                "macs_per_s": self.macs / seconds,
                "by_operator": {name: n / seconds for name, n in self.by_kind.most_common()},
                "parameters": count_parameters(self.used, self._modules),
                "not_counted": {name: n / seconds for name, n in self.uncounted.most_common() if n},
            }

    return Counting


def _fused() -> dict[Any, Any]:
    """Operators without a formula in torch.utils.flop_counter."""
    import torch

    return {
        torch.ops.aten.addmm_: _of_product,
        torch.ops.aten.baddbmm_: _of_product,
        torch.ops.aten.addmv: _of_product,
        torch.ops.aten.addmv_: _of_product,
        torch.ops.aten.mv: lambda args: args[0].numel(),
        torch.ops.aten.dot: lambda args: args[0].numel(),
        torch.ops.aten.mkldnn_rnn_layer: _of_mkldnn,
        torch.ops.aten._cudnn_rnn: _of_cudnn,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _of_attention,
    }


def _of_product(args: Any) -> int:
    _, left, right = args[:3]
    return left.numel() * (right.shape[-1] if right.ndim > 1 else 1)


def _of_mkldnn(args: Any) -> int:
    """Count one direction of a recurrent layer over `(time, batch, features)`."""
    steps, batch = args[0].shape[:2]
    return steps * batch * (args[1].numel() + args[2].numel())


def _of_attention(args: Any) -> int:
    """Count attention over `(batch, heads, time, features)`, without masks."""
    query, key, value = args[:3]
    return query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2] * (query.shape[3] + value.shape[3])


def _of_cudnn(args: Any) -> int:
    """Count all layers of a recurrent network, time or batch first."""
    first, second = args[0].shape[:2]
    return first * second * sum(weight.numel() for weight in args[1] if weight.ndim == 2)
