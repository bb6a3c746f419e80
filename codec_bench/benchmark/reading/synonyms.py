"""Other words for labels that every data set has: the ten digits, male and female, and nouns of emotions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

DIGITS = (
    "zero oh null zéro cero ноль 零 〇 ゼロ 영 공", "one eins un uno один 一 일", "two zwei deux dos два 二 两 이입니다", "three drei trois tres три 三 삼",
    "four vier quatre cuatro четыре 四 사", "five fünf cinq cinco пять 五 오", "six sechs seis шесть 六 육", "seven sieben sept siete семь 七 칠",
    "eight acht huit ocho восемь 八 팔", "nine neun neuf nueve девять 九 구",
)  # fmt: skip
EMOTIONS = (
    ("happy", "happiness"), ("sad", "sadness"), ("angry", "anger"), ("fearful", "fear"), ("surprised", "surprise"),
    ("disgusted", "disgust"), ("frustrated", "frustration"), ("excited", "excitement"), ("calm", "calmness"),
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

    Other words for digits are known only where all labels are digits, for genders where both are labels.
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
    for pair in EMOTIONS:
        named = [lowered[word] for word in pair if word in lowered]
        if len(named) == 1:
            more |= dict.fromkeys(pair, named[0])
    return {**{word: label for word, label in more.items() if word not in lowered}, **phrases}
