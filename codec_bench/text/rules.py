"""Rules of error rates: how two texts are normalised, what is counted, and how a corpus is folded.

For each language, a rule says which steps change both texts and what one item is. Error rates by different rules are
different measurements, so a rule's name is part of a score's protocol. Lower is better for all of them.

The project's own rules
    `by-language`: English by Whisper's rule in words; Chinese and Cantonese by the normaliser `zh`, a Chinese character or a word
        of another script as one item; Japanese, Korean, Thai, Lao, Khmer and Burmese by characters; every other language
        in words by the normaliser `words`, which keeps marks.
    `whisper-en`, `whisper-basic`, `none`: one normaliser for every language, in words.
    `mixed`: the Chinese part of `by-language` for every language, for texts that switch between languages.
    `by-language` and `mixed` are aliases of `by-language-2` and `mixed-2`. A changed rule gets the next number, and the
    earlier ones stay: `by-language-1` and `mixed-1` give no value to a pair with an empty reference, and the second
    versions count the words that were heard there.

Published rules, reproduced with their errors (tests/golden/text holds the cases)
    `official/seed-tts-eval`; `official/ultraeval-audio/wer`, `.../seed-tts`, `.../naive-wer`, `.../long-tts`;
    `official/audiobench/asr`, `.../asr-code-switch`, `.../asr-imda-part4`, `.../asr-indonesian`, `.../asr-thai`,
    `.../asr-vietnamese`. The aliases `seed-tts` and `audiobench` name the first of each.

Some published rules raise an exception for some pairs, mostly for an empty reference. Such a pair gets no value and a
note that says why.

References: the repositories and commits that each rule's `source` names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from codec_bench.errors import MissingExtra, UnknownName, UserError
from codec_bench.text.error_rate import ErrorRate, Unit, error_rates
from codec_bench.text.language import base_language
from codec_bench.text.normalise import get_normaliser
from codec_bench.text.scripts import script_language

EMPTY_REFERENCE = "nothing is left of the reference after normalisation"
HALLUCINATED = "words heard where the reference has none"
"""The flag of a score whose reference is empty and whose estimate is not."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One pair of texts under a rule.

    Args:
        reference, estimate: the normalised texts as they were compared; their items are `tokens(text, unit)`.
        unit: what one item is.
        counts: how many items the estimate has right and wrong.
        value: the rule's own number for this pair, as a fraction; None if it has no value.
        weight: the weight of the pair in the corpus value, for rules whose `aggregate` is `weighted`; else the length of
            the reference.
        note: why there is no value, or what is special about the pair.
    """

    reference: str
    estimate: str
    unit: Unit
    counts: ErrorRate
    value: float | None
    weight: float = 0.0
    note: str = ""

    @property
    def detail(self) -> dict[str, Any]:
        """The counts and both texts as they were compared, for `Score.detail`."""
        counts = self.counts
        return {
            "hits": counts.hits,
            "substitutions": counts.substitutions,
            "deletions": counts.deletions,
            "insertions": counts.insertions,
            "reference": self.reference,
            "hypothesis": self.estimate,
            "unit": self.unit,
        }

    @property
    def hallucinated(self) -> bool:
        """Whether the estimate has words and the reference has none."""
        return self.counts.reference_length == 0 and self.counts.insertions > 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """What happens to the texts of one language.

    Args:
        reference: the names of the steps that change the reference, in order.
        estimate: those that change the estimate; None if they are the same.
        unit: what one item is.
        rate: whether the source calls the result a word error rate or a character error rate.
    """

    reference: tuple[str, ...]
    estimate: tuple[str, ...] | None = None
    unit: Unit = "word"
    rate: Literal["wer", "cer"] = "wer"

    def steps(self, side: Literal["reference", "estimate"]) -> tuple[str, ...]:
        """The steps of one side."""
        return self.estimate if side == "estimate" and self.estimate is not None else self.reference


@dataclass(frozen=True, slots=True)
class Rule:
    """A named way to compare texts.

    Args:
        name: the name for `get_rule`, part of protocol ids. The project's own rules are numbered.
        summary: one sentence.
        source: where it was published, with the commit or version.
        recipes: what happens in each language, by base code.
        otherwise: what happens in every other language; None if the source supports only the languages of `recipes`.
        aggregate: how the source computes a corpus value: errors over items (`ratio`), the mean of the pairs' values
            (`mean`), or the mean weighted by `Compared.weight` (`weighted`).
        empty_reference: what a pair without words in its reference is worth. `undefined`: nothing, as if the pair were not
            there. `counted`: the words that were heard add to the errors of the corpus, and nothing to its words.
        fixed: whether the rule fixes the unit, as every published rule does.
        two_references: whether a second, spoken form of the reference is compared too, and the better value is taken.
        packages: by base code, the packages on which its results depend.
    """

    name: str
    summary: str
    source: str
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    otherwise: Recipe | None = None
    aggregate: Literal["ratio", "mean", "weighted"] = "ratio"
    empty_reference: Literal["undefined", "counted"] = "undefined"
    fixed: bool = False
    two_references: bool = False
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def languages(self) -> tuple[str, ...]:
        """The base codes of the languages that it supports; empty if it supports every language."""
        return () if self.otherwise is not None else tuple(sorted(self.recipes))

    def protocol(self, language: str | None = None) -> str:
        """The rule's part of a protocol id: its name, and the packages on which it depends in a language.

        For example `by-language-1`, or for Chinese `by-language-1+OpenCC-1.4.2+wetext-0.1.8`.
        """
        packages = self.packages.get(base_language(language) if language else "", ())
        return "+".join([self.name, *(f"{package}-{_version(package)}" for package in packages)])

    def check(self, language: str | None) -> None:
        """Checks before a long run whether texts in a language can be compared on this machine.

        Raises:
            MissingExtra: a package that the rule needs in this language is not installed.
        """
        for package in self.packages.get(base_language(language) if language else "", ()):
            if _version(package) == "missing":
                raise MissingExtra(f"the rule '{self.name}' for texts in '{language}'", package, "text")

    def recipe(self, language: str | None, reference: str = "") -> Recipe | None:
        """What happens to texts in a language. If it is None, the script of the reference decides the language."""
        base = base_language(language) if language else script_language(reference)
        return self.recipes.get(base, self.otherwise)

    def rate(self, language: str | None, reference: str = "") -> Literal["wer", "cer"]:
        """Whether the source calls the result for a language a word or a character error rate."""
        recipe = self.recipe(language, reference)
        return recipe.rate if recipe is not None else "wer"

    def trace(
        self, text: str, language: str | None, side: Literal["reference", "estimate"] = "reference"
    ) -> list[tuple[str, str]]:
        """What each normaliser of the rule makes of a text, to see why two texts count as different.

        Args:
            text: the text before any normalising.
            language: its language, or None to tell it from the script.
            side: which text of a pair it is; some rules treat the two differently.

        Returns:
            `(normaliser, text after it)` for every step, in order.

        Raises:
            UserError: the rule does not know the language. MissingExtra: a step needs a package.
        """
        recipe = self.recipe(language, text)
        if recipe is None:
            raise UserError(f"the rule '{self.name}' knows {' and '.join(self.languages)} only, not '{language}'")
        done = []
        for name in recipe.steps(side):
            text = get_normaliser(name)(text)
            done.append((name, text))
        return done

    def compare(
        self,
        *,
        reference: Sequence[str],
        estimate: Sequence[str],
        language: Sequence[str | None],
        unit: Unit | None = None,
        spoken: Sequence[str | None] | None = None,
    ) -> list[Compared]:
        """Compares pairs of texts; the result of a pair does not depend on the others.

        Args:
            reference, estimate, language: one of each per pair. If a language is None, the reference's script decides it.
            unit: what one item is, in place of the rule's own unit.
            spoken: for rules with `two_references`, the references as they are spoken (numbers written out), or None.

        Returns:
            One result per pair. A pair that cannot be compared has no value and a note that says why.

        Raises:
            UserError: the lengths differ, a unit was given for a published rule that has another, or spoken references
                were given for a rule without them. MissingExtra: a language needs a package that is not installed.
        """
        lengths = {len(reference), len(estimate), len(language), len(spoken if spoken is not None else reference)}
        if len(lengths) > 1:
            raise UserError(
                f"a rule of error rates got {len(reference)} references, {len(estimate)} estimates and {len(language)} "
                "languages; expected as many of each"
            )
        if spoken is not None and not self.two_references:
            raise UserError(f"the rule '{self.name}' compares with one reference; a spoken form of it was given too")
        first = self._compare(reference, estimate, language, unit)
        if spoken is None or not self.two_references:
            return first
        known = [place for place, text in enumerate(spoken) if text is not None]
        second = self._compare(
            [spoken[place] or "" for place in known],
            [estimate[place] for place in known],
            [language[place] for place in known],
            unit,
        )
        for place, other in zip(known, second):
            first[place] = _better(first[place], other)
        return first

    def item_value(self, compared: Compared) -> float | None:
        """What a pair is worth as an item of a corpus; None if it is worth nothing.

        It is the pair's own value. A pair with an empty reference has none, because nothing divided by no words is no
        rate. Where such a pair counts, it is worth the number of words that were heard, each of which is an error.
        """
        if compared.value is None and self.empty_reference == "counted" and compared.note == EMPTY_REFERENCE:
            return float(compared.counts.insertions)
        return compared.value

    def share(self, compared: Compared) -> tuple[float, float]:
        """What a pair adds to the numerator and to the denominator of the corpus value."""
        if self.aggregate == "ratio":
            # Pairs with an empty reference also add their errors, as in the source.
            return compared.counts.errors, compared.counts.reference_length
        if compared.value is None:
            return 0.0, 0.0
        weight = compared.weight if self.aggregate == "weighted" else 1.0
        return compared.value * weight, weight

    def corpus(self, compared: Iterable[Compared]) -> float | None:
        """The corpus value as the source computes it, as a fraction; None if the denominator is 0."""
        shares = [self.share(pair) for pair in compared]
        below = math.fsum(share[1] for share in shares)
        return math.fsum(share[0] for share in shares) / below if below else None

    def _compare(
        self, references: Sequence[str], estimates: Sequence[str], languages: Sequence[str | None], unit: Unit | None
    ) -> list[Compared]:
        results: dict[int, Compared] = {}
        by_unit: dict[Unit, list[int]] = {}
        for place, (reference, estimate, language) in enumerate(zip(references, estimates, languages)):
            recipe = self.recipe(language, reference)
            if recipe is None:
                note = f"the rule knows {' and '.join(self.languages)} only, and the language is '{language}'"
                results[place] = Compared(reference, estimate, "word", ErrorRate.zero(), None, 0.0, note)
                continue
            if self.fixed and unit not in (None, recipe.unit):
                raise UserError(
                    f"the published rule '{self.name}' counts by '{recipe.unit}', not by '{unit}'",
                    hint="leave out the unit, or use the rule by-language",
                )
            counted = unit or recipe.unit
            try:
                texts = (_apply(recipe.steps("reference"), reference), _apply(recipe.steps("estimate"), estimate))
            except UserError:
                raise
            except Exception as error:  # any text may come in, and the libraries of some steps may fail on it
                note = f"the text cannot be normalised: {type(error).__name__}: {error}"
                results[place] = Compared(reference, estimate, counted, ErrorRate.zero(), None, 0.0, note)
                continue
            by_unit.setdefault(counted, []).append(place)
            results[place] = Compared(*texts, counted, ErrorRate.zero(), None)
        for counted, places in by_unit.items():
            counts = error_rates(
                reference=[results[place].reference for place in places],
                estimate=[results[place].estimate for place in places],
                unit=counted,
                normaliser="none",
            )
            for place, count in zip(places, counts):
                results[place] = self._valued(replace(results[place], counts=count))
        return [results[place] for place in range(len(references))]

    def _valued(self, compared: Compared) -> Compared:
        weight = compared.counts.reference_length
        if self.aggregate == "weighted":
            weight = len(compared.reference.split(" "))  # as in the source, an empty text has the weight 1
        if compared.counts.rate is None:
            return replace(compared, weight=float(weight), note=EMPTY_REFERENCE)
        return replace(compared, weight=float(weight), value=compared.counts.rate)


def weighted_mean(values: Sequence[float | None], weights: Sequence[float | None]) -> float | None:
    """The mean of values by their weights, which is how `long-tts-wer` of UltraEval-Audio computes a corpus value.

    A pair without a value or without a weight is left out. The result is None if no pair is left or all weights are zero.
    """
    pairs = [(value, weight) for value, weight in zip(values, weights) if value is not None and weight is not None]
    below = math.fsum(weight for _, weight in pairs)
    return math.fsum(value * weight for value, weight in pairs) / below if below else None


def get_rule(name: str) -> Rule:
    """The rule of that name or alias.

    Raises:
        UnknownName: there is none.
    """
    rules = _rules()
    name = ALIASES.get(name, name)
    if name not in rules:
        raise UnknownName("rule of error rates", name, [*rules, *ALIASES])
    return rules[name]


def rule_names() -> list[str]:
    """The names that `get_rule` knows, without the aliases."""
    return sorted(_rules())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _apply(steps: tuple[str, ...], text: str) -> str:
    return get_normaliser(steps[0] if len(steps) == 1 else ",".join(steps))(text)


def _better(text: Compared, spoken: Compared) -> Compared:
    """The result with the lower value; without a value if one of the references is empty, as in the source."""
    if text.value is None or spoken.value is None:
        return replace(text, value=None, note=text.note or f"{spoken.note} (its spoken form)")
    return spoken if spoken.value < text.value else text


ALIASES = {
    "audiobench": "official/audiobench/asr",
    "by-language": "by-language-2",
    "mixed": "mixed-2",
    "seed-tts": "official/seed-tts-eval",
    "seed-tts-eval": "official/seed-tts-eval",
}


@cache
def _rules() -> dict[str, Rule]:
    rules = [*_own(), *_seed_tts(), *_ultraeval(), *_audiobench()]
    return {rule.name: rule for rule in rules}


def _own() -> list[Rule]:
    chinese = Recipe(("zh",), unit="mixed", rate="cer")
    characters = Recipe(("characters",), unit="char", rate="cer")
    vowel_points = {language: Recipe(("words-ar",)) for language in ("ar", "fa", "ps", "sd", "ug", "ur")}
    points = {language: Recipe(("words-he",)) for language in ("he", "yi")}
    turkish = {language: Recipe(("words-tr",)) for language in ("az", "tr")}
    reads = ("OpenCC", "wetext")
    numbered = [
        Rule(
            "by-language-1",
            "the project's own: what is sound in each language, in words or characters as the language is written",
            "codec-bench",
            {
                "en": Recipe(("whisper-en",)),
                "zh": chinese,
                "yue": chinese,
                **{language: characters for language in ("ja", "ko", "lo", "km", "my")},
                "th": replace(characters, reference=("characters-th",)),
                **vowel_points,
                **points,
                **turkish,
            },
            Recipe(("words",)),
            packages={"zh": reads, "yue": reads},
        ),
        Rule("mixed-1", "Chinese with words of other scripts among it, whatever the language is said to be", "codec-bench",
             otherwise=chinese, packages={"zh": reads, "yue": reads}),
    ]  # fmt: skip
    second = [
        replace(
            rule,
            name=rule.name.replace("-1", "-2"),
            summary=f"{rule.summary}; words heard where the reference has none are errors",
            empty_reference="counted",
        )
        for rule in numbered
    ]
    return [
        *numbered,
        *second,
        Rule("whisper-en", "Whisper's English rule for every language, in words", "Radford et al. 2022, appendix C",
             otherwise=Recipe(("whisper-en",))),
        Rule("whisper-basic", "Whisper's rule for languages other than English, in words", "Radford et al. 2022, appendix C",
             otherwise=Recipe(("basic",))),
        Rule("none", "the texts as they are, in words", "codec-bench", otherwise=Recipe(("none",))),
    ]  # fmt: skip


def _seed_tts() -> list[Rule]:
    plain = ("delete-punctuation", "halve-spaces")
    spaced = (*plain, "space-characters")
    return [
        Rule(
            "official/seed-tts-eval",
            "seed-tts-eval's: punctuation deleted, Chinese by characters, the mean of the utterances' rates",
            "github.com/BytedanceSpeech/seed-tts-eval 752f429 run_wer.py, average_wer.py",
            {"en": Recipe((*plain, "lower")), "zh": Recipe(spaced, ("zh-cn", *spaced), rate="cer")},
            aggregate="mean",
            fixed=True,
            packages={"zh": ("zhconv",)},
        )
    ]


def _ultraeval() -> list[Rule]:
    repository = "github.com/OpenBMB/UltraEval-Audio 9b69da6 audio_evals"
    plain = ("delete-punctuation", "halve-spaces")
    characters = (*plain, "space-black-characters")
    by_character = Recipe(characters, rate="cer")
    english = ("lower", "ultraeval-en")
    long_text = ("num2words-en", "lower", "blank-punctuation", "squeeze")
    return [
        Rule(
            "official/ultraeval-audio/wer",
            "UltraEval-Audio's for speech recognition: Whisper's English rule in every language, sacreBLEU's tokens",
            f"{repository}/lib/wer.py",
            {
                "zh": Recipe((*english, "cn-tn", "sacrebleu-zh", "lower"), rate="cer"),
                "yue": Recipe((*english, "zh-cn", "cn-tn", "sacrebleu-zh", "lower"), rate="wer"),
                "ja": Recipe((*english, "ja-mecab", "lower")),
            },
            Recipe((*english, "sacrebleu-13a", "lower")),
            fixed=True,
            packages={"ja": ("mecab-python3", "ipadic"), "yue": ("zhconv",)},
        ),
        Rule(
            "official/ultraeval-audio/seed-tts",
            "UltraEval-Audio's for synthesised and decoded speech: punctuation deleted, five languages by characters",
            f"{repository}/evaluator/seed_tts_eval_asr_wer.py",
            {
                "zh": Recipe(characters, ("zh-cn", *characters), rate="cer"),
                **{language: by_character for language in ("ja", "ko", "th", "yue")},
            },
            Recipe((*plain, "lower")),
            aggregate="mean",
            fixed=True,
            packages={"zh": ("zhconv",)},
        ),
        Rule(
            "official/ultraeval-audio/naive-wer",
            "UltraEval-Audio's NaiveWER: punctuation deleted, Chinese by characters, no conversion of script",
            f"{repository}/evaluator/wer.py NaiveWER",
            {"en": Recipe((*plain, "lower")), "zh": Recipe((*plain, "space-characters"))},
            aggregate="mean",
            fixed=True,
        ),
        Rule(
            "official/ultraeval-audio/long-tts",
            "UltraEval-Audio's for long synthesised speech: the better of the text and its spoken form, weighted by words",
            f"{repository}/evaluator/long_tts_eval_asr_wer.py, agg/sp.py",
            {"en": Recipe(long_text), "zh": Recipe((*long_text[1:], "space-around-cjk"))},
            aggregate="weighted",
            fixed=True,
            two_references=True,
            packages={"en": ("num2words",)},
        ),
    ]


def _audiobench() -> list[Rule]:
    repository = "github.com/AudioLLMs/AudioBench e991641 src/dataset_src"
    after = ("small-numbers", "drop-braces", "jiwer-english", "no-punctuation", "drop-fillers")
    english = ("lower", "whisper-en", *after)
    return [
        Rule(
            name,
            summary,
            f"{repository}/{source}",
            otherwise=Recipe((*steps, "empty-word")),
            fixed=True,
            packages={"th": ("pythainlp",)} if "newmm" in steps else {},
        )
        for name, summary, source, steps in (
            (
                "official/audiobench/asr",
                "AudioBench's for English speech recognition: Whisper's rule, small numbers as words, fillers dropped",
                "librispeech_test_clean.py",
                english,
            ),
            (
                "official/audiobench/asr-code-switch",
                "AudioBench's for Chinese and for Chinese with English: the English one, Chinese by characters",
                "seame_dev_man.py",
                (*english, "space-between-cjk"),
            ),
            (
                "official/audiobench/asr-imda-part4",
                "AudioBench's for part 4 of the National Speech Corpus: as for code switching, symbols and accents kept",
                "imda_part4_30s_asr_test.py",
                ("lower", "whisper-en-symbols", *after, "space-between-cjk", "squeeze"),
            ),
            (
                "official/audiobench/asr-indonesian",
                "AudioBench's for Indonesian: the English one",
                "gigaspeech2_indo.py",
                english,
            ),
            (
                "official/audiobench/asr-thai",
                "AudioBench's for Thai: the raw text cut into words by pythainlp, case and punctuation included",
                "gigaspeech2_thai.py",
                ("newmm",),
            ),
            (
                "official/audiobench/asr-vietnamese",
                "AudioBench's for Vietnamese: lower case, whatever is not alphanumeric a space, no normal form",
                "gigaspeech2_viet.py",
                ("lower", "alphanumeric"),
            ),
        )
    ]
