"""Rules of error rates: normalisation, items and the corpus value.

A rule sets, for each language, the steps for both texts and the item. Error rates by different rules are different
measurements, so a rule's name is part of a score's protocol. Lower is better for all of them.

The project's own rules
    `by-language`: English by Whisper's rule in words; Chinese and Cantonese with a Chinese character or a word of
        another script as one item; Japanese, Korean, Thai, Lao, Khmer and Burmese by characters; every other language
        in words, with its marks. In 15 languages (`docs/metrics/text_rules.md`), digits are written as words, and
        spellings of the same speech are unified.
    `whisper-en`, `whisper-basic`, `none`: one normaliser for every language, in words.
    `mixed`: the Chinese part of `by-language` for every language, for texts that switch between languages.
    `by-language` and `mixed` count words as errors if the reference is empty. `untagged/RULE`: any rule, here or below,
    after tags such as `[laughs]` are removed from both texts (`codec_bench.text.tags`).

Published rules, reproduced with their errors (cases in tests/golden/text; each rule's `source` names the commit)
    `official/seed-tts-eval`; `official/ultraeval-audio/wer`, `.../seed-tts`, `.../naive-wer`, `.../long-tts`;
    `official/open-asr/2026-03-23`, `.../2026-04-22`, `.../2026-06-11`, `.../2026-06-22` (alias `open-asr`);
    `official/audiobench/asr`, `.../asr-code-switch`, `.../asr-imda-part4`, `.../asr-indonesian`, `.../asr-thai`,
    `.../asr-vietnamese`. The aliases `seed-tts` and `audiobench` name the first of each.

Some published rules raise an exception for some pairs, mostly for an empty reference. Such a pair gets no value and a
note that says why.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from codec_bench.messages.errors import UnknownName
from codec_bench.text.cardinals import SEPARATORS
from codec_bench.text.published_rules import published_rules
from codec_bench.text.rule import EMPTY_REFERENCE, HALLUCINATED, ComparedTexts, Recipe, Rule, weighted_mean
from codec_bench.text.tags import PREFIX

__all__ = [
    "ALIASES",
    "EMPTY_REFERENCE",
    "HALLUCINATED",
    "ComparedTexts",
    "Recipe",
    "Rule",
    "get_rule",
    "rule_names",
    "weighted_mean",
]


def get_rule(name: str) -> Rule:
    """A rule by name or alias; `untagged/RULE` removes tags from both texts.

    Raises:
        UnknownName: there is none.
    """
    rules = _rules()
    if name.startswith(PREFIX):
        rule = get_rule(name.removeprefix(PREFIX))
        return replace(rule, name=PREFIX + rule.name, untags=True)
    name = ALIASES.get(name, name)
    if name not in rules:
        raise UnknownName("error_rate_rule", name, [*rules, *ALIASES])
    return rules[name]


def rule_names() -> list[str]:
    """The names that `get_rule` knows, without the aliases."""
    return sorted(_rules())


ALIASES = {
    "audiobench": "official/audiobench/asr",
    "open-asr": "official/open-asr/2026-06-22",
    "seed-tts": "official/seed-tts-eval",
    "seed-tts-eval": "official/seed-tts-eval",
}


@cache
def _rules() -> dict[str, Rule]:
    rules = [*_define_rules(), *published_rules()]
    return {rule.name: rule for rule in rules}


def _define_rules() -> list[Rule]:
    """Define the general rules: by language, Whisper's, and none."""
    whisper = "Radford et al. 2022, appendix C"
    return [
        *_by_language(),
        Rule("whisper-en", "Whisper's English rule for every language, in words", whisper,
             otherwise=Recipe(("whisper-en",))),
        Rule("whisper-basic", "Whisper's rule for languages other than English, in words", whisper,
             otherwise=Recipe(("basic",))),
        Rule("none", "the texts as they are, in words", "codec-bench", otherwise=Recipe(("none",))),
    ]  # fmt: skip


def _by_language() -> list[Rule]:
    """Define the default rule, which depends on the language."""
    chinese = Recipe(("folded-zh",), unit="mixed", rate="cer")
    characters = Recipe(("characters",), unit="char", rate="cer")
    words = Recipe(("words",))
    recipes = {
        **{language: characters for language in ("ja", "ko", "th", "lo", "km", "my")},
        **{language: Recipe(("words-ar",)) for language in ("ar", "fa", "ps", "sd", "ug", "ur")},
        **{language: Recipe(("words-he",)) for language in ("he", "yi")},
        **{language: Recipe(("words-tr",)) for language in ("az", "tr")},
    }
    recipes |= {
        language: replace(recipes.get(language, words), reference=(f"folded-{language}",))
        for language in ("en", *SEPARATORS)
    }
    alike = "words recognised where the reference has none are errors; numbers and spellings of the same speech alike"
    reads = ("OpenCC", "wetext")
    return [
        Rule("by-language",
             "the project's own: what is sound in each language, in words or characters as the language is written; "
             f"{alike}",
             "codec-bench", {**recipes, "zh": chinese, "yue": chinese}, words, empty_reference="counted",
             packages={"zh": reads, "yue": reads}, versions=dict.fromkeys(("en", "ko", "yue", "zh"), 2)),
        Rule("mixed",
             f"Chinese with words of other scripts among it, whatever the stated language; {alike}",
             "codec-bench", otherwise=chinese, empty_reference="counted", packages={"zh": reads, "yue": reads},
             versions={"yue": 2, "zh": 2}),
    ]  # fmt: skip
