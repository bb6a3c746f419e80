"""`--set` reaches the models and benchmarks of a run, whatever dots their names and options have."""

from codec_bench.cli.options import parse_settings
from codec_bench.cli.run import regrouped

NAMES = ["qwen2.5-omni-7b", "gpt-4o", "aishell-1", "./mine.yaml"]


def test_dots_in_names_and_in_options():
    settings = [
        "gpt-4o.parameters.temperature=0", "qwen2.5-omni-7b.dtype=float32", "gpt-4o.base_url=http://a.b/v1", "utmos.weights=x",
        "aishell-1.data.columns.audio=sound", "./mine.yaml.limit_s=30",
    ]  # fmt: skip
    assert regrouped(parse_settings(settings), NAMES) == {
        "gpt-4o": {"parameters.temperature": 0, "base_url": "http://a.b/v1"},
        "qwen2.5-omni-7b": {"dtype": "float32"},
        "utmos": {"weights": "x"},
        "aishell-1": {"data.columns.audio": "sound"},
        "./mine.yaml": {"limit_s": 30},
    }


def test_the_longest_name_takes_the_setting():
    assert regrouped({"a.b": {"c": 1}}, ["a", "a.b"]) == {"a.b": {"c": 1}}
