"""Compiles every Triton kernel ahead of time for GPUs that are not here, and reads what each needs of a device.

The tiles are those that the dispatchers choose on each target. What is compiled is what a launch with contiguous frames
would compile: strides of one are constants, and pointers and numbers of dimensions are multiples of 16.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARED_LIMIT = {target: kib * 1024 for target, kib in {80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 120: 99}.items()}
"""Bytes of shared memory of a block, by compute capability without the point (CUDA C++ Programming Guide)."""
STACK_LIMIT = 32
"""Bytes of stack, to which registers are spilt, that a kernel may use."""
_FLOATS = {*"x y alpha taps bias latents embed offsets projected directions steps gate by_distance".split()}
_HALVES = {"q", "k", "v", "out"}
_INTEGERS = {"lengths", "codes", "counts"}


@dataclass(frozen=True)
class Launch:
    """One kernel as a dispatcher launches it on a target.

    Args:
        name: the operation. tile: what a program works on. target: a key of `SHARED_LIMIT`.
        kernel: the function. constants: its arguments that are known when it is compiled.
        warps, stages: options of the launch.
        stack: bytes of stack that it may use; more than usual only where a GPU was measured to be faster so.
    """

    name: str
    tile: str
    target: int
    kernel: Any
    constants: dict[str, Any]
    warps: int = 4
    stages: int = 3
    stack: int = STACK_LIMIT


@dataclass(frozen=True)
class Needs:
    """What a compiled kernel needs: bytes of stack of a thread, bytes of shared memory of a block."""

    stack: int
    shared: int


def launches() -> Iterator[Launch]:
    """Every kernel with every tile that its dispatcher may choose, for every target."""
    from codec_bench.kernels.convolve import CAPABILITY
    from codec_bench.kernels.convolve import gpu as convolve
    from codec_bench.kernels.gated_attention import gpu as gated
    from codec_bench.kernels.mask import gpu as mask
    from codec_bench.kernels.rvq import gpu as rvq

    for target in SHARED_LIMIT:
        block = mask._FRAMES_AT_ONCE
        for activation in ("identity", "elu", "snake"):
            constants = {"x_frame": 1, "ACTIVATION": activation, "BLOCK": block}
            yield Launch(f"activation, {activation}", f"{block} frames", target, mask._activate, constants)
        constants = {"WIDTH": 64, "QUERIES": gated.QUERIES, "KEYS": gated.KEYS}
        shown = f"{gated.QUERIES} queries, {gated.KEYS} keys"
        yield Launch("gated attention", shown, target, gated._attend, constants, gated.WARPS, gated.STAGES)
        if target // 10 == CAPABILITY:
            shown = f"{convolve.FRAMES} frames, {convolve.OUTPUTS} outputs"
            constants = {"x_frame": 1, "PLACES": 7, "WIDTH": 192, "BLOCK_T": convolve.FRAMES}
            constants |= {"BLOCK_O": convolve.OUTPUTS, "BLOCK_C": convolve.CHANNELS}
            yield Launch(
                "convolution", shown, target, convolve._convolve, constants, convolve.WARPS, convolve.STAGES, 320
            )
        sizes = {"codes_frame": 1, "ENTRIES": 1024}
        search = {**sizes, "PRECISION": rvq._PRECISION}
        for dims in (128, 256):
            for tile in rvq.tiles(dims, target // 10):
                constants = {"latents_frame": 1, **search, "CODEBOOKS": 8}
                constants |= {"BLOCK_T": tile.frames, "BLOCK_K": tile.entries, "BLOCK_D": dims}
                shown = f"{tile.frames} frames, {tile.entries} entries"
                yield Launch(
                    f"search, {dims} dimensions", shown, target, rvq._euclidean, constants, tile.warps, tile.stages
                )
            at_once = rvq.lookup_frames(dims)
            constants = {"latents_frame": 1, **sizes, "CODEBOOKS": 8, "BLOCK_T": at_once, "BLOCK_D": dims}
            yield Launch(f"lookup, {dims} dimensions", f"{at_once} frames", target, rvq._lookup, constants)
        for codebooks, width in ((9, 16), (32, 32)):
            tile = rvq.factorised_tile(codebooks)
            constants = {"projected_frame": 1, **search, "CODEBOOKS": codebooks, "BLOCK_Q": width, "BLOCK_D": 16}
            constants |= {"BLOCK_T": tile.frames, "BLOCK_K": tile.entries}
            shown = f"{tile.frames} frames, {tile.entries} entries"
            yield Launch(
                f"factorised search, {codebooks} codebooks", shown, target, rvq._factorised, constants,
                tile.warps, tile.stages,
            )  # fmt: skip


def compiled(launch: Launch) -> Needs:
    """Compiles a launch with the assembler of Triton's wheel and reads what it needs from the machine code."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = launch.kernel.arg_names
    kinds = {
        **dict.fromkeys(_FLOATS, "*fp32"),
        **dict.fromkeys(_INTEGERS, "*i64"),
        **dict.fromkeys(_HALVES, "*fp16"),
        "scale": "fp32",
    }
    signature = {name: "constexpr" if name in launch.constants else kinds.get(name, "i32") for name in names}
    aligned = {
        (at,): [["tt.divisibility", 16]]
        for at, name in enumerate(names)
        if signature[name][0] == "*" or name in ("dims", "q_item", "q_head", "q_frame")
    }
    source = ASTSource(launch.kernel, signature, launch.constants, aligned)
    options = {"num_warps": launch.warps, "num_stages": launch.stages}
    built = triton.compile(source, target=GPUTarget("cuda", launch.target, 32), options=options)
    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        command = [str(program), "--dump-resource-usage", file.name]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    result = re.search(r"STACK:(\d+)", output)
    assert result, output
    return Needs(int(result[1]), built.metadata.shared)
