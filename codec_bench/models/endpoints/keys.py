"""API keys: from an environment variable to a header, never to a run or a log."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

LONGEST_REASON = 300
MASKED_LENGTH = 8
"""A fragment of a key with so many characters is a secret too."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{1,63}")
# Keys in error messages: the word after `Bearer`, and words with the prefixes of known vendors.
_KEY_LIKE = re.compile(r"(?i)\b(bearer\s+)[^\s,;<>]+|\b(?:(?:sk|pk|hf|gsk|xai)[-_]|AIza)[\w-]{12,}")
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]{0,500}>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The source and the header of a service's key.

    Args:
        env: name of the environment variable; None if the service needs no key.
        header: the header that carries it; `Authorization` carries it as a bearer token.

    Raises:
        UserError: `env` is not a variable's name. The message omits it, because it may be the key itself.
    """

    env: str | None = None
    header: str = "Authorization"

    def __post_init__(self) -> None:
        named = self.env is None or (isinstance(self.env, str) and _NAME.fullmatch(self.env))
        if not named or _KEY_LIKE.search(self.env or ""):
            raise UserError(
                "key_env_form", hint="put the key into a variable such as MY_KEY and give its name: key_env=MY_KEY"
            )

    def read(self) -> str | None:
        """Return the key from the environment; None if the service needs none."""
        if self.env is None:
            return None
        value = os.environ.get(self.env, "").strip()
        if not value:
            raise UserError("key_not_set", variable=self.env, hint=f"export {self.env}=...")
        if not value.isascii() or not value.isprintable():
            raise UserError(
                "key_characters", variable=self.env, hint="expected printable ASCII; set it again, without line breaks"
            )
        return value

    def secrets(self) -> tuple[str, ...]:
        """Return the secrets to mask: the key, if set."""
        value = os.environ.get(self.env, "").strip() if self.env is not None else ""
        return (value,) if value else ()

    def headers(self) -> dict[str, str]:
        """Return the header with the key; empty if the service needs none."""
        value = self.read()
        if value is None:
            return {}
        return {self.header: f"Bearer {value}" if self.header.lower() == "authorization" else value}


def masked(text: str, secrets: Sequence[str]) -> str:
    """Mask every fragment of a key with eight or more characters as `***`.

    Shorter keys are words such as `none` or `EMPTY` for servers without keys; they stay.
    """
    hidden: set[int] = set()
    for secret in secrets:
        for fragment in {secret[at : at + MASKED_LENGTH] for at in range(len(secret) - MASKED_LENGTH + 1)}:
            at = text.find(fragment)
            while at >= 0:
                hidden.update(range(at, at + MASKED_LENGTH))
                at = text.find(fragment, at + 1)
    if not hidden:
        return text
    runs = itertools.groupby(range(len(text)), hidden.__contains__)
    return "".join("***" if secret else "".join(text[at] for at in places) for secret, places in runs)


def clean(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Clean a service's text: one line of at most 300 characters, no markup, no keys."""
    text = text[:20_000]  # an error page may have any length
    text = masked(text, secrets)
    for secret in secrets:
        text = text.replace(secret, "***")
    text = _TAG.sub(" ", text)
    text = _KEY_LIKE.sub(lambda match: (match[1] or "") + "***", text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."


def check_url(url: str, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Check a URL and return it without a trailing slash.

    UserError for another scheme, or a key in the URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:  # such as a bracket that is not closed
        raise UserError("address_damaged", url=clean(url), cause=error) from error
    if parts.scheme not in schemes or not parts.hostname:
        raise UserError("address_form", url=clean(url), hint=f"expected {schemes[-1]}://HOST/PATH")
    if parts.username or parts.password or re.search(r"(?i)(key|token|secret|password)=", parts.query):
        raise UserError(
            "key_in_address",
            host=parts.hostname,
            hint="put the key into an environment variable and give its name with key_env=NAME (and key_header=NAME if "
            "the service does not take a bearer token)",
        )
    return url.rstrip("/")


def host_of(url: str) -> str:
    """Return the host of a URL in lower case, or ""."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the user's headers as texts."""
    for name in headers:
        if re.search(r"(?i)auth|key|token|secret|cookie", name):
            raise UserError("key_in_header", header=name, hint=f"use key_env=VARIABLE and key_header={name}")
    return {str(name): str(value) for name, value in headers.items()}


def clean_reason(reason: str, secrets: tuple[str, ...]) -> str:
    """Clean a reason as `clean` does; of a diagnostic, clean each of its texts."""
    return changed_texts(reason, lambda text: clean(text, secrets))


def changed_texts(reason: str, change: Callable[[str], str]) -> str:
    """Return a reason with `change` applied to its text, or to a diagnostic's texts."""
    if not isinstance(reason, Diagnostic):
        return change(reason)
    texts = {name: changed_texts(one, change) for name, one in reason.parameters.items() if isinstance(one, str)}
    return Diagnostic(reason.code, **{**reason.parameters, **texts})
