"""A checkpoint is not used for anything that it was not made for."""

import json

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.errors import StateError
from quadweir.optimize.pipeline import optimize
from quadweir.plan.query import plan_query
from quadweir.runtime.fingerprint import NAME, VERSION, Fingerprint
from quadweir.syntax.read import parse

TEXT = "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } }"


def fingerprint(text=TEXT, *, shards=2, static="", schema=""):
    plan = plan_query(optimize(parse(text)).query, static=Dataset(), streams=())
    return Fingerprint.of(plan, shards=shards, partitions=shards, static=static, schema=schema)


def test_a_checkpoint_is_claimed_once_and_found_again(tmp_path):
    fingerprint().guard(tmp_path / "new")
    fingerprint("  " + TEXT.replace("}", "\n}")).guard(tmp_path / "new")
    assert fingerprint().digest == fingerprint().digest
    assert fingerprint().digest != fingerprint(static="x").digest


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"text": TEXT.replace("urn:p", "urn:other")}, "<urn:other>"),
        ({"shards": 3}, "cut into 2 shards"),
        ({"static": "another"}, "static data"),
        ({"schema": "another"}, "the schema"),
    ],
)
def test_what_changed_is_told(tmp_path, other, told):
    fingerprint().guard(tmp_path)
    with pytest.raises(StateError) as error:
        fingerprint(**other).guard(tmp_path)
    assert told in (error.value.detail or "")
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
    assert "cut into 2 shards" in (error.value.detail or "")


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
    with pytest.raises(StateError, match="no query of ours"):
        fingerprint().guard(tmp_path)
