"""Synonyms of common labels: the ten digits, male and female, and nouns of emotions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

DIGITS = (
    "zero oh null zéro cero ноль 零 〇 ゼロ 영 공", "one eins un uno один 一 일", "two zwei deux dos два 二 两 이입니다", "three drei trois tres три 三 삼",
    "four vier quatre cuatro четыре 四 사", "five fünf cinq cinco пять 五 오", "six sechs seis шесть 六 육", "seven sieben sept siete семь 七 칠",
    "eight acht huit ocho восемь 八 팔", "nine neun neuf nueve девять 九 구",
)  # fmt: skip
EMOTIONS = (
    "happy happiness joy joyful|heureux heureuse joyeux joyeuse joie bonheur|feliz felicidad alegre alegría contento contenta|fröhlich Freude glücklich"
    "|радость радостный радостная|felice felicità gioia|高兴 开心 快乐 喜悦|喜び 嬉し 喜んで|기쁨 기쁜 기뻐|행복",
    "sad sadness|triste tristeza tristesse tristezza|traurig Traurigkeit|грусть грустный грустная печаль|悲伤 难过 伤心|悲しみ 悲し|슬픔 슬픈 슬퍼",
    "angry anger|en_colère colère fâché fâchée|enojado enojada enojo enfadado enfadada|wütend Wut verärgert Ärger|злость злой злая гнев|arrabbiato arrabbiata rabbia"
    "|愤怒 生气|怒り 怒って|분노 화가 화난",
    "fearful fear afraid scared", "surprised surprise|惊讶 吃惊", "disgusted disgust", "frustrated frustration", "excited excitement", "calm calmness",
    "neutral neutre|中性 中立|중립",
)  # fmt: skip
"""Words for the same emotion, by language between two strokes."""
GENDERS = {
    "female": "female woman women lady girl f females 女 女性 女声 女聲 女士 女的 女人 女生 女の人 여성 여자 weiblich Frau femme féminine mujer femenina donna mulher"
    " женский женщина أنثى امرأة महिला स्त्री",
    "male": "male man men gentleman boy guy m males 男 男性 男声 男聲 男士 男的 男人 男生 男の人 남성 남자 männlich Mann homme masculine hombre masculina uomo homem"
    " мужской мужчина ذكر رجل पुरुष",
}


@lru_cache(512)
def phrases_of(labels: tuple[str, ...]) -> Mapping[str, str]:
    """The label by each of its phrases: the labels themselves, and synonyms of digits, genders and emotions.

    Synonyms of digits apply only if all labels are digits, those of genders if both are labels.
    """
    phrases = {label: label for label in labels}
    lowered = {label.casefold(): label for label in labels}
    more: dict[str, str] = {}
    if len(labels) > 1 and all(label.isdecimal() and len(label) == 1 for label in labels):
        more = {word: label for label in labels for word in DIGITS[int(label)].split()}
    genders = [text.split() for text in GENDERS.values()]
    named = [[lowered[word.casefold()] for word in text if word.casefold() in lowered] for text in genders]
    if all(len(one) == 1 for one in named):
        more |= {word: one[0] for text, one in zip(genders, named) for word in text}
    for text in EMOTIONS:
        for language in text.split("|"):
            words = [word.replace("_", " ") for word in language.split()]
            same = {lowered[word.casefold()] for word in words if word.casefold() in lowered}
            if len(same) == 1:
                more |= dict.fromkeys(words, same.pop())
    return {**{word: label for word, label in more.items() if word.casefold() not in lowered}, **phrases}
