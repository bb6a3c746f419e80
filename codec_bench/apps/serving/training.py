"""Reward functions in the shapes that training libraries call, over a `Scorer` or a running service.

Sources of the shapes: TRL's GRPO trainer (`reward_func(prompts, completions, **columns) -> list[float]`), ms-swift's
`ORM.__call__(completions, **columns) -> list[float]`, and verl's
`compute_score(data_source, solution_str, ground_truth, extra_info)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.serving.items import Item
from codec_bench.apps.serving.rewards import Reward, RewardSpec, compute_reward, read_reward
from codec_bench.errors import UserError

RewardInput = str | Path | Mapping[str, Any] | RewardSpec


def item_rewards(scorer: Any, reward: RewardInput, items: Sequence[Item | Mapping[str, Any]]) -> list[Reward]:
    """The reward of each item, scored together.

    Args:
        scorer: a `Scorer`, or `Scorer.connect(url)`. reward: a YAML file, a mapping, or the name of a metric.
        items: as `Scorer.score` takes them.

    Raises:
        NoReward: an item has no value for a term, and the term does not say what stands in.
        UserError: the reward does not fit, or the scorer has ended.
    """
    spec = read_reward(reward, scorer.higher_is_better)
    return [compute_reward(spec, result.scores) for result in scorer.score(items)]


def column_reward(
    scorer: Any,
    reward: RewardInput,
    *,
    audio: str | None = None,
    reference: str | None = None,
    text: str | None = "text",
    language: str | None = None,
) -> Callable[..., list[float]]:
    """A reward function for TRL's GRPO trainer and for ms-swift.

    Args:
        scorer, reward: as for `item_rewards`.
        audio: the column with the generated audio; None if the completions are audio.
        reference, text, language: the columns with the reference audio, the text and the language; a column that
            the data lack is left out.

    Returns:
        A function of `completions` and the columns of the data, as keywords, that gives one number for each.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, Scorer, column_reward
        >>> prompt = Audio(0.5 * np.sin(np.arange(16000) / 20), 16000)
        >>> noisy = Audio(prompt.samples + 0.05 * np.sign(prompt.samples), 16000)
        >>> with Scorer("snr", device="cpu", workers=1) as scorer:
        ...     reward_func = column_reward(scorer, "snr", reference="prompt_audio")
        ...     rewards = reward_func(completions=[noisy], prompt_audio=[prompt])
        >>> round(rewards[0])
        17
    """

    def call(completions: Sequence[Any] = (), **columns: Any) -> list[float]:
        generated = completions if audio is None else columns[audio]
        fields = {"reference": reference, "text": text, "language": language}
        present = {field: columns[name] for field, name in fields.items() if name is not None and name in columns}
        items = [
            {"audio": _audio_of(one), **{field: values[index] for field, values in present.items()}}
            for index, one in enumerate(generated)
        ]
        return [one.score for one in item_rewards(scorer, reward, items)]

    call.__name__ = "codec_bench_reward"
    return call


def verl_score(scorer: Any, reward: RewardInput) -> Callable[..., dict[str, float]]:
    """A `compute_score` for verl, with the audio in `extra_info["audio"]` and the text as ground truth.

    Args:
        scorer, reward: as for `item_rewards`.

    Returns:
        A function of verl's four arguments that gives `score` and the metrics. `extra_info` may also hold `reference`,
        `reference_id`, `language`.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, Scorer, verl_score
        >>> prompt = Audio(0.5 * np.sin(np.arange(16000) / 20), 16000)
        >>> noisy = Audio(prompt.samples + 0.05 * np.sign(prompt.samples), 16000)
        >>> with Scorer("snr", device="cpu", workers=1) as scorer:
        ...     compute_score = verl_score(scorer, "snr")
        ...     found = compute_score("tts", noisy, "hello", {"reference": prompt})
        >>> round(found["score"])
        17
    """

    def compute_score(
        data_source: str, solution_str: Any, ground_truth: str | None, extra_info: Mapping[str, Any] | None = None
    ) -> dict[str, float]:
        extra = dict(extra_info or {})
        if "audio" not in extra and isinstance(solution_str, str):
            raise UserError("extra_info has no audio", hint="put the generated audio into extra_info['audio']")
        fields = {
            name: extra[name] for name in ("reference", "reference_id", "language") if extra.get(name) is not None
        }
        item = {"audio": _audio_of(extra.get("audio", solution_str)), "text": ground_truth, **fields}
        (item_reward,) = item_rewards(scorer, reward, [item])
        return {**item_reward.values, "score": item_reward.score}

    return compute_score


def _audio_of(value: Any) -> Any:
    """The audio of a completion: itself, or what a message or a column of datasets holds."""
    from codec_bench.types import Audio

    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):  # a conversation of one message
        value = value[0].get("content", value[0])
    if isinstance(value, Mapping):
        if "array" in value:
            return Audio(value["array"], value["sampling_rate"])
        return value.get("bytes") or value.get("path") or value.get("audio")
    return value
