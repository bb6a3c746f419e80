"""3x3 convolutions by Winograd's minimal filtering F(4x4, 3x3), compiled for the machine's own vector width.

A tile of 4x4 outputs depends on 6x6 inputs. Inputs and outputs are transformed so that the convolution over channels
becomes 36 independent matrix products: 36 multiplications instead of the 144 of the direct sum. The evaluation points
(0, ±5/8, ±3/2, infinity) keep the relative error near 1e-6 in float32. Tiles of 6x6 would need a fifth fewer
multiplications, but their 64 weight matrices do not fit the second-level cache, so they would not be faster, and their
error is four times as large.

LLVM's loop vectoriser does not keep a block of accumulators in registers. The three inner pieces (forward transform,
matrix product, inverse transform) are therefore written as LLVM instructions on explicit vectors of `LANES` floats. The
code around them is plain numba.

Conventions
    Activations are float32 `(rows, columns, channels)`, C-contiguous, rows being time. Column 0 and the columns after
    the picture's width are zero: they are the padding.
    Channel counts are multiples of `BLOCK`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic
from numpy.polynomial import polynomial

TILE = 4
POINTS = TILE + 2
_PAIRS = (0.625, 1.5)  # each finite point other than zero is used as p and as -p

# The features of the CPU for which numba compiles. The environment may exclude some of them.
_narrowed: str | None = vars(config)["CPU_FEATURES"]  # numba sets its settings when it is imported
_features = (get_host_cpu_features() if _narrowed is None else _narrowed).split(",")
LANES = 16 if "+avx512f" in _features else 8 if "+avx2" in _features else 4
_MANY_REGISTERS = LANES == 16 or not llvmlite.binding.get_default_triple().startswith(("x86", "i"))
# Accumulators of the matrix product, rows x vectors: as many as fit the registers together with the operands.
_WIDE = (6, 4) if _MANY_REGISTERS else (6, 2)
_NARROW = (14, 2) if _MANY_REGISTERS else (6, 2)
BLOCK = _NARROW[1] * LANES
ROWS_OVER = 13  # how many rows a matrix product may write beyond those that it was asked for
_WIDE_BLOCK = _WIDE[1] * LANES
_WIDE_ROWS, _NARROW_ROWS = _WIDE[0], _NARROW[0]
_TILES_AT_ONCE = 18  # enough tiles to reuse the weights, and so few that all products fit the second-level cache
_LINE = 64  # bytes of a cache line
_PAD = _LINE // 4  # a quarter of its bytes: as many floats

_F32, _I64, _I32 = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_F32, LANES)


def _forward_matrix() -> np.ndarray:
    """A matrix from 6 inputs to 6 values. Row j is the polynomial that is zero at every finite point but the j-th."""
    points = [0.0, *(s * p for p in _PAIRS for s in (1.0, -1.0))]
    matrix = np.zeros((POINTS, POINTS))
    for j in range(POINTS - 1):
        matrix[j, : POINTS - 1] = polynomial.polyfromroots(points[:j] + points[j + 1 :])
    matrix[POINTS - 1] = polynomial.polyfromroots(points)
    return matrix


def _weight_matrix() -> np.ndarray:
    """A matrix from 3 taps to 6 values."""
    points = [0.0, *(s * p for p in _PAIRS for s in (1.0, -1.0))]
    matrix = np.zeros((POINTS, 3))
    for j, p in enumerate(points):
        matrix[j] = np.power(p, range(3)) / np.prod([p - q for q in points if q != p])
    matrix[POINTS - 1, 2] = 1.0
    return matrix


def aligned_zeros(shape: int | tuple[int, ...]) -> np.ndarray:
    """float32 zeros that begin on a cache line. No vector then crosses two lines, which saves an eighth of the time."""
    count = int(np.prod(shape))
    memory = np.zeros(count + _PAD, np.float32)
    first = -memory.ctypes.data % _LINE // 4
    return memory[first : first + count].reshape(shape)


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy of `values` as float32 that begins on a cache line."""
    copy = aligned_zeros(values.shape)
    copy[...] = values
    return copy


def transform_weights(weights: np.ndarray) -> np.ndarray:
    """Weights `(out, in, 3, 3)` as the 36 matrices `(36, in, out)` of the products, float32."""
    g = _weight_matrix()
    u = np.einsum("ai,ocij,bj->abco", g, weights.astype(np.float64), g)
    return aligned(u.reshape(POINTS * POINTS, *u.shape[2:]))


Transform = Callable[[list[ir.Value]], list[ir.Value]]


class _Emitter:
    """Emits vector instructions."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.b = builder
        self.fma_function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fmuladd.v{LANES}f32"
        )

    def pointer(self, address: ir.Value, kind: ir.Type = _VECTOR) -> ir.Value:
        return self.b.inttoptr(address, kind.as_pointer())

    def load(self, address: ir.Value) -> ir.Value:
        return self.b.load(self.pointer(address), align=4)

    def store(self, value: ir.Value, address: ir.Value) -> None:
        self.b.store(value, self.pointer(address), align=4)

    def number(self, value: int) -> ir.Value:
        return ir.Constant(_I64, value)

    def fma(self, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
        return self.b.call(self.fma_function, [x, y, z])

    def broadcast(self, address: ir.Value) -> ir.Value:
        scalar = self.b.load(self.pointer(address, _F32), align=4)
        lane = self.b.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(_I32, 0))
        return self.b.shuffle_vector(lane, lane, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))

    def constant(self, value: float) -> ir.Value:
        return ir.Constant(_VECTOR, [float(value)] * LANES)

    def maximum(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered(">", x, y), x, y)

    def minimum(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered("<", x, y), x, y)

    def combine(self, terms: list[tuple[float, ir.Value]]) -> ir.Value:
        """The sum of factor * vector. Factors of zero are left out; those of one come first and need no product."""
        terms = sorted((t for t in terms if t[0] != 0.0), key=lambda t: t[0] != 1.0)
        factor, total = terms[0]
        if factor != 1.0:
            total = self.b.fmul(total, self.constant(factor))
        for factor, vector in terms[1:]:
            if factor == 1.0:
                total = self.b.fadd(total, vector)
            else:
                total = self.fma(vector, self.constant(factor), total)
        return total

    def forward(self, d: list[ir.Value]) -> list[ir.Value]:
        """From 6 inputs to 6 values. The rows for p and -p share their even and their odd part."""
        matrix = _forward_matrix()
        out = [self.combine(list(zip(matrix[0], d)))]
        for j, p in zip(range(1, POINTS - 1, 2), _PAIRS):
            even = self.combine(list(zip(matrix[j, 0::2], d[0::2])))
            odd = self.combine(list(zip(matrix[j, 1::2] / p, d[1::2])))
            out += [self.combine([(1.0, even), (p, odd)]), self.combine([(1.0, even), (-p, odd)])]
        return [*out, self.combine(list(zip(matrix[-1], d)))]

    def inverse(self, m: list[ir.Value]) -> list[ir.Value]:
        """From 6 values to 4 outputs."""
        sums = [self.b.fadd(m[j], m[j + 1]) for j in range(1, POINTS - 1, 2)]
        differences = [self.b.fsub(m[j], m[j + 1]) for j in range(1, POINTS - 1, 2)]
        out = []
        for i in range(TILE):
            terms = [(p**i, v) for p, v in zip(_PAIRS, differences if i % 2 else sums)]
            terms += [(1.0, m[0])] if i == 0 else [(1.0, m[-1])] if i == TILE - 1 else []
            out.append(self.combine(terms))
        return out

    def down(self, value: Callable[[int, int], ir.Value], transform: Transform) -> list[list[ir.Value]]:
        """Transforms each column of a 6x6 grid as soon as `value(row, column)` has made it; returns the rows.

        The instructions are in this order because 36 values at once would not fit the registers.
        """
        return list(map(list, zip(*(transform([value(i, j) for i in range(POINTS)]) for j in range(POINTS)))))

    def forward_grid(self, value: Callable[[int, int], ir.Value], target: ir.Value, step: ir.Value) -> None:
        """Transforms a grid along columns and rows and stores its 36 values, `step` bytes apart."""
        for i, row in enumerate(self.down(value, self.forward)):
            for j, result in enumerate(self.forward(row)):
                self.store(result, self.b.add(target, self.b.mul(step, self.number(i * POINTS + j))))


@intrinsic
def _forward_tile(
    typing: Any, source: Any, row_step: Any, column_step: Any, target: Any, target_step: Any, channels: Any
) -> Any:
    """Reads 6x6 inputs at `source`, writes 36 vectors per LANES channels, `target_step` bytes apart."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, row_step, column_step, target, target_step, channels = arguments
        emit = _Emitter(builder)
        with cgutils.for_range_slice(builder, emit.number(0), channels, emit.number(LANES), _I64, inc=True) as (c, _):
            offset = builder.mul(c, emit.number(4))
            base = builder.add(source, offset)
            rows = [builder.add(base, builder.mul(row_step, emit.number(i))) for i in range(POINTS)]
            columns = [builder.mul(column_step, emit.number(j)) for j in range(POINTS)]

            def value(i: int, j: int, rows: list[ir.Value] = rows, columns: list[ir.Value] = columns) -> ir.Value:
                return emit.load(builder.add(rows[i], columns[j]))

            emit.forward_grid(value, builder.add(target, offset), target_step)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), generate


@intrinsic
def _forward_two_layers(
    typing: Any,
    source: Any,
    row_step: Any,
    limit: Any,
    limit_step: Any,
    taps: Any,
    taps_step: Any,
    target: Any,
    target_step: Any,
    channels: Any,
) -> Any:
    """As `_forward_tile`, but the inputs are themselves a convolution of one channel, which is computed here.

    Reads 8x8 numbers at `source`, and the nine taps and the bias of each channel. The 6x6 values are limited to
    [0, limit]. The limit is zero in the padding.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, row_step, limit, limit_step, taps, taps_step, target, target_step, channels = arguments
        emit = _Emitter(builder)
        zero = emit.constant(0.0)
        with cgutils.for_range_slice(builder, emit.number(0), channels, emit.number(LANES), _I64, inc=True) as (c, _):
            offset = builder.mul(c, emit.number(4))
            base = builder.add(taps, offset)
            *weights, bias = [emit.load(builder.add(base, builder.mul(taps_step, emit.number(n)))) for n in range(10)]

            def value(i: int, j: int, weights: list[ir.Value] = weights, bias: ir.Value = bias) -> ir.Value:
                total = bias
                for n, weight in enumerate(weights):
                    row = builder.add(source, builder.mul(row_step, emit.number(i + n // 3)))
                    total = emit.fma(emit.broadcast(builder.add(row, emit.number(4 * (j + n % 3)))), weight, total)
                row = builder.add(limit, builder.mul(limit_step, emit.number(i)))
                return emit.minimum(emit.maximum(total, zero), emit.broadcast(builder.add(row, emit.number(4 * j))))

            emit.forward_grid(value, builder.add(target, offset), target_step)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 9), generate


def _inverse_tile(pool: bool) -> Callable[..., None]:
    @intrinsic
    def inverse_tile(
        typing: Any,
        source: Any,
        source_step: Any,
        bias: Any,
        target: Any,
        row_step: Any,
        column_step: Any,
        channels: Any,
    ) -> Any:
        """Turns 36 vectors per LANES channels into 4x4 outputs (2x2 after 2x2 maxima), plus bias, rectified."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            source, source_step, bias, target, row_step, column_step, channels = arguments
            emit = _Emitter(builder)
            with cgutils.for_range_slice(builder, emit.number(0), channels, emit.number(LANES), _I64, inc=True) as (
                c,
                _,
            ):
                offset = builder.mul(c, emit.number(4))
                base = builder.add(source, offset)

                def value(i: int, j: int, base: ir.Value = base) -> ir.Value:
                    return emit.load(builder.add(base, builder.mul(source_step, emit.number(i * POINTS + j))))

                out = [emit.inverse(row) for row in emit.down(value, emit.inverse)]
                if pool:
                    out = [
                        [
                            emit.maximum(emit.maximum(a, b), emit.maximum(c, d))
                            for a, b, c, d in zip(above[::2], above[1::2], below[::2], below[1::2])
                        ]
                        for above, below in zip(out[::2], out[1::2])
                    ]
                shift, base = emit.load(builder.add(bias, offset)), builder.add(target, offset)
                for i, values in enumerate(out):
                    row = builder.add(base, builder.mul(row_step, emit.number(i)))
                    for j, own in enumerate(values):
                        rectified = emit.maximum(builder.fadd(own, shift), emit.constant(0.0))
                        emit.store(rectified, builder.add(row, builder.mul(column_step, emit.number(j))))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7), generate

    return inverse_tile


def _product_block(rows: int, vectors: int) -> Callable[..., None]:
    @intrinsic
    def product_block(
        typing: Any, left: Any, left_step: Any, right: Any, right_step: Any, target: Any, target_step: Any, depth: Any
    ) -> Any:
        """One register block of left @ right: `rows` x (`vectors` * LANES) sums over `depth`, in rising order."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            left, left_step, right, right_step, target, target_step, depth = arguments
            emit = _Emitter(builder)
            starts = [builder.add(left, builder.mul(left_step, emit.number(r))) for r in range(rows)]
            entry = builder.block
            loop, done = builder.append_basic_block("depth"), builder.append_basic_block("done")
            builder.branch(loop)
            builder.position_at_end(loop)
            k, address = builder.phi(_I64), builder.phi(_I64)
            sums = [[builder.phi(_VECTOR) for _ in range(vectors)] for _ in range(rows)]
            operands = [emit.load(builder.add(address, emit.number(4 * LANES * v))) for v in range(vectors)]
            offset = builder.mul(k, emit.number(4))
            totals = []
            for r in range(rows):
                scalar = emit.broadcast(builder.add(starts[r], offset))
                totals.append([emit.fma(scalar, o, s) for o, s in zip(operands, sums[r])])
            following, below = builder.add(k, emit.number(1)), builder.add(address, right_step)
            for phi, first, later in (
                (k, emit.number(0), following),
                (address, right, below),
                *((s, emit.constant(0.0), t) for a, b in zip(sums, totals) for s, t in zip(a, b)),
            ):
                phi.add_incoming(first, entry)
                phi.add_incoming(later, loop)
            builder.cbranch(builder.icmp_signed("<", following, depth), loop, done)
            builder.position_at_end(done)
            for r in range(rows):
                base = builder.add(target, builder.mul(target_step, emit.number(r)))
                for v in range(vectors):
                    emit.store(totals[r][v], builder.add(base, emit.number(4 * LANES * v)))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7), generate

    return product_block


_inverse_plain, _inverse_pooled = _inverse_tile(False), _inverse_tile(True)
_product_wide, _product_narrow = _product_block(*_WIDE), _product_block(*_NARROW)


@numba.njit(nogil=True, cache=True)
def product(left: int, left_step: int, right: int, target: int, rows: int, depth: int, columns: int) -> None:
    """`target[r, n] = sum over k of left[r, k] * right[k, n]`, summed in the order of k with fused multiply-adds.

    Args:
        left: address of a float32 matrix whose row r starts `r * left_step` bytes further (rows may overlap).
        right, target: addresses of float32 matrices with `columns` columns, a multiple of BLOCK.
        rows: number of rows. It is rounded up to whole register blocks, so `target` and the readable memory at `left`
            must have `rows + ROWS_OVER` rows.
    """
    if columns % _WIDE_BLOCK == 0:
        for n in range(0, columns, _WIDE_BLOCK):
            for r in range(0, rows, _WIDE_ROWS):
                _product_wide(
                    left + r * left_step, left_step, right + 4 * n, 4 * columns,
                    target + 4 * (r * columns + n), 4 * columns, depth,
                )  # fmt: skip
    else:
        for n in range(0, columns, BLOCK):
            for r in range(0, rows, _NARROW_ROWS):
                _product_narrow(
                    left + r * left_step, left_step, right + 4 * n, 4 * columns,
                    target + 4 * (r * columns + n), 4 * columns, depth,
                )  # fmt: skip


def workspace_size(channels_in: int, channels_out: int) -> int:
    """Floats of working memory that `convolve` needs."""
    return POINTS * POINTS * ((_TILES_AT_ONCE + _NARROW_ROWS) * (channels_in + channels_out) + 2 * _PAD)


@numba.njit(nogil=True, cache=True)
def _transform_tiles(
    x: np.ndarray, limit: np.ndarray, taps: np.ndarray, row_in: int, tiles: tuple[int, int, int],
    channels: int, target: int, step: int,
) -> None:  # fmt: skip
    """The forward transform of some tiles: each one's 36 values, `step` bytes apart.

    Args:
        x, limit, taps, row_in: see `convolve`. tiles: tiles in a row, number of the first tile, and how many they are.
        channels: of the convolution's input. target: address of the first tile's values.
    """
    across, start, size = tiles
    column_step = 4 * x.shape[2]
    row_step, limit_step = x.shape[1] * column_step, 4 * limit.shape[1]
    for n in range(size):
        row, column = row_in + (start + n) // across * TILE, (start + n) % across * TILE
        source, values = x.ctypes.data + row * row_step + column * column_step, target + 4 * n * channels
        if taps.shape[0] > 0:
            bounds = limit.ctypes.data + row * limit_step + 4 * column
            _forward_two_layers(  # type: ignore[call-arg]  # numba gives the first argument itself
                source, row_step, bounds, limit_step, taps.ctypes.data, 4 * channels, values, step, channels
            )
        else:
            # numba gives the first argument itself
            _forward_tile(source, row_step, column_step, values, step, channels)  # type: ignore[call-arg]


@numba.njit(nogil=True, cache=True)
def _write_tiles(
    source: int, step: int, bias: np.ndarray, y: np.ndarray, row_out: int, tiles: tuple[int, int, int], pool: bool
) -> None:
    """The inverse transform of some tiles into rows of y, with bias, rectified, and pooled if asked for.

    Args:
        source: address of the first tile's 36 values, `step` bytes apart. tiles: see `_transform_tiles`.
        bias, y, row_out, pool: see `convolve`.
    """
    across, start, size = tiles
    size_out = TILE // 2 if pool else TILE
    column_step = 4 * y.shape[2]
    row_step = y.shape[1] * column_step
    for n in range(size):
        row, column = row_out + (start + n) // across * size_out, 1 + (start + n) % across * size_out
        values, target = source + n * column_step, y.ctypes.data + row * row_step + column * column_step
        if pool:
            _inverse_pooled(values, step, bias.ctypes.data, target, row_step, column_step, y.shape[2])
        else:
            _inverse_plain(values, step, bias.ctypes.data, target, row_step, column_step, y.shape[2])


@numba.njit(nogil=True, cache=True)
def convolve(
    x: np.ndarray, limit: np.ndarray, taps: np.ndarray, row_in: int, weights: np.ndarray, bias: np.ndarray,
    y: np.ndarray, row_out: int, count: int, width: int, pool: bool, work: np.ndarray,
) -> None:  # fmt: skip
    """A 3x3 convolution over `count` rows of tiles, plus bias, rectified, and pooled 2x2 if `pool` is set.

    Args:
        x: input `(rows, columns, in)`, read from row `row_in` to the row after the last tile row. If there is another
            convolution to compute before this one, x is the input of that one: `(rows, columns, 1)`, with a padding of
            two, and read two rows further.
        limit, taps: only for such a first layer, else empty. `limit` `(rows, columns)` is infinite inside the picture
            and zero in its padding (row r bounds row r of the first layer, which reads rows r to r + 2 of x). `taps`
            holds the first layer's weights and bias `(10, in)`.
        weights: from `transform_weights`, `(36, in, out)`. bias: `(out,)`.
        y: output `(rows, columns, out)`, written from row `row_out`, 4 rows (pooled: 2) for each tile row, and from
            column 1. Columns after those of the picture are set to zero.
        width: columns of the picture, before pooling.
        work: float32 working memory of at least `workspace_size` elements, all finite.
    """
    channels_in, channels_out = weights.shape[1], weights.shape[2]
    across = (width + TILE - 1) // TILE
    block = _WIDE_ROWS if channels_out % _WIDE_BLOCK == 0 else _NARROW_ROWS
    at_once = _TILES_AT_ONCE // block * block
    size_out = TILE // 2 if pool else TILE
    reach = 4 if taps.shape[0] > 0 else 2
    if (
        row_in + count * TILE + reach > x.shape[0]
        or across * TILE + reach > x.shape[1]
        or row_out + count * size_out > y.shape[0]
        or 1 + across * size_out > y.shape[1]
        or work.size < POINTS * POINTS * (at_once * (channels_in + channels_out) + 2 * _PAD)
    ):
        raise ValueError("an array is too small for its tiles")
    # Each matrix gets one cache line more than it needs, so that they do not all use the same sets of the cache.
    v_step, m_step = 4 * (at_once * channels_in + _PAD), 4 * (at_once * channels_out + _PAD)
    v0 = work.ctypes.data
    m0 = v0 + POINTS * POINTS * v_step
    for start in range(0, across * count, at_once):
        tiles = across, start, min(at_once, across * count - start)
        _transform_tiles(x, limit, taps, row_in, tiles, channels_in, v0, v_step)
        for q in range(POINTS * POINTS):
            matrix = weights.ctypes.data + 4 * q * channels_in * channels_out
            product(v0 + q * v_step, 4 * channels_in, matrix, m0 + q * m_step, tiles[2], channels_in, channels_out)
        _write_tiles(m0, m_step, bias, y, row_out, tiles, pool)
    kept = width // 2 if pool else width
    y[row_out : row_out + count * size_out, 1 + kept : 1 + size_out * across] = 0.0
