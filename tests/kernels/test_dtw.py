"""The numba kernels follow the specification, and the specification follows librosa's and fastdtw's results."""

from __future__ import annotations

import librosa
import numpy as np
import pytest

from codec_bench.kernels.dtw import cpu, ref


def walk(seed, frames, dimensions=3):
    """A smooth sequence of vectors."""
    return np.cumsum(np.random.default_rng(seed).standard_normal((frames, dimensions)), axis=0)


LENGTHS = [(1, 1), (1, 5), (4, 2), (2, 3), (3, 3), (7, 40), (41, 8), (50, 50), (63, 64), (65, 33)]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_the_kernels_path_is_the_specifications(lengths):
    for seed in range(3):
        x, y = walk(seed, lengths[0]), walk(seed + 7, lengths[1])
        np.testing.assert_array_equal(cpu.fast_path(x, y), ref.fast_path(x, y))


def test_equal_costs_are_broken_alike():
    """Whole numbers, so that many paths cost the same to the last bit."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        x, y = rng.integers(0, 2, (12, 1)).astype(float), rng.integers(0, 2, (9, 1)).astype(float)
        np.testing.assert_array_equal(cpu.fast_path(x, y), ref.fast_path(x, y))


def test_the_example_of_fastdtw():
    """The example in the package's documentation: the path of 1 to 5 and 2 to 4."""
    result = cpu.fast_path(np.arange(1.0, 6)[:, None], np.arange(2.0, 5)[:, None])
    assert [tuple(step) for step in result.tolist()] == [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2)]


def test_a_path_is_one_and_a_copy_is_diagonal():
    x, y = walk(1, 90), walk(2, 70)
    path = cpu.fast_path(x, y)
    assert path[0].tolist() == [0, 0] and path[-1].tolist() == [89, 69]
    assert {tuple(step) for step in np.diff(path, axis=0).tolist()} <= {(1, 0), (0, 1), (1, 1)}
    np.testing.assert_array_equal(cpu.fast_path(x, x), np.repeat(np.arange(90)[:, None], 2, axis=1))


def test_where_the_window_is_everything_the_path_is_the_cheapest():
    x, y = walk(4, 2), walk(5, 30)
    path = cpu.fast_path(x, y)
    cost = float(np.linalg.norm(x[path[:, 0]] - y[path[:, 1]], axis=1).sum())
    expected, _ = librosa.sequence.dtw(x.T, y.T)
    assert cost == pytest.approx(expected[-1, -1], rel=1e-12)


def test_subsequence_costs_are_librosas():
    reference = walk(6, 60, 4)
    patches = np.stack([reference[10:30] + 0.3 * walk(7, 20, 4), walk(8, 20, 4), reference[:20]])
    result = cpu.subsequence_costs(patches, reference)
    for patch, cost in zip(patches, result, strict=True):
        table, path = librosa.sequence.dtw(
            patch.T,
            reference.T,
            step_sizes_sigma=np.array([[1, 0], [0, 3], [1, 3]]),
            weights_mul=np.ones(3),
            subseq=True,
        )
        assert cost == pytest.approx(table[-1, path[0, 1]] / len(patch), rel=1e-12)
        assert ref.subsequence_cost(patch, reference) == pytest.approx(cost, rel=1e-12)


def sequences(rng, count, draw):
    parts = [draw(int(length)) for length in rng.integers(1, 12, count)]
    return parts, np.concatenate(parts), np.cumsum([0, *map(len, parts)])


def test_mean_costs_of_vectors_are_the_specifications_and_librosas(rng):
    def directions(frames):
        built = rng.standard_normal((frames, 4))
        return built / np.linalg.norm(built, axis=1, keepdims=True)

    (one, x, x_starts), (other, y, y_starts) = sequences(rng, 5, directions), sequences(rng, 6, directions)
    result = cpu.mean_costs_of_vectors(x, x_starts, y, y_starts)
    for p, a in enumerate(one):
        for q, b in enumerate(other):
            apart = np.arccos(np.clip(a @ b.T, -1, 1)) / np.pi
            cost, path = librosa.sequence.dtw(C=apart)
            assert result[p, q] == pytest.approx(ref.mean_cost(apart), abs=1e-12)
            assert result[p, q] == pytest.approx(cost[-1, -1] / len(path), abs=1e-12)


def test_mean_costs_of_codes_are_the_specifications(rng):
    draw = lambda frames: rng.integers(0, 3, (frames, 2))  # noqa: E731 - few values, so that many paths cost the same
    (one, x, x_starts), (other, y, y_starts) = sequences(rng, 6, draw), sequences(rng, 6, draw)
    result = cpu.mean_costs_of_codes(x, x_starts, y, y_starts)
    for p, a in enumerate(one):
        for q, b in enumerate(other):
            equal = (a[:, None] == b[None]).mean(axis=2)
            assert result[p, q] == pytest.approx(ref.mean_cost(np.arccos(equal) / np.pi), abs=1e-12)
