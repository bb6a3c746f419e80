"""An error rate's rule: text steps, item and corpus value per language."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import MissingExtra, UserError
from codec_bench.text.error_rate import ErrorRate, Unit, compound_error_rates, error_rates
from codec_bench.text.language import base_language, script_language
from codec_bench.text.normalise import get_normaliser
from codec_bench.text.open_asr import joined_pairs
from codec_bench.text.tags import FEW_TAGGED, FLAG_FROM, REMOVED, TAG_NOTE, without_tags

EMPTY_REFERENCE = Diagnostic("empty_reference")
HALLUCINATED = Diagnostic("hallucinated")
"""The flag of a score with an empty reference and a non-empty estimate."""


@dataclass(frozen=True, slots=True)
class ComparedTexts:
    """One pair of texts under a rule.

    Args:
        reference, estimate: the normalised texts; their items are `tokens(text, unit)`.
        value: the rule's own number for this pair, as a fraction; None if it has none.
        weight: the weight in the corpus value, for rules whose `aggregate` is `weighted`; else the reference's length.
        note: why there is no value, or what is special about the pair.
        tags: the flag about tags in the reference (`codec_bench.text.tags`); empty without tags that count.
        tag_count: how many tags the reference has, if the flag is set.
    """

    reference: str
    estimate: str
    unit: Unit
    counts: ErrorRate
    value: float | None
    weight: float = 0.0
    note: Diagnostic | None = None
    tags: str = ""
    tag_count: int = 0

    @property
    def detail(self) -> dict[str, Any]:
        """The counts and both normalised texts, for `Score.detail`."""
        counts = self.counts
        tagged: dict[str, Any] = {"tags": self.tag_count, "flag": self.tags} if self.tags else {}
        tagged |= {FLAG_FROM: FEW_TAGGED} if self.tags == TAG_NOTE else {}
        return {
            **tagged,
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


Joined = Literal["pairs", "compounds"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The processing of texts in one language.

    Args:
        reference: the names of the steps for the reference, in order.
        estimate: those for the estimate; None if they are the same.
        rate: whether the source calls the result a word error rate or a character error rate.
        joined: how to treat words that one text splits: `pairs` joins them in both texts (`open_asr.joined_pairs`),
            `compounds` counts them as hits (`kernels.edit_distance.compounds`).
    """

    reference: tuple[str, ...]
    estimate: tuple[str, ...] | None = None
    unit: Unit = "word"
    rate: Literal["wer", "cer"] = "wer"
    joined: tuple[Joined, ...] = ()

    def steps(self, role: Literal["reference", "estimate"]) -> tuple[str, ...]:
        """The steps of the reference or of the estimate."""
        return self.estimate if role == "estimate" and self.estimate is not None else self.reference


@dataclass(frozen=True, slots=True)
class Rule:
    """A named way to compare texts.

    Args:
        name: the name for `get_rule`, part of protocol ids.
        source: where it was published, with the commit or version.
        recipes: the recipe of each language, by base code.
        otherwise: the recipe of every other language; None if the source supports only the languages of `recipes`.
        aggregate: the source's corpus value: errors over items (`ratio`), the mean of the pairs' values (`mean`), or
            their mean weighted by `Compared.weight` (`weighted`).
        empty_reference: the effect of a pair without reference words. `undefined`: none. `counted`: the estimate's
            words are errors of the corpus.
        fixed: whether the rule fixes the unit, as every published rule does.
        two_references: whether a spoken form of the reference is compared too, and the better value counts.
        packages: by base code, the packages on which its results depend.
        versions: by base code, the number of the rule's version, if it is not the first.
        untags: whether tags are removed from both texts first.
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
    versions: Mapping[str, int] = field(default_factory=dict)
    untags: bool = False

    @property
    def languages(self) -> tuple[str, ...]:
        """The base codes of the supported languages; empty if it supports every language."""
        return () if self.otherwise is not None else tuple(sorted(self.recipes))

    def protocol(self, language: str | None = None) -> str:
        """The rule's part of a protocol id: name, version and packages in a language.

        For example `by-language`, or for Chinese `by-language-2+OpenCC-1.4.2+wetext-0.1.8`.
        """
        base = base_language(language) if language else ""
        packages, version = self.packages.get(base, ()), self.versions.get(base)
        return "+".join(
            [
                self.name if version is None else f"{self.name}-{version}",
                *(f"{package}-{_version(package)}" for package in packages),
            ]
        )

    def check(self, language: str | None) -> None:
        """Check that this machine can compare texts in a language.

        Raises:
            MissingExtra: a package that the rule needs in this language is not installed.
        """
        for package in self.packages.get(base_language(language) if language else "", ()):
            if _version(package) == "missing":
                raise MissingExtra("rule", package, "text", name=self.name)

    def recipe(self, language: str | None, reference: str = "") -> Recipe | None:
        """The recipe of a language; without one, the script of the reference decides."""
        base = base_language(language) if language else script_language(reference)
        return self.recipes.get(base, self.otherwise)

    def rate(self, language: str | None, reference: str = "") -> Literal["wer", "cer"]:
        """The source's name of the rate: `wer` for words, `cer` for characters."""
        recipe = self.recipe(language, reference)
        return recipe.rate if recipe is not None else "wer"

    def trace(
        self, text: str, language: str | None, role: Literal["reference", "estimate"] = "reference"
    ) -> list[tuple[str, str]]:
        """The text after each normaliser of the rule, to explain a difference.

        Args:
            language: its language, or None to detect it from the script.
            role: which text of a pair it is; some rules treat the two differently.

        Returns:
            `(normaliser, text after it)` for every step, in order.

        Raises:
            UserError: the rule does not know the language.
            MissingExtra: a step needs a package.
        """
        recipe = self.recipe(language, text)
        if recipe is None:
            raise UserError("rule_language", name=self.name, languages=" and ".join(self.languages), language=language)
        done = []
        for name in recipe.steps(role):
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
    ) -> list[ComparedTexts]:
        """Compare pairs of texts; each result is independent of the other pairs.

        Args:
            reference, estimate, language: one of each per pair. For a language of None, the reference's script decides.
            unit: the item, in place of the rule's own unit.
            spoken: for rules with `two_references`, the references as spoken (numbers written out), or None.

        Returns:
            One result per pair. A pair that cannot be compared has no value and a note that says why.

        Raises:
            UserError: the lengths differ, a published rule has another unit, or the rule takes no spoken references.
            MissingExtra: a language needs a package that is not installed.
        """
        lengths = {len(reference), len(estimate), len(language), len(spoken if spoken is not None else reference)}
        if len(lengths) > 1:
            raise UserError(
                "unequal_rule_inputs", references=len(reference), estimates=len(estimate), languages=len(language)
            )
        if spoken is not None and not self.two_references:
            raise UserError("rule_one_reference", name=self.name)
        first = self._compare(reference, estimate, language, unit)
        if spoken is None or not self.two_references:
            return first
        known = [index for index, text in enumerate(spoken) if text is not None]
        second = self._compare(
            [spoken[index] or "" for index in known],
            [estimate[index] for index in known],
            [language[index] for index in known],
            unit,
        )
        for index, other in zip(known, second):
            first[index] = _better(first[index], other)
        return first

    def item_value(self, compared: ComparedTexts) -> float | None:
        """A pair's value as an item of a corpus, or None.

        A pair with an empty reference has no rate. Where such pairs count, its value is the number of inserted words.
        """
        if compared.value is None and self.empty_reference == "counted" and compared.note == EMPTY_REFERENCE:
            return float(compared.counts.insertions)
        return compared.value

    def share(self, compared: ComparedTexts) -> tuple[float, float]:
        """A pair's share of the numerator and the denominator of the corpus value."""
        if self.aggregate == "ratio":
            # As in the source, pairs with an empty reference add their errors.
            return compared.counts.errors, compared.counts.reference_length
        if compared.value is None:
            return 0.0, 0.0
        weight = compared.weight if self.aggregate == "weighted" else 1.0
        return compared.value * weight, weight

    def corpus(self, compared: Iterable[ComparedTexts]) -> float | None:
        """The corpus value as in the source, a fraction; None if over 0."""
        shares = [self.share(pair) for pair in compared]
        below = math.fsum(share[1] for share in shares)
        return math.fsum(share[0] for share in shares) / below if below else None

    def _compare(
        self, references: Sequence[str], estimates: Sequence[str], languages: Sequence[str | None], unit: Unit | None
    ) -> list[ComparedTexts]:
        """Normalise each pair of texts and count its errors, by words or characters."""
        results: dict[int, ComparedTexts] = {}
        by_unit: dict[tuple[Unit, bool], list[int]] = {}
        for index, (reference, estimate, language) in enumerate(zip(references, estimates, languages)):
            recipe = self.recipe(language, reference)
            if recipe is None:
                note = Diagnostic("unknown_language", languages=self.languages, language=language)
                results[index] = ComparedTexts(reference, estimate, "word", ErrorRate.zero(), None, 0.0, note)
                continue
            if self.fixed and unit not in (None, recipe.unit):
                raise UserError(
                    "rule_unit",
                    name=self.name,
                    unit=recipe.unit,
                    requested=unit,
                    hint="leave out the unit, or use the rule by-language",
                )
            counted = unit or recipe.unit
            try:
                if self.untags:
                    reference, estimate = without_tags(reference)[0], without_tags(estimate)[0]
                texts = (_apply(recipe.steps("reference"), reference), _apply(recipe.steps("estimate"), estimate))
                tagged = self._tagged(recipe, references[index], texts[0])
                texts = joined_pairs(*texts) if "pairs" in recipe.joined else texts
            except UserError:
                raise
            except Exception as error:  # the libraries of some steps may fail on any text
                note = Diagnostic("not_normalised", cause=of_error(error))
                results[index] = ComparedTexts(reference, estimate, counted, ErrorRate.zero(), None, 0.0, note)
                continue
            by_unit.setdefault((counted, "compounds" in recipe.joined), []).append(index)
            results[index] = ComparedTexts(*texts, counted, ErrorRate.zero(), None, tags=tagged[0], tag_count=tagged[1])
        for (counted, compounds), places in by_unit.items():
            count_all = compound_error_rates if compounds else partial(error_rates, unit=counted, normaliser="none")
            counts = count_all(
                reference=[results[index].reference for index in places],
                estimate=[results[index].estimate for index in places],
            )
            for index, count in zip(places, counts):
                results[index] = self._with_value(replace(results[index], counts=count))
        return [results[index] for index in range(len(references))]

    def _tagged(self, recipe: Recipe, reference: str, compared: str) -> tuple[str, int]:
        """The flag about tags in a reference, and their number; none if the rule itself drops them."""
        bare, count = without_tags(reference)
        if not count:
            return "", 0
        if self.untags:
            return REMOVED, count
        return (TAG_NOTE, count) if _apply(recipe.steps("reference"), bare) != compared else ("", 0)

    def _with_value(self, compared: ComparedTexts) -> ComparedTexts:
        """Set a pair's weight, and its value unless the reference is empty."""
        weight = compared.counts.reference_length
        if self.aggregate == "weighted":
            weight = len(compared.reference.split(" "))  # as in the source, an empty text has the weight 1
        if compared.counts.rate is None:
            return replace(compared, weight=float(weight), note=EMPTY_REFERENCE)
        return replace(compared, weight=float(weight), value=compared.counts.rate)


def weighted_mean(values: Sequence[float | None], weights: Sequence[float | None]) -> float | None:
    """The weighted mean, as `long-tts-wer` of UltraEval-Audio.

    Pairs without a value or a weight are omitted. The result is None if nothing is left or all weights are zero.
    """
    pairs = [(value, weight) for value, weight in zip(values, weights) if value is not None and weight is not None]
    below = math.fsum(weight for _, weight in pairs)
    return math.fsum(value * weight for value, weight in pairs) / below if below else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _apply(steps: tuple[str, ...], text: str) -> str:
    return get_normaliser(steps[0] if len(steps) == 1 else ",".join(steps))(text)


def _better(text: ComparedTexts, spoken: ComparedTexts) -> ComparedTexts:
    """The result with the lower value; without a value if one of the references is empty, as in the source."""
    if text.value is None or spoken.value is None:
        note = text.note or (spoken.note and Diagnostic("spoken_form", note=spoken.note))
        return replace(text, value=None, note=note)
    return spoken if spoken.value < text.value else text
