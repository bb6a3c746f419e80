"""Post-processing steps by name, such as `json-field[content]`.

The tables below hold the steps. `transcript[RECOGNISER]`, the transcript of generated audio, must come first; a run
takes the recogniser of its device (`steps_on`). `official/TOOLKIT/NAME` are published steps with their quirks. The
project's own steps never guess: an unreadable answer gives `Unparsed`, with a reason that quotes it. Every step takes
linear time.

Which file to open
    A step that reads a decision is in `option.py`, a number in `number.py`, the sections of a song in `sections.py`, a
    part of an answer in `structure.py`. `choices.py` finds the options of a question, `synonyms.py` has other words for
    labels; `mentions.py` finds them in an answer, `tables.py` in JSON and lists; `grammar.py` decides clause by clause,
    with the words of `cues.yaml`; `refusal.py` detects refusals, `bare_text.py` strips a transcript's surroundings.
    `words.py` compares texts, `ultraeval_steps.py` has published steps. `base.py` is the chain. `patterns.py` loads the
    long regular expressions of `patterns.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codec_bench.benchmark.reading import number, option, sections, structure, ultraeval_steps
from codec_bench.benchmark.reading.base import OFFICIAL, Chain, Parsed, Step, Unparsed
from codec_bench.config import config_names, read_config
from codec_bench.config.registry import Spec
from codec_bench.messages.errors import UnknownName, UserError

TRANSCRIPT = "transcript"
"""The step for generated audio. It does nothing itself: scoring replaces the answer by its transcript."""

PLAIN: dict[str, Step] = {
    "first-line": structure.first_line,
    "number": number.number,
    "sections": sections.sections,
    "strip-tags": structure.strip_tags,
    "yes-no": option.yes_no,
    **ultraeval_steps.PLAIN,
}
"""Steps that take no argument."""

WITH_ARGUMENT: dict[str, Callable[[str], Step]] = {
    "after": structure.after,
    "before": structure.before,
    "json-field": structure.json_field,
}
"""Steps that need an argument."""

MAY_HAVE_ARGUMENT: dict[str, Callable[[str | None], Step]] = {
    "label": option.label,
    "option-letter": option.option_letter,
    **ultraeval_steps.MAY_HAVE_ARGUMENT,
}
"""Steps that work with an argument and without one."""

READING_VERSION = 3
"""Version of the grammar that reads decisions. A changed reading is another protocol."""
_DECISIONS = ("label", "option-letter", "yes-no")


def version_steps(names: Sequence[str]) -> list[str]:
    """The steps for a run's identity, with the grammar's version where it decides."""
    return [f"{name}/{READING_VERSION}" if _split_step(name)[0] in _DECISIONS else name for name in names]


def step_names() -> list[str]:
    """The names of all steps, without arguments."""
    return sorted([*PLAIN, *WITH_ARGUMENT, *MAY_HAVE_ARGUMENT, TRANSCRIPT])


def load_steps(names: Sequence[str]) -> Chain:
    """Build a chain of post-processing steps that extract the answer from a text.

    Args:
        names: the steps in order; without any, an answer stays as it is.

    Raises:
        UnknownName: there is no such step.
        UserError: a step lacks its argument or takes none, or `transcript` is not the first step.
    """
    if isinstance(names, str):
        raise UserError("steps_not_a_list", names=names, hint=f"write ['{names}']")
    steps: list[Step] = []
    recogniser = None
    for index, text in enumerate(names):
        name, argument = _split_step(text)
        if name == TRANSCRIPT:
            if index:
                raise UserError("step_order", text=text, names=names[index - 1], hint="put the transcript first")
            if argument is None:
                raise UserError(
                    "step_without_recogniser", text=text, hint="name one, such as transcript[whisper-large-v3]"
                )
            recogniser = argument
        else:
            steps.append(_built(text, name, argument))
    return Chain(tuple(names), tuple(steps), recogniser, any(name.startswith(OFFICIAL) for name in names))


def steps_on(names: Sequence[str], *, gpu: bool) -> list[str]:
    """Replace the speech recogniser in step names by the one for a GPU or a CPU."""
    texts = []
    for text in names:
        name, argument = _split_step(text)
        if name == TRANSCRIPT and argument is not None:
            text = f"{TRANSCRIPT}[{_recogniser_on(argument, gpu=gpu)}]"
        texts.append(text)
    return texts


def _recogniser_on(variant: str, *, gpu: bool) -> str:
    """Resolve a recogniser that depends on the device; other names stay."""
    choice = read_config("recogniser", variant) if variant in config_names("recogniser") else {}
    if "on_gpu" not in choice:
        return variant
    return str(choice["on_gpu"] if gpu else choice["otherwise"])


def _split_step(text: str) -> tuple[str, str | None]:
    # Spec.parse does not suit the argument, which may be any text, even with spaces and brackets.
    """Split `NAME[ARGUMENT]` into name and argument, None without brackets."""
    name, bracket, argument = text.strip().partition("[")
    if not bracket:
        return Spec.parse(name).name, None
    if not argument.endswith("]") or len(argument) < 2:
        raise UserError("not_a_step", text=text, hint="expected NAME or NAME[ARGUMENT]")
    return name, argument[:-1]


def _built(text: str, name: str, argument: str | None) -> Step:
    """Create a step by its name; raise UserError if its argument does not fit."""
    if name in MAY_HAVE_ARGUMENT:
        return MAY_HAVE_ARGUMENT[name](argument)
    if name in WITH_ARGUMENT:
        if argument is None:
            raise UserError("step_needs_argument", name=name, hint=f"write {name}[ARGUMENT]")
        return WITH_ARGUMENT[name](argument)
    if name in PLAIN:
        if argument is not None:
            raise UserError("step_without_argument", name=name, text=text, argument=argument)
        return PLAIN[name]
    raise UnknownName("answer_step", name, step_names())


__all__ = ["Chain", "Parsed", "Step", "Unparsed", "load_steps", "step_names", "steps_on", "version_steps"]
