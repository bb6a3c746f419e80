"""Full-duplex conversations: the function behind `codec-bench converse`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from codec_bench.apps.conversation.distributions import price_before, priced, summarise
from codec_bench.apps.conversation.full_duplex import WORDS, official_values, read_chunks, read_words, script_of
from codec_bench.apps.conversation.in_process import CascadeSession, Streaming, StreamingModel
from codec_bench.apps.conversation.judged import (
    SessionQuestion,
    by_rule,
    judge_all,
    names_benchmark,
    questions,
    questions_of,
    sum_usage,
    verdicts,
)
from codec_bench.apps.conversation.measures import PROTOCOL, Value, from_people, measure, turns_of
from codec_bench.apps.conversation.script import Conversation, Script, conversations_of, read_script
from codec_bench.apps.conversation.services import SERVICES
from codec_bench.apps.conversation.session import FRAME_S, Partner, Session, hold_conversation
from codec_bench.apps.conversation.session_files import check_states, folder_of, read_session, write_session
from codec_bench.apps.conversation.tau_voice import tau_voice
from codec_bench.apps.conversation.transcripts import by_words, load_timed, write_words
from codec_bench.apps.conversation.turn_ends import TurnEnd
from codec_bench.apps.conversation.user import ReplayedUser, ScriptedUser, Sounds, User, recorded_user
from codec_bench.apps.conversation.voice import release_utmos, voice
from codec_bench.config import check_settings, fit
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.option import names
from codec_bench.data import open_source
from codec_bench.engine.running import describe_machine
from codec_bench.features.base import Feature
from codec_bench.messages import to_json
from codec_bench.messages.errors import UserError
from codec_bench.models import check_served, load_model, own_name
from codec_bench.models.base import Model
from codec_bench.models.endpoints.sockets import SocketModel
from codec_bench.store.files import read_json, write_json, write_text
from codec_bench.store.folders import mark_finished, named_folder, own_folder

SCHEMA = 1
AT_ONCE = 8
END_OF_TURN = "silero-vad:0.7"
Notify = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Conversations:
    """The sessions of a run, by system in the order of the script."""

    folder: Path
    sessions: Mapping[str, Sequence[Session]]
    values: Mapping[str, Sequence[Value]]
    summary: Mapping[str, Any]

    @property
    def page(self) -> Path:
        """Path of the HTML page."""
        return self.folder / "report.html"

    @property
    def faults(self) -> dict[str, str]:
        """The reasons of sessions that are not `ok`, by system and id."""
        return {f"{name}/{one.id}": one.reason for name, held in self.sessions.items() for one in held if one.reason}


def converse(
    *,
    model: str | Sequence[str] = (),
    scripts: str | os.PathLike[str] = "embedded",
    out: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    limit: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    speaks: str | None = None,
    end_of_turn: str = END_OF_TURN,
    words: str | None = None,
    judge: str | None = None,
    device: str = "auto",
    at_once: int = AT_ONCE,
    replay: str | os.PathLike[str] | None = None,
    remark: bool = False,
    anyway: bool = False,
    page: bool = True,
    on_folder: Callable[[Path, str], None] = lambda folder, words: None,
    on_estimate: Callable[[str], None] = lambda words: None,
    progress: Notify = lambda done, total: None,
) -> Conversations:
    """Talk with models at the speed of speech, and measure their turn-taking.

    A call with the same arguments continues a stopped run: complete sessions are not repeated.

    Args:
        model: models by name, compared with each other. A model of whole turns runs behind `end_of_turn`.
        scripts: `embedded`, the path of a script, a folder in the layout of Full-Duplex-Bench, or a benchmark of spoken
            questions, by its name such as `big-bench-audio` or the path of its `benchmark.yaml`, with one session a
            question.
        out: the run folder; None creates one under `runs`.
        seed: replaces the script's.
        limit: hold at most this many conversations.
        options: of the models, by name.
        speaks: a model that reads text responses aloud.
        end_of_turn: the detector for models of whole turns, such as `silero-vad:0.7` or `energy:0.7`.
        words: a recogniser with word times that transcribes the output.
        judge: a model that judges sessions of Full-Duplex-Bench by their words.
        at_once: concurrent sessions.
        replay: a run whose users are repeated: the same samples at the same times, whatever the model says.
        remark: measure the sessions in `out` again, and request nothing but verdicts of a `judge`.
        anyway: also request a model that its service is known to have shut down.
        page: whether to write `report.html`.
        on_folder: receives the folder and a sentence on it.
        on_estimate: receives a sentence on expected costs.
        progress: receives the sessions done and all.

    Raises:
        UserError: an argument is wrong, the script or audio cannot be read, or a service denies access.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import converse
        >>> talk = "{version: 1, title: Nobody speaks, data: '', conversations: [{id: quiet, silence_s: 2}]}"
        >>> written = Path("talk.yaml").write_text(talk)
        >>> nowhere = {"gpt-realtime-2.1": {"base_url": "ws://127.0.0.1:9", "key_env": None}}
        >>> held = converse(model="gpt-realtime-2.1", scripts="talk.yaml", out="talk", options=nowhere, page=False)
        >>> held.faults["gpt-realtime-2.1/quiet"].partition(": ")[0]
        'nothing answers at ws://127.0.0.1:9'
    """
    models = [*names(model), *map(own_name, names(model)), *([judge] if judge else [])]
    check_settings(options or {}, models, "model in this conversation")
    recogniser = load_timed(words, device) if words is not None else None
    judging = None if judge is None else _judge(judge, options or {}, anyway, device)
    measure_run = partial(_remeasure, words=recogniser, judge=judging, page=page, notify=on_estimate)
    if remark:
        if out is None:
            raise UserError("no_run_to_mark", hint="--out DIR names its folder")
        read_json(Path(out) / "run.json", hint="it is no run of `codec-bench converse`")
        with named_folder(out) as out_folder:
            on_folder(out_folder.path, out_folder.words)
            return measure_run(out_folder.path)
    systems = [own_name(name) for name in names(model)]
    if not systems:
        raise UserError("no_model_named", hint="--model NAME, such as gpt-realtime-2.1")
    if at_once < 1:
        raise UserError("below_least", name="at_once", value=at_once, least=1)
    local_scripts = Path(scripts).expanduser()
    source: Iterable[Any] | None = None
    if names_benchmark(local_scripts):
        (script, source), folder = questions_of(os.fspath(local_scripts), limit), Path.cwd()
    elif local_scripts.is_dir():
        script, folder = script_of(local_scripts), local_scripts.absolute()
    else:
        script, folder = read_script(scripts, seed)
        source = open_source(script.data) if script.data else None
    talks = conversations_of(script, [sample.id for sample in source or ()])[:limit]
    loaded = {}
    for name, system in zip(names(model), systems):
        model_options = (options or {}).get(name) or (options or {}).get(system) or {}
        if not anyway:
            check_served(name, model_options)
        one = load_model(name, model_options, device=device)
        # Own code is named by a path, which cannot name a session's folder.
        loaded[one.info.name if is_custom_code(name) else system] = _conversing(one, speaks, end_of_turn)
    identity = {
        "command": "converse",
        "script": json.loads(script.model_dump_json()),
        "conversations": [talk.id for talk in talks],
        "replay": None if replay is None else os.fspath(replay),
        "frame_s": FRAME_S,
        "systems": {name: json.loads(json.dumps(dict(one.identity), default=str)) for name, one in loaded.items()},
    }
    held_by = _users_of(Path(replay)) if replay is not None else None
    with own_folder("converse", identity) if out is None else named_folder(out) as out_folder:
        identity = _merge_requests(out_folder.path, identity)
        on_folder(out_folder.path, out_folder.words)
        write_json(out_folder.path / "run.json", {**identity, **describe_machine()})
        work = [
            _SystemRun(out_folder.path, name, one, script, folder, talks, held_by, source, identity["generation"])
            for name, one in loaded.items()
        ]
        asyncio.run(_hold_all(work, at_once, progress, on_estimate))
        result = measure_run(out_folder.path)
        mark_finished(out_folder.path)
        return result


def _judge(name: str, options: Mapping[str, Mapping[str, Any]], anyway: bool, device: str) -> tuple[str, Model]:
    """Load the judge model; raises UserError if it is shut down or unsuitable.

    Returns:
        Its name, and the model.
    """
    judge_options = options.get(name) or {}
    if not anyway:
        check_served(name, judge_options)
    model = load_model(name, judge_options, device=device)
    if model.info.reads != "messages" or "text" not in model.info.outputs:
        raise UserError("judge_without_text_answers", model=name, hint="codec-bench list models")
    return own_name(name), model


def _conversing(model: Model, speaks: str | None, end_of_turn: str) -> Partner:
    """Wrap a model as a partner; one that answers complete turns runs in a cascade."""
    if isinstance(model, StreamingModel):
        return Streaming(model)
    if isinstance(model, SocketModel) and type(model) in SERVICES:
        return SERVICES[type(model)](model)
    return CascadeSession(model, load_model(speaks) if speaks else None, TurnEnd.parse(end_of_turn))


def _merge_requests(folder: Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a stored request with this one; raises UserError if they differ.

    Models and conversations may be added; `generation` counts the starts.
    """
    before = _facts(folder)
    if not before:
        return {**identity, "generation": 1}
    differs = [key for key in ("command", "script", "replay", "frame_s") if before.get(key) != identity[key]]
    known = before.get("systems") or {}
    differs += [f"the model {name}" for name, one in identity["systems"].items() if known.get(name, one) != one]
    if differs:
        raise UserError("folder_of_other_run", folder=folder, differences=", ".join(differs), hint="give another --out")
    talks = list(dict.fromkeys([*before.get("conversations", ()), *identity["conversations"]]))
    number = int(before.get("generation") or 0) + 1
    return {**identity, "conversations": talks, "systems": {**known, **identity["systems"]}, "generation": number}


def _facts(run: Path) -> dict[str, Any]:
    """Read the request stored in `run.json`; {} if missing; raises DamagedRecord."""
    facts, summary = (read_json(path) if path.exists() else {} for path in (run / "run.json", run / "summary.json"))
    check_states(run, facts, summary)
    return facts


def _users_of(run: Path) -> dict[str, Session]:
    """Load one complete session of each conversation, whose user can be replayed.

    Raises:
        UserError: the run has none.
    """
    known = read_json(run / "run.json", hint="it is no run of `codec-bench converse`")
    users: dict[str, Session] = {}
    for system in known.get("systems", {}):
        for name in known.get("conversations", ()):
            session = read_session(folder_of(run, system, name))
            if name not in users and session is not None and session.status == "ok":
                users[name] = session
    if not users:
        raise UserError("no_session_to_replay", run=run)
    return users


@dataclass(slots=True)
class _SystemRun:
    """One system of a run, with its conversations."""

    run: Path
    system: str
    model: Partner
    script: Script
    folder: Path
    talks: Sequence[Conversation]
    replayed: Mapping[str, Session] | None
    source: Any
    generation: int
    sounds: Sounds | None = None

    def about(self, talk: Conversation) -> dict[str, Any]:
        """Return what must be equal for a stored session to be reused, as JSON values."""
        identity = {**json.loads(self.script.model_dump_json(exclude={"conversations", "draw", "title"})),
            "talk": talk.model_dump_json()}  # fmt: skip
        if self.replayed is not None and talk.id in self.replayed:
            identity["user"] = hashlib.sha256(self.replayed[talk.id].user.tobytes()).hexdigest()
        else:
            identity["sounds"] = self.script_sounds.contents(talk)
        identity["opening"] = self.model.conversation(self.script.instructions)
        return identity

    def user(self, talk: Conversation) -> User:
        """Create the user of a conversation: scripted, recorded or repeated."""
        size = round(FRAME_S * self.model.rate_hz)
        if self.replayed is not None:
            recorded = self.replayed[talk.id]
            if recorded.rate_hz != self.model.rate_hz:
                raise UserError(
                    "replay_rate",
                    rate_hz=recorded.rate_hz,
                    model=self.system,
                    model_rate_hz=self.model.rate_hz,
                    hint="samples are repeated as they are; replay against a model that takes the same rate",
                )
            return ReplayedUser(recorded.user, recorded.clean, recorded.events, size, recorded.rate_hz)
        if talk.recording is not None:
            return recorded_user(talk, self.script_sounds, size)
        return ScriptedUser(self.script, talk, self.script_sounds, size)

    @property
    def script_sounds(self) -> Sounds:
        """The audio of the script at the rate of the model."""
        if self.sounds is None:
            self.sounds = Sounds(self.source, self.folder, self.model.rate_hz)
        return self.sounds


async def _hold_all(work: Sequence[_SystemRun], at_once: int, progress: Notify, notify: Callable[[str], None]) -> None:
    """Hold all sessions that are missing or failed, and write each when it has ended."""
    places, writing, done = asyncio.Semaphore(at_once), asyncio.Semaphore(1), 0
    jobs = [(one, talk) for one in work for talk in one.talks if one.replayed is None or talk.id in one.replayed]
    # Check all audio before the first request.
    seconds = [(one, one.user(talk).least_s()) for one, talk in jobs]
    for one in work:
        if words := price_before(one.system, one.model, [least_s for owner, least_s in seconds if owner is one]):
            notify(words)
    for one in work:
        await one.model.start()
    progress(0, len(jobs))

    async def held(one: _SystemRun, talk: Conversation) -> None:
        """Hold one session if it is missing or failed, and write it."""
        nonlocal done
        folder, about = folder_of(one.run, one.system, talk.id), one.about(talk)
        before = read_session(folder, about)
        if before is None or before.status == "failed":
            async with places:
                session = await hold_conversation(one.model, one.user(talk), talk.id, one.script)
            session.usage, session.generation = priced(one.model, session), one.generation
            # One write at a time, to keep other sessions on time.
            async with writing:
                await asyncio.to_thread(write_session, folder, session, about)
        done += 1
        progress(done, len(jobs))

    try:
        async with asyncio.TaskGroup() as group:
            for one, talk in jobs:
                group.create_task(held(one, talk))
    except BaseExceptionGroup as several:
        raise _first(several) from None
    finally:
        for one in work:
            await one.model.close()


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    first = several.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _values(
    session: Session, folder: Path, talks: Mapping[str, Conversation], sessions: Mapping[str, Session]
) -> Iterator[Value]:
    """Yield every measured value of a session.

    Args:
        folder: of the session.
        talks: the script's conversations by id.
        sessions: all sessions of the same system by id, to compare with.
    """
    words, talk = read_words(folder), talks.get(session.id)
    clean = folder.parent / talk.clean if talk is not None and talk.clean is not None else None
    yield from measure(session)
    yield from from_people(session, talk.backchannels if talk is not None else ())
    yield from by_words(session, folder, words)
    yield from official_values(session, words, talk)
    yield from tau_voice(session)
    yield from by_rule(session, talk, read_chunks(folder / WORDS))
    yield from verdicts(session, folder, clean)
    yield from voice(session, folder, talk, sessions)


def _remeasure(
    run: Path, *, words: Feature | None, judge: tuple[str, Model] | None, page: bool, notify: Callable[[str], None]
) -> Conversations:
    """Measure the stored sessions, and write summary, event log and page.

    Args:
        words: a recogniser that transcribes the sessions first; None uses stored words.
        judge: name and model that give missing verdicts; None for none.
    """
    facts = _facts(run)
    talks = {talk.id: talk for talk in fit(facts["script"], Script, source=str(run / "run.json")).conversations}
    pairs = {name for talk in talks.values() if talk.clean is not None for name in (talk.id, talk.clean)}
    sessions: dict[str, list[Session]] = {}
    values: dict[str, list[Value]] = {}
    incomplete = 0
    for system in facts["systems"]:
        stored = [read_session(folder_of(run, system, name)) for name in facts["conversations"]]
        sessions[system] = [one for one in stored if one is not None]
        incomplete += len(stored) - len(sessions[system])
        if words is not None:
            for one in sessions[system]:
                write_words(folder_of(run, system, one.id), one, words, user=one.id in pairs)
    if judge is not None:
        asyncio.run(_ask_judge(*judge, run, sessions, talks, notify))
    try:
        for system, held in sessions.items():
            by_id = {one.id: one for one in held}
            values[system] = [v for one in held for v in _values(one, folder_of(run, system, one.id), talks, by_id)]
    finally:
        release_utmos()
    summary = {
        "schema": SCHEMA,
        "protocol": PROTOCOL,
        "title": facts["script"]["title"],
        "missing": incomplete,
        "generations": {name: {one.id: one.generation for one in held} for name, held in sessions.items()},
        "systems": {name: summarise(sessions[name], values[name]) for name in sessions},
        "judge": sum_usage([folder_of(run, name, one.id) for name, held in sessions.items() for one in held]),
    }
    write_json(run / "summary.json", summary)
    lines = (json.dumps(line, ensure_ascii=False) for name in sessions for line in _lines(name, sessions[name],
        values[name]))  # fmt: skip
    write_text(run / "events.jsonl", "".join(f"{line}\n" for line in lines))
    result = Conversations(run, sessions, values, summary)
    if page:
        from codec_bench.apps.conversation.page import write_conversation_page

        write_conversation_page(result.page, run, sessions, values, summary)
    return result


async def _ask_judge(
    name: str,
    model: Model,
    run: Path,
    sessions: Mapping[str, Sequence[Session]],
    talks: Mapping[str, Conversation],
    notify: Callable[[str], None],
) -> None:
    """Request the missing verdicts of all sessions, and store them."""
    all_questions: list[SessionQuestion] = []
    for system, held in sessions.items():
        for one in held:
            talk = talks.get(one.id)
            clean = folder_of(run, system, talk.clean) if talk is not None and talk.clean is not None else None
            all_questions += questions(one, folder_of(run, system, one.id), talk, clean, name)
    await judge_all(model, all_questions, notify)


def _lines(system: str, sessions: Sequence[Session], values: Sequence[Value]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the event log: sessions, user events, model turns, values."""
    for session in sessions:
        about = {"system": system, "session": session.id}
        yield {**about, "event": "session", "status": session.status, **to_json({"reason": session.reason}),
            "end_s": session.duration_s}  # fmt: skip
        for event in session.events:
            yield {**about, "event": f"user {event.kind}", "begin_s": event.begin_s, "end_s": event.end_s,
                "speech": event.speech, **to_json({"reason": event.reason})}  # fmt: skip
        turns, short = turns_of(session)
        for label, stretches in (("model turn", turns), ("model backchannel", short)):
            yield from ({**about, "event": label, "begin_s": begin, "end_s": end} for begin, end in stretches)
        yield from ({**about, "event": "stop", "begin_s": at_s, "end_s": end_s} for at_s, end_s in session.stops)
    for value in values:
        yield {"system": system, "event": "value", **value.as_dict()}
