"""Clusters are read as joblib wrote them, from files of its present release and in the layout of the published ones."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from refusals import Containing, refuses
from sklearn.cluster import KMeans

from codec_bench.weights.kmeans import load_centres

CENTRES = np.random.default_rng(2).standard_normal((7, 5), np.float32)


def fitted(centres=CENTRES, **others):
    means = KMeans(len(centres))
    means.__dict__.update(others, cluster_centers_=centres, counts_=np.arange(len(centres)))
    return means


def test_it_reads_what_joblib_writes(tmp_path):
    joblib.dump(fitted(), tmp_path / "km.bin", protocol=3)
    np.testing.assert_array_equal(load_centres(tmp_path / "km.bin"), CENTRES)


def test_it_reads_the_layout_of_the_published_files(tmp_path):
    """joblib wrote no alignment of numbers when they were made."""
    path = tmp_path / "km.bin"
    joblib.dump(fitted(), path, protocol=3)
    data = path.read_bytes()
    start = data.index(b"X\x1b\x00\x00\x00numpy_array_alignment_bytes")
    end = data.index(b"ub", start) + 2  # the instructions that set the item and build the array
    path.write_bytes(data[:start] + b"ub" + data[end + 1 + data[end] :])
    np.testing.assert_array_equal(load_centres(path), CENTRES)


class Hostile:
    """Would write a file if it were unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return (open, (str(self._path), "w"))


def test_nothing_in_a_file_is_run(tmp_path):
    joblib.dump(fitted(n_init=Hostile(tmp_path / "written")), tmp_path / "km.bin", protocol=3)
    np.testing.assert_array_equal(load_centres(tmp_path / "km.bin"), CENTRES)
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: path.write_bytes(b"no pickle at all"), {"code": "not_a_kmeans"}),
        (lambda path: path.write_bytes(pickle.dumps({"a": 1})), {"code": "not_a_kmeans"}),
        (lambda path: joblib.dump(fitted(CENTRES.astype(np.float64)), path, protocol=3), {"code": "not_a_kmeans"}),
        (lambda path: joblib.dump(fitted(np.asfortranarray(CENTRES)), path, protocol=3), {"code": "not_a_kmeans"}),
        (lambda path: joblib.dump(fitted(n_init=np.ones(3)), path, protocol=3), {"code": "not_a_kmeans"}),
        (lambda path: joblib.dump(fitted(CENTRES * np.nan), path, protocol=3), {"code": "centres_not_finite"}),
        (lambda path: None, {"code": "weights_unreadable", "cause": Containing("No such file")}),
    ],
)
def test_other_files_are_one_sentence(tmp_path, write, words):
    path = tmp_path / "km.bin"
    write(path)
    with refuses(**words):
        load_centres(path)


def test_a_file_that_is_cut_short_is_one_sentence(tmp_path):
    path = tmp_path / "km.bin"
    joblib.dump(fitted(), path, protocol=3)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(CENTRES.tobytes()) + 100])
    with refuses("weights_cut_short"):
        load_centres(path)
