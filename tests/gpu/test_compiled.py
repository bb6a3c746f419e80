"""Every Triton kernel compiles for GPUs that are not here, and needs no more of them than they have."""

from __future__ import annotations

import dataclasses

import compiled_kernels
import pytest

triton = pytest.importorskip("triton", reason="Triton is not installed: pip install 'codec-bench[gpu]'")


@pytest.fixture(
    scope="module", params=[(90,), pytest.param((80, 86, 89, 90, 100, 120), marks=pytest.mark.long)], ids=str
)
def targets(request) -> tuple[int, ...]:
    """The GPUs that are compiled for: one, or all of the page."""
    return request.param


@pytest.fixture(scope="module")
def result(request, targets, tmp_path_factory):
    """What each launch needs.

    Triton stores what it compiled for later runs, by the source of a kernel and of all that it calls.
    """
    cached = getattr(request.config, "cache", None)
    with pytest.MonkeyPatch.context() as patch:
        folder = cached.mkdir("triton") if cached else tmp_path_factory.mktemp("triton")
        patch.setenv("TRITON_CACHE_DIR", str(folder))
        yield [
            (launch, compiled_kernels.compiled(launch))
            for launch in compiled_kernels.launches()
            if launch.target in targets
        ]


def test_no_kernel_spills_or_takes_more_memory_than_a_block_may_have(targets, result):
    assert {launch.target for launch, _ in result} == set(targets) <= set(compiled_kernels.SHARED_LIMIT)
    wrong = [
        f"{launch.name} with {launch.tile} for sm_{launch.target}: {needs}"
        for launch, needs in result
        if needs.stack > launch.stack or needs.shared > compiled_kernels.SHARED_LIMIT[launch.target]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_limit_on_the_stack_tells_a_tile_that_does_not_fit(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    (wide,) = (
        x for x in compiled_kernels.launches() if (x.name, x.target, x.tile[:2]) == ("search, 256 dimensions", 90, "64")
    )
    needs = compiled_kernels.compiled(dataclasses.replace(wide, target=100))
    assert needs.stack > compiled_kernels.STACK_LIMIT


def test_every_target_has_its_own_rule_for_tiles():
    from codec_bench.kernels.rvq.gpu import chosen_tile

    frames = [chosen_tile(64, 700, 128, capability, 132).frames for capability in (7, 8, 9, 10, 12)]
    assert frames == [32, 32, 64, 64, 32]
    assert chosen_tile(1, 100, 128, 9, 132).frames == 16  # one short item: small tiles keep more multiprocessors busy
    assert [chosen_tile(8, 700, 128, 9, count).frames for count in (58, 132)] == [
        64,
        32,
    ]  # an L4 has fewer to keep busy
    assert [chosen_tile(64, 700, 256, capability, 132).frames for capability in (8, 9, 10)] == [16, 64, 16]
