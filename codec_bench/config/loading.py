"""The loader of untrusted YAML: plain types, limits, and located errors.

Nothing is executed, and tags are refused. Nesting is limited to `DEEPEST`, a file to `LONGEST` bytes, and values to
`MOST_VALUES` with every repetition of an alias.
"""

from __future__ import annotations

from typing import Any, NoReturn

import yaml
from yaml.composer import Composer
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.resolver import Resolver

from codec_bench.messages.errors import UserError

LONGEST = 1 << 20
DEEPEST = 100
MOST_VALUES = 100_000
"""The most values in one document, alias repetitions included."""
_MERGE = "tag:yaml.org,2002:merge"


def parse_yaml(text: str, source: str) -> tuple[Any, yaml.Node | None]:
    """Parse one YAML document.

    Args:
        source: its name, for messages.

    Returns:
        (the document, its root node; None if it is empty).
    """
    if yaml.__with_libyaml__:
        try:
            return _parsed(_Fast(text))
        except (yaml.YAMLError, UnicodeEncodeError):
            pass  # the parser in Python explains the error
    try:
        return _parsed(_Loader(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        cause = error.problem or error.context
        raise UserError("at_position", path=source, line=line, column=column, cause=cause) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        character = error.character if isinstance(error.character, int) else ord(error.character[:1] or "\0")
        raise UserError("yaml_character", path=source, line=line, column=column, character=character) from error


def _parsed(loader: _Limits) -> tuple[Any, yaml.Node | None]:
    node: yaml.Node | None = loader.get_single_node()
    if node is None:
        return None, None
    _check_size(node)
    return loader.construct_document(node), node


def _check_size(root: yaml.Node) -> None:
    """Refuse a document that aliases make endless or larger than `MOST_VALUES`."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, above: frozenset[int]) -> int:
        if isinstance(node, yaml.ScalarNode):
            return 1
        if id(node) in above:
            _refuse("a list or mapping holds itself", node)
        if id(node) not in sizes:
            inner = above | {id(node)}
            parts = [item for pair in node.value for item in (pair if isinstance(pair, tuple) else (pair,))]
            sizes[id(node)] = 1 + sum(size(item, inner) for item in parts)
        if sizes[id(node)] > MOST_VALUES:
            _refuse(f"it has more than {MOST_VALUES:,} values once its aliases are written out", node)
        return sizes[id(node)]

    size(root, frozenset())


def _refuse(problem: str, node: yaml.Node) -> NoReturn:
    raise ConstructorError(None, None, problem, node.start_mark)


class _Limits(Composer, SafeConstructor):
    """The safe loader with limits, without tags and duplicate keys."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        """Compose the node of the next event."""
        event = self.peek_event()
        tag = getattr(event, "tag", None)
        if tag is not None:
            problem = f"the tag '{str(tag)[:80]}' is not taken; write the value as it is"
            raise ConstructorError(None, None, problem, event.start_mark)
        self._depth += 1
        if self._depth > DEEPEST:
            raise ConstructorError(None, None, f"lists and mappings are more than {DEEPEST} deep", event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Construct the value of one node."""
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception as error:  # such as the date 2026-13-01, or a number of 5,000 digits
            message = " ".join(str(error).split())[:200]
            problem = f"'{str(node.value)[:40]}' is no value of the kind that it looks like ({message})"
            raise ConstructorError(None, None, problem, node.start_mark) from error

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Construct one mapping."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise ConstructorError(None, None, f"the key '{key.value[:80]}' appears twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Loader(_Limits, yaml.SafeLoader):
    """Parses in Python, with better errors."""


if yaml.__with_libyaml__:

    class _Fast(_Limits, yaml.cyaml.CParser, Resolver):
        """Parses in C, ten times as fast."""

        def __init__(self, text: str) -> None:
            yaml.cyaml.CParser.__init__(self, text)
            Composer.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)
