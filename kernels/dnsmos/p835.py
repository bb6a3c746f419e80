"""The P.835 network (`sig_bak_ovr`) over windows, as one long picture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .pictures import (
    BAND,
    EDGE,
    FRONT_FRAMES,
    HOP_FRAMES,
    Crew,
    Layer,
    Scratch,
    WindowNetwork,
    cycle_of,
    picture,
    pool_rows,
    repeat_rows,
    two_layer_input,
)
from .ref import BINS, FLOOR, FRAMES, HOP_SAMPLES, LN_10, DnsmosWeights, dense
from .winograd import TILE, aligned_zeros, multiply_frames, whole_blocks

_FRONT_DEPTH = 128  # onnxruntime sums products in groups of 128; the same order gives the same bits


def _front_power(signal: np.ndarray, kernel: np.ndarray, first: int, count: int) -> np.ndarray:
    """Compute the power spectrum `(count, 161)`, at least 1e-12, before P.835's logarithm.

    Args:
        signal: float32, up to the end of the last frame or further.
        kernel: `(320, 322)` in whole blocks, real parts and then imaginary parts.
        first, count: the frames.
    """
    spectrum = np.empty((count, kernel.shape[1]), np.float32)
    multiply_frames(signal[first * HOP_SAMPLES :], HOP_SAMPLES, kernel, _FRONT_DEPTH, spectrum)
    root = np.sqrt(spectrum[:, :BINS] ** 2 + spectrum[:, BINS : 2 * BINS] ** 2)
    return np.maximum(root * root, np.float32(FLOOR))


class SigBakOvr(WindowNetwork):
    """The P.835 network: seven convolutions, three dense layers and the front end."""

    def __init__(self, weights: DnsmosWeights) -> None:
        assert weights.front is not None, "the P.835 network has a front end"
        self.front = whole_blocks(np.concatenate(weights.front).T)
        first, second, *rest = weights.convolutions
        self.layers = {2: Layer(second, first)} | {n: Layer(convolution) for n, convolution in enumerate(rest, start=3)}
        self.dense = weights.dense

    def start_run(
        self, crew: Crew, signal: np.ndarray, windows: int, period: int | None = None
    ) -> Callable[[], np.ndarray]:
        """See `WindowNetwork`. Gives `(windows, 3)`: raw SIG, BAK, OVRL."""
        total = FRAMES + HOP_FRAMES * (windows - 1)
        ends = 2 * (windows - 1)
        x, limit = two_layer_input(total, BINS)
        limit[1 : total + 1, 1 : BINS + 1] = np.inf
        cycle = cycle_of(period, total)
        crew.each(lambda s, a, b: self._log_power(signal, x, a, b), crew.pieces(cycle, FRAMES, FRONT_FRAMES))
        repeat_rows(x, cycle + 2, total + 2, cycle)
        # The zeros around the run affect four rows at either end. Between them, a repeating signal repeats its rows.
        tiles = -(-total // TILE)
        head = min(tiles, -(-(cycle + 4) // TILE))
        tail = max(head, (total - 4) // TILE)
        half = picture(total // 2, BINS // 2, 32)
        edge_half = aligned_zeros((TILE // 2 * ends, *half.shape[1:]))
        waits = [
            crew.start(self._rows, x, limit, total, half, a, b)
            for a, b in [*crew.pieces(head, FRAMES // TILE, BAND), (tail, tiles)]
        ]
        waits += [crew.start(self._edges, x, windows, edge_half, a, b) for a, b in crew.pieces(ends, 6)]

        def finish() -> np.ndarray:
            for wait in waits:
                wait()
            repeat_rows(half, head * TILE // 2 + 1, tail * TILE // 2 + 1, cycle // 2)
            quarter = self._layer(crew, 5, half, total // 2, BINS // 2)
            last = self._layer(crew, 6, quarter, total // 4, BINS // 4)
            edge_last = aligned_zeros((TILE * ends, *last.shape[1:]))
            crew.each(
                lambda s, a, b: self._low_edges(s, half, quarter, edge_half, windows, edge_last, a, b),
                crew.pieces(ends, 2 * windows),
            )
            features = np.empty((windows, 64), np.float32)
            crew.each(
                lambda s, w: self._finish_window(s, last, edge_last, windows, w, features[w]),
                [(w,) for w in range(windows)],
            )
            return dense(features, self.dense)

        return finish

    def _log_power(self, signal: np.ndarray, x: np.ndarray, start: int, stop: int) -> None:
        power = _front_power(signal, self.front, start, stop - start)
        x[start + 2 : stop + 2, 2 : BINS + 2, 0] = np.log(power) / LN_10

    def _rows(
        self, s: Scratch, x: np.ndarray, limit: np.ndarray, total: int, half: np.ndarray, start: int, stop: int
    ) -> None:
        """Compute the four full-resolution layers and first maxima, for tile rows [start, stop) of a run.

        Each layer runs one tile row behind the one before it. `y2` and `y3` hold a moving band of rows, each starting
        with the last row of the tile row before `base2` or `base3`.
        """
        tiles = -(-total // TILE)
        stop2, stop3 = min(tiles, stop + 2), min(tiles, stop + 1)
        done2, done3, done4 = max(0, start - 2), max(0, start - 1), start
        base2, base3 = done2, done3
        s.y2[0] = s.y3[0] = 0.0
        while done4 < stop:
            band = min(stop2, base2 + BAND)
            self.layers[2](s.work, x, TILE * done2, s.y2, (done2 - base2) * TILE + 1, band - done2, BINS, limit=limit)
            done2 = band
            if done2 == tiles:
                s.y2[total - base2 * TILE + 1 : (tiles - base2) * TILE + 2] = 0.0
            ready = done2 if done2 == tiles else min(stop3, done2 - 1)
            row = (done3 - base3) * TILE + 1
            self.layers[3](s.work, s.y2, (done3 - base2) * TILE, s.y3, row, ready - done3, BINS)
            done3 = ready
            if done3 == tiles:
                s.y3[total - base3 * TILE + 1 : (tiles - base3) * TILE + 2] = 0.0
            ready = min(stop, done3 if done3 == tiles else done3 - 1)
            row = done4 * TILE // 2 + 1
            self.layers[4](s.work, s.y3, (done4 - base3) * TILE, half, row, ready - done4, BINS, pool=True)
            done4 = ready
            base2 = self._move_up(s.y2, base2, done2, done3)
            base3 = self._move_up(s.y3, base3, done3, done4)
        if stop == tiles:
            half[total // 2 + 1 : tiles * TILE // 2 + 1] = 0.0

    @staticmethod
    def _move_up(band: np.ndarray, base: int, done: int, read: int) -> int:
        """Drop the rows of a band that the next layer, at tile row `read`, has used; return the new base."""
        if read == base:
            return base
        rows, shift = (done - read) * TILE + 1, (read - base) * TILE
        band[:rows] = band[shift : shift + rows]
        return read

    def _edges(self, s: Scratch, x: np.ndarray, windows: int, edge_half: np.ndarray, start: int, stop: int) -> None:
        """Compute the full-resolution layers at inner ends of windows, with zero padding.

        Edge e < windows - 1 is the start of window e + 1; the others are the ends of windows 0 to windows - 2. Each
        layer affects one more row, so four rows of the fourth differ from the run's. They need eight rows of the
        earlier layers. Rows of the third layer without a row of the second are unused.

        Args:
            edge_half: `(2 * edges, columns, 32)`: two rows per edge at half resolution.
        """
        inner, rows = windows - 1, EDGE * TILE
        for e in range(start, stop):
            s.edge[:] = s.edge_limit[:] = 0.0
            if e < inner:
                first = HOP_FRAMES * (e + 1) + 2
                s.edge[2:] = x[first : first + rows + 2]
                s.edge_limit[1:, 1 : BINS + 1] = np.inf
            else:
                end = FRAMES + HOP_FRAMES * (e - inner) + 2
                s.edge[:-2] = x[end - rows - 2 : end]
                s.edge_limit[: rows + 1, 1 : BINS + 1] = np.inf
            self.layers[2](s.work, s.edge, 0, s.edge2, 1, EDGE, BINS, limit=s.edge_limit)
            self.layers[3](s.work, s.edge2, 0, s.edge3, 1, EDGE, BINS)
            row = 0 if e < inner else rows - TILE
            self.layers[4](s.work, s.edge3, row, edge_half, TILE // 2 * e, 1, BINS, pool=True)

    def _layer(self, crew: Crew, number: int, x: np.ndarray, rows: int, width: int) -> np.ndarray:
        """Compute layer 5 (followed by maxima) or 6 over a whole run."""
        pool = number == 5
        step = TILE // 2 if pool else TILE
        y = picture(rows // 2, width // 2, 32) if pool else picture(rows, width, 32)
        tiles = -(-rows // TILE)
        crew.each(
            lambda s, a, b: self.layers[number](s.work, x, TILE * a, y, 1 + step * a, b - a, width, pool=pool),
            crew.pieces(tiles, tiles),
        )
        y[1 + (rows // 2 if pool else rows) :] = 0.0
        return y

    def _low_edges(
        self, s: Scratch, half: np.ndarray, quarter: np.ndarray, edge_half: np.ndarray, windows: int,
        edge_last: np.ndarray, start: int, stop: int,
    ) -> None:  # fmt: skip
        """Compute layers 5 and 6 at the inner ends of windows.

        Args:
            half, quarter: the run's pictures. edge_half: from `_edges`.
            edge_last: `(4 * edges, columns, 32)`: the first or last four rows of a window at quarter resolution.
        """
        inner = windows - 1
        five, six, pooled = s.edge_half, s.edge_quarter, s.edge_pooled
        for e in range(start, stop):
            begins = e < inner
            frame = HOP_FRAMES * (e + 1) if begins else FRAMES + HOP_FRAMES * (e - inner)
            middle = edge_half[2 * e : 2 * e + 2]
            self._fill_edge(five, middle, half, frame // 2 + 1, begins)
            self.layers[5](s.work, five, 0, pooled, 0, 1, BINS // 2, pool=True)
            self._fill_edge(six, pooled[:2], quarter, frame // 4 + 1, begins)
            self.layers[6](s.work, six, 0, edge_last, TILE * e, 1, BINS // 4)

    @staticmethod
    def _fill_edge(edge: np.ndarray, middle: np.ndarray, run: np.ndarray, row: int, begins: bool) -> None:
        """Fill the six rows of a tile at a window's end: one of zeros, two of the edge, three of the run."""
        if begins:
            edge[0], edge[1:3], edge[3:6] = 0.0, middle, run[row + 2 : row + 5]
        else:
            edge[:3], edge[3:5], edge[5] = run[row - 5 : row - 2], middle, 0.0

    def _finish_window(
        self, s: Scratch, last: np.ndarray, edge_last: np.ndarray, windows: int, window: int, out: np.ndarray
    ) -> None:
        """Compute a window's last maxima, last convolution and overall maximum, `(64,)`.

        The first two pooled rows come from the edge at the window's start, the last one from the edge at its end (rows
        221 to 224, the last unused). Without an edge, they are the run's.
        """
        width, rows = BINS // 4, FRAMES // 8
        head, tail = (0 if window == 0 else 2), (rows if window == windows - 1 else rows - 1)
        if head:
            pool_rows(edge_last, TILE * (window - 1), s.eighth, 1, head, width)
        pool_rows(last, 1 + HOP_FRAMES // 4 * window + 2 * head, s.eighth, 1 + head, tail - head, width)
        if tail < rows:
            pool_rows(edge_last, TILE * (windows - 1 + window) + 1, s.eighth, rows, 1, width)
        width //= 2
        self.layers[7](s.work, s.eighth, 0, s.y7, 1, -(-rows // TILE), width)
        s.y7[1 : rows + 1, 1 : width + 1].max(axis=(0, 1), out=out)
