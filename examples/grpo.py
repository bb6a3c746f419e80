"""Ten steps of GRPO on a toy policy, rewarded by the scorer.

The policy learns which of four noise levels the scorer rewards.

    python examples/grpo.py [http://127.0.0.1:8765]

A real policy generates speech; everything else is as in training: a group of samples for a prompt, one reward each,
advantages within the group, and a step along their gradient.
"""

from __future__ import annotations

import sys

import numpy as np

from codec_bench import Audio, Scorer
from codec_bench.data import open_source
from codec_bench.rewards import build_reward_func

LEVELS = np.array([0.3, 0.1, 0.03, 0.0])  # of the noise that the policy adds
REWARD = {
    "terms": {
        "words": {"metric": "stoi", "weight": 1.0, "missing": 0.0},
        "voice": {"metric": "sim[ge2e]", "weight": 0.5, "missing": 0.0},
    }
}


def main() -> None:
    """Prints the mean reward and the policy's preferences after each step."""
    rng, logits = np.random.default_rng(0), np.zeros(len(LEVELS))
    prompts = [Audio.read(sample.audio) for sample in list(open_source("embedded"))[:10]]
    scorer = Scorer.connect(sys.argv[1]) if len(sys.argv) > 1 else Scorer("stoi,sim[ge2e]")
    with scorer:
        reward = build_reward_func(scorer, REWARD, reference="prompt")
        for step, prompt in enumerate(prompts):
            policy = np.exp(logits) / np.exp(logits).sum()
            actions = rng.choice(len(LEVELS), 8, p=policy)
            noise = rng.standard_normal((8, *prompt.samples.shape)).astype(np.float32)
            group = [
                Audio(np.clip(prompt.samples + LEVELS[a] * one, -1, 1), prompt.sample_rate_hz)
                for a, one in zip(actions, noise)
            ]
            rewards = np.array(reward(completions=group, prompt=[prompt] * 8))
            advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
            for action, advantage in zip(actions, advantages):
                logits += 0.3 * advantage * (np.eye(len(LEVELS))[action] - policy)
            print(f"step {step}: reward {rewards.mean():.3f}, policy {np.round(policy, 2)}")


if __name__ == "__main__":
    main()
