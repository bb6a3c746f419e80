"""`show --miniature`: invented rows of any benchmark, read in the layout of its data."""

import pytest
from refusals import refuses

from codec_bench import show
from codec_bench.benchmark import load_benchmark

from ..benchmark.definition.test_validate import YES_NO


@pytest.mark.parametrize(
    "name", ["mmau-test-mini", "minimax-tts-thai", "seed-tts-eval-en", "fleurs-sv-se", "vocalbench-multi-round"]
)
def test_a_miniature_is_read_as_the_data_is(name, tmp_path):
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    assert show(name, miniature=tmp_path)["folder"] == str(tmp_path)
    questions = list(load_benchmark(name).questions(mirror=str(tmp_path)))
    assert len([one for one in questions if one.problem is None]) >= 4


def test_a_benchmark_with_files_of_its_own_has_no_miniature(tmp_path):
    (tmp_path / "benchmark.yaml").write_text(YES_NO)
    with refuses("reads_own_files"):
        show(str(tmp_path / "benchmark.yaml"), miniature=tmp_path / "out")
