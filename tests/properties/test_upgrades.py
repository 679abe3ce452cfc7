"""A query that takes over the state of another gives the answers that it would have given all along."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from properties.dense import Feed, dense_questions, feeds, static_data
from properties.strategies import ALLOW, EVERYTHING, SUBJECTS
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.expressions import AggregateCall, Compare, Constant, VariableExpression
from quadweir.algebra.patterns import Aggregation, Distinct, Filter, Group, Project
from quadweir.algebra.query import ContinuousQuery, DescribeForm, SelectForm
from quadweir.algebra.render import render
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import TimeScope
from quadweir.kernel.build import facts_of
from quadweir.kernel.codec import StateKind, write_frame
from quadweir.kernel.shard import Shard
from quadweir.kernel.staticrelations import Loaded
from quadweir.kernel.takeover import take_over, upgraded
from quadweir.optimize import optimize
from quadweir.plan.facts import NOTHING_KNOWN
from quadweir.plan.inherit import inherit
from quadweir.plan.program import program_of
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.plan.shardkey import IN_ONE_SHARD
from quadweir.runtime.shard import journal
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad, Variable
from quadweir.testing import Answer, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static
from worker_hosts import WorkerHost


@st.composite
def edited(draw: st.DrawFn, query: ContinuousQuery) -> ContinuousQuery:
    """Change a query as people do."""
    kinds = ["output", "windows", "distinct", "filter", "group", "project"]
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2)):
        query = _edited(draw, kind, query)
    return query


def _edited(draw: st.DrawFn, kind: str, query: ContinuousQuery) -> ContinuousQuery:
    form = query.form
    if kind == "output":
        return replace(query, output=draw(st.sampled_from(list(OutputOperator))))
    if kind == "windows":
        return replace(
            query,
            windows=tuple(
                replace(each, scope=replace(each.scope, range_ms=draw(st.integers(1, 9))))
                if isinstance(each.scope, TimeScope) and each.scope.step_ms is None
                else each
                for each in query.windows
            ),
        )
    if not isinstance(form, SelectForm) or not form.variables:
        return query
    if kind == "distinct":
        return replace(query, pattern=Distinct(input=query.pattern))
    variable = draw(st.sampled_from(form.variables))
    match kind:
        case "filter":
            name = Constant(term=IRI(draw(st.sampled_from(SUBJECTS))))
            value = VariableExpression(variable=variable)
            condition = Compare(operator="!=", left=value, right=name)
            return replace(query, pattern=Filter(condition=condition, input=query.pattern))
        case "group":
            count = Variable("counted")
            if count in form.variables:
                return query
            call = AggregateCall(function="COUNT", argument=None)
            found = Group(
                keys=(variable,),
                aggregates=(Aggregation(variable=count, call=call),),
                input=query.pattern,
            )
            kept = (variable, count)
            return replace(
                query,
                form=SelectForm(variables=kept),
                pattern=Project(variables=kept, input=found),
            )
        case _:
            kept = (variable,)
            return replace(
                query,
                form=SelectForm(variables=kept),
                pattern=Project(variables=kept, input=query.pattern),
            )


def planned(query: ContinuousQuery, dataset: Dataset, streams: list[str]) -> QueryPlan:
    facts = NOTHING_KNOWN
    if query.default_graph_windows:
        facts = facts_of(program_of(query, streams=streams), Loaded(dataset))
    return plan_query(query, streams=tuple(streams), facts=facts, like=IN_ONE_SHARD)


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_what_is_not_lost_is_answered_as_if_the_query_had_always_run(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    question = data.draw(dense_questions(dialect, kinds=EVERYTHING, slices=True))
    one = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    one = replace(one, output=data.draw(st.sampled_from(list(OutputOperator))))
    other = data.draw(edited(one))
    old, new = data.draw(st.permutations([one, other]))
    old, new = optimize(old).query, optimize(new).query
    feed = sorted(feed, key=lambda element: element.event_time)
    streams = sorted({element.stream for element in feed})
    dataset = Dataset.of(scoped_static(static))
    then, now = (planned(each, dataset, streams) for each in (old, new))
    note(f"{render(old)}\n{render(new)}")
    inherited = inherit(then, now)
    event(f"lost: {bool(inherited.losses)}")
    assume(then.sources and now.sources and not inherited.losses)
    assume({each.stream for each in then.sources} == {each.stream for each in now.sources})
    delay = data.draw(st.sampled_from([0, 3]))
    cut = data.draw(st.integers(0, len(feed)))

    def shard_of(plan: QueryPlan) -> ShardFeed:
        shard = Shard(plan.first.program, static=dataset, records=False)
        return ShardFeed(shard, delay_ms=delay)

    continued, always = shard_of(then), shard_of(now)
    continued.push(feed[:cut])
    early = as_answers(always.push(feed[:cut]), new)
    through = continued.shard.through
    state = upgraded(continued.shard, shard_of(now).shard, inherited)
    continued.shard = shard_of(now).shard
    take_over(continued.shard, write_frame(StateKind.SNAPSHOT, bytes(32), state))

    def rest(fed: ShardFeed) -> list[Answer]:
        half = (cut + len(feed)) // 2
        found = [fed.push(feed[cut:half]), fed.push(feed[half:]), fed.finish()]
        return [one for each in found for one in as_answers(each, new)]

    expected = rest(always)
    if not then.eager:
        expected += [each for each in early if each.t > through]
    found = rest(continued)
    event(f"answers: {bool(expected)}")
    assert diff_answers(expected, found) == "", Counter(each.t for each in found)
    assert continued.shard.dataflow.held() == always.shard.dataflow.held()


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_shards_go_on_with_another_query(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    """The same for shards with journals, whose rows may have to lie in other shards."""
    question = data.draw(dense_questions(dialect, kinds=EVERYTHING - {"path"}, slices=True))
    one = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    assume(one.windows and not isinstance(one.form, DescribeForm))
    one = replace(one, output=data.draw(st.sampled_from(list(OutputOperator))))
    old, new = data.draw(st.permutations([one, data.draw(edited(one))]))
    feed = sorted(feed, key=lambda element: element.event_time)
    cut = data.draw(st.integers(1, len(feed) - 1))
    options = {
        "static": static,
        "streams": sorted({each.stream for each in feed}),
        "shards": data.draw(st.sampled_from([1, 2, 3])),
        "processes": 1,
    }
    note(f"{render(old)}\n{render(new)}")
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(journal, "LONGEST_LOG", data.draw(st.sampled_from([1, 2, 50]))),
        WorkerHost(old, Path(folder, "continued"), **options) as continued,
        WorkerHost(new, Path(folder, "always"), **options) as always,
    ):
        # Nothing is kept of windows in which nothing is matched.
        plans = [host.spec.plan for host in (continued, always)]
        assume(all(len(plan.trackers) < len(plan.matches) for plan in plans))
        for host in (continued, always):
            for start in range(0, cut, 2):
                host.push(feed[start : min(start + 2, cut)])
        through = continued.reports[0].facts["through"]
        then = continued.spec.plan
        inherited = continued.upgrade(new)
        event(f"lost: {bool(inherited.losses)}")
        now = continued.spec.plan
        assume(not inherited.losses)
        assume({each.stream for each in then.sources} == {each.stream for each in now.sources})
        found, expected = len(continued.answers), len(always.answers)
        for host in (continued, always):
            host.push(feed[cut:])
            host.finish()
        late = [each for each in always.answers[:expected] if each.t > through]
        wanted = always.answers[expected:] + ([] if then.eager else late)
        event(f"answers: {bool(wanted)}")
        assert diff_answers(wanted, continued.answers[found:]) == ""
