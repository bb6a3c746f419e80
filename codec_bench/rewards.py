"""Reward functions for training libraries, over a `Scorer` or a running service.

from codec_bench.rewards import build_reward_func

Signatures: TRL's GRPO trainer (`reward_func(prompts, completions, **columns) -> list[float]`), ms-swift's
`ORM.__call__(completions, **columns) -> list[float]`, and verl's
`compute_score(data_source, solution_str, ground_truth, extra_info)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.serving.items import Item
from codec_bench.apps.serving.rewards import NoReward, Reward, RewardSpec, compute_reward, read_reward
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

__all__ = [
    "NoReward",
    "Reward",
    "RewardSpec",
    "build_compute_score",
    "build_reward_func",
    "compute_rewards",
    "read_reward",
]

RewardInput = str | Path | Mapping[str, Any] | RewardSpec


def compute_rewards(scorer: Any, reward: RewardInput, items: Sequence[Item | Mapping[str, Any]]) -> list[Reward]:
    """The reward of each item, scored together.

    Args:
        scorer: a `Scorer`, or `Scorer.connect(url)`. reward: a YAML file, a mapping, or the name of a metric.
        items: as for `Scorer.score`.

    Raises:
        NoReward: an item cannot be read, or has no value for a term without a substitute.
        UserError: the reward does not fit, or the scorer has ended.
    """
    spec = read_reward(reward, scorer.higher_is_better)
    rewards = []
    for index, result in enumerate(scorer.score(items)):
        if result.unreadable is not None:
            raise NoReward(
                Diagnostic("at_item", index=index, cause=result.unreadable),
                next(iter(spec.terms.values())).metric,
                None,
            )
        rewards.append(compute_reward(spec, result.scores))
    return rewards


def build_reward_func(
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
        scorer, reward: as for `compute_rewards`.
        audio: the column with the generated audio; None if the completions are audio.
        reference, text, language: columns of the reference audio, the text and the language; missing ones are ignored.

    Returns:
        A function of `completions` and the columns of the data, as keywords, that returns one number for each.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, Scorer
        >>> from codec_bench.rewards import build_reward_func
        >>> prompt = Audio(0.5 * np.sin(np.arange(16000) / 20), 16000)
        >>> noisy = Audio(prompt.samples + 0.05 * np.sign(prompt.samples), 16000)
        >>> with Scorer("snr", device="cpu", workers=1) as scorer:
        ...     reward_func = build_reward_func(scorer, "snr", reference="prompt_audio")
        ...     rewards = reward_func(completions=[noisy], prompt_audio=[prompt])
        >>> round(rewards[0])
        17
    """

    def call(completions: Sequence[Any] = (), **columns: Any) -> list[float]:
        generated = completions if audio is None else columns[audio]
        fields = {"reference": reference, "text": text, "language": language}
        present = {field: columns[name] for field, name in fields.items() if name is not None and name in columns}
        items = [
            {"audio": _audio_of(one), **{field: _value_of(field, values[index]) for field, values in present.items()}}
            for index, one in enumerate(generated)
        ]
        return [one.score for one in compute_rewards(scorer, reward, items)]

    call.__name__ = Path(reward).stem if isinstance(reward, str | Path) else "codec_bench"  # TRL logs under it
    return call


def build_compute_score(scorer: Any, reward: RewardInput) -> Callable[..., dict[str, float]]:
    """A verl `compute_score`: audio in `extra_info["audio"]`, text as ground truth.

    Returns:
        A function of verl's arguments that returns `score` and every metric, NaN for one without a value. `extra_info`
        may also hold `reference`, `reference_id`, `language`.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, Scorer
        >>> from codec_bench.rewards import build_compute_score
        >>> prompt = Audio(0.5 * np.sin(np.arange(16000) / 20), 16000)
        >>> noisy = Audio(prompt.samples + 0.05 * np.sign(prompt.samples), 16000)
        >>> with Scorer("snr", device="cpu", workers=1) as scorer:
        ...     compute_score = build_compute_score(scorer, "snr")
        ...     found = compute_score("tts", noisy, "hello", {"reference": prompt})
        >>> round(found["score"])
        17
    """

    def compute_score(
        data_source: str,
        solution_str: Any,
        ground_truth: str | None,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, float]:
        extra = dict(extra_info or {})
        if "audio" not in extra and isinstance(solution_str, str):
            raise UserError("extra_info_without_audio", hint="put the generated audio into extra_info['audio']")
        names = ("reference", "reference_id", "language")
        fields = {name: _value_of(name, extra[name]) for name in names if extra.get(name) is not None}
        item = {"audio": _audio_of(extra.get("audio", solution_str)), "text": ground_truth, **fields}
        (item_reward,) = compute_rewards(scorer, reward, [item])
        # verl makes an array of each key over a batch, so every item has the same keys.
        values = {name: item_reward.values.get(name, math.nan) for name in scorer.protocols}
        return {**values, "score": item_reward.score}

    return compute_score


def _value_of(field: str, value: Any) -> Any:
    return _audio_of(value) if field == "reference" else value


def _audio_of(value: Any) -> Any:
    """Convert a data set's audio of any known form to `Audio`."""
    from codec_bench.types import Audio

    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):  # a conversation of one message
        value = value[0].get("content", value[0])
    if hasattr(value, "get_all_samples"):  # torchcodec's decoder, the column of datasets 4
        samples = value.get_all_samples()
        return Audio(samples.data.numpy(), samples.sample_rate)
    if isinstance(value, Mapping):
        if "sampling_rate" in value:
            return Audio(value["array"] if "array" in value else value["audio"], value["sampling_rate"])
        return value.get("bytes") or value.get("path") or value.get("audio")
    return value
