"""Triple terms, reified triples and annotations of SPARQL 1.2 in query texts."""

from __future__ import annotations

import pytest

from quadweir.algebra.query import ConstructForm, TripleTemplate
from quadweir.algebra.render import render
from quadweir.errors import LimitError, QuerySyntaxError
from quadweir.syntax import parse
from quadweir.syntax.write import write
from quadweir.terms import IRI, BlankNode, Variable
from quadweir.vocab import RDF
from rendered_trees import read_query
from same_names import same_names
from trees import PREFIX, asked, body, tree

REIFIES = f"<{RDF.reifies}>"


def test_a_fixed_triple_term_is_a_term_of_the_pattern() -> None:
    found = body("{ ?a :p <<( :b :q <<( :c a 1 )>> )>> }")
    assert found == tree(
        f"(bgp (triple ?a :p (triple-term :b :q (triple-term :c <{RDF.type}> 1))))"
    )


def test_a_triple_term_with_variables_is_matched_whole_and_taken_apart() -> None:
    found = body("{ ?a :p <<( ?a ?b <<( :c :q ?d )>> )>> ; :r ?d }")
    assert found == tree(
        """(join (bgp (triple ?a :r ?d))
        (filter (&& (ISTRIPLE ?_:triple1) (SAMETERM (SUBJECT ?_:triple1) ?a) (BOUND ?b)
                 (SAMETERM (SUBJECT (OBJECT ?_:triple1)) :c)
                 (SAMETERM (PREDICATE (OBJECT ?_:triple1)) :q) (BOUND ?d))
         (extend ?d (OBJECT (OBJECT ?_:triple1)) (extend ?b (PREDICATE ?_:triple1)
          (bgp (triple ?a :p ?_:triple1))))))"""
    )


@pytest.mark.parametrize(
    ("sugar", "plain"),
    [
        ("<< :a :p :b ~ :r >> :q 1", ":r rdf:reifies <<( :a :p :b )>> . :r :q 1"),
        ("<< :a :p :b >>", "[] rdf:reifies <<( :a :p :b )>>"),
        ("<< :a :p :b ~ >> :q 1", "_:x rdf:reifies <<( :a :p :b )>> . _:x :q 1"),
        (":a :p :b ~ :r", ":a :p :b . :r rdf:reifies <<( :a :p :b )>>"),
        (
            ":a :p :b {| :q 1 ; :r 2 |}",
            ":a :p :b . _:x rdf:reifies <<( :a :p :b )>> . _:x :q 1 ; :r 2",
        ),
        (
            ":a :p :b ~ :r {| :q 1 |} {| :q 2 |}, :c",
            ":a :p :b . :r rdf:reifies <<( :a :p :b )>> . :r :q 1 ."
            " _:x rdf:reifies <<( :a :p :b )>> . _:x :q 2 . :a :p :c",
        ),
        (
            "<< << :a :p :b ~ :r >> :q :c ~ :s >> :t 1",
            ":r rdf:reifies <<( :a :p :b )>> . :s rdf:reifies <<( :r :q :c )>> . :s :t 1",
        ),
    ],
)
def test_reified_triples_and_annotations_are_short_for_reifiers(sugar: str, plain: str) -> None:
    prefix = f"PREFIX rdf: <{RDF}> "
    found, wanted = (
        parse(PREFIX + prefix + f"ASK {{ {sugar} }}"),
        parse(PREFIX + prefix + f"ASK {{ {plain} }}"),
    )
    assert same_names(found) == same_names(wanted)


def test_templates_have_triple_terms_with_blank_nodes() -> None:
    form = asked("CONSTRUCT { _:r :p <<( ?a :q _:r )>> } WHERE { ?a :p ?b }").form
    assert isinstance(form, ConstructForm)
    node = BlankNode("b1")
    assert form.template[0].object == TripleTemplate(
        subject=Variable("a"), predicate=IRI("http://example.org/q"), object=node
    )
    assert form.variables == (Variable("a"),)


BODIES = [
    "?x :p <<( ?s :q ?o )>> . ?x :c ?c",
    "?s ?p ?o ~ ?r {| :c ?c |}",
    "?s :p <<( ?s ?p <<( _:x :b [] )>> )>> . _:x :k ?s",
    "?s :p <<( :a :b 1 )>> FILTER(isTRIPLE(?s) && ?s = <<( ?s :p 1 )>>)",
    "VALUES ?s { <<( :a :b <<( :a :b 'x' )>> )>> } ?a :p ?s BIND(OBJECT(?s) AS ?t)",
]
FORMS = {
    "rspql": "REGISTER RSTREAM :o AS {} FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]"
    " {{ WINDOW :w {{ {} }} }}",
    "csparql": "REGISTER QUERY q AS {} FROM STREAM :s [RANGE 4s STEP 2s] {{ {} }}",
    "cqels": "{} {{ STREAM :s [RANGE 4s] {{ {} }} }}",
    "sparqlstream": "{} FROM NAMED STREAM :s [NOW - 4 S SLIDE 2 S] {{ {} }}",
}


@pytest.mark.parametrize("dialect", FORMS)
@pytest.mark.parametrize("inner", BODIES)
@pytest.mark.parametrize("head", ["SELECT *", "CONSTRUCT { [] :k <<( ?s :p _:b )>> . _:b :q ?s }"])
def test_all_dialects_read_and_write_them(dialect: str, inner: str, head: str) -> None:
    text = FORMS[dialect].format(head, inner)
    if head != "SELECT *":
        text = text.replace("REGISTER QUERY", "REGISTER STREAM")
    query = asked(text, dialect)
    assert read_query(render(query)) == query
    for other in FORMS:
        write(query, other)  # what is written is read again, and must mean the same


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * { ?a :p <<( 1 :p ?b )>> }", "the subject of a triple term is a literal"),
        ("SELECT * { ?a :p <<( <<( :a :p 1 )>> :p ?b )>> }", "is a triple term"),
        ("SELECT * { ?a :p|:q ?b {| :c 1 |} }", "an annotation stands after a property path"),
        ("SELECT * { ?a :p ?b FILTER(?b = <<( _:x :p 1 )>>) }", "a blank node stands in"),
        ("SELECT * { VALUES ?a { <<( ?b :p 1 )>> } }", "a variable stands in"),
        ("SELECT (TRIPLE(?a, :p) AS ?t) { ?a :p ?b }", "TRIPLE takes 3 arguments"),
        ('VERSION "2" SELECT * { ?a :p ?b }', 'there is no version "2"'),
    ],
)
def test_what_is_no_triple_term_is_refused_with_a_place(text: str, message: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(text)
    assert message in caught.value.message
    assert caught.value.span is not None


def test_a_triple_term_is_no_subject() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked("SELECT * { <<( ?a :p ?b )>> :q 1 }")
    assert "can only be an object" in (caught.value.hint or "")


def test_triple_terms_nest_up_to_a_limit() -> None:
    def text(depth: int) -> str:
        return f"SELECT * {{ ?a :p {'<<( :a :p ' * depth} ?b {')>> ' * depth} }}"

    asked(text(16))
    with pytest.raises(LimitError, match="more than 16 triple terms"):
        asked(text(17))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?a :p ?b FILTER(?b<<http://x/y>) }",
        "SELECT * { ?a :p ?b FILTER(:b<<http://x/y>) }",
        "PREFIX object: <urn:o:> SELECT (object:x AS ?o) { ?a object:p subject:q }",
        "PREFIX triple: <urn:o:> SELECT * { ?a triple:p ?b FILTER(?a = triple:subject) }",
        'VERSION "1.2" SELECT * { ?a :p ?b }',
    ],
)
def test_comparisons_and_prefixes_are_not_taken_for_triple_terms(text: str) -> None:
    asked(text.replace("SELECT", "PREFIX subject: <urn:s:> SELECT", 1))
