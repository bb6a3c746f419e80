"""The steps `option-letter`, `label` and `yes-no`, which read a decision. Two different decisions count as none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from codec_bench.benchmark.reading.base import NOTHING, REFUSAL, SEVERAL, Parsed, Step, Unparsed, quote
from codec_bench.benchmark.reading.choices import choices_of
from codec_bench.benchmark.reading.grammar import (
    Mention,
    answer_in,
    corrected,
    folded,
    grouped,
    loaded,
    mentions_of,
    positive,
    probabilities,
)
from codec_bench.benchmark.reading.refusal import declines
from codec_bench.benchmark.reading.synonyms import phrases_of
from codec_bench.benchmark.reading.words import plain, words
from codec_bench.errors import UserError, first_of
from codec_bench.messages import Diagnostic

_MARKS = r"[\s(\[{<\"'“‘*_`$]{0,6}(?:\\(?:text|textbf|mathbf|mathrm|boxed)\s?\{)?\(?"
_L = rf"{_MARKS}(?P<letter>[A-Za-z])(?!['’]\w|[A-Za-z0-9_])"
_BE = r"(?:\s+(?:is|was|be|are)|\s+(?:would|should|must|will|may|might|could)\s+be)"
_END = r"(?=[*_\"')\]}$]{0,4}\s*(?:\Z|[.,;!。\n]))"
_SURELY = r"(?:(?:most\s+)?(?:likely|probably|clearly|therefore|definitely|certainly|obviously|either|entweder|both|soit)\s+)?"
# Three kinds of wordings, the most explicit first. The first kind that occurs decides.
_WORDINGS = tuple(
    tuple(re.compile(pattern, re.IGNORECASE) for pattern in kind)
    for kind in (
        (
            rf"\\boxed\s?\{{{_L}",
            rf"(?<![a-z])(?:answers?|ans\.?|correct|right|best|letter|option|choice|match|guess|pick|fit|selection|verdict)(?:\s+(?:one|answer|option|choice|letter))?s?(?:\s+to\s+(?:the|this)\s+question)?"
            rf"(?:{_BE}\s*{_SURELY}:?|\s*[*_]{{0,2}}[:=][*_]{{0,2}}|\s+-|(?<=ans\.)\s)"
            rf"\s*(?:the\s+)?(?:options?|choices?|letters?)?{_L}",
            rf"(?:正确|最终)?(?:答案|選項|选项)(?:应该|应当|应|就|可能)?(?:(?:是|为|為|选|選)\s*[:=]?|[:=])(?:选项|選項|选|選|项)?{_L}",
            rf"[【\[](?:正确|最终)?答案[】\]]{_L}",
            rf"(?:故|应|應|应该|因此|所以)(?:选择|選擇|选|選|是)?{_L}",
            r"(?<![\w'’])(?P<letter>[A-Za-z])[)\]}*\"'”’]{0,4}\s+(?:is|are|would\s+be|seems|fits|matches)\s+(?:both\s+)?"
            r"(?:the\s+|my\s+)?(?:most\s+|final\s+)?(?:correct|right|best|likely|plausible|fitting|answer|choice|pick|guess)(?!\w)",
            r"(?<![\w'’])(?P<letter>[A-Za-z])(?:选项|選項|项|項)?(?:才)?(?:是|为|為)?(?:正确|正確|(?<=才)对|(?<=才)是|对的|最合适)",
            rf"(?:antwort|richtig|lösung)\s*(?:ist|:|lautet)\s*{_SURELY}(?:option\s*)?{_L}|réponse(?:\s+correcte)?\s*(?:est|:)\s*{_SURELY}(?:l'option\s*)?{_L.replace('letter', 'letter2')}"
            rf"|(?:respuesta|opción)(?:\s+correcta)?\s*(?:es|:)\s*(?:la\s+opción\s*)?{_L.replace('letter', 'letter3')}|(?:ответ|вариант)\s*(?:[:—-]|это)?\s*{_L.replace('letter', 'letter4')}"
            rf"|(?:risposta|resposta)(?:\s+corret\w+)?\s*(?:è|é|:)\s*{_L.replace('letter', 'letter5')}|(?:答え|正解|解答)\s*(?:は|[:=])\s*{_L.replace('letter', 'letter6')}"
            rf"|(?:정답|답|답변)(?:은|는)?\s*[:=]?\s*{_L.replace('letter', 'letter7')}",
            r"(?<![A-Za-z0-9_'’])(?P<letter>[A-Z])(?:번)?(?:이|가|를|을)?\s*(?:입니다|이다|이에요|예요|정답|맞습니다|맞아요|선택|고르|골랐)",
            r"(?<![\w'’])(?P<letter>[A-Z])(?:が正解|です|が答え|\s+(?:ist\s+(?:richtig|korrekt)|est\s+(?:correcte?|la\s+bonne)|es\s+(?:correct[ao]|la\s+correcta)|верно|правильно))(?!\w*ない|は)",
        ),
        (
            rf"(?<!\w)(?:options?|choices?|choos(?:e|ing)|chose|select(?:ing)?|pick(?:ing)?|go(?:ing)?\s+with|go\s+for|letter|answer|selected|chosen|leaves|leaving"
            rf"|wähle|nehme|choisis|opte\s+pour|elijo|escojo|selecciono|scelgo|escolho|выбираю|antwort|опция)"
            rf"(?:\s+(?:us\s+with\s+|only\s+)?(?:(?:die|la|el|a|o)\s+|l')?(?:option|choice|answer|letter|antwort|réponse|respuesta|opción|risposta|opzione|resposta|opção|ответ|вариант))?"
            rf"\s*[:=]?{_L}",
            rf"(?:选择|選擇|选项|選項|选|選|選択肢)[:=]?{_L}",
            r"(?<![\w'’])(?P<letter>[A-Za-z])(?:选项|選項|项|項)",
        ),
        (
            r"\A[\s(\[{<\"'“‘*_`]{0,6}(?P<letter>[A-Za-z])[)\]}>\"'”’*_`]{0,4}\s?(?:[).:、,;\n–—!?。，-]|\Z)",
            r"\A[\s(\[{<\"'“‘*_`]{0,6}(?P<letter>[A-Z])[)\]}>\"'”’*_`]{0,4}\s+(?:because|since|as|due|rather|instead|it\s+is|fits|or|and|und|oder|ou|et|o|y|или|и)\b",
            r"(?:\(\s?(?P<letter>[A-Za-z])\s?\)|\[\s?(?P<bracketed>[A-Za-z])\s?\]|\*\*(?P<strong>[A-Za-z])[.):]?\*\*)",
            r"(?m)^[ \t>*_`\"'(\[]{0,6}(?P<letter>[A-Z])[.)\]*_`\"']{0,4}[ \t]*$",
        ),
        (
            rf"(?<!\w)(?:it|that|this|which|one|c|es|that'?s)\s*(?:'?s|'?est|\s+is|\s+(?:would|must|should|could|may|might|can)(?:\s+also|\s+only)?\s+be|\s+has\s+to\s+be|la\s+opción)\s+{_SURELY}{_L}",
            rf"(?:\A|[.!?;\n,])\s*(?:so|therefore|thus|hence|definitely|probably|likely|maybe|perhaps|possibly|clearly|must\s+be|should\s+be|both|either|neither|between|entweder|soit"
            rf"|i(?:'d|\s+would)?\s+(?:think|guess|believe|say)|my\s+guess|因此|所以|应该|可能|也许)(?:\s+be|\s+is|\s+it\s+is|\s+it's|\s*是)?[,:]?{_L}",
            r"(?<![\w'])(?P<letter>[A-Z])\s+(?:it\s+is|or|and|und|oder|ou|и|или)(?!\w)",
            r"(?<![\w'])(?P<letter>[A-Z])(?=\s*(?:[/&+、]|或|和|与|還是|还是|または|か|と)\s*[\W]{0,3}(?:或|者)?[A-Z](?![A-Za-z0-9']))",
            rf"(?:(?<!\w)(?:corresponds?\s+to|points?\s+to|indicates?|suggests?|means|implies|match(?:es)?|(?:sounds?|looks?|seems?)\s+like"
            rf"|chosen|selected|picked|es\s+ist|это)|=>|->|→|➜|\AA:){_L}",
            rf"(?:\b(?:but|sondern|mais|sino|ma|mas|но)|而是|じゃなくて|ではなく){_L}",
            r"\b(?:in|is|was|are|to|with|by|as|be)\s+(?P<letter>[A-Z])[.)]\s+[A-Z]\w",
            r"(?:\A|[.!?;\n])\s*(?:certainly|surely|undoubtedly|decidedly|ultimately|finally|overall|simply|just|only|ok|okay|well|yes)"
            r",?\s*[*_\"'(\[]{0,3}(?P<letter>[A-Z])(?=[*_\"')\].!。]{0,4}\s*\Z)",
            r"(?<![\w'’])(?<!\bnot )(?P<letter>[A-Z])\s+(?:alone\s+)?(?:makes\s+(?:the\s+most\s+)?sense|gets\s+my\s+vote|wins|stands\s+out|is\s+(?:the\s+one|what|my\s))",
            rf"\b(?:answer|choice|option|pick|choose|select|remains?|left|response|decision|correct|right|best)\b[^.!?,;\n]{{0,40}}?\b(?:is|be|was)\s{_L}{_END}",
            r"[,:：—–-]\s?[*_\"'(\[]{0,3}(?P<letter>[A-Z])(?=[*_\"')\].!。]{0,4}\s*\Z)",
            rf"\b(?:bet|guess|vote|lean(?:ing)?|settle|stick|opt(?:ing)?|tend(?:ing)?|inclined|favou?r|prefer|suggest|conclude)\s+(?:on\s+|for\s+|with\s+|to(?:wards?)?\s+|it'?s\s+|is\s+)?(?:option\s+)?{_L}{_END}",
            rf"(?:觉得|认为|判断|感觉|推测|我猜|剩下?|就剩)(?:的)?(?:答案)?(?:应该)?(?:是|为|选)?{_L}",
            rf"\b(?:tippe\s+auf|setze\s+auf|entscheide\s+mich\s+für|bin\s+für|penche\s+pour|vote\s+pour|me\s+quedo\s+con|voto\s+por|me\s+inclino\s+por|voto\s+per|direi|dirais|fico\s+com|voto\s+em|diria|склоняюсь\s+к)\s+(?:la\s+|el\s+|a\s+)?{_L}",
            rf"(?:\A|[,，.。;；\n])\s*(?:而|就|应该|那就|那么|正确的)?(?:是|选|選)(?:选项|選項)?{_L}",
            rf"(?:c'est|\b(?:es|è|é|est|ist|это))\s*(?:(?:la|el|a|o|die|der)\s+|l')?(?:réponse|option|opción|respuesta|opzione|risposta|opção|resposta|antwort|вариант|ответ)?\s*{_L}(?=\W{{0,3}}(?:\Z|[.,;!\n]))",
            rf"\A\W{{0,4}}(?:opción|opzione|opção|вариант|antwort|réponse|respuesta|risposta|resposta|選択肢|선택지){_L}(?=\W*\Z)",
            r"(?<![A-Za-z0-9_'’])(?P<letter>[A-Z])(?:番)?(?:を(?:選|え)|だと(?:思|考)|にします|が(?:正し|適切|最も))",
        ),
    )
)
_ARTICLE = re.compile(
    r"[ \t]+(?!(?:because|since|as|is|are|due|based|and|or|but|which|would|seems|fits|matches|it|rather|instead|nor|und|oder|ou|et|est|ist|es|y|o)\b)[A-Za-z]"
)
_NOTE = re.compile(r"[-\s]{0,3}(?:major|minor|sharp|flat|maj|min)(?!\w)|[#♯♭]", re.IGNORECASE)
"""What follows a letter that is the name of a note."""
_NEAR = 40
_MOST_CUES = 100
"""How many cues are examined, so that an answer of nothing but cues does not take long."""


def option_letter(letters: str | None) -> Step:
    """The letter of the chosen option.

    These are tried in order:
    1. the whole answer is a letter or the text of a choice, a field of JSON, or a list of probabilities;
    2. an explicit wording: `the answer is B`, `B is correct`, `\\boxed{B}`, `答案是B`; then `option B`, `选B`; then
       `B. ...` at the start, `(B)`, a line of the letter alone; then `it is B`;
    3. the text of just one of the choices (see `codec_bench.benchmark.reading.choices`).
    Negated options do not count, and `A or B` is two decisions (`codec_bench.benchmark.reading.grammar`). A letter in
    other words ("vitamin C") is no option.

    Args:
        letters: the possible letters, such as `ABCD`; None for those of the row's choices, or A to D without choices.
    """

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        choices = choices_of(fields)
        allowed = letters or "".join(choices) or "ABCD"
        return _decision(_options(corrected(folded(text)), choices, allowed), text, "option")

    return step


def _options(text: str, choices: Mapping[str, str], allowed: str) -> set[str]:
    """The options that an answer decides for."""
    value = loaded(text)
    listed = probabilities(text, value, lambda name: next(iter(_match_full_text(name, choices, allowed)), None))
    if listed is not None:
        return listed
    if (inner := answer_in(value)) is not None and inner != text:
        return _options(inner, choices, allowed)
    letters = _match_full_text(text, choices, allowed) or _worded(text, allowed)
    return letters or positive(
        text, mentions_of(text, {choice: letter for letter, choice in choices.items() if choice})
    )


def _decision(chosen: set[str], text: str, subject: str) -> Parsed | Unparsed:
    if len(chosen) == 1:
        return Parsed(next(iter(chosen)))
    if declines(text):
        return Unparsed(Diagnostic("declines", answer=quote(text)), REFUSAL)
    if chosen:
        return Unparsed(
            Diagnostic("several_answers", what=subject, found=", ".join(sorted(chosen)), answer=quote(text)), SEVERAL
        )
    return Unparsed(Diagnostic("no_such_answer", what=subject, answer=quote(text)), NOTHING)


def label(listed: str | None) -> Step:
    """The one label of a closed set that an answer names, in the spelling of the set.

    `not happy`, `far from happy` and `can't say whether she is happy` do not name `happy`. Digits may be words (`seven`),
    and `male` and `female` may be `man`, `woman`, 男, 女. Unparsed if none of the labels occurs, or if several do.

    Args:
        listed: the labels, separated by commas; None for the row's `labels` (a list, or the values of a mapping).
    """
    labels_listed = [name.strip() for name in listed.split(",") if name.strip()] if listed else None
    if listed is not None and not labels_listed:
        raise UserError(
            f"the step 'label[{listed}]' names no label", hint="name some, such as label[happy,sad,neutral]"
        )

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        labels = labels_listed or labels_of(fields.get("labels"))
        if not labels:
            return Unparsed(Diagnostic("no_labels"))
        chosen = _labels(corrected(folded(text)), labels, phrases_of(tuple(labels)))
        if declines(text):
            chosen = set()
        return _decision(chosen, text, f"label of {first_of(labels, 12)}")

    return step


def _labels(text: str, labels: Iterable[str], phrases: Mapping[str, str]) -> set[str]:
    """The labels that an answer decides for."""
    normalised = plain(text)
    by_text = {plain(phrase): name for phrase, name in phrases.items()}
    same = {one for one in labels if plain(one) == normalised} or (
        {by_text[normalised]} if normalised in by_text else set()
    )
    if same:
        return same
    value = loaded(text)
    listed = probabilities(text, value, lambda name: by_text.get(plain(name)))
    if listed is not None:
        return listed
    if (inner := answer_in(value)) is not None and inner != text:
        return _labels(inner, labels, phrases)
    mentions = mentions_of(text, phrases)
    chosen = positive(text, mentions)
    if len(chosen) == 1 and all(_PRONOUN.match(text, one.start) for one in mentions if one.key in chosen):
        return set()
    if len(chosen) > 1:
        cues = [one for one in mentions if _ANSWERED.search(text[max(0, one.start - _NEAR) : one.start])]
        grouped = positive(text, mentions[mentions.index(cues[-1]) :]) if cues else chosen
        return grouped
    return chosen


_PRONOUN = re.compile(
    r"(?:(?<=\bno )|(?<=\bany )|(?<=\bthe )|(?<=\bthis )|(?<=\bthat )|(?<=\bwhich )|(?<=\beach ))one\b|one (?:of|that|which|who|in|can|could|hears?)\b"
    r"|un (?!$)\w|uno de\b|一(?=[个個段种種位条名些般定起声])",
    re.IGNORECASE,
)
"""The number one as a pronoun or an article."""
_ANSWERED = re.compile(r"(?:answer(?:\s+is|\s*[:=])|答案(?:是|为|[:=]))\W{0,4}(?:the\s+)?\Z", re.IGNORECASE)
_YES = frozenset(("yes", "yeah", "yep", "yea", "true", "ja", "oui", "sí", "si", "sì", "sim", "да", "correct"))
_NO = frozenset(("no", "nope", "nah", "false", "nein", "non", "não", "нет", "incorrect"))
_HAN_NO = re.compile(
    r"\A(?:不是|不对|不對|不正确|否定|否|没有(?![^。，,.]{0,8}(?:音|录|收))|沒有|不(?=\W|\Z)|いいえ|아니)"
)
_HAN_YES = re.compile(r"\A(?:是的|是(?!否|不是|或)|对的|对(?!不起)|正确|肯定|有(?!没有|可能)|はい|네(?!\w)|예(?!\w))")
_CUE = re.compile(
    r"answer(?:\s+(?:is|(?:would|should|must)\s+be)|\s*:)|\bi(?:'d|'ll| would| will)? (?:answer|say|go with)\b|答案(?:是|为|:)|antwort(?:\s+ist|\s*:)|réponse(?:\s+est|\s*:)|respuesta(?:\s+es|\s*:)",
    re.IGNORECASE,
)
# After "no" as the first word: a mark, the end, or a word that begins a sentence of its own.
_AFTER_NO = re.compile(
    r"\W{0,4}(?:\Z|[.,;:!?。，)*\"'\n—-]|\s+(?:it|he|she|they|that|this|there|the|these|those|i|we|because|since|not|es|das|il|ce|no)\b)",
    re.IGNORECASE,
)
_ALONE_WORD = re.compile(
    r"(?:\A|[.!?。\n,;:])[\s*\"'“_`(]{0,6}(?:(?:well|so|then|therefore|thus|hence|in short|i would say|i'd say|i think|absolutely|definitely|certainly|it is|it's|that is|that's|my answer is)[\s,:]{1,3})?[*\"'“_`(]{0,4}(?P<word>[^\W\d_]{2,9})(?=[*\"'”_`)]{0,4}\s*(?:[.!?。,]|\n|\Z))",
    re.IGNORECASE,
)
_SURELY_NOT = re.compile(
    r"(?:definitely|certainly|absolutely|clearly|surely|obviously|of course|no,? (?:definitely|certainly|absolutely)) not(?=\W{0,3}(?:\Z|[.,;!\n]))|not at all(?=\W{0,3}\Z)",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"\b(?:yes|no)\b\W{0,3}(?:and|or|and/or|/)\W{0,3}(?:yes|no)\b|是(?:或|和|还是)(?:不是|否)", re.IGNORECASE
)


def yes_no(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """`yes` or `no`: the word after `the answer is`, else the first word, else the only one that is a sentence.

    Chinese answers are read by their first words (`是的`, `对`, `不是`, `没有`); words of five more languages are known.
    `no idea` and `there is no audio` are no answers. Unparsed if neither occurs, or both do.
    """
    content = folded(text)
    if (inner := answer_in(loaded(content))) is not None:
        content = inner
    if declines(content):
        return Unparsed(Diagnostic("declines", answer=quote(text)), REFUSAL)
    cues = islice(_CUE.finditer(content), _MOST_CUES)
    answers = {word for cue in cues if (word := _first(content[cue.end() : cue.end() + _NEAR])) is not None}
    if not answers and _BOTH.search(content):
        answers = {"yes", "no"}
    if not answers:
        answers = {word for word in (_first(content),) if word is not None} | set(_sentences(content))
    return _decision(answers, text, "yes or no")


def _first(text: str) -> str | None:
    start = text.lstrip(" \t\r\n\"'“‘*(:_`")
    item = next(iter(words(start[:_NEAR])), "")
    if _HAN_YES.match(start):
        return "yes"
    if _HAN_NO.match(start):
        return "no"
    if _SURELY_NOT.match(start):
        return "no"
    after = _AFTER_NO.match(start, len(item)) if start.casefold().startswith(item) else None
    if item in _YES:
        return "yes" if after is not None or item in ("yes", "yeah", "yep") else None
    return "no" if item in _NO and after is not None else None


def _sentences(text: str) -> Iterator[str]:
    """Every yes or no that is a sentence of its own."""
    for match in islice(_ALONE_WORD.finditer(text), _MOST_CUES):
        word = match["word"].casefold()
        if word in _YES or word in _NO:
            yield "yes" if word in _YES else "no"


def labels_of(values: Any) -> list[str]:
    """The labels of a question: a list, the values of a mapping, or a text with commas between them."""
    if isinstance(values, str):
        values = values.split(",")
    if isinstance(values, Mapping):
        values = values.values()
    return [str(one).strip() for one in values or () if str(one).strip()] if isinstance(values, Iterable) else []


def _match_full_text(text: str, choices: Mapping[str, str], allowed: str) -> set[str]:
    """The letters that the whole answer can mean.

    The text `B` may be the letter, and also the text of another choice.
    """
    if (marked := re.fullmatch(r"\s*A\s?:\s*([A-Z])\W*", text)) and marked[1] in allowed:
        return {"A", marked[1]}  # "A:" may be the option or the answer
    bare = plain(text).strip("()[]{}<>$_ ").upper()
    letters = {bare} if len(bare) == 1 and bare in allowed else set()
    labelled = re.fullmatch(r"[(\[]?([a-z])[)\].:、]\s*(\S.*)", plain(text), re.DOTALL)
    texts = {letter: plain(choice) for letter, choice in choices.items()}
    letters |= {letter for letter, choice in texts.items() if choice and choice == plain(text)}
    if labelled and labelled[1].upper() in allowed:
        same = {letter for letter, choice in texts.items() if choice and choice == labelled[2].strip()}
        letters |= same | {labelled[1].upper()} if same else set()
    return letters


def _worded(text: str, allowed: str) -> set[str]:
    """The options that the most explicit wordings choose."""
    letters = _letters(text, allowed)
    for kind in _WORDINGS:
        loose = kind is _WORDINGS[-1]  # in prose only an upper-case letter is an option
        matched = {at for pattern in kind for at in _places(pattern, text, allowed) if text[at].isupper() or not loose}
        # What is joined to a letter that is meant is meant, too: the B of "A or B".
        mentions = sorted({*(Mention(text[at].upper(), at, at + 1) for at in matched), *letters}, key=lambda m: m.start)
        decided = positive(text, _matching_mentions(text, mentions, matched))
        if decided:
            return decided | positive(text, letters) if loose and _HEDGES.search(text) else decided
    return set()


_HEDGES = re.compile(r"\b(?:could|might|may|can|possibly|perhaps|maybe)\b|可能|也许|或许", re.IGNORECASE)
"""With one of these, an option named in prose is one of all that the text leaves open."""


def _places(pattern: re.Pattern[str], text: str, allowed: str) -> Iterator[int]:
    for match in pattern.finditer(text):
        name = next(name for name, value in match.groupdict().items() if value)
        if _is_letter(text, match.start(name), allowed):
            yield match.start(name)


_SINGLE = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z](?![A-Za-z0-9_]|['’]\w)")


def _letters(text: str, allowed: str) -> list[Mention]:
    """Every upper-case letter of an option that stands alone."""
    singles = islice(_SINGLE.finditer(text), 10 * _MOST_CUES)
    return [
        Mention(match[0], match.start(), match.end())
        for match in singles
        if match[0].isupper() and _is_letter(text, match.start(), allowed)
    ]


def _matching_mentions(text: str, mentions: list[Mention], chosen: set[int]) -> list[Mention]:
    """Of all letters those that a wording chooses, and those that are joined to one of them."""
    return [one for group in grouped(text, mentions) if any(m.start in chosen for m in group) for one in group]


def _is_letter(text: str, at: int, allowed: str) -> bool:
    """Whether a letter can be an option: it is none of a note, and no article."""
    letter = text[at]
    if letter.upper() not in allowed:
        return False
    # A word follows directly after an article, and a lower-case letter in prose is hardly ever an option.
    if (letter.islower() or letter in "AI") and _ARTICLE.match(text, at + 1, at + 1 + _NEAR):
        return False
    return not _NOTE.match(text, at + 1, at + 1 + _NEAR)
