"""A checkpoint is refused by anything that it was not made for."""

import json
from dataclasses import replace

import pytest

from quadweir.errors import StateError
from quadweir.optimize.pipeline import optimize
from quadweir.plan.query import plan_query
from quadweir.runtime.checkpoint import NAME, VERSION, Fingerprint
from quadweir.syntax.read import parse
from query_hosts import facts_over
from streaming import quads

TEXT = "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } }"


SWITCHED = """SELECT ?o (COUNT(*) AS ?n)
FROM NAMED WINDOW <urn:v> ON <urn:s> [RANGE 20ms STEP 8ms]
FROM NAMED WINDOW <urn:w> ON <urn:t> [TRIPLES 5]
WHERE { WINDOW <urn:v> { ?x <urn:p> ?y } WINDOW <urn:w> { ?y <urn:q> ?o }
  OPTIONAL { WINDOW <urn:w> { ?y <urn:q> ?e } <urn:b0> <urn:is> <urn:on> } } GROUP BY ?o"""


def fingerprint(text=TEXT, *, shards=2, static="", schema="", inputs=(), data=(), like=""):
    query = optimize(parse(text)).query
    facts, _ = facts_over(query, data, ())
    plan = plan_query(query, streams=(), facts=facts, shards=shards, like=like)
    return Fingerprint.of(
        plan, shards=shards, partitions=shards, static=static, schema=schema, inputs=inputs
    )


def test_a_checkpoint_is_claimed_once_and_found_again(tmp_path):
    fingerprint().guard(tmp_path / "new")
    fingerprint("  " + TEXT.replace("}", "\n}")).guard(tmp_path / "new")
    assert fingerprint().digest == fingerprint().digest
    assert fingerprint().digest != fingerprint(static="x").digest


@pytest.mark.parametrize(
    ("other", "reported"),
    [
        ({"text": TEXT.replace("urn:p", "urn:other")}, "<urn:other>"),
        ({"shards": 3}, "it has 2 shards"),
        ({"static": "another"}, "static data"),
        ({"schema": "another"}, "the schema"),
    ],
)
def test_what_changed_is_reported(tmp_path, other, reported):
    fingerprint().guard(tmp_path)
    with pytest.raises(StateError) as error:
        fingerprint(**other).guard(tmp_path)
    assert reported in (error.value.detail or "")
    assert error.value.hint


def test_other_static_data_is_taken_where_that_is_asked_for(tmp_path):
    fingerprint(static="old").guard(tmp_path)
    with pytest.raises(StateError) as error:
        fingerprint(static="new").guard(tmp_path)
    assert "--reload-static" in (error.value.hint or "")
    fingerprint(static="new").guard(tmp_path, reload_static=True)
    # From now on it is the checkpoint of the new data.
    fingerprint(static="new").guard(tmp_path)
    with pytest.raises(StateError) as error:
        fingerprint(static="old", shards=3).guard(tmp_path, reload_static=True)
    assert "it has 2 shards" in (error.value.detail or "")


def test_a_cut_at_an_operator_of_another_number_is_no_difference(tmp_path):
    fingerprint(SWITCHED, static="off").guard(tmp_path)
    on = fingerprint(SWITCHED, static="on", data=quads("b0 is on"))
    assert on.is_but_for_static(fingerprint(SWITCHED))
    on.guard(tmp_path, reload_static=True)
    on.guard(tmp_path)


def test_other_static_data_of_a_query_that_feeds_it_is_reported_and_taken(tmp_path):
    def fed(static="", text=TEXT):
        between = fingerprint(TEXT.replace("5s", "6s"), inputs=(fingerprint(text, static=static),))
        return fingerprint(inputs=(between,))

    fed("old").guard(tmp_path)
    with pytest.raises(StateError) as error:
        fed("new").guard(tmp_path)
    assert "--reload-static" in (error.value.hint or "")
    assert (error.value.detail or "").count("a query that feeds it has changed") == 2
    assert "the static data of the query has changed" in (error.value.detail or "")
    fed("new").guard(tmp_path, reload_static=True)
    fed("new").guard(tmp_path)
    with pytest.raises(StateError) as error:
        fed("new", TEXT.replace("urn:p", "urn:other")).guard(tmp_path, reload_static=True)
    assert "<urn:other>" in (error.value.detail or "")


def test_what_held_other_rows_is_refused(tmp_path):
    replace(fingerprint(), held="others").guard(tmp_path)
    with pytest.raises(StateError) as error:
        fingerprint(static="new").guard(tmp_path, reload_static=True)
    assert "hold rows of another plan" in (error.value.detail or "")


def test_static_data_that_is_matched_with_windows_may_begin_to_match(tmp_path):
    """In two stages too: operators are others then, but the same is held in the same shards."""
    text = (
        "SELECT (COUNT(*) AS ?n) FROM <urn:g> FROM STREAM <urn:s> [RANGE 1s STEP 1s] "
        "WHERE { ?x <urn:p> ?y . ?y <urn:q> ?z . ?z <urn:r> ?x }"
    )
    assert Fingerprint.left_in(tmp_path) is None
    fingerprint(text, static="old", data=quads("a o b", "g")).guard(tmp_path)
    known = Fingerprint.left_in(tmp_path)
    assert known is not None
    like, data = known.layout, quads("a p b", "g")
    assert ", then " in like
    with pytest.raises(StateError, match="made for something else"):
        fingerprint(text, static="new", data=data).guard(tmp_path, reload_static=True)
    fingerprint(text, static="new", data=data, like=like).guard(tmp_path, reload_static=True)


def test_state_of_another_format_is_refused(tmp_path):
    fingerprint().guard(tmp_path)
    file = tmp_path / NAME
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": VERSION + 1}))
    with pytest.raises(StateError, match="made for something else"):
        fingerprint().guard(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"algebra": 1}'])
def test_a_damaged_note_is_refused(tmp_path, content):
    (tmp_path / NAME).write_text(content)
    with pytest.raises(StateError, match="cannot be read"):
        fingerprint().guard(tmp_path)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    (tmp_path / "offsets").mkdir()
    with pytest.raises(StateError, match="not of a Quadweir query"):
        fingerprint().guard(tmp_path)


def test_a_note_that_was_changed_is_refused(tmp_path):
    fingerprint().guard(tmp_path)
    file = tmp_path / NAME
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            fingerprint().guard(tmp_path)
        except StateError:
            continue
        # A blank between two words may be another one.
        assert json.loads(file.read_bytes()) == json.loads(whole)
    for length in range(1, len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(StateError):
            fingerprint().guard(tmp_path)


def test_a_checkpoint_without_the_begin_of_a_batch_that_is_done_is_refused(tmp_path):
    fingerprint().guard(tmp_path)
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
        for batch in range(12):
            (tmp_path / name / f"{batch}").touch()
    fingerprint().guard(tmp_path)
    (tmp_path / "commits" / "11").unlink()
    fingerprint().guard(tmp_path)
    (tmp_path / "offsets" / "11").unlink()
    (tmp_path / "offsets" / "10").unlink()
    with pytest.raises(StateError, match="lacks the file of batch 10"):
        fingerprint().guard(tmp_path)
