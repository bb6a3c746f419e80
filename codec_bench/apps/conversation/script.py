"""The script of conversations: the user's utterances and their times, in YAML.

Times are in seconds: of the session, after the end of the previous answer, or into that answer. Draws depend on the
seed and the id of the conversation, not on the order.
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
from codec_bench.config import fit, invalid_value, load_yaml
from codec_bench.messages.errors import UserError

EMBEDDED = "embedded"
Kind = Literal["turn", "interruption", "backchannel", "vocal_tic", "non_directed"]
ASIDES = ("vocal_tic", "non_directed")
NO_ANSWER = ("backchannel", *ASIDES)
"""The kinds that expect no answer."""
Seconds = Annotated[float, Field(ge=0, le=600)]


class UtteranceSpec(Strict):
    """Audio of the user, or a pause between utterances.

    Args:
        sound: an id of the script's data, or a file relative to the script.
        most_s: only its first seconds.
        pause_s: silence in place of audio; the turn continues after it.
    """

    sound: str | None = None
    most_s: Annotated[float, Field(gt=0)] | None = None
    pause_s: Annotated[float, Field(gt=0, le=60)] | None = None

    @model_validator(mode="after")
    def _one(self) -> UtteranceSpec:
        if (self.sound is None) == (self.pause_s is None):
            raise invalid_value("one_of_fields", fields=["sound", "pause_s"])
        return self


def _to_utterance(value: Any) -> Any:
    return {"sound": value} if isinstance(value, str) else value


def _several(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


AnyUtterance = Annotated[UtteranceSpec, BeforeValidator(_to_utterance)]


class Event(Strict):
    """Something that the user says.

    Args:
        kind: `turn` expects an answer; `interruption`, into an answer, expects that the model stops and answers;
            `backchannel`, into an answer, that it continues; `vocal_tic`, such as a cough, and `non_directed`,
            to somebody else, that it continues or stays silent.
        say: the utterances and pauses in order.
        at_s: begin in the session.
        after_answer_s: begin after the end of the previous answer.
        into_answer_s: begin after that answer began. Exactly one of the three.
    """

    kind: Kind = "turn"
    say: Annotated[tuple[AnyUtterance, ...], BeforeValidator(_several), Field(min_length=1)]
    at_s: Seconds | None = None
    after_answer_s: Seconds | None = None
    into_answer_s: Seconds | None = None

    @model_validator(mode="after")
    def _when(self) -> Event:
        if sum(when is not None for when in (self.at_s, self.after_answer_s, self.into_answer_s)) != 1:
            raise invalid_value("one_of_fields", fields=["at_s", "after_answer_s", "into_answer_s"])
        if self.say[0].pause_s is not None or self.say[-1].pause_s is not None:
            raise invalid_value("pause_at_end")
        return self


class Background(Strict):
    """Background audio behind the user for the whole session.

    Args:
        sound: `white` for noise from the seed, or a sound as in `say`, repeated.
        snr_db: the power of active windows of all scripted speech over that of the background.
    """

    sound: str = "white"
    snr_db: Annotated[float, Field(ge=-20, le=100)]


class Marked(Strict):
    """Speech in a recording.

    Args:
        kind: as of an `Event`.
        begin_s, end_s: bounds; energy finds the speech inside.
        text: its words.
    """

    kind: Kind = "turn"
    begin_s: Annotated[float, Field(ge=0)]
    end_s: Annotated[float, Field(gt=0)]
    pauses: tuple[tuple[float, float], ...] = ()
    text: str = ""


class Conversation(Strict):
    """One conversation. Without turns, both sides should be silent for `silence_s`.

    Args:
        background: behind the user.
        silence_s: the length of a conversation without a user.
        recording: audio to send from beginning to end, in place of turns; `said` marks its speech.
        references: accepted answers to the user's question.
        clean: the id of the same conversation without its event.
        backchannels: the distribution of people's backchannels over equal parts of the recording.
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
    def _check_content(self) -> Conversation:
        """Validate that it has turns, silence or a recording, and only one of them."""
        if [bool(self.turns), self.silence_s is not None, self.recording is not None].count(True) != 1:
            raise invalid_value("one_of_fields", fields=["turns", "silence_s", "recording"])
        if self.recording is None and (self.said or self.backchannels):
            raise invalid_value("fields_of_recording")
        if self.turns and self.turns[0].at_s is None:
            raise invalid_value("first_turn_time")
        return self


class DrawnConversations(Strict):
    """Conversations of one form, drawn from the script's data.

    Args:
        form: `plain`, `pause` (inside a turn), `interruption`, `backchannel`, `noise` or `silence`.
        between: the range of its number: length of the pause, moment of the answer, SNR of the noise, length of the
            silence.
    """

    form: Literal["plain", "pause", "interruption", "backchannel", "noise", "silence"]
    count: Annotated[int, Field(ge=1, le=10_000)]
    between: tuple[float, float] = (0.0, 0.0)


class Network(Strict):
    """A simulated network in both directions.

    Args:
        delay_s: of every message.
        jitter_s: a further delay, drawn evenly up to this.
        loss: the share of lost transmissions, which are repeated `again_s` later.
    """

    delay_s: Annotated[float, Field(ge=0, le=5)] = 0.0
    jitter_s: Annotated[float, Field(ge=0, le=5)] = 0.0
    loss: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    again_s: Annotated[float, Field(gt=0, le=5)] = 0.2


class Script(Strict):
    """A script.

    Args:
        version: of this layout.
        title: the display name.
        data: source of sounds by id; as `--data`.
        seed: of all draws and noise.
        instructions: for the model, before the conversation.
        patience_s: how long the user waits for an answer before the script continues.
        ends_s: an answer ends after this silence, or when the service says so and all was played.
        longest_s: a longer session fails.
        network: simulated; null for none.
        draw: drawn conversations, next to the listed ones.
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
    draw: tuple[DrawnConversations, ...] = ()

    @model_validator(mode="after")
    def _check_conversations(self) -> Script:
        """Validate that the script has conversations, and ids that differ."""
        if not self.conversations and not self.draw:
            raise invalid_value("one_of_fields", fields=["conversations", "draw"])
        ids = [one.id for one in self.conversations]
        if len(set(ids)) < len(ids):
            raise invalid_value("id_twice", id=next(i for i in ids if ids.count(i) > 1))
        return self


def read_script(name: str | os.PathLike[str], seed: int | None = None) -> tuple[Script, Path]:
    """Read and validate a script of conversations from YAML.

    Args:
        name: path of the YAML file, or `embedded` for the script in the package.
        seed: replaces the script's seed; None keeps it.

    Returns:
        The script, and the folder from which its relative sound paths are resolved.

    Raises:
        UserError: the file cannot be read, or is no valid script.
    """
    text = os.fspath(name)
    file = files(__package__) / "embedded.yaml" if text == EMBEDDED else Path(text).expanduser()
    document = load_yaml(str(file))
    if not isinstance(document, dict):
        raise UserError("mapping_expected", path=text, type=type(document).__name__)
    script = fit(document, Script, source=text)
    return script if seed is None else script.model_copy(update={"seed": seed}), Path(text).absolute().parent


def random_of(seed: int, *key: str) -> np.random.Generator:
    """Create a random generator that depends only on the seed and the key."""
    digest = hashlib.blake2b(json.dumps([seed, *key]).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def conversations_of(script: Script, sounds: list[str]) -> list[Conversation]:
    """List the script's conversations: the written ones, then the drawn ones.

    Args:
        sounds: ids of the script's data, from which utterances are drawn.
    """
    out = list(script.conversations)
    for drawn in script.draw:
        for number in range(drawn.count):
            name = f"{drawn.form}-{number + 1:02d}"
            out.append(_draw(name, drawn, sounds, random_of(script.seed, name)))
    return out


def _draw(name: str, drawn: DrawnConversations, sounds: list[str], random: np.random.Generator) -> Conversation:
    """Draw a conversation of a form: utterances of `sounds`, a number in `between`."""
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
