"""SPARQL 1.1 to algebra: what each construct becomes, and what is refused."""

from __future__ import annotations

import pytest

from quadweir.algebra.query import AskForm, ConstructForm, DescribeForm, SelectForm, TemplateTriple
from quadweir.errors import NotImplementedYetError, QuerySyntaxError, UnsupportedError
from quadweir.syntax import parse
from quadweir.terms import IRI, BlankNode, Literal, Variable
from quadweir.vocab import XSD
from trees import PREFIX, asked, body, tree

A, B = (Variable(name) for name in "ab")
EX = "http://example.org/"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "(bgp)"),
        ("{ ?a :p ?b }", "(bgp (triple ?a :p ?b))"),
        (
            "{ ?a :p ?b , 1 ;; a :C ; . }",
            "(bgp (triple ?a :p ?b) (triple ?a :p 1)"
            " (triple ?a <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> :C))",
        ),
        # Two triples blocks with a filter between them are one basic pattern.
        (
            "{ ?a :p ?b FILTER(?b) ?b :q ?c }",
            "(filter ?b (bgp (triple ?a :p ?b) (triple ?b :q ?c)))",
        ),
        # A filter sees the whole group, wherever it stands.
        (
            "{ FILTER(?b) ?a :p ?b OPTIONAL { ?a :q ?c } }",
            "(filter ?b (leftjoin (bgp (triple ?a :p ?b)) (bgp (triple ?a :q ?c))))",
        ),
        # An OPTIONAL's own filter is the condition of the left join ...
        (
            "{ ?a :p ?b OPTIONAL { ?a :q ?c FILTER(?c) FILTER(?b) } }",
            "(leftjoin (&& ?c ?b) (bgp (triple ?a :p ?b)) (bgp (triple ?a :q ?c)))",
        ),
        # ... but not the filter of a group inside it.
        (
            "{ ?a :p ?b OPTIONAL { { ?a :q ?c FILTER(?c) } } }",
            "(leftjoin (bgp (triple ?a :p ?b)) (filter ?c (bgp (triple ?a :q ?c))))",
        ),
        ("{ OPTIONAL { ?a :p ?b } }", "(leftjoin (bgp) (bgp (triple ?a :p ?b)))"),
        (
            "{ { ?a :p ?b } UNION { ?a :q ?b } UNION { } }",
            "(union (bgp (triple ?a :p ?b)) (bgp (triple ?a :q ?b)) (bgp))",
        ),
        (
            "{ ?a :p ?b MINUS { ?a :q ?b } ?b :p ?c }",
            "(join (minus (bgp (triple ?a :p ?b)) (bgp (triple ?a :q ?b))) (bgp (triple ?b :p ?c)))",
        ),
        # BIND ends the basic pattern.
        (
            "{ ?a :p ?b BIND(?b + 1 AS ?c) ?c :q ?d }",
            "(join (extend ?c (+ ?b 1) (bgp (triple ?a :p ?b))) (bgp (triple ?c :q ?d)))",
        ),
        (
            "{ ?a :p ?b VALUES ?b { 1 :x } VALUES (?c ?d) { (UNDEF 'x'@EN) } }",
            '(join (bgp (triple ?a :p ?b)) (values (?b) (1) (:x)) (values (?c ?d) (undef "x"@en)))',
        ),
        (
            "{ GRAPH ?g { ?a :p ?b } GRAPH :g { ?a :p ?b } }",
            "(join (graph ?g (bgp (triple ?a :p ?b))) (graph :g (bgp (triple ?a :p ?b))))",
        ),
        (
            "{ ?a :p ?b FILTER NOT EXISTS { ?b :q [] } }",
            "(filter (not-exists (bgp (triple ?b :q ?_:1))) (bgp (triple ?a :p ?b)))",
        ),
        (
            "{ ?a :p ?b { SELECT ?a { ?a :q ?c } LIMIT 2 OFFSET 1 } }",
            "(join (bgp (triple ?a :p ?b)) (slice 1 2 (project (?a) (bgp (triple ?a :q ?c)))))",
        ),
    ],
)
def test_groups(text: str, expected: str) -> None:
    assert body(text) == tree(expected)


def test_blank_nodes_are_hidden_variables() -> None:
    assert body("{ _:x :p _:y . _:x :q [ :r ?a ] }") == tree(
        "(bgp (triple ?_:1 :p ?_:2) (triple ?_:3 :r ?a) (triple ?_:1 :q ?_:3))"
    )
    query = asked("SELECT * { _:x :p ?a }")
    assert query.form == SelectForm(variables=(A,))


def test_collections_are_linked_lists() -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    expected = f"""(bgp
        (triple ?_:1 <{rdf}first> 1) (triple ?_:1 <{rdf}rest> ?_:2)
        (triple ?_:2 <{rdf}first> ?a) (triple ?_:2 <{rdf}rest> <{rdf}nil>)
        (triple ?_:1 :p <{rdf}nil>))"""
    assert body("{ (1 ?a) :p () }") == tree(expected)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a", "(bgp (triple ?a <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ?b))"),
        ("^:p", "(bgp (triple ?b :p ?a))"),
        (":p/:q", "(bgp (triple ?a :p ?_:1) (triple ?_:1 :q ?b))"),
        ("^(:p/:q)", "(bgp (triple ?b :p ?_:1) (triple ?_:1 :q ?a))"),
        (":p/:q*", "(bgp (triple ?a :p ?_:1) (path ?_:1 (zero-or-more :q) ?b))"),
        ("^:p+", "(bgp (path ?b (one-or-more :p) ?a))"),
        (":p|(:q|^:r)", "(bgp (path ?a (alternative :p :q (inverse :r)) ?b))"),
        ("(:p/:q)?", "(bgp (path ?a (zero-or-one (sequence :p :q)) ?b))"),
        ("!:p", "(bgp (path ?a (none-of :p) ?b))"),
        ("!(:p|^:q|^:r)", "(bgp (path ?a (none-of :p (inverse :q) (inverse :r)) ?b))"),
        ("!()", "(bgp (path ?a (none-of) ?b))"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    assert body(f"{{ ?a {path} ?b }}") == tree(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4", "(- (+ 1 (* 2 3)) 4)"),
        ("1 -2*3", "(- 1 (* 2 3))"),
        ("1+1", "(+ 1 1)"),
        ("(1 + 2) * 3", "(* (+ 1 2) 3)"),
        ("?a || ?b && ?c || ?d", "(|| ?a (&& ?b ?c) ?d)"),
        ("?a && (?b && ?c)", "(&& ?a ?b ?c)"),
        ("?a < 1 + 2 && ?b >= 3", "(&& (< ?a (+ 1 2)) (>= ?b 3))"),
        ("?a<?b", "(< ?a ?b)"),
        ("! ?a = - ?b", "(= (! ?a) (negate ?b))"),
        ("+ ?a", "(+ 0 ?a)"),
        ("?a + 1 IN (1, ?b)", "(in (+ ?a 1) 1 ?b)"),
        ("?a NOT IN ()", "(not-in ?a)"),
        ("IF(BOUND(?a), ?a, COALESCE(?b, 1.0))", "(IF (BOUND ?a) ?a (COALESCE ?b 1.0))"),
        ("uri('x') = isURI(?a)", '(= (IRI "x") (ISIRI ?a))'),
        ("<urn:x:cast>('1')", '(<urn:x:cast> "1")'),
        ("concat()", "(CONCAT)"),
        ("rand() < 1e0", "(< (RAND) 1e0)"),
        (":f(?a, :x)", "(:f ?a :x)"),
        ("TRUE", "true"),
        (".5", ".5"),
        ("-1", "-1"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert body(f"{{ FILTER({text}) }}") == tree(f"(filter {expected} (bgp))")


@pytest.mark.parametrize(
    "text",
    [
        "?a = ?b = ?c",
        "?a IN (1) = ?b",
        "?a = ?b IN (1)",
        "SUBSTR(?a)",
        "RAND(1)",
        "BOUND(1)",
        "COUNT(?a) > 1",
        "IF(1, 2)",
        "!!?a",
        "<http://www.w3.org/2001/XMLSchema#integer>(1, 2)",
    ],
)
def test_wrong_expressions(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(f"SELECT * {{ FILTER({text}) }}")
    assert caught.value.span is not None


def test_literals() -> None:
    assert body(r"{ ?a :p 'it\'s'@en-GB }") == tree('(bgp (triple ?a :p "it\'s"@en-gb))')
    empty = "'" * 6
    long = '"""two\nlines "quoted" """'
    values = body(f"{{ VALUES ?a {{ {long} {empty} '\\t' '5'^^:t 5 5.0 5e1 +5 false }} }}")
    rows = [row[0] for row in values.rows]  # type: ignore[union-attr]
    integer, decimal, double = (IRI(getattr(XSD, n)) for n in ("integer", "decimal", "double"))
    assert rows == [
        Literal('two\nlines "quoted" '),
        Literal(""),
        Literal("\t"),
        Literal("5", datatype=IRI(f"{EX}t")),
        Literal("5", datatype=integer),
        Literal("5.0", datatype=decimal),
        Literal("5e1", datatype=double),
        Literal("+5", datatype=integer),
        Literal("false", datatype=IRI(XSD.boolean)),
    ]


def test_names() -> None:
    text = r"""BASE <http://a.example/b/c> PREFIX é.x: <d#> PREFIX : <>
    SELECT * { é.x:f\,g%41.h ?été :a.b.c . <../i> :- <//j.example> }"""
    # A local name cannot start with a hyphen.
    with pytest.raises(QuerySyntaxError):
        parse(text)
    pattern = parse(text.replace(":-", ":k-")).pattern.input  # type: ignore[union-attr]
    assert pattern == tree(
        "(bgp (triple <http://a.example/b/d#f,g%41.h> ?été <http://a.example/b/ca.b.c>)"
        " (triple <http://a.example/i> <http://a.example/b/ck-> <http://j.example>))"
    )


@pytest.mark.parametrize("name", ["?a\u00d7", "?\u00b7a", ":a\u2003b", "x\u037e:y", "_:\u0300a"])
def test_characters_that_names_do_not_have(name: str) -> None:
    with pytest.raises(QuerySyntaxError):
        asked(f"SELECT * {{ ?s :p {name} }}")


def test_codepoint_escapes_keep_places() -> None:
    assert body(r"{ ?\u0061 :p '\\u0041\U0001F600' }") == tree(
        '(bgp (triple ?a :p "\\\\u0041\U0001f600"))'
    )
    with pytest.raises(QuerySyntaxError) as caught:
        parse('SELECT * {\n ?\\u0061 ?p "\\u00e9" FROM }')
    assert (caught.value.span.line, caught.value.span.column) == (2, 22)  # type: ignore[union-attr]


def test_comments_are_anywhere() -> None:
    plain = asked("SELECT ?a { ?a :p 'x#y', <http://x/#z> }")
    text = "SELECT#1\n?a#2\n{#3\n?a#4\n:p#5\n'x#y'#6\n,<http://x/#z>#7\n}#8"
    assert asked(text) == plain


# --- SELECT, grouping, modifiers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ?a ?a ?z { ?a :p ?b }", "(project (?a ?z) (bgp (triple ?a :p ?b)))"),
        ("SELECT * { ?b :p ?a }", "(project (?b ?a) (bgp (triple ?b :p ?a)))"),
        ("SELECT REDUCED ?a {} LIMIT 0", "(slice 0 0 (reduced (project (?a) (bgp))))"),
        (
            "SELECT DISTINCT (?a + 1 AS ?x) (?x * 2 AS ?y) { ?a :p ?b } ORDER BY DESC(?y) ?a",
            "(distinct (project (?x ?y) (order ((desc ?y) (asc ?a)) (extend ?y (* ?x 2)"
            " (extend ?x (+ ?a 1) (bgp (triple ?a :p ?b)))))))",
        ),
        (
            "SELECT (COUNT(*) AS ?n) { ?a :p ?b }",
            "(project (?n) (extend ?n ?_:count1 (group () ((?_:count1 (COUNT *)))"
            " (bgp (triple ?a :p ?b)))))",
        ),
        # The same aggregate twice is computed once.
        (
            "SELECT ?a (SUM(?b) AS ?s) (SUM(?b) / COUNT(DISTINCT ?b) AS ?m) { ?a :p ?b }"
            " GROUP BY ?a HAVING (SUM(?b) > 1) ORDER BY AVERAGE(?b)",
            "(project (?a ?s ?m) (order ((asc ?_:avg3))"
            " (extend ?m (/ ?_:sum1 ?_:count2) (extend ?s ?_:sum1 (filter (> ?_:sum1 1)"
            " (group (?a) ((?_:sum1 (SUM ?b)) (?_:count2 (COUNT distinct ?b)) (?_:avg3 (AVG ?b)))"
            " (bgp (triple ?a :p ?b))))))))",
        ),
        (
            "SELECT ?k (GROUP_CONCAT(?b; SEPARATOR=', ') AS ?l) { ?a :p ?b } GROUP BY (STR(?a) AS ?k)",
            "(project (?k ?l) (extend ?l ?_:group_concat1 (group (?k) ((?_:group_concat1"
            ' (GROUP_CONCAT ?b ", "))) (extend ?k (STR ?a) (bgp (triple ?a :p ?b))))))',
        ),
        (
            "SELECT (MAX(?b) AS ?m) { ?a :p ?b } GROUP BY STR(?a)",
            "(project (?m) (extend ?m ?_:max2 (group (?_:key1) ((?_:max2 (MAX ?b)))"
            " (extend ?_:key1 (STR ?a) (bgp (triple ?a :p ?b))))))",
        ),
        # HAVING may use SELECT's names, and hidden variables are sampled.
        (
            "SELECT (COUNT(?a) AS ?n) { ?a :p ?b } GROUP BY ?b HAVING (?n > 2) ORDER BY ?a ?n",
            "(project (?n) (order ((asc ?_:sample2) (asc ?n)) (extend ?n ?_:count1"
            " (filter (> ?_:count1 2) (group (?b) ((?_:count1 (COUNT ?a)) (?_:sample2 (SAMPLE ?a)))"
            " (bgp (triple ?a :p ?b)))))))",
        ),
        (
            "SELECT ?a { ?a :p ?b } VALUES ?b { 1 }",
            "(project (?a) (join (bgp (triple ?a :p ?b)) (values (?b) (1))))",
        ),
    ],
)
def test_select(text: str, expected: str) -> None:
    assert asked(text).pattern == tree(expected)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?a :p ?b } GROUP BY ?a",
        "SELECT ?b { ?a :p ?b } GROUP BY ?a",
        "SELECT (?b + 1 AS ?c) { ?a :p ?b } GROUP BY ?a",
        "SELECT ?a (COUNT(?b) AS ?n) { ?a :p ?b }",
        "SELECT (1 AS ?a) { ?a :p ?b }",
        "SELECT (1 AS ?x) (2 AS ?x) {}",
        "SELECT ?x (2 AS ?x) {}",
        "SELECT (COUNT(SUM(?a)) AS ?x) {}",
        "SELECT (SUM(*) AS ?x) {}",
        "SELECT (SUM(?a; SEPARATOR=',') AS ?x) {}",
        "SELECT * { ?a :p ?b BIND(1 AS ?a) }",
        "SELECT * { BIND(1 AS ?a) BIND(2 AS ?a) }",
        "SELECT * { { ?a :p ?b } BIND(1 AS ?a) }",
        "SELECT * { _:x :p ?a . { _:x :q ?b } }",
        "SELECT * { _:x :p ?a FILTER EXISTS { _:x :q ?b } }",
        "SELECT * { _:x :p ?a OPTIONAL {} _:x :q ?b }",
        "SELECT * { VALUES (?a ?a) { (1 2) } }",
        "SELECT * { VALUES (?a ?b) { (1) } }",
        "SELECT (1 AS ?a) {} VALUES ?a { 2 }",
        "SELECT ?x { ?s ?p ?o } GROUP BY (1 AS ?s)",
        "CONSTRUCT { ?a :p/:q ?b } { ?a :p ?b }",
        "CONSTRUCT WHERE { ?a :p* ?b }",
        "SELECT ?a { ?a ?b ?c } LIMIT 99999999999999999999999",
        "SELECT ?a WHERE { ?a <rel> ?c }",
        "SELECT ?a WHERE { ?a no:prefix ?c }",
        "SELECT ?a",
        "SELECT ?a { } extra",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        asked(text)
    assert caught.value.span is not None


def test_a_blank_node_label_may_span_a_filter() -> None:
    assert body("{ _:x :p ?a FILTER(?a) _:x :q ?b }") == tree(
        "(filter ?a (bgp (triple ?_:1 :p ?a) (triple ?_:1 :q ?b)))"
    )


# --- forms and datasets ---------------------------------------------------------------------------


def test_construct() -> None:
    query = asked("CONSTRUCT { ?a :p _:x . _:x :q [] } { ?a :p ?b } LIMIT 1")
    p, q = IRI(f"{EX}p"), IRI(f"{EX}q")
    first, second = BlankNode("b1"), BlankNode("b2")
    assert query.form == ConstructForm(
        template=(
            TemplateTriple(subject=A, predicate=p, object=first),
            TemplateTriple(subject=first, predicate=q, object=second),
        )
    )
    assert query.pattern == tree("(slice 0 1 (bgp (triple ?a :p ?b)))")


def test_construct_with_graphs() -> None:
    query = asked(
        "CONSTRUCT { ?a :p _:x . GRAPH ?g { _:x :q ?a } . GRAPH :g { } GRAPH :h { ?a :p ?b } ?b :q ?a }"
        " { ?a :p ?b }"
    )
    p, q, blank = IRI(f"{EX}p"), IRI(f"{EX}q"), BlankNode("b1")
    assert query.form == ConstructForm(
        template=(
            TemplateTriple(subject=A, predicate=p, object=blank),
            TemplateTriple(subject=blank, predicate=q, object=A, graph=Variable("g")),
            TemplateTriple(subject=A, predicate=p, object=B, graph=IRI(f"{EX}h")),
            TemplateTriple(subject=B, predicate=q, object=A),
        )
    )
    assert isinstance(query.form, ConstructForm)
    assert query.form.variables == (A, B, Variable("g"))


def test_the_short_form_of_construct_has_no_graphs() -> None:
    with pytest.raises(QuerySyntaxError):
        asked("CONSTRUCT WHERE { GRAPH :g { ?a :p ?b } }")


def test_construct_where() -> None:
    query = asked("CONSTRUCT WHERE { ?a :p _:x }")
    assert query.form == ConstructForm(
        template=(TemplateTriple(subject=A, predicate=IRI(f"{EX}p"), object=BlankNode("b1")),)
    )
    assert query.pattern == tree("(bgp (triple ?a :p ?_:1))")


def test_ask_and_describe() -> None:
    assert asked("ASK {}").form == AskForm()
    assert asked("DESCRIBE :x").form == DescribeForm(targets=(IRI(f"{EX}x"),))
    assert asked("DESCRIBE * { ?a :p ?b }").form == DescribeForm(targets=(A, B))
    assert asked("DESCRIBE ?b :x { ?a :p ?b }").form == DescribeForm(targets=(B, IRI(f"{EX}x")))


def test_datasets_are_allowed_by_name() -> None:
    text = "SELECT * FROM :g FROM NAMED :h FROM NAMED :h {}"
    query = asked(text, allow=(f"{EX}g", f"{EX}h"))
    assert query.default_graphs == (IRI(f"{EX}g"),)
    assert query.named_graphs == (IRI(f"{EX}h"),)
    assert asked(text, allow=("FROM",)) == query
    assert asked("SELECT * FROM <urn:x:local> {}").default_graphs == (IRI("urn:x:local"),)
    with pytest.raises(UnsupportedError) as caught:
        asked(text, allow=(f"{EX}g",))
    assert f"{EX}h" in str(caught.value)


def test_services_are_allowed_by_name() -> None:
    text = "SELECT * { SERVICE SILENT :e { ?a :p ?b } }"
    with pytest.raises(UnsupportedError):
        asked(text)
    pattern = asked(text, allow=(f"{EX}e",)).pattern
    assert pattern == tree("(project (?a ?b) (service-silent :e (bgp (triple ?a :p ?b))))")
    anywhere = "SELECT * { SERVICE ?e { ?a :p ?b } }"
    with pytest.raises(UnsupportedError):
        asked(anywhere, allow=(f"{EX}e",))
    assert asked(anywhere, allow=("SERVICE",)).pattern


@pytest.mark.parametrize("text", ["LOAD <http://x/>", "DELETE WHERE { ?a ?b ?c }", "DROP ALL"])
def test_updates_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse(PREFIX + text)
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ('SELECT * { ?a :p "x"@ar--rtl }', "--"),
        ("SELECT (LANGDIR(?b) AS ?s) { ?a :p ?b }", "LANGDIR"),
    ],
)
@pytest.mark.parametrize("dialect", ["sparql", "rspql", "csparql", "cqels", "sparqlstream"])
def test_what_rdf_12_added_is_named(dialect: str, text: str, mark: str) -> None:
    with pytest.raises(NotImplementedYetError, match="of RDF 1.2 is not supported") as caught:
        parse(PREFIX + text, dialect=dialect)
    assert caught.value.hint
    span = caught.value.span
    assert span is not None
    assert (PREFIX + text).splitlines()[span.line - 1][span.column - 1 :].startswith(mark)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?a :p ?b FILTER(?a --) }",
        "SELECT * { ?a < ?b }",
        "SELECT * { ?a :p ?b | }",
        "SELECT (SUBJECTS(?b) AS ?s) { ?a :p ?b }",
    ],
)
def test_other_mistakes_are_not_taken_for_rdf_12(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse(PREFIX + text)


def test_prefixes_can_be_given() -> None:
    assert parse("SELECT ?x { ?x :p 1 }", prefixes={"": EX}) == asked("SELECT ?x { ?x :p 1 }")
    assert parse("SELECT ?x { ?x <p> 1 }", base=EX) == asked("SELECT ?x { ?x :p 1 }")
