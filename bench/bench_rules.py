"""Times the sound rule of error rates against its version before, and checks that the two agree where they should.

    python bench/bench_rules.py [--utterances 2000] [--repeats 3]

Utterances of one to two sentences in each language of the rule, one in four with a number in it, all different, so that no
text is remembered. The baseline is `by-language-2`, which writes no numbers out. Right means: by the third version, every
utterance equals the same utterance with its number in words; without a number, both versions count the same errors. Time is that of the
processor, from texts to counts.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from functools import partial

import numpy as np
from common import append_rows, interleaved, row

from codec_bench.text.cardinals import SEPARATORS, load
from codec_bench.text.normalise import get_normaliser
from codec_bench.text.rules import get_rule

BEFORE, NOW = "by-language-2", "by-language-3"
SENTENCES = {
    "ar": "دفع المزارع {} دينارا ثمنا للبيض الأبيض في السوق أمس، ثم عاد إلى البيت.",
    "de": "Der Bauer zahlte gestern {} Mark auf dem Markt, legte die Eier in einen großen Korb und ging nach Hause.",
    "en": "The farmer paid {} dollars at the market yesterday, put the eggs in a large basket, and didn't come back.",
    "es": "El granjero pagó ayer {} pesos en el mercado, puso los huevos en una cesta grande y se fue a casa.",
    "fr": "Le fermier a payé hier {} francs au marché, il a mis les œufs dans un grand panier et il est rentré.",
    "hi": "किसान ने कल बाज़ार में {} रुपये दिए, अंडे एक बड़ी टोकरी में रखे और घर चला गया।",
    "id": "Petani itu kemarin membayar {} rupiah di pasar, menaruh telur di keranjang besar, lalu pulang.",
    "it": "Il contadino ieri ha pagato {} lire al mercato, ha messo le uova in un grande cesto ed è tornato a casa.",
    "ja": "農夫は昨日市場で{}円を払い、卵を大きな籠に入れて、家に帰りました。",
    "ko": "농부는 어제 시장에서 {}원을 내고, 달걀을 큰 바구니에 넣고, 집에 갔습니다.",
    "pt": "O lavrador pagou ontem {} reais no mercado, pôs os ovos num cesto grande e voltou para casa.",
    "ru": "Крестьянин вчера заплатил {} рублей на рынке, положил яйца в большую корзину и ушёл домой.",
    "th": "เมื่อวานชาวนาจ่ายเงิน {} บาทที่ตลาด ใส่ไข่ในตะกร้าใหญ่ แล้วกลับบ้าน",
    "vi": "Hôm qua người nông dân trả {} đồng ở chợ, bỏ trứng vào một cái giỏ lớn rồi về nhà.",
    "zh": "农民昨天在市场上付了{}元，把鸡蛋放进一个大篮子里，然后回家了。",
}


def utterances(language: str, count: int) -> list[tuple[str, int | None]]:
    """Different texts, each with the number in it or None: the sentence's words in another order every time."""
    rng = random.Random(language)
    spaced = " " in SENTENCES[language]
    parts = SENTENCES[language].split(" ") if spaced else SENTENCES[language].replace("{}", "\0")
    made = []
    for _ in range(count):
        number = rng.randrange(10_000) if rng.random() < 0.25 else None
        shown = "" if number is None else str(number)
        mixed = list(parts)
        rng.shuffle(mixed)
        made.append(((" " if spaced else "").join(mixed).replace("\0", "{}").replace("{}", f" {shown} "), number))
    return made


def said(language: str, number: int) -> str:
    """A number in the words of the library that the rule follows."""
    if language in SEPARATORS:
        return load(language).words(number)
    if language == "en":
        from num2words import num2words

        return num2words(number)
    from codec_bench.text.chinese_numbers import cardinal

    return cardinal(str(number))


def forget() -> None:
    """Makes every normaliser forget the texts that it has seen."""
    get_normaliser.cache_clear()
    from codec_bench.text.whisper import whisper_en

    whisper_en.cache_clear()


def compare(rule: str, language: str, references: list[str], estimates: list[str]) -> int:
    """Errors of a corpus that nothing has seen before."""
    forget()
    pairs = get_rule(rule).compare(reference=references, estimate=estimates, language=[language] * len(references))
    if len(pairs) != len(references):
        raise SystemExit(f"{rule}, {language}: {len(pairs)} results of {len(references)} utterances")
    return sum(pair.counts.errors for pair in pairs)


def check(language: str, made: list[tuple[str, int | None]], estimates: list[str]) -> str:
    """What the rule gives against what it should.

    Raises:
        SystemExit: it does not.
    """
    numbered = [(text, number) for text, number in made if number is not None]
    words = [text.replace(f" {number} ", f" {said(language, number)} ") for text, number in numbered]
    if errors := compare(NOW, language, [text for text, _ in numbered], words):
        raise SystemExit(f"{language}: {errors} errors between digits and words")
    plain = [place for place, (_, number) in enumerate(made) if number is None]
    counts = {
        rule: compare(rule, language, [made[p][0] for p in plain], [estimates[p] for p in plain])
        for rule in (BEFORE, NOW)
    }
    if counts[BEFORE] != counts[NOW]:
        raise SystemExit(f"{language}: {counts[NOW]} errors without numbers, {counts[BEFORE]} before")
    return f"{len(numbered)} numbers equal their words; {counts[NOW]} errors elsewhere by both"


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--utterances", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows = []
    sys.stdout.write(f"{'case':>4} {'before s':>9} {'now s':>9} {'ratio':>6}  agreement\n")
    for language in sorted(SENTENCES):
        made = utterances(language, options.utterances)
        references = [text for text, _ in made]
        rng = random.Random(0)
        estimates = [text if rng.random() < 0.5 else text[len(text) // 3 :] for text in references]
        agreement = check(language, made, estimates)
        seconds = interleaved(
            {rule: partial(compare, rule, language, references, estimates) for rule in (BEFORE, NOW)},
            repeats=options.repeats,
            clock=time.process_time,
        )
        for rule, times in seconds.items():
            ratio = float(np.median(seconds[BEFORE]) / np.median(times))
            rows.append(row(language, rule, times, n=len(made), ratio=ratio, note="CPU time of one thread",
                            agreement=agreement if rule == NOW else ""))  # fmt: skip
        before, now = (float(np.median(seconds[rule])) for rule in (BEFORE, NOW))
        sys.stdout.write(f"{language:>4} {before:>9.3f} {now:>9.3f} {before / now:>6.2f}  {agreement}\n")
    path = append_rows("rules", rows, ("codec-bench", "wetext", "OpenCC", "whisper-normalizer"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
