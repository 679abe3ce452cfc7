"""The terms that some query of a network asks for, so that Spark drops statements about others.

Queries of a template differ in constants. Most statements that match the template are about terms
that no query names; these do not have to reach a shard.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, final

from quadweir.runtime.network.templates import parameter_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from quadweir.plan.matchtests import Matching
    from quadweir.runtime.match.matching import Asked
    from quadweir.runtime.network.queries import VersionChange
    from quadweir.runtime.network.spec import TemplateSpec
    from quadweir.terms import Variable


class TermSet(Protocol):
    """A set of terms that Spark's tasks look terms up in, such as `sharedsets.SharedSet`."""

    def add(self, texts: Iterable[str]) -> None:
        """Add terms."""

    def remove(self, texts: Iterable[str]) -> None:
        """Remove terms, each once; those that were added more often stay."""

    def has(self, text: Column) -> Column:
        """Return whether a column has one of the terms."""

    def close(self) -> None:
        """Drop the set."""


@final
class AskedTerms:
    """For each parameter of each template, the constants that its queries have for it.

    Args:
        new_set: makes an empty set with a name that no other one has.
    """

    def __init__(self, new_set: Callable[[str], TermSet]) -> None:
        self._new_set = new_set
        self._run = uuid.uuid4().hex
        self._sets: dict[Variable, TermSet] = {}

    def change(self, change: VersionChange, specs: Mapping[int, TemplateSpec]) -> None:
        """Add the constants of queries that join, and remove those of queries that leave."""
        added: dict[Variable, list[str]] = {}
        removed: dict[Variable, list[str]] = {}
        for queries, texts in ((change.joining, added), (change.leaving, removed)):
            for query in queries:
                parameters = specs[query.template].template.parameters
                for parameter, constant in zip(parameters, query.constants, strict=True):
                    name = parameter_of(query.template, parameter)
                    texts.setdefault(name, []).append(constant)
        for name, constants in added.items():
            self._set(name).add(constants)
        for name, constants in removed.items():
            self._set(name).remove(constants)

    def of(self, matching: Matching) -> Asked:
        """Return the tests of the parameters that statements are matched by."""
        names = {
            parameter
            for test in matching.wanted
            for _, condition in test.conditions
            for _, parameter in condition.parameters
        }
        return {name: self._set(name).has for name in names}

    def forget(self, template: int) -> None:
        """Drop the sets of a template that has no queries."""
        prefix = f"{template} "
        for name in [each for each in self._sets if each.name.startswith(prefix)]:
            self._sets.pop(name).close()

    def close(self) -> None:
        """Drop all sets; no batch may run any more."""
        for each in self._sets.values():
            each.close()
        self._sets.clear()

    def _set(self, name: Variable) -> TermSet:
        if name not in self._sets:
            self._sets[name] = self._new_set(f"quadweir.{self._run}.{name.name}")
        return self._sets[name]
