"""The windows of the streaming dialects: names, steps and counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lark import Token

from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import Content, CountScope, CountUnit, Window
from quadweir.syntax.build import QueryBuilder
from quadweir.syntax.build_terms import Branch, trees, words
from quadweir.syntax.scan import SourceText
from quadweir.terms import IRI

GENERATED = "urn:quadweir:window:"


class WindowBuilder(QueryBuilder):
    """Collects the windows of a query."""

    default_content: Content

    def __init__(
        self,
        source: SourceText,
        *,
        base: str | None,
        prefixes: Mapping[str, str] | None,
        allow: Collection[str],
        content: Content | None,
    ) -> None:
        super().__init__(source, base=base, prefixes=prefixes, allow=allow, content=content)
        self.window_content = content or self.default_content
        self.windows: list[Window] = []
        self.query_name: str | None = None
        self.every_ms: int | None = None
        self.output: OutputOperator | None = None

    def read_name(self, tree: Branch) -> None:
        """Read the name of a REGISTER clause, and its COMPUTED EVERY if it has one."""
        name = tree.children[2]
        assert isinstance(name, Token)
        self.query_name = self.name(name).value
        for duration in trees(tree, "duration"):
            self.every_ms = self.duration_ms(duration)

    def next_name(self) -> IRI:
        """Name a window that its author did not, by its number."""
        return IRI(f"{GENERATED}{len(self.windows) + 1}")

    def durations(self, tree: Branch) -> list[int]:
        return [self.duration_ms(each) for each in trees(tree, "duration")]

    def step_ms(self, tree: Branch, range_ms: int) -> int | None:
        """Read STEP, SLIDE or TUMBLING after a RANGE."""
        if "TUMBLING" in words(tree):
            return range_ms
        lengths = self.durations(tree)
        return lengths[1] if len(lengths) == 2 else None

    def count_scope(self, tree: Branch) -> CountScope:
        numbers = [
            self.count(child, "a count window")
            for child in tree.children
            if isinstance(child, Token) and child.type == "INTEGER"
        ]
        kinds = words(tree)
        step = numbers[1] if len(numbers) == 2 else None
        if "TUMBLING" in kinds:
            step = numbers[0]
        unit = CountUnit.ELEMENTS if "ELEMENTS" in kinds else CountUnit.TRIPLES
        return CountScope(unit=unit, size=numbers[0], step=step, span=self.span(tree))
