"""The feature cache: stored values are read back, its size stays bounded, and a broken cache never breaks a run."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.engine.cache import FeatureCache, pack, unpack


def test_results_survive_packing(rng):
    result = {
        "embedding": rng.standard_normal(256).astype(np.float32),
        "matrix": np.asfortranarray(rng.integers(0, 9, (3, 5))),
        "transcript": "naïve café, 北京",
        "score": 3.25,
        "windows": 7,
        "nothing": None,
    }
    back = unpack(pack(result))
    assert list(back) == list(result)
    for key, value in result.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(back[key], value)
            assert back[key].dtype == value.dtype
        else:
            assert back[key] == value


def test_pickled_objects_are_refused():
    with pytest.raises(ValueError, match=r"[Oo]bject"):
        pack({"x": np.array([object()])})


def test_a_second_run_finds_what_the_first_stored(tmp_path):
    first = FeatureCache(tmp_path / "c.sqlite")
    assert first.get("a") is None
    first.put("a", {"x": 1})
    assert first.get("a") == {"x": 1}, "also before it reached the disk"
    first.close()
    second = FeatureCache(tmp_path / "c.sqlite")
    assert second.get("a") == {"x": 1}
    assert (second.hits, second.misses) == (1, 0)
    second.close()


def test_the_bound_holds_and_the_entries_used_longest_ago_go_first(tmp_path, rng):
    cache = FeatureCache(tmp_path / "c.sqlite", max_bytes=2_000_000)
    value = {"x": rng.standard_normal(10_000)}  # 80 kB
    for k in range(60):
        cache.put(f"k{k}", value)
        cache.get("k0")
        cache.flush()
    assert cache.get("k0") is not None
    assert cache.get("k59") is not None
    assert cache.get("k1") is None
    cache.close()
    assert (tmp_path / "c.sqlite").stat().st_size < 4_000_000


def test_a_broken_file_turns_the_cache_off(tmp_path):
    (tmp_path / "c.sqlite").write_bytes(b"this is not a database" * 100)
    cache = FeatureCache(tmp_path / "c.sqlite")
    assert cache.get("a") is None
    cache.put("a", {"x": 1})
    cache.flush()
    cache.close()
    assert "not a database" in cache.trouble


def test_a_cache_without_a_file_holds_nothing():
    cache = FeatureCache(None)
    cache.put("a", {"x": 1})
    assert cache.get("a") is None
    cache.close()
