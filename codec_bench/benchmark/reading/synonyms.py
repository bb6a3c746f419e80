"""Other words for labels that every data set has: the ten digits, and male and female."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

DIGITS = (
    "zero oh null zéro cero ноль 零 〇 ゼロ", "one eins un uno один 一", "two zwei deux dos два 二 两", "three drei trois tres три 三",
    "four vier quatre cuatro четыре 四", "five fünf cinq cinco пять 五", "six sechs seis шесть 六", "seven sieben sept siete семь 七",
    "eight acht huit ocho восемь 八", "nine neun neuf nueve девять 九",
)  # fmt: skip
GENDERS = {
    "female": (
        "female",
        "woman",
        "women",
        "lady",
        "girl",
        "女",
        "女性",
        "女声",
        "女聲",
        "女士",
        "女的",
        "女人",
        "女生",
        "f",
        "females",
    ),
    "male": (
        "male",
        "man",
        "men",
        "gentleman",
        "boy",
        "guy",
        "男",
        "男性",
        "男声",
        "男聲",
        "男士",
        "男的",
        "男人",
        "男生",
        "m",
        "males",
    ),
}


@lru_cache(512)
def phrases_of(labels: tuple[str, ...]) -> Mapping[str, str]:
    """The label by each phrase that names it: the labels themselves, and other words for digits and genders.

    Other words are known only where all labels are digits, or where both genders are labels.
    """
    phrases = {label: label for label in labels}
    lowered = {label.casefold(): label for label in labels}
    more: dict[str, str] = {}
    if len(labels) > 1 and all(label.isdecimal() and len(label) == 1 for label in labels):
        more = {word: label for label in labels for word in DIGITS[int(label)].split()}
    for words in GENDERS.values():
        named = [lowered[word] for word in words if word in lowered]
        if len(named) == 1 and all(any(word in lowered for word in other) for other in GENDERS.values()):
            more |= dict.fromkeys(words, named[0])
    return {**{word: label for word, label in more.items() if word not in lowered}, **phrases}
