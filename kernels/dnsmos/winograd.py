"""3x3 convolutions by Winograd's F(4x4, 3x3) in numba, and products.

A tile of 4x4 outputs depends on 6x6 inputs. Transformed, the convolution over channels is 36 independent matrix
products: 36 multiplications instead of 144. The evaluation points (0, ±5/8, ±3/2, infinity) keep the relative error
near 1e-6 in float32.

A rectified input is mostly zero. Where a channel is zero in all 18x6 inputs of four neighbouring tiles (about half of
all channels in speech), the products omit it, with the same bits.

Activations are float32 `(rows, columns, channels)`, C-contiguous, rows being time. Column 0 and those after the
picture's width are zero padding. A matrix's columns (an output's channels) are a multiple of 32. Working memory is
flat. Its indices are unsigned, because numba's check for negative ones prevents vectorisation, and its planes lie
constant distances apart, so the compiler can tell that they do not overlap. BLAS is not used: its order of sums depends
on a matrix's height, it starts threads, and it cannot omit rows.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from ..compilation.cpu import jit

TILE = 4
POINTS = TILE + 2
_A, _B = 0.625, 1.5  # each finite point other than zero is used as p and as -p
_LINE = 64  # bytes of a cache line
_PAD = _LINE // 4  # a quarter of its bytes: as many floats
_ACROSS = 41  # tiles in a row of the widest picture
_TILES = 24  # tiles at once, a multiple of `_ROWS`; their 36 products fit the second-level cache
_ROWS = 4  # rows of a product that share the weights once they are loaded, and the list of channels
_BLOCK = 32  # columns of a product whose sums stay in registers
_CHANNELS = 128
_U = np.uint64
# Distances of two rows of six input rows, and of two of the 36 planes, with a cache line extra, so that they use
# different sets of the cache.
_STRIP = (TILE * _ACROSS + 2) * _CHANNELS + _PAD
_PLANE = _TILES * _CHANNELS + _PAD
_AHEAD = {"contract", "nsz"}  # products may be fused with sums


def _whole_vectors(context: Any) -> tuple[Any, Any]:
    """Make the calling function use whole vectors of AVX-512 where available.

    Compilers use half vectors for most processors, because whole ones once lowered the clock. The order of each
    output's sums, and so its bits, do not depend on the width.
    """

    def mark(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite refuses attributes with a value in `attributes.add`, but writes those in the set.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return numba.types.void(), mark


whole_vectors: Any = intrinsic(_whole_vectors)


def _weight_matrix() -> np.ndarray:
    """Return a matrix from 3 taps to 6 values."""
    points = [0.0, _A, -_A, _B, -_B]
    matrix = np.zeros((POINTS, 3))
    for j, p in enumerate(points):
        matrix[j] = np.power(p, range(3)) / np.prod([p - q for q in points if q != p])
    matrix[POINTS - 1, 2] = 1.0
    return matrix


def aligned_zeros(shape: int | tuple[int, ...]) -> np.ndarray:
    """Float32 zeros on a cache line, so no vector crosses two lines."""
    count = int(np.prod(shape))
    memory = np.zeros(count + _PAD, np.float32)
    first = -memory.ctypes.data % _LINE // 4
    return memory[first : first + count].reshape(shape)


def aligned(values: np.ndarray) -> np.ndarray:
    """Copy `values` as float32 on a cache line."""
    copy = aligned_zeros(values.shape)
    copy[...] = values
    return copy


def whole_blocks(matrix: np.ndarray) -> np.ndarray:
    """Pad a matrix for `multiply_frames` to whole blocks, as float32."""
    return aligned(np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % _BLOCK))))


def transform_weights(weights: np.ndarray) -> np.ndarray:
    """Weights `(out, in, 3, 3)` to the products' matrices `(36, in, out)`."""
    g = _weight_matrix()
    u = np.einsum("ai,ocij,bj->abco", g, weights.astype(np.float64), g)
    return aligned(u.reshape(POINTS * POINTS, *u.shape[2:]))


@numba.njit(inline="always")
def _forward(d0, d1, d2, d3, d4, d5):  # type: ignore[no-untyped-def]  # numba finds the types
    """Transform 6 inputs to 6 values. Those for p and -p share their even and their odd part."""
    a, b = np.float32(_A), np.float32(_B)
    total, both = np.float32(_A * _A + _B * _B), np.float32(_A * _A * _B * _B)
    even, odd = d4 - b * b * d2, a * (d3 - b * b * d1)
    even_b, odd_b = d4 - a * a * d2, b * (d3 - a * a * d1)
    return (
        both * d0 - total * d2 + d4, even + odd, even - odd, even_b + odd_b, even_b - odd_b, both * d1 - total * d3 + d5
    )  # fmt: skip


@numba.njit(inline="always")
def _inverse(m0, m1, m2, m3, m4, m5):  # type: ignore[no-untyped-def]  # numba finds the types
    """Transform 6 values to 4 outputs."""
    a, b = np.float32(_A), np.float32(_B)
    sums, differences, sums_b, differences_b = m1 + m2, m1 - m2, m3 + m4, m3 - m4
    return (
        m0 + sums + sums_b,
        a * differences + b * differences_b,
        a * a * sums + b * b * sums_b,
        a * a * a * differences + b * b * b * differences_b + m5,
    )


@jit(nogil=True, fastmath=_AHEAD)
def first_layer(x: np.ndarray, start: int, wide: int, taps: np.ndarray, limit: np.ndarray, out: np.ndarray) -> None:
    """Compute one row of a convolution of one channel, with its bias, rectified.

    Args:
        x: flat input rows, `wide` columns each; three are read, the first from `start` on.
        taps: nine weights and the bias `(10, channels)`. limit: `(columns,)`, zero where the output is zero.
        out: flat, at least `columns * channels` long.
    """
    whole_vectors()
    weights, channels = taps.ravel(), _U(taps.shape[1])
    for p in range(limit.size):
        o, n = _U(p) * channels, start + p
        if limit[p] == 0.0:
            for c in range(channels):
                out[o + c] = 0.0
        else:
            x0, x1, x2 = x[n], x[n + 1], x[n + 2]
            x3, x4, x5 = x[n + wide], x[n + wide + 1], x[n + wide + 2]
            x6, x7, x8 = x[n + 2 * wide], x[n + 2 * wide + 1], x[n + 2 * wide + 2]
            for c in range(channels):
                above = x0 * weights[c] + x1 * weights[channels + c] + x2 * weights[_U(2) * channels + c]
                level = x3 * weights[_U(3) * channels + c] + x4 * weights[_U(4) * channels + c]
                below = x6 * weights[_U(6) * channels + c] + x7 * weights[_U(7) * channels + c]
                level += x5 * weights[_U(5) * channels + c]
                below += x8 * weights[_U(8) * channels + c] + weights[_U(9) * channels + c]
                out[o + c] = max(above + level + below, np.float32(0.0))


@jit(nogil=True, fastmath=_AHEAD)
def _forward_rows(x: np.ndarray, start: int, step: int, strip: np.ndarray, size: int) -> None:
    """Transform six rows of x, from `start` on and `step` apart, into six of the strip.

    The strip's seventh row is zero where all six inputs are.
    """
    whole_vectors()
    s, d, r = _U(start), _U(step), _U(_STRIP)
    for i in range(_U(size)):
        values = _forward(
            x[s + i], x[s + d + i], x[s + _U(2) * d + i],
            x[s + _U(3) * d + i], x[s + _U(4) * d + i], x[s + _U(5) * d + i],
        )  # fmt: skip
        strip[i], strip[r + i], strip[_U(2) * r + i] = values[0], values[1], values[2]
        strip[_U(3) * r + i], strip[_U(4) * r + i], strip[_U(5) * r + i] = values[3], values[4], values[5]
        above = abs(x[s + i]) + abs(x[s + d + i]) + abs(x[s + _U(2) * d + i])
        below = abs(x[s + _U(3) * d + i]) + abs(x[s + _U(4) * d + i]) + abs(x[s + _U(5) * d + i])
        strip[_U(POINTS) * r + i] = above + below


@jit(nogil=True, fastmath=_AHEAD)
def _list_channels(strip: np.ndarray, tiles: int, channels: int, listed: np.ndarray, counts: np.ndarray) -> None:
    """List the channels that the products need, for each `_ROWS` tiles of the strip.

    Args:
        listed: the channels of group g of tiles, in order, from element `channels * g` on. counts: their numbers.
    """
    whole_vectors()
    d, sums = _U(channels), np.empty(_U(channels), np.float32)
    for group in range(_U(counts.size)):
        first = group * _U(_ROWS)
        if first < _U(tiles):
            sums[:] = 0.0
            for column in range(_U(TILE) * first, _U(TILE) * min(first + _U(_ROWS), _U(tiles)) + _U(2)):
                s = _U(POINTS) * _U(_STRIP) + column * d
                for c in range(d):
                    sums[c] += strip[s + c]
            n = group * d
            for c in range(d):
                listed[n] = c
                n += _U(sums[c] != 0.0)  # a sum that is not a number counts
            counts[group] = n - group * d


@jit(nogil=True, fastmath=_AHEAD)
def _forward_tiles(strip: np.ndarray, row: int, tiles: int, channels: int, planes: np.ndarray) -> None:
    """Transform one of the six rows of each tile of the strip into six planes."""
    whole_vectors()
    d, p = _U(channels), _U(_PLANE)
    for tile in range(_U(tiles)):
        s, o = _U(row) * _U(_STRIP) + _U(TILE) * tile * d, tile * d
        for c in range(d):
            i, t = s + c, o + c
            values = _forward(
                strip[i], strip[i + d], strip[i + _U(2) * d], strip[i + _U(3) * d], strip[i + _U(4) * d],
                strip[i + _U(5) * d],
            )  # fmt: skip
            planes[t], planes[t + p], planes[t + _U(2) * p] = values[0], values[1], values[2]
            planes[t + _U(3) * p], planes[t + _U(4) * p], planes[t + _U(5) * p] = values[3], values[4], values[5]


def _sums_of(rows: int) -> Any:
    """Build a function for `_BLOCK` columns of some rows of a product, with sums in registers.

    numba's own loops would store them after each factor. The arguments are the left matrix, its first row and row
    distance; a list of its columns, its start and length; the right matrix, its block and row distance; and the same
    three of the output.
    """

    def typed(context: Any, left: Any, a: Any, row_stride: Any, listed: Any, first: Any, count: Any, right: Any,
              top: Any, columns: Any, out: Any, b: Any, ahead: Any) -> tuple[Any, Any]:  # fmt: skip
        word = numba.types.uint64
        return numba.types.void(left, word, word, listed, word, word, right, word, word, out, word, word), build

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, number = ir.IntType(64), ir.FloatType()
        left, listed, right, out = (
            builder.gep(context.make_array(signature.args[n])(context, builder, arguments[n]).data, [arguments[n + 1]])
            for n in (0, 3, 6, 9)
        )
        row_stride, count, columns, ahead = arguments[2], arguments[5], arguments[8], arguments[11]
        lanes = 16 if "+avx512f" in context.codegen().magic_tuple()[2] else 8
        vector = ir.VectorType(number, lanes)
        nothing, everywhere = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)

        def vectors_at(line: Any, block: int) -> list[Any]:
            places = [builder.gep(line, [word(block + n)]) for n in (0, lanes)]
            return [builder.bitcast(address, vector.as_pointer()) for address in places]

        for block in range(0, _BLOCK, 2 * lanes):
            zero = ir.Constant(vector, None)
            sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(2)] for _ in range(rows)]
            with cgutils.for_range(builder, count, intp=word) as loop:
                k = builder.load(builder.gep(listed, [loop.index]))
                line = builder.gep(right, [builder.mul(k, columns)])
                factors = [builder.load(address, align=4) for address in vectors_at(line, block)]
                for row in range(rows):
                    x = builder.load(builder.gep(left, [builder.add(builder.mul(row_stride, word(row)), k)]))
                    x = builder.insert_element(nothing, x, ir.IntType(32)(0))
                    x = builder.shuffle_vector(x, nothing, everywhere)
                    for address, factor in zip(sums[row], factors, strict=True):
                        product = builder.fmul(x, factor, flags=["contract"])
                        builder.store(builder.fadd(builder.load(address), product, flags=["contract"]), address)
            for row in range(rows):
                line = builder.gep(out, [builder.mul(ahead, word(row))])
                for address, held in zip(vectors_at(line, block), sums[row], strict=True):
                    builder.store(builder.load(held), address, align=4)
        return context.get_dummy_value()

    return intrinsic(typed)


_sum_rows, _sum_row = _sums_of(_ROWS), _sums_of(1)


@numba.njit(inline="always")
def _multiply_rows(  # type: ignore[no-untyped-def]
    left, a, row_stride, rows, listed, first, n, right, top, cols, out, b
):
    """Multiply up to `_ROWS` rows at left[a], `row_stride` floats each, by right[top], into out[b].

    Only the columns of left and rows of right in `listed`, from element `first` on, n.
    """
    for c in range(_U(0), cols, _U(_BLOCK)):
        if rows == _U(_ROWS):
            _sum_rows(left, a, row_stride, listed, first, n, right, top + c, cols, out, b + c, cols)
        else:
            for row in range(rows):
                start, target = a + row * row_stride, b + row * cols + c
                _sum_row(left, start, row_stride, listed, first, n, right, top + c, cols, out, target, cols)


@jit(nogil=True)
def _products(
    v: np.ndarray, listed: np.ndarray, counts: np.ndarray, weights: np.ndarray, m: np.ndarray, row: int, tiles: int,
    depth: int, cols: int,
) -> None:  # fmt: skip
    """Multiply six planes v, one of each tile's six rows, by the flat weights, into planes m.

    Three left-over tiles are computed as four at no more cost; one or two one by one.
    """
    d, n, p = _U(depth), _U(cols), _U(_PLANE)
    full = (_U(tiles) + _U(1)) // _U(_ROWS) * _U(_ROWS)
    for column in range(_U(POINTS)):
        start, q = column * p, _U(row) * _U(POINTS) + column
        for tile in range(_U(0), _U(tiles), _U(_ROWS)):
            group, rows = tile // _U(_ROWS), _U(_ROWS) if tile < full else _U(tiles) - tile
            a, b = start + tile * d, q * p + tile * n
            _multiply_rows(v, a, d, rows, listed, group * d, counts[group], weights, q * d * n, n, m, b)


def multiply_frames(signal: np.ndarray, hop: int, matrix: np.ndarray, depth: int, out: np.ndarray) -> None:
    """Multiply frames by a matrix, each summed in one order.

    BLAS does not promise that for a row of a larger product, and starts threads.

    Args:
        signal: `(samples,)`; frame t begins at sample `hop * t`.
        matrix: `(samples of a frame, cols)`, from `whole_blocks`.
        depth: samples per partial sum. out: `(frames, cols)`.
    """
    size, cols = matrix.shape
    if cols % _BLOCK > 0:
        raise ValueError("a matrix has cols that are no multiple of a block")
    sums, every = np.empty(_ROWS * cols, np.float32), np.arange(depth, dtype=np.uint64)
    out[...] = 0.0
    _multiply_frames(signal, hop, matrix.reshape(-1), size, depth, out.reshape(-1), cols, sums, every)


@jit(nogil=True)
def _multiply_frames(
    signal: np.ndarray, hop: int, right: np.ndarray, size: int, depth: int, flat: np.ndarray, cols: int,
    sums: np.ndarray, every: np.ndarray,
) -> None:  # fmt: skip
    row_stride, columns = _U(hop), _U(cols)
    frames = _U(flat.size) // columns
    for t in range(_U(0), frames, _U(_ROWS)):
        rows, n = min(_U(_ROWS), frames - t), t * row_stride
        for k in range(_U(0), _U(size), _U(depth)):
            some = min(_U(depth), _U(size) - k)
            _multiply_rows(
                signal, n + k, row_stride, rows, every, _U(0), some, right, k * columns, columns, sums, _U(0)
            )
            for c in range(rows * columns):
                flat[t * columns + c] += sums[c]


@numba.njit(inline="always")
def _inverse_at(planes, i, step):  # type: ignore[no-untyped-def]  # numba finds the types
    """Transform six values `step` apart back, in place."""
    values = _inverse(
        planes[i], planes[i + step], planes[i + _U(2) * step], planes[i + _U(3) * step], planes[i + _U(4) * step],
        planes[i + _U(5) * step],
    )  # fmt: skip
    planes[i], planes[i + step] = values[0], values[1]
    planes[i + _U(2) * step], planes[i + _U(3) * step] = values[2], values[3]


@jit(nogil=True, fastmath=_AHEAD)
def _inverse_tiles(planes: np.ndarray, size: int) -> None:
    """Transform the first `size` floats of each plane back, in place: output (i, j) is in plane 6 i + j."""
    whole_vectors()
    p, six = _U(_PLANE), _U(POINTS * _PLANE)
    for row in range(_U(POINTS)):
        for c in range(_U(size)):
            _inverse_at(planes, row * six + c, p)
    for column in range(_U(TILE)):
        for c in range(_U(size)):
            _inverse_at(planes, column * p + c, six)


@jit(nogil=True, fastmath=_AHEAD)
def _write(planes: np.ndarray, tiles: int, bias: np.ndarray, y: np.ndarray, start: int, step: int, pool: bool) -> None:
    """Write tiles with bias, rectified and pooled if `pool`, into rows of y from `start` on, `step` apart."""
    whole_vectors()
    channels, p, six = _U(bias.size), _U(_PLANE), _U(POINTS) * _U(_PLANE)
    size = _U(TILE // 2) if pool else _U(TILE)
    for i in range(size):
        for n in range(_U(tiles)):
            for j in range(size):
                o = _U(start) + i * _U(step) + (size * n + j) * channels
                if pool:
                    s = _U(2) * i * six + _U(2) * j * p + n * channels
                    for c in range(channels):
                        highest = max(
                            max(planes[s + c], planes[s + p + c]), max(planes[s + six + c], planes[s + six + p + c])
                        )
                        y[o + c] = max(highest + bias[c], np.float32(0.0))
                else:
                    s = i * six + j * p + n * channels
                    for c in range(channels):
                        y[o + c] = max(planes[s + c] + bias[c], np.float32(0.0))


WORKSPACE = (2 * POINTS + 1) * _STRIP + (1 + POINTS) * POINTS * _PLANE
"""Floats of working memory of `convolve`."""


def convolve(
    x: np.ndarray, limit: np.ndarray, taps: np.ndarray, row_in: int, weights: np.ndarray, bias: np.ndarray,
    y: np.ndarray, row_out: int, count: int, width: int, pool: bool, work: np.ndarray,
) -> None:  # fmt: skip
    """Convolve rows of tiles by 3x3, add bias, rectify, and perhaps pool.

    Args:
        x: input `(rows, columns, in)`, read from row `row_in` to the row after the last tile row. With a first layer,
            its input: `(rows, columns, 1)`, padded by two, and read two rows further.
        limit, taps: of a first layer, else empty. `limit` `(rows, columns)` is infinite inside the picture and zero in
            its padding (row r bounds row r of the first layer, which reads rows r to r + 2 of x). `taps`: its weights
            and bias `(10, in)`.
        weights: from `transform_weights`, `(36, in, out)`. bias: `(out,)`.
        y: output `(rows, columns, out)`, written from row `row_out`, 4 rows (pooled: 2) for each tile row, and from
            column 1. Columns after those of the picture are set to zero.
        width: columns of the picture, before pooling.
        work: float32 working memory of `WORKSPACE` elements, all finite.
    """
    channels_in, channels_out = weights.shape[1], weights.shape[2]
    across = (width + TILE - 1) // TILE
    size_out = TILE // 2 if pool else TILE
    reach = 4 if taps.shape[0] > 0 else 2
    if (
        row_in + count * TILE + reach > x.shape[0]
        or across * TILE + reach > x.shape[1]
        or row_out + count * size_out > y.shape[0]
        or 1 + across * size_out > y.shape[1]
        or work.size < WORKSPACE
        or across > _ACROSS
        or max(channels_in, channels_out) > _CHANNELS
        or channels_out % _BLOCK > 0
    ):
        raise ValueError("an array is too small for its tiles")
    first, work = work[: POINTS * _STRIP], work[POINTS * _STRIP :]
    strip, work = work[: (POINTS + 1) * _STRIP], work[(POINTS + 1) * _STRIP :]
    v, m = work[: POINTS * _PLANE], work[POINTS * _PLANE :]
    listed, counts = np.empty(_TILES // _ROWS * channels_in, np.uint64), np.empty(_TILES // _ROWS, np.uint64)
    sizes = count, width, channels_in, channels_out
    _convolve(
        x.reshape(-1), x.shape[1] * x.shape[2], limit, taps, row_in, weights.reshape(-1), bias, y.reshape(-1),
        y.shape[1] * channels_out, row_out, pool, first, strip, v, m, listed, counts, *sizes,
    )  # fmt: skip
    filled = width // 2 if pool else width
    y[row_out : row_out + count * size_out, 1 + filled : 1 + size_out * across] = 0.0


@jit(nogil=True)
def _convolve(
    x: np.ndarray, step: int, limit: np.ndarray, taps: np.ndarray, row_in: int, weights: np.ndarray,
    bias: np.ndarray, y: np.ndarray, step_out: int, row_out: int, pool: bool, first: np.ndarray, strip: np.ndarray,
    v: np.ndarray, m: np.ndarray, listed: np.ndarray, counts: np.ndarray, count: int, width: int, channels_in: int,
    channels_out: int,
) -> None:  # fmt: skip
    """`convolve` on flat arrays; what Python does beforehand needs no compilation."""
    across, size_out = (width + TILE - 1) // TILE, TILE // 2 if pool else TILE
    for n in range(count):
        row = row_in + n * TILE
        rows, start, row_stride = x, row * step, step
        if taps.shape[0] > 0:
            known = 0 if n == 0 else 2  # the last two rows of the tiles above
            for i in range(known * _STRIP):  # numba compiles an assignment of slices for two seconds
                first[i] = first[TILE * _STRIP + i]
            for i in range(known, POINTS):
                bounds = limit[row + i, : TILE * across + 2]
                first_layer(x, (row + i) * step, step, taps, bounds, first[i * _STRIP : (i + 1) * _STRIP])
            rows, start, row_stride = first, 0, _STRIP
        for tile in range(0, across, _TILES):
            tiles = min(_TILES, across - tile)
            _forward_rows(rows, start + TILE * tile * channels_in, row_stride, strip, (TILE * tiles + 2) * channels_in)
            _list_channels(strip, tiles, channels_in, listed, counts)
            for i in range(POINTS):
                _forward_tiles(strip, i, tiles, channels_in, v)
                _products(v, listed, counts, weights, m, i, tiles, channels_in, channels_out)
            _inverse_tiles(m, tiles * channels_out)
            target = (row_out + n * size_out) * step_out + (1 + tile * size_out) * channels_out
            _write(m, tiles, bias, y, target, step_out, pool)
