"""Comparing texts: named normalisers, rules, and error rates as counts that can be added.

Which file to open
    `normalise.py` finds the smallest parts by name. They are in `own_steps.py`, `cardinals.py` (numbers as words),
    `numbers_en.py`, `numbers_ko.py` and `numbers_zh.py` (what is around digits, as people say it),
    `spelling_variants.py` (spellings of the same speech, by language) `published_steps.py` and `open_asr.py`.
    `normalise.py` has the normalisers that are made of them. `language.py` knows languages and their scripts, and
    `degenerate_answers.py` answers that are none, `tags.py` what in a text is not said, `disagreement.py` which of two
    references a text follows, and `rendering.py` how it writes what can be written otherwise. `rule.py` says what a
    rule is, `rules.py` which normaliser each language has under the project's own rules, and `published_rules.py` the
    same for those of others. `whisper.py` is Whisper's English rule; the package whisper-normalizer does its work.
    `chinese_numbers.py` serves published rules, and `zh-digits` of the own ones. `error_rate.py` counts. A rule's
    name and version are part of protocol ids: what changes a text moves the rule's version in that language. A
    language's spellings and numbers are `folded-XX` in `normalise.py`, which `rules.py` uses for the languages of
    `cardinals.SEPARATORS`; the words of numbers are in `cardinals.csv`, which `scripts/make_cardinals.py` makes.
    `docs/metrics/error_rate.md` describes every rule, and `docs/metrics/text_rules.md` what each language makes alike.
"""
