"""The script of conversations: what the user says, and when, in YAML.

Conventions
    Times are in seconds. A turn begins at a time of the session, some time after the answer to the turn before has
    ended, or at a moment of that answer. What is drawn depends on the seed and the id of the conversation, and not on
    their order.
"""

from __future__ import annotations

import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from codec_bench.benchmark.definition.schema import Strict
from codec_bench.config import fit, load_yaml
from codec_bench.errors import UserError

EMBEDDED = "embedded"
Kind = Literal["turn", "interruption", "backchannel", "vocal_tic", "non_directed"]
ASIDES = ("vocal_tic", "non_directed")
NO_ANSWER = ("backchannel", *ASIDES)
"""The kinds that expect no answer."""
Seconds = Annotated[float, Field(ge=0, le=600)]


class UtteranceSpec(Strict):
    """A sound that the user says, or a pause between two of them.

    Args:
        sound: an id of the script's data, or the path of a file beside the script. most_s: only its first seconds.
        pause_s: silence in place of a sound; the turn goes on after it.
    """

    sound: str | None = None
    most_s: Annotated[float, Field(gt=0)] | None = None
    pause_s: Annotated[float, Field(gt=0, le=60)] | None = None

    @model_validator(mode="after")
    def _one(self) -> UtteranceSpec:
        if (self.sound is None) == (self.pause_s is None):
            raise ValueError("expected either 'sound' or 'pause_s'")
        return self


def _to_utterance(value: Any) -> Any:
    return {"sound": value} if isinstance(value, str) else value


def _several(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


AnyUtterance = Annotated[UtteranceSpec, BeforeValidator(_to_utterance)]


class Event(Strict):
    """Something that the user says.

    Args:
        kind: `turn`, which expects an answer; `interruption`, said into an answer, which expects that the model stops
            and answers; `backchannel`, said into an answer, which expects that the model goes on; `vocal_tic`, such as
            a cough, and `non_directed`, said to somebody else, which expect that the model goes on or stays silent.
        say: the sounds and pauses in their order.
        at_s: when it begins, from the beginning of the session. after_answer_s: how long after the end of the answer to
            what was said before. into_answer_s: how long after that answer has begun. Exactly one of the three.
    """

    kind: Kind = "turn"
    say: Annotated[tuple[AnyUtterance, ...], BeforeValidator(_several), Field(min_length=1)]
    at_s: Seconds | None = None
    after_answer_s: Seconds | None = None
    into_answer_s: Seconds | None = None

    @model_validator(mode="after")
    def _when(self) -> Event:
        if sum(when is not None for when in (self.at_s, self.after_answer_s, self.into_answer_s)) != 1:
            raise ValueError("expected one of 'at_s', 'after_answer_s' and 'into_answer_s'")
        if self.say[0].pause_s is not None or self.say[-1].pause_s is not None:
            raise ValueError("'say' begins or ends with a pause; a pause lies between two sounds")
        return self


class Background(Strict):
    """What is heard behind the user for the whole session.

    Args:
        sound: `white` for noise from the seed, or a sound as in `say`, repeated.
        snr_db: level of the user's speech over it: the power of the active windows of all that the script says over its
            own.
    """

    sound: str = "white"
    snr_db: Annotated[float, Field(ge=-20, le=100)]


class Marked(Strict):
    """Something that is said in a recording.

    Args:
        kind: as of an `Event`. begin_s, end_s: where it lies; its speech is found by energy. pauses: pauses inside it.
            text: its words.
    """

    kind: Kind = "turn"
    begin_s: Annotated[float, Field(ge=0)]
    end_s: Annotated[float, Field(gt=0)]
    pauses: tuple[tuple[float, float], ...] = ()
    text: str = ""


class Conversation(Strict):
    """One conversation. Without turns the user says nothing for `silence_s`, and the model should say nothing either.

    Args:
        id: of the conversation. turns: what the user says. background: behind it.
        silence_s: the length of a conversation without a user.
        recording: a sound that is sent as it is, from its beginning to its end, in place of turns; `said` marks what is
            said in it.
        references: expected answers to what the user asks; if there are several, any of them is right.
        clean: the id of the same conversation without its event. backchannels: how people's backchannels are spread
            over the recording, as shares of evenly long parts of it.
    """

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    turns: tuple[Event, ...] = ()
    background: Background | None = None
    silence_s: Annotated[float, Field(gt=0, le=600)] | None = None
    recording: str | None = None
    said: tuple[Marked, ...] = ()
    references: tuple[str, ...] = ()
    clean: str | None = None
    backchannels: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _something(self) -> Conversation:
        if [bool(self.turns), self.silence_s is not None, self.recording is not None].count(True) != 1:
            raise ValueError("expected one of 'turns', 'silence_s' and 'recording'")
        if self.recording is None and (self.said or self.backchannels):
            raise ValueError("'said' and 'backchannels' belong to a 'recording'")
        if self.turns and self.turns[0].at_s is None:
            raise ValueError("the first turn has no answer before it; give it 'at_s'")
        return self


class Drawn(Strict):
    """Conversations of one form that are drawn from the script's data.

    Args:
        form: `plain`, `pause` (inside a turn), `interruption`, `backchannel`, `noise` or `silence`.
        count: how many. between: the range from which its number is drawn: the length of the pause, the moment of the
            answer, the SNR of the noise or the length of the silence.
    """

    form: Literal["plain", "pause", "interruption", "backchannel", "noise", "silence"]
    count: Annotated[int, Field(ge=1, le=10_000)]
    between: tuple[float, float] = (0.0, 0.0)


class Network(Strict):
    """A simulated network in both directions.

    Args:
        delay_s: of every message. jitter_s: a further delay, drawn evenly up to this.
        loss: the share of sendings that are lost; what is lost is sent again `again_s` later.
    """

    delay_s: Annotated[float, Field(ge=0, le=5)] = 0.0
    jitter_s: Annotated[float, Field(ge=0, le=5)] = 0.0
    loss: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    again_s: Annotated[float, Field(gt=0, le=5)] = 0.2


class Script(Strict):
    """A script.

    Args:
        version: of this layout. title: the name that people read.
        data: where sounds are looked up by id; as `--data`. seed: of all draws and noise.
        instructions: what the model is told before the conversation.
        patience_s: how long the user waits for an answer before the script goes on.
        ends_s: an answer has ended after so much silence, or when the service says so and all of it was played.
        longest_s: a session that lasts longer has failed.
        network: simulated between this machine and the service; None for none.
        conversations: the conversations. draw: those that are drawn.
    """

    version: Literal[1]
    title: str = Field(min_length=1)
    data: str = EMBEDDED
    seed: int = 0
    instructions: str = ""
    patience_s: Annotated[float, Field(gt=0, le=300)] = 10.0
    ends_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    longest_s: Annotated[float, Field(gt=0, le=7200)] = 120.0
    network: Network | None = None
    conversations: tuple[Conversation, ...] = ()
    draw: tuple[Drawn, ...] = ()

    @model_validator(mode="after")
    def _some(self) -> Script:
        if not self.conversations and not self.draw:
            raise ValueError("expected 'conversations' or 'draw'")
        ids = [one.id for one in self.conversations]
        if len(set(ids)) < len(ids):
            raise ValueError(f"the id '{next(i for i in ids if ids.count(i) > 1)}' stands twice")
        return self


def read_script(name: str | os.PathLike[str], seed: int | None = None) -> tuple[Script, Path]:
    """Reads a script.

    Args:
        name: `embedded`, or the path of a YAML file. seed: in place of the script's.

    Returns:
        The script, and the folder that its paths start from.

    Raises:
        UserError: the file cannot be read, or a field does not fit.
    """
    text = os.fspath(name)
    file = files(__package__) / "embedded.yaml" if text == EMBEDDED else Path(text).expanduser()
    document = load_yaml(str(file))
    if not isinstance(document, dict):
        raise UserError(f"'{text}' holds {type(document).__name__}; expected a mapping of names to values")
    script = fit(document, Script, source=text)
    return script if seed is None else script.model_copy(update={"seed": seed}), Path(text).absolute().parent


def random_of(seed: int, *key: str) -> np.random.Generator:
    """The generator of an item, which depends on the seed and on what the item is called."""
    digest = hashlib.blake2b(json.dumps([seed, *key]).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def conversations_of(script: Script, sounds: list[str]) -> list[Conversation]:
    """The conversations of a script, those that it draws behind those that it states; `sounds` are the ids of its data."""
    out = list(script.conversations)
    for drawn in script.draw:
        for number in range(drawn.count):
            name = f"{drawn.form}-{number + 1:02d}"
            out.append(_draw(name, drawn, sounds, random_of(script.seed, name)))
    return out


def _draw(name: str, drawn: Drawn, sounds: list[str], random: np.random.Generator) -> Conversation:
    value = round(float(random.uniform(*drawn.between)), 2)
    if drawn.form == "silence":
        return Conversation(id=name, silence_s=value)
    first, second, third = (UtteranceSpec(sound=sounds[int(n)]) for n in random.integers(0, len(sounds), 3))
    spoken = (first, UtteranceSpec(pause_s=value), second) if drawn.form == "pause" else (first,)
    turns = [Event(say=spoken, at_s=0.5)]
    if drawn.form == "interruption":
        turns.append(Event(kind="interruption", say=(second,), into_answer_s=value))
    if drawn.form == "backchannel":
        short = second.model_copy(update={"most_s": 0.4})
        turns.append(Event(kind="backchannel", say=(short,), into_answer_s=value))
    if drawn.form == "plain":
        turns.append(Event(say=(third,), after_answer_s=0.5))
    background = Background(snr_db=value) if drawn.form == "noise" else None
    return Conversation(id=name, turns=tuple(turns), background=background)
