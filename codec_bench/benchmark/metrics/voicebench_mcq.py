"""VoiceBench's rule for options, as in UltraEval-Audio's `mcq_abcd`: the first wording that occurs in an answer
decides.

github.com/MatthewCYM/VoiceBench `src/evaluator/mcq.py`, github.com/OpenBMB/UltraEval-Audio 9b69da6
`audio_evals/evaluator/mcq.py`. The wordings are the list `templates` of the second file, all of it and in its order, with
`@` for the letter. Some of them read `is a.` and `vitamin c.` as options.
"""

from __future__ import annotations

import re

from codec_bench.benchmark.metrics.ultraeval import Match

# Bars separate the wordings; \n is a line break.
_WORDINGS = r"""
答案是@|答案是:@|答案是：@|答案是 @|答案是选项@|答案应该是@|答案应该是 @|答案就是选项@|答案是'@|是@：|答案选@|@是正确|选项@是最合适的
answer is: **@|answer is **@|the answer to the question is: **@|the answer to the multiple-choice question is **@
the answer is '@'|@ is the best answer|the answer is @|the correct answer is @|would select @|would choose @
would select option @|would choose option @|is "@"|is "@.|is: **@)|is **@,|is **@:|is **@)|is: **@.|is: **@:|is **@.|be **@,
is: **@**|is therefore option **@:|is: \n\n**@)|as **@:|be **@)|be **@:|is: \n\n**@**|suggests **@)|be option **@:|with **@)
is typically "@)|be to **@)|is: \n\n@)|is likely to be: **@.|is **@ (|is option **@**|is likely **@**|is:\n**@.|is:\n\n**@.
would be @|would be option @|would be (@)|would be option (@)|is @,|is typically @,|is typically @.|i'd say @.|option @.
option @:|option @,|the answer is:\n**@|is @:|is @.|is @,|is: @.|is (@)|is:\n**@)|is likely **@:|is the **@)|:\n@.|:\n@)
:\n@,|: \n@.|:  \n@.|:\n\n@.|:\n\n@)|is most likely **@:|:\n\n@,|: \n\n@.|is option @,|(@) would be|is (@).|is @)|is: @)
is:\n\n@:|is: **@,|(option @)|answer is (@)|select option "@"|is: @|is typically **@,|is **@**|is likely '@'|is option '@'
is:\n**@:|is \( \boxed{@ |would be '@'|is the **@** |question is @ (|is:\n\n**@)|closest to option **@**|is most likely **@)
the answer to the question is '@'|question is **@**|known as '@'|is '@)|is typically **@:|is \( \boxed{\text{@}} \)
is \( \text{@) }|is \( \text{@} \)|is \( \text{@:|is \( \text{@)|is \(\text{@.|is:\n\n**@|is \( \text{@.}|is \( \text{@.
is \( \boxed{@}|is:\n\[ \boxed{\text{@}}|is:\n\[ \text{@)|is:\n\n\[ \text{@)|is \( \textbf{@)|is \( \text{@}|is: \( \text{@.
corresponds to:\n- **@:|would be: **@**.|is \( @ \)|is:\n**@ |corresponds to option **@**|be **@**|be: \n\n@)|is:\n\[ \boxed{@}
is:  \n**@:|is: \( \text{@)|is likely: **@,|is } \mathbf{@.|is \( \boxed{@)|is \( \textbf{@}|is \(@\)|is:\n  \n**@:
is option **@ |is:\n\( \textbf{@.|is \( \mathbf{@}|was option **@**|is likely "@)|option **@:|is "@)|is most likely **@,
is often **@:|is:  \n@)| @.| @,| @:| @)|**@.|**@)|"@.|"@,|"@:|(@)|"@"
"""
WORDINGS = tuple(w.replace("\\n", "\n") for line in _WORDINGS.strip("\n").split("\n") for w in line.split("|"))
_FILLED = tuple((wording.replace("@", letter), letter.upper()) for wording in WORDINGS for letter in "abcd")
_TAG = re.compile(r"<[123]>")


def mcq_abcd(pred: str, ref: str) -> Match:
    """Reads an option by the published wordings and compares it with the reference.

    An answer that it cannot read is wrong.
    """
    letter = read_option(str(pred))
    ref = str(ref).lower()
    if letter is None:
        return Match(0, None, ref, unread=True)
    return Match(int(letter.lower() == ref), letter, ref, letter)


def read_option(answer: str) -> str | None:
    """The letter of the first wording that an answer contains (with a before b, c and d), or None."""
    text = answer.lower()
    if _TAG.match(text):
        text = text[3:].strip()
    for wording, letter in _FILLED:
        if wording in text:
            return letter
    if text[:1] in tuple("abcd") and (len(text) == 1 or text[1] in ".,:)"):
        return text[0].upper()
    # What the published rule still tries after this contains one of its wordings, so it is never reached.
    return None
