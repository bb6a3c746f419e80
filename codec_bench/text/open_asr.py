"""The Open ASR leaderboard's normalisers of four dates, and joined words.

English is Whisper's rule with other spellings; from 22 April 2026 on also with spellings of names, joined spelled-out
letters, and a list of compounds. German, French, Italian, Portuguese and Spanish are in lower case without symbols,
with digits written out by num2words.

Source: github.com/huggingface/open_asr_leaderboard b45a5d9 (23 March 2026), 5429f77 (22 April), 6962cd2 (11 June) and
d1e99b2 (in force since 22 June), `normalizer/`; equal on the cases of tests/golden/text/open_asr.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import partial

from codec_bench.text.basic_steps import Step, optional

VERSIONS = ("2026-03-23", "2026-04-22", "2026-06-11", "2026-06-22")
LANGUAGES = ("de", "es", "fr", "it", "pt")
"""The languages next to English, scored since 23 March 2026."""

_SPELLINGS = {
    "mm": "hmm", "snowploughs": "snowplows", "pummelling": "pummeling", "pummelled": "pummeled",
    "archaeology": "archeology", "archaeological": "archeological", "cancellation": "cancelation",
    "cancellations": "cancelations", "travelogue": "travelog", "travelogues": "travelogs",
}  # fmt: skip
"""Differences of its spelling table from that of whisper-normalizer, on all dates."""
_NOT_SPELLED = ("cancelation", "cancelations", "travelog", "travelogs")
_SPELLINGS_OF_JUNE = {"ok": "okay", "kay": "okay", "etcetera": "etc"}
_FLYER = {"flyer": "flier"}
"""Corrected on 17 June 2026."""

_NAMES = """
aaron=aron alfonso=alphonso alison=allison|alyson allen=alan|allan anne=ann anthony=antony arthur=artur brett=bret
brian=bryan bridget=bridgette caitlin=kaitlin|kaitlyn|katelyn carl=karl carol=carole|carrol|carroll
catherine=catharine|katherine|kathryn cathy=kathy charlie=charley|charly chris=kris christina=kristina
christopher=cristopher|kristopher colin=collin deborah=devorah dennis=denis dominic=dominick douglas=douglass
dylan=dillon eric=erick|erik fatima=fatimah frederick=frederik|fredrick gail=gayle gary=garry greg=gregg henry=henri
ivonne=yvonne jackie=jacky jamie=jaime jason=jayson jeff=geoff jeffrey=geoffrey|jeffery joanne=joane|joann john=jon
jonathan=johnathan|jonathon joseph=josef karen=caren|caryn|karin kelly=kelley|kelli|kellye kevin=kevan kristin=kristen
laurie=lori lawrence=laurence lee=leigh leslie=lesley lily=lilly linda=lynda lindsay=lindsey|linsey louis=lewis
lucas=lukas lynn=lynne mark=marc martin=martyn matthew=mathew mcarthur=macarthur mccarthy=macarthy|maccarthy
mccartney=macartney mcdonald=macdonald mcgowan=macgowan mcintosh=macintosh mcintyre=macintyre mckay=mackay
mckenzie=mackenzie mclean=maclean mcleod=macleod mcmillan=macmillan mcnamara=macnamara megan=meghan michael=micheal
michelle=michele miriam=myriam mohammed=mahomet|mohamad|mohamed|mohammad|mouhamad|mouhamed|muhamad|muhammad|muhammed
molly=mollie natalie=nathalie neil=neal nicholas=nicolas nicole=nikole patrick=patrik peter=pieter philip=phillip
rachel=rachael rajiv=rajeev rebecca=rebekah rob=robb robin=robyn roger=rodger ronda=rhonda russell=russel sally=sallie
sarah=sara sean=shaun|shawn shane=shayne sherry=cheri|sheri|sherrie simon=symon stacy=stacey|stacie steven=stephen
stuart=stewart susanne=suzanne teresa=theresa terry=terri thomas=tomas toby=tobey tony=toni tracy=tracey|tracie
veronica=veronika victor=viktor victoria=viktoria walter=walther yousef=yusef|yusuf zach=zak zachary=zachery|zackary
"""
"""The canonical spelling of a name, and those that it replaces."""
_NAMES_OF_APRIL = {"derrick": "derek", "christian": "kristian", "christen": "kristin"}
_NOT_YET = ("tobey",)

_COMPOUNDS = ("wi fi", "hi fi", "lo fi", "sci fi", "e mail", "e book", "e commerce", "x ray", "t shirt")
_COMPOUNDS_OF_JUNE = {"et cetera": "etc", "al right": "alright", "all right": "alright", "how ever": "however"}
_AFTER_COMPOUNDS_OF_JUNE = {"a m": "am", "p m": "pm", "o k": "okay"}
_FILLERS_OF_JUNE = r"\b(hmm|mm|mhm|mmm|uh|um|ah|aha|ahh|ahm|eh|ehehe|em|hm|huh|hum|mhum|uhm|umm|uhuh)\b"
_IS = r"'s\b"
_IS_OF_JUNE = r"\b(it|he|she|what|that|who|here|there|how|when|where|why|this)'s\b"


def english(version: str) -> Step:
    """The English normaliser of a date.

    Raises:
        UserError: the installed whisper-normalizer has other rules than Whisper.
    """
    from codec_bench.text.whisper import whisper_rules

    april, june = version >= VERSIONS[1], version >= VERSIONS[2]
    rules = whisper_rules()
    spell = partial(_mapped, _spellings(rules.standardize_spellings.mapping, version))
    count = rules.standardize_numbers
    if june:
        rules.ignore_patterns = _FILLERS_OF_JUNE
        replacements = rules.replacers.items()
        rules.replacers = dict(
            (_IS_OF_JUNE, r"\1 is") if pattern == _IS else (pattern, replacement)
            for pattern, replacement in replacements
        )
    if april:  # the package calls these two attributes at the right points
        join, names = partial(_replaced, _compounds(june)), partial(_mapped, _name_spellings(june))
        rules.standardize_numbers = lambda text: count(join(text))
        alone = 3 if june else 2
        rules.standardize_spellings = lambda text: _letters_joined(names(spell(text)), alone)
    else:
        rules.standardize_spellings = spell
    return rules


def multilingual(language: str) -> Step:
    """The normaliser of one of `LANGUAGES`, the same on all dates."""
    from whisper_normalizer.basic import remove_symbols

    num2words = optional("num2words", "number_words", "num2words").num2words

    def spoken(match: re.Match[str]) -> str:
        try:
            return str(num2words(int(match[0]), lang=language))
        except (OverflowError, ValueError, NotImplementedError):
            return match[0]

    def normalised(text: str) -> str:
        text = re.sub(r"[<\[][^>\]]*[>\]]", "", text.lower())
        text = remove_symbols(re.sub(r"\(([^)]+?)\)", "", text)).lower()
        text = " ".join(re.sub(r"[^\w\s]", "", text).split())
        return re.sub(r"\d+", spoken, re.sub(r"(\d)\s+(\d{3})\b", r"\1\2", text))

    return normalised


def joined_pairs(reference: str, estimate: str) -> tuple[str, str]:
    """Join words in both texts where they differ only in spaces, by difflib.

    Examples:
        >>> joined_pairs("das Haus boot liegt", "das Hausboot liegt")
        ('das Hausboot liegt', 'das Hausboot liegt')
    """
    words, others = reference.split(), estimate.split()
    left: list[str] = []
    right: list[str] = []
    for _, i1, i2, j1, j2 in SequenceMatcher(None, words, others).get_opcodes():
        mine, other = words[i1:i2], others[j1:j2]
        same = mine != other and "".join(mine) == "".join(other)
        left += ["".join(mine)] if same else mine
        right += ["".join(other)] if same else other
    return " ".join(left), " ".join(right)


def spellings(version: str = VERSIONS[-1]) -> dict[str, str]:
    """The American spelling of each British one, on a date.

    Raises:
        UserError: the installed whisper-normalizer has other rules than Whisper.
    """
    from codec_bench.text.whisper import whisper_rules

    return _spellings(whisper_rules().standardize_spellings.mapping, version)


def _spellings(known: dict[str, str], version: str) -> dict[str, str]:
    retained = {word: spelling for word, spelling in known.items() if word not in _NOT_SPELLED}
    june = _SPELLINGS_OF_JUNE if version >= VERSIONS[2] else {}
    return {**retained, **_SPELLINGS, **june, **(_FLYER if version >= VERSIONS[3] else {})}


def _name_spellings(june: bool) -> dict[str, str]:
    """Map names to their spelling, by the version of June or April."""
    held = {
        name: spelling
        for spelling, _, names in (one.partition("=") for one in _NAMES.split())
        for name in names.split("|")
    }
    return (
        held if june else {name: spelling for name, spelling in held.items() if name not in _NOT_YET} | _NAMES_OF_APRIL
    )


def _compounds(june: bool) -> dict[str, str]:
    plain = {words: words.replace(" ", "") for words in _COMPOUNDS}
    return {**_COMPOUNDS_OF_JUNE, **plain, **_AFTER_COMPOUNDS_OF_JUNE} if june else plain


def _mapped(words: dict[str, str], text: str) -> str:
    return " ".join(words.get(word, word) for word in text.split())


def _replaced(words: dict[str, str], text: str) -> str:
    for apart, together in words.items():
        pattern = r"\s+".join(apart.split())
        text = re.sub(rf"\b{pattern}\b", together, text)
    return text


def _letters_joined(text: str, alone: int) -> str:
    """Join runs of at least two single letters and digits; at least `alone` if one is `a` or `i`."""
    words: list[str] = []
    run: list[str] = []
    for word in [*text.split(), ""]:
        if len(word) == 1 and word.isalnum():
            run.append(word)
            continue
        enough = alone if {"a", "i"} & set(run) else 2
        words += ["".join(run)] if len(run) >= enough else run
        run = []
        words += [word] if word else []
    return " ".join(words)


STEPS: dict[str, Callable[[], Step]] = {
    **{f"open-asr-{version}": partial(english, version) for version in VERSIONS},
    **{f"open-asr-{language}": partial(multilingual, language) for language in LANGUAGES},
}
"""Each step by its name, as a function that builds it."""
