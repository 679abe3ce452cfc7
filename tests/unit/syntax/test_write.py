"""Writers: what each dialect can express, and the warnings for the rest."""

import pytest

from quadweir.algebra.windows import Content
from quadweir.errors import UnsupportedError, UsageError
from quadweir.syntax.read import parse
from quadweir.syntax.reread import check_written
from quadweir.syntax.write import declared_prefixes, write
from same_names import same_names

EX = "PREFIX : <urn:x:>\n"


def written(text, to, **options):
    query = parse(EX + text, **options)
    return write(query, to, prefixes={"": "urn:x:"})


def aspects(text, to, **options):
    return [warning.aspect for warning in written(text, to, **options).warnings]


def body(text, to, **options):
    return "\n".join(written(text, to, **options).text.splitlines()[1:])


RSPQL = (
    "REGISTER ISTREAM :q AS SELECT ?s FROM NAMED WINDOW :w ON :s [{}] {{ WINDOW :w {{ ?s :p 1 }} }}"
)
CQELS = "SELECT ?s {{ STREAM :s [{}] {{ ?s :p 1 }} }}"
CSPARQL = "REGISTER QUERY q AS SELECT ?s FROM STREAM :s [{}] {{ ?s :p 1 }}"


@pytest.mark.parametrize(
    "scope",
    [
        "RANGE PT10S",
        "RANGE PT0.25S STEP PT0.1S",
        "RANGE P1D TUMBLING",
        "TRIPLES 5",
        "ELEMENTS 5 STEP 2",
        "FROM NOW-PT1H TO NOW-PT1M",
        "FROM NOW-PT1H TO NOW-PT0S STEP PT5M",
        "NOW",
        "ALL",
        "RANGE PT1S @:at",
    ],
)
def test_every_window_of_rspql_is_written_as_it_was_read(scope):
    assert body(RSPQL.format(scope), "rspql") == (
        "REGISTER ISTREAM :q AS\n"
        "SELECT ?s\n"
        f"FROM NAMED WINDOW :w ON :s [{scope}]\n"
        "WHERE {\n"
        "  WINDOW :w {\n"
        "    ?s :p 1 .\n"
        "  }\n"
        "}"
    )


@pytest.mark.parametrize(
    "scope", ["RANGE 10s", "RANGE 90s SLIDE 250ms", "RANGE 2h TUMBLING", "TRIPLES 5", "NOW", "ALL"]
)
def test_every_window_of_cqels_is_written_as_it_was_read(scope):
    text = f"SELECT ?s\nWHERE {{\n  STREAM :s [{scope}] {{\n    ?s :p 1 .\n  }}\n}}"
    assert body(CQELS.format(scope), "cqels") == text
    assert aspects(CQELS.format(scope), "cqels") == []


@pytest.mark.parametrize(
    "scope",
    ["RANGE 10s STEP 1s", "RANGE 1d TUMBLING", "RANGE TRIPLES 5", "RANGE TRIPLES 5 STEP 2"],
)
def test_every_window_of_csparql_is_written_as_it_was_read(scope):
    text = f"REGISTER QUERY q AS\nSELECT ?s\nFROM STREAM :s [{scope}]\nWHERE {{\n  ?s :p 1 .\n}}"
    lines = written(CSPARQL.format(scope), "csparql").text.splitlines()
    assert lines.pop(1) == "PREFIX : <urn:x:>"
    assert "\n".join(lines) == text
    assert aspects(CSPARQL.format(scope), "csparql") == []


def test_windows_that_are_kept_apart_become_named_streams():
    text = (
        "SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT9S STEP PT3S]"
        " FROM NAMED WINDOW :v ON :t [RANGE PT9S STEP PT3S]"
        " { WINDOW :w { ?s :p ?o } WINDOW :v { ?o :p 1 } ?s :q 2 }"
    )
    assert body(text, "csparql") == (
        "SELECT ?s\n"
        "FROM NAMED STREAM :s [RANGE 9s STEP 3s]\n"
        "FROM NAMED STREAM :t [RANGE 9s STEP 3s]\n"
        "WHERE {\n"
        "  GRAPH :s {\n    ?s :p ?o .\n  }\n"
        "  GRAPH :t {\n    ?o :p 1 .\n  }\n"
        "  ?s :q 2 .\n"
        "}"
    )
    assert aspects(text, "csparql") == ["empty-windows"]


def test_a_merged_default_graph_is_spelt_out_with_a_warning():
    text = (
        "REGISTER QUERY q AS SELECT ?s FROM STREAM :s [RANGE 1s TUMBLING]"
        " FROM STREAM :t [RANGE 1s TUMBLING] FROM <urn:g> { ?s :p 1 }"
    )
    assert body(text, "rspql").splitlines()[6:] == [
        "WHERE {",
        "  {",
        "    WINDOW w:1 {",
        "      ?s :p 1 .",
        "    }",
        "  } UNION {",
        "    WINDOW w:2 {",
        "      ?s :p 1 .",
        "    }",
        "  } UNION {",
        "    ?s :p 1 .",
        "  }",
        "}",
    ]
    assert aspects(text, "rspql") == ["merged-default-graph", "empty-windows"]
    assert "merged-default-graph" in aspects(text, "cqels")


@pytest.mark.parametrize(
    ("text", "to", "lost"),
    [
        (CQELS.format("RANGE 1s"), "rspql", {"content"}),
        (CQELS.format("RANGE 1s SLIDE 1s"), "rspql", {"content"}),
        (
            CQELS.format("RANGE 1s"),
            "csparql",
            {"content", "step", "report", "empty-windows", "output"},
        ),
        (RSPQL.format("RANGE PT1S"), "cqels", {"content", "name"}),
        (
            RSPQL.format("RANGE PT1S").replace("ISTREAM", "RSTREAM"),
            "cqels",
            {"content", "name", "output"},
        ),
        (RSPQL.format("TRIPLES 5 STEP 2"), "cqels", {"content", "name", "step", "report"}),
        (RSPQL.format("ELEMENTS 5"), "cqels", {"content", "name", "count-unit"}),
        (RSPQL.format("RANGE PT1S @:at"), "cqels", {"content", "name", "event-time"}),
        (
            RSPQL.format("RANGE PT1S STEP PT1S @:at"),
            "csparql",
            {"event-time", "empty-windows", "output"},
        ),
        (RSPQL.format("ELEMENTS 5 STEP 5"), "csparql", {"count-unit", "empty-windows", "output"}),
        (RSPQL.format("NOW"), "csparql", {"step", "report", "empty-windows", "output"}),
        (CSPARQL.format("RANGE 1s TUMBLING"), "rspql", {"empty-windows"}),
        (
            CSPARQL.format("RANGE 1s TUMBLING"),
            "cqels",
            {"empty-windows", "content", "output", "name"},
        ),
        (
            CSPARQL.replace("q AS", "q COMPUTED EVERY 5s AS").format("RANGE 1s TUMBLING"),
            "rspql",
            {"empty-windows"},
        ),
        (
            "SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT1S] FROM NAMED WINDOW :v ON :t [NOW]"
            " { WINDOW :w { ?s :p 1 } }",
            "cqels",
            {"content", "output", "unused-window"},
        ),
        (
            "SELECT ?w FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT1S] { WINDOW ?w { ?s :p 1 } }",
            "csparql",
            {"window-variable", "empty-windows"},
        ),
    ],
)
def test_what_is_lost_is_warned_of(text, to, lost):
    assert set(aspects(text, to)) == lost


@pytest.mark.parametrize(
    ("text", "to"),
    [
        (CQELS.format("ALL"), "csparql"),
        (RSPQL.format("FROM NOW-PT9S TO NOW-PT1S"), "csparql"),
        (RSPQL.format("FROM NOW-PT9S TO NOW-PT1S"), "cqels"),
        ("SELECT ?s { STREAM ?x [NOW] { ?s :p 1 } }", "csparql"),
        ("SELECT ?s { STREAM ?x [NOW] { ?s :p 1 } }", "sparqlstream"),
        (RSPQL.format("TRIPLES 5"), "sparqlstream"),
        (RSPQL.format("ALL"), "sparqlstream"),
        (RSPQL.format("NOW").replace("1 }", "1 } ?s :q 2"), "sparqlstream"),
        ("SELECT ?s FROM NAMED WINDOW :w ON :s [NOW] { WINDOW ?w { ?s :p 1 } }", "cqels"),
        (
            "SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT1S] FROM NAMED WINDOW :v ON :s [RANGE PT2S]"
            " { WINDOW :w { ?s :p 1 } WINDOW :v { ?s :p 1 } }",
            "csparql",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_place(text, to):
    with pytest.raises(UnsupportedError) as caught:
        written(text, to)
    assert caught.value.span is not None


def test_content_is_part_of_the_meaning():
    assert aspects(CQELS.format("RANGE 1s"), "rspql", content=Content.GRAPH) == []
    assert aspects(CQELS.format("RANGE 1s"), "cqels", content=Content.GRAPH) == ["content"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (COUNT(*) AS ?n) (SUM(DISTINCT ?v) AS ?t) { ?s :p ?v } GROUP BY ?s (STR(?v) AS ?k) HAVING (COUNT(*) > 1) (MIN(?v) < 5) ORDER BY DESC(COUNT(*)) ?s LIMIT 5 OFFSET 2",
        "SELECT ?s { ?s :p ?v } GROUP BY ?s STR(?v) HAVING (?v > 1)",
        "SELECT DISTINCT ?s (?v + 1 AS ?w) { ?s :p ?v BIND(2 AS ?x) } ORDER BY ?w VALUES ?s { :a :b }",
        "SELECT (COUNT(?s) AS ?n) { ?s :p ?v } GROUP BY ?v VALUES (?v ?z) { (1 UNDEF) }",
        'SELECT (GROUP_CONCAT(?s; SEPARATOR = "\\n\\"") AS ?n) { ?s :p ?v }',
        "SELECT REDUCED * { { ?s :p 1 } { ?s :p 2 } ?s :p 3 OPTIONAL { { ?s :q 1 FILTER(?s) } FILTER(?s = 1) } }",
        "SELECT * { ?s :p 1 . { SELECT ?s { ?s :q ?o } LIMIT 1 } MINUS { ?s :r 1 FILTER(true) } }",
        "SELECT * { { ?s :p 1 FILTER(?s) } UNION { { ?s :p 2 } UNION { ?s :p 3 } } FILTER(?s != 2 || !BOUND(?s) && -?s < 3) }",
        "SELECT * { ?s :p+/^:q ?o ; (:a|!(:b|^:c))* [ :x _:y ] . _:y :z (1 2) FILTER NOT EXISTS { ?s a :T } }",
        "SELECT * { ?s ^(:a/:b)? ?o . ?o (^:c)* ?s ; !:d ?x ; ^:e* ?y }",
        "SELECT * { BIND(1 - (2 - 3) * -(4) AS ?x) FILTER(?x IN (1, -2, ?x + -3) && ?y NOT IN ()) }",
        "SELECT * { FILTER(IF(?a, COALESCE(?b, 1e0), :f(?c, 'x'@en)) = '5'^^:t) }",
        "CONSTRUCT { ?s :p [ :q _:b ] } WHERE { ?s :r 1 } ORDER BY ?s LIMIT 3",
        "CONSTRUCT WHERE { ?s :p [] }",
        "CONSTRUCT { ?s :p 1 . GRAPH :g { ?s :p 2 ; :q _:b } GRAPH ?g { _:b :q ?s } ?s :p 3 } WHERE { GRAPH ?g { ?s :r 1 } }",
        "ASK { GRAPH ?g { ?s :p ?o } GRAPH :g { ?s :p ?o } }",
        "DESCRIBE ?s :x { ?s :p 1 } LIMIT 1",
        "SELECT * FROM <urn:g> FROM NAMED <urn:h> { }",
    ],
)
def test_all_of_sparql_is_written_back(text):
    query = parse(EX + text)
    again = parse(write(query, "rspql", prefixes={"": "urn:x:"}).text, dialect="rspql")
    assert same_names(again) == same_names(query)


def test_prefixes_are_taken_from_the_text_and_declared_only_if_used():
    text = "PREFIX a: <urn:a:> PREFIX b: <urn:b:> prefix : <relative> ASK { a:x a:y-z a:1 }"
    assert declared_prefixes(text) == {"a": "urn:a:", "b": "urn:b:"}
    query = parse("PREFIX a: <urn:a:> ASK { a:x <urn:a:y/z> a:1 }")
    assert write(query, "cqels", prefixes={"a": "urn:a:", "b": "urn:b:"}).text == (
        "PREFIX a: <urn:a:>\nASK\nWHERE {\n  a:x <urn:a:y/z> a:1 .\n}\n"
    )


def test_there_is_no_other_dialect():
    with pytest.raises(UsageError):
        write(parse("ASK {}"), "sql")


STREAMED = "SELECT ISTREAM ?s FROM NAMED STREAM :s [{}] {{ ?s :p 1 }}"


@pytest.mark.parametrize(
    "scope",
    [
        "NOW",
        "NOW - 10 S",
        "NOW - 90 MINUTES SLIDE 250 MS",
        "NOW - 2 HOURS TO NOW - 1 HOURS",
        "NOW - 2 HOURS TO NOW - 1 HOURS SLIDE 10 S",
    ],
)
def test_every_window_of_sparqlstream_is_written_as_it_was_read(scope):
    text = f"SELECT ISTREAM ?s\nFROM NAMED STREAM :s [{scope}]\nWHERE {{\n  ?s :p 1 .\n}}"
    assert body(STREAMED.format(scope), "sparqlstream") == text
    assert aspects(STREAMED.format(scope), "sparqlstream") == []


def test_windows_under_names_become_graphs_in_sparqlstream():
    text = (
        "SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT9S] FROM NAMED WINDOW :v ON :t [NOW]"
        " { WINDOW :w { ?s :p ?o } WINDOW :v { ?o :p 1 } }"
    )
    assert body(text, "sparqlstream") == (
        "SELECT ?s\n"
        "FROM NAMED STREAM :s [NOW - 9 S]\n"
        "FROM NAMED STREAM :t [NOW]\n"
        "WHERE {\n"
        "  GRAPH :s {\n    ?s :p ?o .\n  }\n"
        "  GRAPH :t {\n    ?o :p 1 .\n  }\n"
        "}"
    )
    assert aspects(text, "sparqlstream") == ["empty-windows"]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        (STREAMED.format("NOW - 1 S"), {"rspql": {"empty-windows"}}),
        (
            STREAMED.format("NOW - 1 S SLIDE 1 S"),
            {"csparql": {"output"}, "cqels": {"content", "empty-windows"}},
        ),
    ],
)
def test_what_sparqlstream_loses_in_other_dialects(text, lost):
    assert {to: set(aspects(text, to)) for to in lost} == lost


@pytest.mark.parametrize("to", ["rspql", "cqels"])
def test_blank_nodes_that_two_patterns_share_become_variables(to):
    text = (
        "REGISTER QUERY q AS SELECT ?s FROM STREAM :s [RANGE 1s TUMBLING]"
        " FROM STREAM :t [RANGE 1s TUMBLING] { ?s :p [ :q ?b1 ] . ?s :r [] }"
    )
    lines = [line.strip() for line in written(text, to).text.splitlines()]
    # ?b1 is a variable of the query.
    assert "?s :p ?b2 ." in lines
    assert "?b2 :q ?b1 ." in lines
    assert "?s :r ?b3 ." in lines


def test_register_comes_before_the_prefixes_in_csparql():
    text = CSPARQL.replace(" q AS", " :q COMPUTED EVERY 5s AS").format("RANGE 1s TUMBLING")
    assert written(text, "csparql").text.splitlines()[:2] == [
        "REGISTER QUERY <urn:x:q> COMPUTED EVERY 5s AS",
        "PREFIX : <urn:x:>",
    ]


def test_computed_every_is_kept_in_rspql():
    text = CSPARQL.replace("q AS", "q COMPUTED EVERY 5s AS").format("RANGE 1s TUMBLING")
    assert "REGISTER RSTREAM q COMPUTED EVERY PT5S AS" in written(text, "rspql").text
    query = parse(EX + text)
    assert parse(write(query, "rspql").text).tick == query.tick


def test_a_text_that_means_something_else_is_refused():
    query = parse(EX + CQELS.format("NOW"))
    for text, says in (
        (EX + CQELS.format("NOW"), None),
        (EX + CQELS.format("ALL"), "mean something else"),
        (EX + CQELS.format("NOW").replace("?s :p", "?t :p"), "mean something else"),
        ("SELECT", "ends too early"),
    ):
        if says is None:
            check_written(query, text, "cqels", ())
            continue
        with pytest.raises(UnsupportedError, match=says):
            check_written(query, text, "cqels", ())
