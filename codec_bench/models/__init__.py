"""Models: their names, and how to build one.

Which file to open
    `base.py` the base classes; `batching.py` the base of models with batches. `endpoints/` models behind services;
    `in_process/` models of transformers; `isolated.py` and `workers/` models in their own environment. `recogniser.py`
    a recogniser; `cascade.py` one before a language model. `likelihood.py` likelihoods of two clips. `windows.py` audio
    longer than a model takes; `audio_payloads.py` encodings of audio. `cache.py` cached answers. `served.py` shutdowns.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from codec_bench.config import SUFFIX, config_names, fit, invalid_value, load_yaml, read_config
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.file_content import with_content
from codec_bench.config.registry import Registry, load_attribute
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.models.base import Modality, Model, ModelInfo
from codec_bench.models.served import LookedUp, Served

KINDS = {
    "openai-chat": "codec_bench.models.endpoints.openai_chat:OpenAiChat",
    "openai-transcription": "codec_bench.models.endpoints.openai_audio:OpenAiTranscription",
    "openai-speech": "codec_bench.models.endpoints.openai_audio:OpenAiSpeech",
    "openai-embeddings": "codec_bench.models.endpoints.openai_embeddings:OpenAiEmbeddings",
    "openai-realtime": "codec_bench.models.endpoints.openai_realtime:OpenAiRealtime",
    "openai-live": "codec_bench.models.endpoints.openai_live:OpenAiLive",
    "openai-live-transcription": "codec_bench.models.endpoints.openai_realtime:OpenAiLiveTranscription",
    "openai-responses": "codec_bench.models.endpoints.openai_responses:OpenAiResponses",
    "gemini": "codec_bench.models.endpoints.gemini:Gemini",
    "gemini-live": "codec_bench.models.endpoints.gemini_live:GeminiLive",
    "json-endpoint": "codec_bench.models.endpoints.json_endpoint:JsonEndpoint",
    "transformers": "codec_bench.models.in_process.transformers_model:TransformersModel",
    "cascade": "codec_bench.models.cascade:Cascade",
    "recogniser": "codec_bench.models.recogniser:Recogniser",
    "isolated": "codec_bench.models.isolated:Isolated",
}
# Models that other packages add. The models of codec-bench are the files of configs/model.
REGISTRY = Registry("model", "MODELS", {})
# Options of these names replace the maker's facts, because a server may set other limits.
FACTS = ("family", "inputs", "outputs", "reads", "limit_s", "window_s", "languages")


class ModelFacts(BaseModel):
    """The facts of a model in a config: `family`, `inputs`, ... as `ModelInfo`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str | None = None
    inputs: tuple[Modality, ...] = ("text", "audio")
    outputs: tuple[Modality, ...] = ("text",)
    reads: Literal["messages", "fields"] = "messages"
    limit_s: float | None = Field(None, gt=0)
    window_s: float | None = Field(None, gt=0)
    languages: tuple[str, ...] = ()
    licence: str | None = None
    paper: str = ""

    def info(self, name: str) -> ModelInfo:
        """Return the facts as a `ModelInfo` with this name."""
        return ModelInfo(name, **{fact: getattr(self, fact) for fact in ModelFacts.model_fields})


class ModelConfig(ModelFacts):
    """One file of `configs/model`.

    Args:
        summary: one line for `codec-bench list models`.
        kind: a key of `KINDS`.
        options: keyword arguments of the kind's class.
        served: until when a vendor serves the model; None if anybody can serve it.
        prices: the vendor's prices, as `endpoints.accounts.Prices` names them; used at the config's own address.
        checked: where the existence of the weights was checked; for models without `served`.
    """

    version: Literal[1]
    summary: str = Field(min_length=1)
    kind: str
    options: dict[str, Any] = {}
    served: Served | None = None
    prices: dict[str, Any] | None = None
    checked: LookedUp | None = None

    @field_validator("kind")
    @classmethod
    def _is_known(cls, kind: str) -> str:
        if kind not in KINDS:
            raise invalid_value("model_kind_unknown", kind=kind, known=", ".join(KINDS))
        return kind


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One line of `codec-bench list models`; `info` and `kind` are None for a plugin."""

    name: str
    kind: str | None
    info: ModelInfo | None
    summary: str
    served: Served | None = None
    prices: Mapping[str, Any] | None = None
    checked: LookedUp | None = None


def load_model(name: str, options: Mapping[str, Any] | None = None, *, device: str = "auto") -> Model:
    """Build a model. Nothing is loaded or connected before its `start`.

    Args:
        name: a config of `configs/model`, a plugin's name, your config (`./my_model.yaml`), or your code
            (`./my.py:Class`, `package.module:Class`).
        options: keyword arguments of the model's class and facts (`limit_s`, `inputs`, ...), which replace those of the
            config. A dotted name sets a value in a mapping (`parameters.temperature`).
        device: `cpu`, `cuda:0`, or several GPUs separated by commas, for local models whose options name no device.

    Raises:
        UnknownName: there is no model of this name; the message suggests the nearest name.
        UserError: an option is unknown or missing, or your code is not a model.
    """
    chosen = dict(options or {})
    if is_custom_code(name) or (not is_custom_file(name) and name in REGISTRY.table()):
        return _build(REGISTRY.resolve(name), name, ModelInfo(name), chosen, device)
    config = _config(name)
    factory = load_attribute(KINDS[config.kind])
    # Paths in a user's config are relative to the config.
    extra = {"folder": str(Path(name).parent)} if is_custom_file(name) and "folder" in _parameters(factory) else {}
    options = _merged({**extra, **_prices(config, chosen), **config.options}, chosen)
    return _build(factory, name, config.info(own_name(name)), options, device)


def code_identity(name: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what records add to the identity of custom code or of another package's model.

    Empty for the project's own models.

    Args:
        options: of the model; the content of weights counts.
    """
    code = "" if is_custom_file(name) else REGISTRY.code_hash(name)
    if not code:
        return {}
    files = {k: text for k, v in (options or {}).items() if (text := with_content(k, v)) != str(v)}
    return {"code": code, **({"files": files} if files else {})}


def model_names() -> list[str]:
    """Return every name that `load_model` knows, those of plugins included."""
    return sorted({*config_names("model"), *REGISTRY.table()})


def model_info(name: str) -> ModelInfo:
    """Return a model's facts without building it; of plugins and your code the name.

    Raises:
        UnknownName: as `load_model`.
        UserError: the config does not follow the layout.
    """
    if is_custom_code(name) or (not is_custom_file(name) and name in REGISTRY.table()):
        return ModelInfo(name)
    return _config(name).info(own_name(name))


def model_prices(name: str) -> Mapping[str, Any] | None:
    """Return the prices in a model's config, as `endpoints.accounts.Prices`, or None.

    Raises:
        UnknownName: as `load_model`.
        UserError: the config does not follow the layout.
    """
    if is_custom_code(name) or (not is_custom_file(name) and name in REGISTRY.table()):
        return None
    return _config(name).prices


def list_models() -> list[ModelRow]:
    """Return every model that can be selected by name: built-in ones, then plugins."""
    rows = []
    for name in config_names("model"):
        config = read_config("model", name, ModelConfig)
        rows.append(
            ModelRow(name, config.kind, config.info(name), config.summary, config.served, config.prices, config.checked)
        )
    return rows + [ModelRow(name, None, None, path) for name, path in sorted(REGISTRY.table().items())]


def check_served(name: str, options: Mapping[str, Any] | None = None, *, today: date | None = None) -> None:
    """Check that the service still offers a model, by the shutdown date in its config.

    A custom `base_url` always passes.

    Args:
        name, options: as for `load_model`.
        today: None for the current day.

    Raises:
        UserError: the service has shut the model down.
    """
    if not _has_config(name):
        return
    config, chosen = _config(name), dict(options or {})
    for role in ("recogniser", "llm") if config.kind == "cascade" else ():
        inner = str(chosen.get(role) or config.options.get(role) or "")
        if is_custom_file(inner) or inner in config_names("model"):
            check_served(inner, chosen.get(f"{role}_options") or config.options.get(f"{role}_options"), today=today)
    served, day = config.served, today or date.today()
    address = chosen.get("base_url") or config.options.get("base_url")
    if served is None or not served.is_gone(day) or chosen.get("model") not in (None, config.options.get("model")):
        return
    if address is not None and urlsplit(str(address)).hostname != served.at:
        return
    instead = f"--model {served.successor}; " if served.successor else ""
    raise UserError(
        "model_shut_down",
        host=served.at,
        date=served.words(day),
        model=own_name(name),
        source=served.source,
        hint=f"{instead}answers that are recorded can still be scored; --anyway asks all the same",
    )


def describe_service_end(name: str, *, today: date | None = None) -> str:
    """Describe when a service shuts a model down; empty if no end is near."""
    if not _has_config(name):
        return ""
    config = _config(name)
    day = today or date.today()
    going = config.served is not None and (config.served.is_gone(day) or config.served.is_ending_soon(day))
    return config.served.words(day) if config.served is not None and going else ""


def successor(name: str) -> str | None:
    """Return the configured model that a service names as successor, or None."""
    served = _config(name).served if _has_config(name) else None
    return served.successor if served is not None and served.successor in model_names() else None


def _has_config(name: str) -> bool:
    return not is_custom_code(name) and (is_custom_file(name) or name not in REGISTRY.table())


def is_custom_file(name: str) -> bool:
    """Whether a name is the path of a user's config."""
    return name.endswith((SUFFIX, ".yml"))


def own_name(name: str) -> str:
    """Return a model's name in results: the stem of a user's file, else the name."""
    return Path(name).stem if is_custom_file(name) else name


def _config(name: str) -> ModelConfig:
    """Read a model's config from a YAML file, or by name from `configs/model`."""
    if is_custom_file(name):
        document = load_yaml(name)
        if not isinstance(document, dict):
            raise UserError("mapping_expected", path=name, type=type(document).__name__)
        return fit(document, ModelConfig, source=name)
    if name not in config_names("model"):
        raise UnknownName("model", name, model_names())
    return read_config("model", name, ModelConfig)


def _prices(config: ModelConfig, chosen: Mapping[str, Any]) -> dict[str, Any]:
    same = all(chosen.get(option) in (None, config.options.get(option)) for option in ("base_url", "model"))
    return {"prices": config.prices} if config.prices is not None and same else {}


def _build(factory: Any, name: str, info: ModelInfo, options: dict[str, Any], device: str) -> Model:
    """Instantiate a model's class with its options; UserError if they do not fit.

    Args:
        factory: the class, or a function that returns a model.
        info: the config's facts, which facts among the options replace.
        device: as for `load_model`.
    """
    takes = _parameters(factory)
    if device != "auto":
        where = {"device": device.partition(",")[0], "devices": device}
        options = {**{key: value for key, value in where.items() if key in takes}, **options}
    facts = {fact: options.pop(fact) for fact in FACTS if fact in options and fact not in takes}
    info = _restated(info, facts, name)
    unknown = [option for option in options if option not in takes]
    if unknown:
        known = ", ".join(sorted({*takes, *FACTS} - {"info"}))
        raise UserError("model_option_unknown", model=name, option=unknown[0], hint=f"it takes {known}")
    _check_mappings(factory, name, options)
    missing = [o for o, needed in takes.items() if needed and o != "info" and options.get(o) is None]
    if missing:
        raise UserError(
            "model_option_missing", model=name, option=missing[0], hint=f"--set {own_name(name)}.{missing[0]}=VALUE"
        )
    if inspect.isabstract(factory):
        lacking = " and ".join(sorted(factory.__abstractmethods__))
        raise UserError("model_lacks", model=name, lacking=lacking, hint=_CONTRACT)
    try:
        model = factory(**({"info": info} if "info" in takes else {}), **options)
    except UserError:
        raise
    except Exception as error:  # an option of another type, or a user's own class, may raise anything
        raise UserError(
            "model_not_made",
            model=name,
            type=type(error).__name__,
            cause=error,
            hint=f"its options are {', '.join(options) or 'all omitted'}",
        ) from error
    if not isinstance(model, Model):
        raise UserError("not_a_model", name=name, type=type(model).__name__, hint=_CONTRACT)
    return model


def _check_mappings(factory: Any, name: str, options: Mapping[str, Any]) -> None:
    """Raise UserError if an option that must be a mapping is none."""
    takers = (
        [cls for cls in inspect.getmro(factory) if "__init__" in vars(cls)] if inspect.isclass(factory) else [factory]
    )
    for taker in takers:
        for option, parameter in inspect.signature(taker).parameters.items():
            value = options.get(option)
            if str(parameter.annotation).startswith("Mapping[") and not isinstance(value, Mapping | None):
                key, example = ("temperature", "0") if option == "parameters" else ("NAME", "VALUE")
                setting = f"--set {own_name(name)}.{option}"
                raise UserError(
                    "model_option_not_a_mapping",
                    option=option,
                    model=name,
                    value=value,
                    hint=f"{setting}='{{{key}: {example}}}', or {setting}.{key}={example}",
                )


def _restated(info: ModelInfo, facts: Mapping[str, Any], name: str) -> ModelInfo:
    """Return a model's facts (limits, languages, ...) with some of them replaced."""
    several = {"inputs", "outputs", "languages"}
    listed = {fact: [v] if fact in several and isinstance(v, str) else v for fact, v in facts.items()}
    known = {fact: getattr(info, fact) for fact in ModelFacts.model_fields}
    return fit({**known, **listed}, ModelFacts, source=f"the options of '{name}'").info(info.name)


def has_option(model: Model, option: str) -> bool:
    """Whether this model's class has an option, such as `parameters`."""
    return option in _parameters(type(model))


def option_hint(model: Model, generation_parameter: str, value: object) -> str:
    """Return how to set a parameter to `value`: a `--set`, or a line of the benchmark."""
    if has_option(model, "parameters"):
        return f"--set {model.info.name}.parameters.{generation_parameter}={value}"
    return f"'parameters: {{{generation_parameter}: {value}}}' in the definition of the benchmark"


def _parameters(factory: Any) -> dict[str, bool]:
    """Return the parameters of a class and its bases: by name, whether it is required."""
    out: dict[str, bool] = {}
    for cls in inspect.getmro(factory) if inspect.isclass(factory) else (factory,):
        if inspect.isclass(cls) and "__init__" not in vars(cls):
            continue
        parameters = [p for p in inspect.signature(cls).parameters.values() if p.name != "self"]
        for p in parameters:
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                out.setdefault(p.name, p.default is p.empty)
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return out


def _merged(options: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with chosen ones in place; `a.b` sets `b` in the mapping `a`."""
    out = dict(options)
    for name, value in chosen.items():
        head, dot, rest = name.partition(".")
        if not dot:
            out[head] = value
        elif isinstance(out.get(head) or {}, Mapping):
            out[head] = _merged(out.get(head) or {}, {rest: value})
        else:
            raise UserError("option_not_a_mapping", option=head, value=out[head], name=name)
    return out


_CONTRACT = "a model derives from Model and defines info (a ModelInfo), identity and async ask(request) -> Response"

__all__ = [
    "FACTS",
    "KINDS",
    "REGISTRY",
    "Model",
    "ModelConfig",
    "ModelInfo",
    "ModelRow",
    "check_served",
    "code_identity",
    "describe_service_end",
    "is_custom_file",
    "list_models",
    "load_model",
    "model_info",
    "model_names",
    "own_name",
]
