"""Text comparison: named normalisers, rules, and error rates as counts that add.

Which file to open
    `normalise.py` composes normalisers of steps in `basic_steps.py`, `cardinals.py` (numbers as words),
    `numbers_en.py`, `numbers_ko.py` and `numbers_zh.py` (what is around digits), `spelling_variants.py` (spellings of
    the same speech), `published_steps.py` and `open_asr.py`. `whisper.py` is Whisper's English rule. `rule.py` has the
    class of a rule, `rules.py` the project's own rules, `published_rules.py` others' rules. `error_rate.py` counts
    errors. `language.py` knows languages and scripts, `degenerate_answers.py` degenerate answers, `tags.py` unspoken
    tags, `disagreement.py` which of two references a text follows, `rendering.py` the written form of the same words,
    and `chinese_numbers.py` published readings and the step `zh-digits`. `cardinals.csv` comes from
    `scripts/make_cardinals.py`. A change of text processing moves the rule's version in that language, because name and
    version are part of protocol ids. `docs/metrics/error_rate.md` and `docs/metrics/text_rules.md` describe the rules.
"""
