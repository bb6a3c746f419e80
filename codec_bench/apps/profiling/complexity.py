"""Parameters and multiply-accumulates per second of encoder and decoder.

A parameter counts for each side that reads it, and once in the total. Buffers such as codebooks are given separately.
Multiply-accumulates are those of torch's matrix products, convolutions, attention and recurrent layers: half of
`torch.utils.flop_counter`'s operations, plus the fused layers that it omits. Element-wise operations, normalisation,
activations, lookups, sums, sorting and Fourier transforms are not counted; their operators are listed with the elements
written. Computation outside torch is invisible.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import decode, encode
from codec_bench.codecs.checks.material import Material
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic

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


def measure(codec: Any, material: Material, settings: Settings) -> dict[str, Any]:
    """Count one pass through encoder and decoder; raises NotApplicable."""
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
        "unused_parameters": total["parameters"] - len_of(of_encoder.used | of_decoder.used, modules),
    }


def _modules(codec: Any) -> list[Any]:
    """List the outermost torch modules in an object's attributes."""
    if "torch" not in sys.modules:
        return []
    from torch import nn

    by_id: dict[int, Any] = {}
    seen: set[int] = set()

    def look(value: Any, depth: int) -> None:
        if id(value) in seen or depth > _DEPTH:
            return
        seen.add(id(value))
        if isinstance(value, nn.Module):
            by_id[id(value)] = value
        elif isinstance(value, dict):
            for member in value.values():
                look(member, depth + 1)
        elif isinstance(value, list | tuple):
            for member in value:
                look(member, depth + 1)
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            for member in vars(value).values():
                look(member, depth + 1)

    look(codec, 0)
    inside = {id(member) for module in by_id.values() for member in module.modules() if member is not module}
    return [module for key, module in by_id.items() if key not in inside]


def _state(modules: list[Any]) -> dict[str, int]:
    parameters = {p.untyped_storage().data_ptr(): p.numel() for m in modules for p in m.parameters()}
    buffers = {
        b.untyped_storage().data_ptr(): b.numel()
        for m in modules
        for b in m.buffers()
        if b.is_floating_point() and b.numel() > 1
    }
    return {
        "parameters": sum(parameters.values()),
        "buffers": sum(n for key, n in buffers.items() if key not in parameters),
    }


def len_of(used: set[int], modules: list[Any]) -> int:
    """Count the numbers in parameters whose storage is in `used`."""
    sizes = {p.untyped_storage().data_ptr(): p.numel() for m in modules for p in m.parameters()}
    return sum(n for key, n in sizes.items() if key in used)


def _counting() -> Any:
    """Build the class that counts torch's operations, importing torch late."""
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
                "parameters": len_of(self.used, self._modules),
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
