"""Search and lookup for residual quantisers, and which code ran.

    quantiser = adopt(model.quantizer)              # transformers' EnCodec, DAC, Mimi or X-codec
    codes, implementation = search(latents, quantiser, codebooks=8) latents, implementation = lookup(codes, quantiser)

`blas` is cpu.py, `triton` gpu.py, and `torch` plain.py, for a device without Triton and shapes beyond a GPU's
registers. Because of float32 rounding, at most 1e-4 of the frames differ from transformers' codes; there, the first
different codewords' distances differ by less than 1e-5 of the distance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import torch
from torch.nn.functional import normalize

from codec_bench.kernels.first_launch import KernelResult, triton_works

Implementation = Literal["blas", "triton", "torch"]


@dataclass(frozen=True, eq=False)
class Euclidean:
    """Nearest codewords of the residual: EnCodec, X-codec, halves of Mimi.

    Args:
        embed: float32 `(codebooks, entries, dims)`, contiguous.
        project: weights `(dims, hidden)` of the 1x1 convolution before the search, or None.
        expand: weights `(hidden, dims)` of the 1x1 convolution after the lookup, or None.
    """

    embed: torch.Tensor
    project: torch.Tensor | None = None
    expand: torch.Tensor | None = None
    offsets: torch.Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "embed", _checked("codewords", self.embed, 3))
        object.__setattr__(self, "offsets", (-0.5 * self.embed.double().square().sum(2)).float())

    @property
    def codebooks(self) -> int:
        """The number of codebooks."""
        return len(self.embed)


@dataclass(frozen=True, eq=False)
class Factorised:
    """DAC's quantiser: codewords of few dimensions, compared by direction.

    Codeword e of codebook j subtracts the constant `project[i] (expand[j] e + bias[j])` from the projection for a later
    codebook i. With a table of them the residual is never needed: one product gives all projections of the latents, and
    the search works in `dims` dimensions.

    Args:
        embed: float32 `(codebooks, entries, dims)`.
        project, project_bias: `(codebooks, dims, hidden)`, `(codebooks, dims)`.
        expand, expand_bias: `(codebooks, hidden, dims)`, `(codebooks, hidden)`.
    """

    embed: torch.Tensor
    project: torch.Tensor
    project_bias: torch.Tensor
    expand: torch.Tensor
    expand_bias: torch.Tensor
    steps: torch.Tensor = field(init=False, repr=False)
    directions: torch.Tensor = field(init=False, repr=False)
    wide: torch.Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, dimensions in {"embed": 3, "project": 3, "project_bias": 2, "expand": 3, "expand_bias": 2}.items():
            object.__setattr__(self, name, _checked(name, getattr(self, name), dimensions))
        codebooks, entries, dims = self.embed.shape
        steps = self.embed.new_zeros(codebooks, entries, codebooks, dims)
        for index in range(codebooks - 1):
            expanded = self.embed[index].double() @ self.expand[index].double().T + self.expand_bias[index].double()
            later = self.project[index + 1 :].double().flatten(0, 1)
            steps[index, :, index + 1 :] = (expanded @ later.T).view(entries, -1, dims).float()
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "directions", normalize(self.embed, dim=2))
        wide = self.expand.transpose(0, 1).flatten(1).contiguous()
        object.__setattr__(self, "wide", wide)  # (hidden, codebooks * dims)

    @property
    def codebooks(self) -> int:
        """The number of codebooks."""
        return len(self.embed)


@dataclass(frozen=True, eq=False)
class Split:
    """Quantisers of the same latents whose results are added, as Mimi's."""

    parts: tuple[Euclidean, ...]

    @property
    def codebooks(self) -> int:
        """The number of codebooks of all parts."""
        return sum(member.codebooks for member in self.parts)


Quantiser = Euclidean | Factorised | Split


def adopt(quantizer: Any) -> Quantiser:
    """Adopt the `.quantizer` of transformers' codec models.

    Rearranged weights are copies: call this again after a change of the model's weights.

    Raises:
        TypeError: the module has another layout.
    """
    with torch.no_grad():
        if hasattr(quantizer, "semantic_residual_vector_quantizer"):
            halves = quantizer.semantic_residual_vector_quantizer, quantizer.acoustic_residual_vector_quantizer
            return Split(tuple(_euclidean(half, half.layers) for half in halves if len(half.layers)))
        for layers in (getattr(quantizer, name, None) for name in ("layers", "quantizers")):
            if layers is not None and all(hasattr(getattr(layer, "codebook", None), "embed") for layer in layers):
                return _euclidean(quantizer, layers)
        if hasattr(quantizer, "quantizers") and all(
            hasattr(quantiser, "out_proj") for quantiser in quantizer.quantizers
        ):
            parts = list(quantizer.quantizers)
            return Factorised(
                torch.stack([quantiser.codebook.weight for quantiser in parts]),
                torch.stack([quantiser.in_proj.weight[:, :, 0] for quantiser in parts]),
                torch.stack([quantiser.in_proj.bias for quantiser in parts]),
                torch.stack([quantiser.out_proj.weight[:, :, 0] for quantiser in parts]),
                torch.stack([quantiser.out_proj.bias for quantiser in parts]),
            )
    raise TypeError(
        f"{type(quantizer).__name__} is laid out like no quantiser of transformers' EnCodec, DAC, Mimi or X-codec"
    )


def implementation(device: torch.device | str, quantiser: Quantiser) -> Implementation:
    """The implementation for this device; a split quantiser's first."""
    if isinstance(quantiser, Split):
        quantiser = quantiser.parts[0]
    if torch.device(device).type == "cpu":
        return "blas"
    if not triton_works(device):
        return "torch"
    from codec_bench.kernels.rvq import gpu

    factorised = isinstance(quantiser, Factorised)
    fits = quantiser.embed.shape[2] <= gpu.MAX_DIMS and not (factorised and quantiser.codebooks > gpu.MAX_CODEBOOKS)
    return "triton" if fits else "torch"


@torch.no_grad()
def search(
    latents: torch.Tensor, quantiser: Quantiser, codebooks: int | None = None, *, use: Implementation | None = None
) -> KernelResult:
    """Search the codes of latents.

    Args:
        latents: float32 `(items, hidden, frames)`, on the quantiser's device, with any strides.
        codebooks: number of codebooks, from the first one on; None for all.
        use: an implementation other than the device's own.

    Returns:
        int64 codes `(items, codebooks, frames)`, and the implementation that ran. Frames of padding get codes too.

    Raises:
        TypeError: latents are not float32. ValueError: latents have another shape, or there are fewer codebooks.
    """
    if latents.dtype != torch.float32:
        raise TypeError(f"latents are {latents.dtype}; expected float32")
    if latents.ndim != 3:
        raise ValueError(f"latents have shape {tuple(latents.shape)}; expected (items, hidden, frames)")
    count = _count(codebooks, quantiser)
    use = use or implementation(latents.device, quantiser)
    if isinstance(quantiser, Split):
        codes = [search(latents, member, share, use=use).value for member, share in _shares(quantiser, count)]
        return KernelResult(torch.cat(codes, 1), use)
    hidden = _hidden(quantiser)
    if latents.shape[1] != hidden:
        raise ValueError(f"latents have shape {tuple(latents.shape)}; expected (items, {hidden}, frames)")
    if isinstance(quantiser, Euclidean):
        if quantiser.project is not None:
            latents = quantiser.project @ latents
        return KernelResult(
            _module(use).search_euclidean(latents, quantiser.embed[:count], quantiser.offsets[:count]), use
        )
    weight = quantiser.project[:count].flatten(0, 1)
    projected = torch.baddbmm(
        quantiser.project_bias[:count].reshape(1, -1, 1), weight.expand(len(latents), -1, -1), latents
    )
    return KernelResult(_module(use).search_factorised(projected, quantiser.directions, quantiser.steps, count), use)


@torch.no_grad()
def lookup(codes: torch.Tensor, quantiser: Quantiser, *, use: Implementation | None = None) -> KernelResult:
    """Look up the latents of codes.

    Args:
        codes: int64 `(items, codebooks, frames)`, of the first codebooks. Every code must be in [0, entries), which is
            not checked on a GPU.
        use: an implementation other than the device's own.

    Returns:
        float32 latents `(items, hidden, frames)`, of any strides, and the implementation that ran.

    Raises:
        ValueError: codes have another shape, or more codebooks than the quantiser has.
    """
    if codes.ndim != 3:
        raise ValueError(f"codes have shape {tuple(codes.shape)}; expected (items, codebooks, frames)")
    count = _count(codes.shape[1], quantiser)
    use = use or implementation(codes.device, quantiser)
    if isinstance(quantiser, Split):
        (member, share), *others = _shares(quantiser, count)
        total, first = _words(codes[:, :share], member, use), share
        for member, share in others:
            total, first = _words(codes[:, first : first + share], member, use, total), first + share
        return KernelResult(total, use)
    if isinstance(quantiser, Euclidean):
        return KernelResult(_words(codes, quantiser, use), use)
    from codec_bench.kernels.rvq.cpu import gather

    words = gather(codes, quantiser.embed)
    weight = quantiser.wide[:, : words.shape[1]].expand(len(codes), -1, -1)
    # Products of matrices are computed by torch on every device.
    ran: Implementation = "blas" if codes.is_cpu else "torch"
    return KernelResult(torch.baddbmm(quantiser.expand_bias[:count].sum(0).view(1, -1, 1), weight, words), ran)


def _words(
    codes: torch.Tensor, quantiser: Euclidean, use: Implementation, onto: torch.Tensor | None = None
) -> torch.Tensor:
    latents = _module(use).lookup_euclidean(codes, quantiser.embed[: codes.shape[1]])
    if quantiser.expand is None:
        return latents if onto is None else onto + latents
    weight = quantiser.expand.expand(len(codes), -1, -1)
    return torch.bmm(weight, latents) if onto is None else torch.baddbmm(onto, weight, latents)


def _module(use: Implementation) -> ModuleType:
    if use == "triton":
        from codec_bench.kernels.rvq import gpu

        return gpu
    if use == "blas":
        from codec_bench.kernels.rvq import cpu

        return cpu
    from codec_bench.kernels.rvq import plain

    return plain


def _euclidean(quantizer: Any, layers: Any) -> Euclidean:
    project, expand = getattr(quantizer, "input_proj", None), getattr(quantizer, "output_proj", None)
    return Euclidean(
        torch.stack([layer.codebook.embed for layer in layers]),
        None if project is None else project.weight[:, :, 0],
        None if expand is None else expand.weight[:, :, 0],
    )


def _hidden(quantiser: Euclidean | Factorised) -> int:
    if isinstance(quantiser, Euclidean):
        return quantiser.embed.shape[2] if quantiser.project is None else quantiser.project.shape[1]
    return quantiser.project.shape[2]


def _count(codebooks: int | None, quantiser: Quantiser) -> int:
    if codebooks is None:
        return quantiser.codebooks
    if not 1 <= codebooks <= quantiser.codebooks:
        raise ValueError(f"{codebooks} codebooks were requested; the quantiser has 1 to {quantiser.codebooks}")
    return codebooks


def _shares(quantiser: Split, count: int) -> list[tuple[Euclidean, int]]:
    shares = []
    for member in quantiser.parts:
        share = min(member.codebooks, count)
        if share:
            shares.append((member, share))
        count -= share
    return shares


def _checked(name: str, values: torch.Tensor, dimensions: int) -> torch.Tensor:
    if values.ndim != dimensions or values.dtype != torch.float32:
        raise ValueError(f"{name} are {values.dtype} of shape {tuple(values.shape)}; expected {dimensions}-d float32")
    return values.detach().contiguous()
