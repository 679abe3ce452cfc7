"""Relations that change: what all operators have in common, and signed rows in order of time.

An operator takes the changes of its inputs and returns the changes of its output. A change is a row
of the operator's own output with a time and a sign. An operator that makes new values keeps them in
a table; all others keep references to the rows they were made from, so that the bindings of a
mapping are stored once, in its leaves (paper 001, section 3.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.tables import CircularTable
from quadweir.terms import Variable


class Delta(NamedTuple):
    """Signed rows in order of time.

    Attributes:
        t: when each change happens.
        sign: +1 where the row comes, -1 where it goes.
        row: the row of the operator that returns the change.
        leave: until when a row that comes stays, if that is known at its coming, else FOREVER.
    """

    t: Ints
    sign: Ints
    row: Ints
    leave: Ints

    def pick(self, places: np.ndarray) -> Delta:
        """Keep the changes at these places, or where a mask is true."""
        return Delta(self.t[places], self.sign[places], self.row[places], self.leave[places])


def no_change() -> Delta:
    """The changes of a relation that stays as it is."""
    return Delta(ints(0), ints(0), ints(0), ints(0))


def in_order(deltas: list[Delta], *, arrivals_first: bool = False) -> tuple[Delta, Ints]:
    """Merge changes by time; the second array says which delta each came from.

    At one instant, what goes comes before what arrives, unless `arrivals_first`.
    """
    source = np.repeat(np.arange(len(deltas), dtype=np.int64), [len(each.t) for each in deltas])
    merged = Delta(*(np.concatenate(parts) for parts in zip(*deltas, strict=True)))
    second = merged.sign < 0 if arrivals_first else merged.sign > 0
    order = np.argsort(merged.t * 2 + second, kind="stable")
    return merged.pick(order), source[order]


class Operator(ABC):
    """One node of a shard's dataflow. Operators know each other only by what is here.

    In: for each input its changes, in order of time, once a step (`run`).
    Out: the changes of its own rows, in order of time. Rows are numbers; what they bind is read
        with `column`, by variable and as numbers of terms, where 0 stands for a variable that is
        not bound. A row that went in a step can be read until `settle`.
    State: what later steps need. `arrays` returns it, `restore` takes it back.
    Forgets: what went in a step, at its `settle`; each operator says what else.

    Attributes:
        variables: What its rows may bind.
        always: What every row binds.
        timed: Whether a row that comes says when it goes.
        fixed: Whether its rows are there from the start and stay; they then lie in a `table`.
        table: Where its rows lie, if others may read them there: when each comes and goes, then
            its values. None if the rows can only be read with `column`.
        tables: In how many tables its rows lie. With several, the number of a row says which it is.
        digest: The name of the static rows in it, by their content; None if it has none.
    """

    variables: tuple[Variable, ...]
    always: frozenset[Variable]
    timed: bool = False
    fixed: bool = False
    table: CircularTable | None = None
    tables: int = 1
    digest: bytes | None = None

    # --- changes ---

    def run(self, inputs: list[Delta], through: int, admitted: int) -> Delta:
        """Take the changes of the inputs, in order of time, and return those of the output.

        Operators with inputs depend on nothing else and define `step`. One whose rows come and go
        with time defines this.

        Args:
            inputs: The changes of each input up to `through`.
            through: The instant up to which everything is known.
            admitted: Where matches are taken as they arrive (E1), those up to this instant are.
        """
        return self.step(inputs)

    def step(self, inputs: list[Delta]) -> Delta:
        """Take the changes of the inputs, in order of time, and return those of the output."""
        raise NotImplementedError

    def reads(self, place: int) -> bool:
        """Return whether it reads the changes of one of its inputs."""
        return True

    def settle(self) -> None:
        """Forget what went in this step."""

    def present(self) -> Delta:
        """Return the rows that are there between two steps, as if they came.

        An operator that joins a running dataflow begins with these of its inputs.
        """
        raise NotImplementedError

    # --- rows ---

    @abstractmethod
    def column(self, variable: Variable, rows: Ints) -> Ints:
        """Return what rows bind a variable to; 0 where it is not bound."""

    def columns(self, variables: tuple[Variable, ...], rows: Ints) -> np.ndarray:
        """Return several variables, a column each."""
        found = np.empty((len(rows), len(variables)), dtype=np.int64)
        for place, variable in enumerate(variables):
            found[:, place] = self.column(variable, rows) if variable in self.variables else 0
        return found

    def identity(self, rows: Ints) -> np.ndarray:
        """Return the rows of leaves that each row was made from; these numbers never come again."""
        return rows.reshape(-1, 1)

    def span(self) -> int:
        """Return a power of two modulo which all rows of the one table have different numbers."""
        raise NotImplementedError

    def spans(self) -> tuple[int, ...]:
        """Return for each table a power of two modulo which its rows have different numbers."""
        return (self.span(),)

    # --- rows that are there from the start ---

    def fixed_total(self) -> int:
        """Return how many rows are there from the start, in all shards together."""
        return 0

    def fixed_rows(self) -> Ints:
        """Return the rows of this shard that are there from the start."""
        return ints(0)

    def are_fixed(self, rows: Ints) -> np.ndarray:
        """Return which of the rows are there from the start."""
        return np.zeros(len(rows), dtype=bool)

    def leave_out_fixed(self) -> None:
        """Do not report rows that are there from the start as changes.

        Nothing reads these changes, or the one reader has taken `fixed_rows`.
        """

    def take_fixed(self, places: Iterable[int]) -> None:
        """Take the fixed rows of inputs before the first step, if that is of use.

        If it takes those of an input, it calls `leave_out_fixed` there.

        Args:
            places: The inputs whose changes nothing else reads.
        """

    def lay_out(self, given: Mapping[str, Ints]) -> None:
        """Prepare what does not depend on streams, once all operators are there.

        Args:
            given: What `layout` of the same operator returned elsewhere; empty if it has to be made.
        """

    def layout(self) -> dict[str, Ints]:
        """Return what does not depend on streams as arrays, for `lay_out`."""
        return {}

    # --- state ---

    def arrays(self) -> dict[str, Ints]:
        """Return the state as arrays, for a snapshot; only between steps."""
        return {}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        """Take back what `arrays` returned."""

    def held(self) -> int:
        """Return how many mappings are remembered here."""
        return 0
