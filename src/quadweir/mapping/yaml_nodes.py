"""YAML as nodes with their lines, and with limits on the expansion of aliases.

Every scalar is read as the text it was written with: a mapping means the same whether its author
quoted `1` or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import yaml

from quadweir.errors import LimitError, MappingError
from quadweir.spans import Span

MAX_NODES: Final = 200_000
MAX_DEPTH: Final = 64


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A text and its place."""

    text: str
    span: Span
    quoted: bool = False


@final
@dataclass(frozen=True, slots=True)
class YamlSequence:
    """Items in order."""

    items: tuple[YamlNode, ...]
    span: Span


@final
@dataclass(frozen=True, slots=True)
class Collection:
    """Keys and values in order; every key is a different text."""

    entries: tuple[tuple[Scalar, YamlNode], ...]
    span: Span

    def get(self, *names: str) -> YamlNode | None:
        """Find the value of the first of these keys that is there."""
        for key, value in self.entries:
            if key.text in names:
                return value
        return None

    def __iter__(self) -> Iterator[tuple[Scalar, YamlNode]]:
        return iter(self.entries)


YamlNode: TypeAlias = Scalar | YamlSequence | Collection


def parse_yaml(text: str, source: str | None = None) -> YamlNode | None:
    """Parse one YAML document; None if it is empty.

    >>> parse_yaml("a: [1, b]").get("a").items[0].text
    '1'
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise MappingError(
            "the mapping is not valid YAML",
            detail=" ".join(part for part in (error.context, error.problem) if part),
            hint="Correct the syntax at that place; nothing of the mapping was read.",
            span=Span(mark.line + 1, mark.column + 1, source=source) if mark else None,
        ) from None
    except yaml.YAMLError as error:
        raise MappingError(
            "the mapping is not valid YAML",
            detail=str(error),
            span=Span(1, 1, source=source),
        ) from None
    except RecursionError:
        raise LimitError("the mapping is nested too deeply") from None
    return None if root is None else _Converter(source).convert(root, 0)


class _Converter:
    def __init__(self, source: str | None) -> None:
        self._source = source
        self._left = MAX_NODES

    def convert(self, node: yaml.Node, depth: int) -> YamlNode:
        # An alias is one node in many places; counting places limits the expansion of aliases.
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            what = "nested too deeply" if depth > MAX_DEPTH else "too large"
            raise LimitError(
                f"the mapping is {what}",
                detail=f"At most {MAX_NODES:,} nodes and {MAX_DEPTH} levels are read, aliases "
                "counted each time they are used.",
                hint="Split the mapping, or use fewer aliases.",
                span=self._span(node),
            )
        if isinstance(node, yaml.ScalarNode):
            return Scalar(node.value, self._span(node), node.style in ("'", '"'))
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.convert(item, depth + 1) for item in node.value)
            return YamlSequence(items, self._span(node))
        assert isinstance(node, yaml.MappingNode)
        return Collection(tuple(self._entries(node, depth)), self._span(node))

    def _entries(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[Scalar, YamlNode]]:
        seen: set[str] = set()
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise MappingError("a key is not a text", span=self._span(key))
            if key.tag == "tag:yaml.org,2002:merge":
                many = isinstance(value, yaml.SequenceNode)
                merged.extend(value.value if many else [value])
                continue
            if key.value in seen:
                raise MappingError(
                    f"the key {key.value!r} is given twice",
                    hint="Keep one of them, or make one list of both values.",
                    span=self._span(key),
                )
            seen.add(key.value)
            yield Scalar(key.value, self._span(key)), self.convert(value, depth + 1)
        for other in merged:
            if not isinstance(other, yaml.MappingNode):
                raise MappingError("<< takes a collection", span=self._span(other))
            converted = self.convert(other, depth + 1)
            assert isinstance(converted, Collection)
            for key, value in converted:
                if key.text not in seen:
                    seen.add(key.text)
                    yield key, value

    def _span(self, node: yaml.Node) -> Span:
        start, end = node.start_mark, node.end_mark
        return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1, self._source)
