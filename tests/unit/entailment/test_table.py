"""Closure, reduction, flattening, and the ways to match a pattern."""

from __future__ import annotations

import itertools

import pytest

from quadweir.algebra.patterns import TriplePattern
from quadweir.entailment import table as tables
from quadweir.entailment.close import close, refuse_transitive, static_closure
from quadweir.entailment.needs import SchemaNeeds, needs_of, needs_of_static, needs_of_windows
from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
from quadweir.entailment.steps import steps_to
from quadweir.entailment.table import Derived, End, Table
from quadweir.entailment.ways import ways_of
from quadweir.errors import LimitError, UnsupportedError
from quadweir.syntax import parse
from quadweir.terms import IRI, Literal, Quad, Variable


def iri(name: str) -> IRI:
    return IRI(f"urn:{name}")


def below(*names: str) -> list[Axiom]:
    """A chain of classes, each below the next."""
    return [Axiom(AxiomKind.SUBCLASS, iri(a), iri(b)) for a, b in itertools.pairwise(names)]


PETS = Schema.of(
    [
        *below("Siamese", "Cat", "Pet", "Animal"),
        *below("Dog", "Pet"),
        Axiom(AxiomKind.RANGE, iri("feeds"), iri("Pet")),
        Axiom(AxiomKind.DOMAIN, iri("feeds"), iri("Person")),
        Axiom(AxiomKind.INVERSE, iri("feeds"), iri("fedBy")),
        Axiom(AxiomKind.SUBPROPERTY, iri("spoils"), iri("feeds")),
        Axiom(AxiomKind.SYMMETRIC, iri("near"), iri("near")),
    ]
)


def follows(schema: Schema, subject: str, predicate: IRI, end: IRI | Literal) -> set[str]:
    found = Table.of(schema).consequences(Quad(iri(subject), predicate, end))
    return {str(each).replace("urn:", "").replace(str(TYPE), "a") for each in found}


def test_cycles_are_equivalences():
    ring = Schema.of(below("A", "B", "C", "A"))
    assert follows(ring, "x", TYPE, iri("A")) == {"<x> a <B> .", "<x> a <C> ."}
    both = Schema.of(
        [Axiom(AxiomKind.SUBPROPERTY, iri(a), iri(b)) for a, b in ("pq", "qr", "rp")]
        + [Axiom(AxiomKind.INVERSE, iri("p"), iri("q"))]
    )
    names = {f"<{s}> <{p}> <{o}> ." for p in "pqr" for s, o in ("xy", "yx")}
    assert follows(both, "x", iri("p"), iri("y")) == names - {"<x> <p> <y> ."}


def test_literals_are_no_subjects():
    assert follows(PETS, "eve", iri("feeds"), Literal("tom")) == {"<eve> a <Person> ."}


def test_a_schema_is_cut_down_to_what_is_asked_for():
    asked = SchemaNeeds(frozenset({iri("fedBy")}), frozenset({iri("Pet")}))
    table = Table.of(PETS, asked)
    pet = Derived(End.SUBJECT, TYPE, iri("Pet"))
    assert table.classes == {iri(name): (pet,) for name in ("Cat", "Dog", "Siamese")}
    assert set(table.predicates) == {iri("feeds"), iri("spoils"), iri("fedBy")}
    assert set(table.predicates[iri("spoils")]) == {
        Derived(End.OBJECT, iri("fedBy"), End.SUBJECT),
        Derived(End.OBJECT, TYPE, iri("Pet")),
    }
    assert Table.of(PETS, SchemaNeeds(frozenset(), frozenset())) == Table({}, {})


def test_looking_down_from_a_class_finds_what_looking_up_finds():
    for wanted in PETS.classes:
        down = Table.of(PETS, SchemaNeeds(frozenset(), frozenset({wanted}))).classes
        derived = Derived(End.SUBJECT, TYPE, wanted)
        up = {one for one, found in Table.of(PETS).classes.items() if derived in found}
        assert set(down) == up


def test_what_follows_from_types_is_found_through_properties_that_say_types():
    schema = Schema.of(
        [
            *below("Cat", "Pet"),
            Axiom(AxiomKind.INVERSE, iri("has"), TYPE),
            Axiom(AxiomKind.SUBPROPERTY, iri("isA"), TYPE),
        ]
    )
    asked = Table.of(schema, SchemaNeeds(frozenset({iri("has")}), frozenset()))
    found = asked.consequences(Quad(iri("tom"), iri("isA"), iri("Cat")))
    assert {(each.subject, each.predicate) for each in found} >= {
        (iri("Cat"), iri("has")),
        (iri("Pet"), iri("has")),
    }


def test_what_is_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(tables, "MOST_ENTRIES", 20)
    chain = Schema.of(below(*(f"C{n}" for n in range(10))))
    with pytest.raises(LimitError, match="consequences"):
        Table.of(chain)
    assert len(Table.of(chain, SchemaNeeds(frozenset(), frozenset({iri("C9")}))).classes) == 9


@pytest.mark.parametrize(
    ("pattern", "predicates", "classes"),
    [
        ("?x a :Pet . ?y :feeds ?x", {"feeds"}, {"Pet"}),
        ("?x a ?c", set(), None),
        ("?x ?p :Pet", None, None),
        ("?x :p/^:q+ ?y", {"p", "q"}, set()),
        ("?x !:p ?y", None, None),
        ("?x :p ?y FILTER NOT EXISTS { ?y a :Dog }", {"p"}, {"Dog"}),
        ("?x :p ?y FILTER(timestamp(?x, :q, ?y) > 1)", {"p", "q"}, set()),
        ("?x :p ?y FILTER(timestamp(?x, ?y, ?y) > 1)", None, None),
        # A path without steps finds every node, also those of statements that nothing matches.
        ("?x :p* ?y", None, None),
        ("?x (:p?/:q*) ?y", None, None),
        ("?x :p+ ?y", {"p"}, set()),
        ("?x :p* :o", {"p"}, set()),
        ("?x :r ?z . ?x :p* ?y", {"p", "r"}, set()),
    ],
)
def test_patterns_say_what_they_need(pattern, predicates, classes):
    text = f"PREFIX : <urn:> SELECT ?x {{ STREAM <urn:s> [RANGE 1s] {{ {pattern} }} }}"
    needs = needs_of(parse(text, dialect="cqels"))
    assert needs.predicates == (predicates and frozenset(map(iri, predicates)))
    assert needs.classes == (classes if classes is None else frozenset(map(iri, classes)))


def test_needs_of_windows_leave_static_patterns_out():
    text = (
        "PREFIX : <urn:> SELECT ?x "
        "{ STREAM <urn:s> [RANGE 1s] { ?x :p ?y } GRAPH :g { ?y :q ?z } ?y :r ?z }"
    )
    query = parse(text, dialect="cqels")
    assert needs_of(query).predicates == {iri("p"), iri("q"), iri("r")}
    assert needs_of_windows(query).predicates == {iri("p")}
    assert needs_of_static(query).predicates == {iri("q"), iri("r")}
    assert static_closure(PETS, query) is None
    two = "FROM STREAM <urn:s> [RANGE 1s STEP 1s] FROM STREAM <urn:t> [RANGE 1s STEP 1s]"
    merged = f"REGISTER QUERY q AS SELECT * {two} {{ ?x a <urn:Pet> }}"
    both = parse(merged, dialect="csparql")
    assert needs_of_windows(both) == needs_of_static(both) == needs_of(both)
    assert static_closure(PETS, both) is not None


def test_transitive_properties_are_followed_in_static_data_alone():
    schema = Schema.of(
        [
            Axiom(AxiomKind.TRANSITIVE, iri("partOf"), iri("partOf")),
            Axiom(AxiomKind.SUBPROPERTY, iri("partOf"), iri("in")),
            Axiom(AxiomKind.SUBPROPERTY, iri("cityOf"), iri("partOf")),
        ]
    )
    asks = "PREFIX : <urn:> SELECT ?x {{ STREAM <urn:s> [RANGE 1s] {{ ?x :{} ?y }} ?y :in ?z }}"
    for wanted in ("partOf", "in"):
        with pytest.raises(UnsupportedError, match="transitive") as caught:
            refuse_transitive(schema, parse(asks.format(wanted), dialect="cqels"))
        assert f"<urn:{wanted}>" in caught.value.message
    refuse_transitive(schema, parse(asks.format("seenIn"), dialect="cqels"))
    places = [
        Quad(iri("a"), iri("cityOf"), iri("b")),
        Quad(iri("c"), iri("partOf"), iri("d")),
        Quad(iri("b"), iri("partOf"), iri("c")),
        Quad(iri("d"), iri("partOf"), iri("e"), iri("g")),
    ]
    found = set(close(places, Table.of(schema), schema.transitive))
    assert Quad(iri("a"), iri("in"), iri("d")) in found
    assert not any(each.object == iri("e") for each in found if each.graph is None)


def test_patterns_with_names_have_few_ways_and_others_are_looked_up():
    table = Table.of(PETS)
    x, y = Variable("x"), Variable("y")
    pets = ways_of(TriplePattern(subject=x, predicate=TYPE, object=iri("Pet")), table)
    assert {(way.derived.subject, len(way.classes or ())) for way in pets.listed} == {
        (End.SUBJECT, 3),  # by class
        (End.SUBJECT, 0),  # fedBy has a pet for its subject
        (End.OBJECT, 0),  # feeds and spoils for their object
    }
    assert not pets.looked_up
    assert ways_of(TriplePattern(subject=x, predicate=iri("other"), object=y), table).listed == ()
    open_class = ways_of(TriplePattern(subject=x, predicate=Variable("p"), object=y), table)
    assert open_class.looked_up


def test_rules_and_axioms_explain_why_a_triple_follows():
    start = Quad(iri("eve"), iri("spoils"), iri("tom"))
    found = steps_to(PETS, start, Quad(iri("tom"), TYPE, iri("Animal")))
    assert found is not None
    assert [step.rule for step in found] == ["rdfs7", "rdfs3", "rdfs9"]
    assert str(found[1].axiom) == "<urn:feeds> rdfs:range <urn:Pet>"
    rules = {
        "inv2": Quad(iri("tom"), iri("fedBy"), iri("eve")),
        "rdfs2": Quad(iri("eve"), TYPE, iri("Person")),
    }
    for rule, goal in rules.items():
        chain = steps_to(PETS, start, goal)
        assert chain is not None
        assert chain[-1].rule == rule
    near = steps_to(
        PETS, Quad(iri("a"), iri("near"), iri("b")), Quad(iri("b"), iri("near"), iri("a"))
    )
    assert near is not None
    assert near[0].rule == "sym"
    assert steps_to(PETS, start, start) == ()
    assert steps_to(PETS, start, Quad(iri("eve"), TYPE, iri("Dog"))) is None
