"""What makes answers of the solutions of a query, lowered from its `Report` node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import numpy as np

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve
from quadweir.algebra.patterns import Pattern, Values
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.solutions import Bag
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.values import FALSE, TRUE
from quadweir.kernel.answers import AnswerMaker, Differences, Eager, Everything, Passed, Whole
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.ranked import Ranked, Ranking
from quadweir.kernel.recompute import Recomputed
from quadweir.kernel.relation import Operator
from quadweir.plan.nodes import Mode, PlanNode, Recompute, Report
from quadweir.plan.program import Program
from quadweir.plan.shapes import alone
from quadweir.terms import Variable


def output_of(program: Program, root: Operator, dictionary: Dictionary) -> AnswerMaker:
    """Make what turns the changes of a stage's rows into its output.

    Args:
        program: The nodes of the stage.
        root: The operator whose rows are the solutions, or go on to the next stage.
        dictionary: The numbers of terms.
    """
    query, report = program.query, program.report
    columns = report.columns
    if program.sent is not None:
        return Passed(root, program.sent.variables, reports=report.tells_reports)
    match report.mode:
        case Mode.EAGER:
            return Eager(root, columns)
        case Mode.EVERYTHING:
            return Everything(root, columns, dictionary)
        case Mode.DIFFERENCES:
            return Differences(
                root,
                columns,
                dictionary,
                derivations=report.derivations,
                goes=report.output is OutputOperator.DSTREAM,
            )
        case Mode.WHOLE:
            pass
        case _:
            assert_never(report.mode)
    if not report.modifiers:
        return Whole(
            (root, ()), lambda _t, found: _asked(found, dictionary), 1, report.output, dictionary
        )
    ranking = Ranking.of(query, report)
    if ranking is not None:
        return Ranked(root, report.modified, ranking, report.output, dictionary)
    return Whole(
        (root, report.modified),
        lambda _t, found: _modified(query, report, found, columns, dictionary),
        len(columns),
        report.output,
        dictionary,
    )


def recomputed_of(
    node: Recompute,
    dataset: Dataset,
    operator: Callable[[PlanNode], Operator],
    dictionary: Dictionary,
) -> tuple[Recomputed, AnswerMaker]:
    """Make what evaluates a query from scratch at its reports, and what makes answers of that.

    Args:
        node: The query with its windows.
        dataset: The static data that it sees.
        operator: Returns what a node was lowered to.
        dictionary: The numbers of terms.
    """
    leaves = [(each.match.source, operator(each)) for each in node.windows]
    found = Recomputed(node.query, dataset, leaves, node.variables, dictionary)
    return found, Whole(
        None,
        found.make,
        len(node.variables),
        node.query.output,
        dictionary,
        always_anew=True,
        stayed=found.stayed if found.derivations else None,
    )


def _asked(found: np.ndarray, dictionary: Dictionary) -> np.ndarray:
    answer = TRUE if len(found) else FALSE
    return np.array([[dictionary.number(answer)]], dtype=np.int64)


def _modified(
    query: ContinuousQuery,
    report: Report,
    found: np.ndarray,
    columns: tuple[Variable, ...],
    dictionary: Dictionary,
) -> np.ndarray:
    """Apply ORDER BY, LIMIT and the like to the solutions of one report (A4)."""
    terms = {int(each): dictionary.term(int(each)) for each in np.unique(found) if each}
    rows = tuple(tuple(terms.get(int(each)) for each in row) for row in found)
    pattern: Pattern = Values(variables=report.modified, rows=rows)  # type: ignore[arg-type]
    for modifier in report.modifiers:
        pattern = replace(modifier, input=pattern)  # type: ignore[arg-type]
    bag: Bag = solve(alone(query, pattern), Dataset())
    result = np.zeros((len(bag), len(columns)), dtype=np.int64)
    for place, solution in enumerate(bag):
        for column, variable in enumerate(columns):
            if variable in solution:
                result[place, column] = dictionary.number(solution[variable])
    return result
