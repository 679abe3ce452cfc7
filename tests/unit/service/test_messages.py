"""RDF Message Logs: each message is an element, as the tests of the specification say.

Spec: https://w3c-cg.github.io/rsp/spec/messages-tests
"""

from __future__ import annotations

import pytest

from quadweir.errors import DataError, LimitError, QuadweirError
from quadweir.service.messages import NDJSON_LD
from quadweir.service.problems import MediaTypeError
from quadweir.service.pushing import PushBody, read_push

TTL, TRIG = "text/turtle", "application/trig"
NT, NQ = "application/n-triples", "application/n-quads"
ALL = (TTL, TRIG, NT, NQ)
ONE, TWO = ("<urn:a> <urn:p> <urn:1> .", "<urn:b> <urn:p> <urn:2> .")
VERSION = 'VERSION "1.2-messages"\n'


def pushed(body: str, kind: str, version: str | None = None) -> PushBody:
    return read_push(body.encode(), kind, "nquads", is_rdf=True, time_ms=7, version=version)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (ONE, [ONE]),
        (f"{ONE}\n{TWO}", [f"{ONE}\n{TWO}"]),
        (f"{ONE}\nMESSAGE\n{TWO}", [ONE, TWO]),
        (f"{ONE}\r\nMESSAGE\r\n{TWO}\r\n", [ONE, TWO]),
        (f"MESSAGE\n{ONE}", [ONE]),
        (f"{ONE}\nMESSAGE\nMESSAGE # an empty one\n{TWO}", [ONE, TWO]),
        (f"{ONE}\n  MESSAGE # the last\n", [ONE]),
        ("MESSAGE\n", []),
        ('<urn:a> <urn:p> "MESSAGE" . # MESSAGE', ['<urn:a> <urn:p> "MESSAGE" .']),
    ],
)
def test_delimiters_end_messages(kind: str, body: str, messages: list[str]) -> None:
    for given, version in ((VERSION + body, None), (body, "1.1-messages")):
        found = pushed(given, kind, version)
        assert found.values == messages
        assert found.statements == sum(each.count("\n") + 1 for each in messages)


def test_delimiters_of_turtle() -> None:
    old = '@version "1.2-messages" .\n@prefix ex: <urn:> .\nex:a ex:p ex:1 .\n@message .\nex:b ex:p ex:2 .'
    assert pushed(old, TTL).values == [ONE, TWO]
    again = (
        f"{VERSION}PREFIX ex: <urn:>\nex:a ex:p ex:1 .\nMESSAGE\nPREFIX ex: <urn:x:>\nex:b ex:p 1 ."
    )
    second = pushed(again, TTL).values[1]
    assert second.startswith("<urn:x:b> <urn:x:p>")
    texts = f'{VERSION}<urn:a> <urn:p> """ MESSAGE " \\""" MESSAGE """, \'MESSAGE\', "x"@message .\nMESSAGE'
    assert len(pushed(texts, TTL).values) == 1


def test_a_message_has_all_its_graphs() -> None:
    body = f"{VERSION}{ONE}\n<urn:g> {{ {TWO} }}\nMESSAGE\n<urn:h> {{ {TWO} }}"
    assert pushed(body, TRIG).values == [
        f"{ONE}\n<urn:b> <urn:p> <urn:2> <urn:g> .",
        "<urn:b> <urn:p> <urn:2> <urn:h> .",
    ]


@pytest.mark.parametrize("kind", ALL)
def test_a_blank_node_is_one_of_its_message(kind: str) -> None:
    body = f"{VERSION}_:b <urn:p> _:b .\nMESSAGE\n_:b <urn:p> <urn:2> ."
    first, second = pushed(body, kind).values
    subject, _, same, _ = first.split(" ")
    assert subject == same
    assert not second.startswith(subject)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *((kind, f"{ONE}\nMESSAGE\n") for kind in ALL),
        *((kind, f"# {VERSION}{ONE}\nMESSAGE\n") for kind in ALL),
        (TTL, f"{VERSION}{ONE}\n@message <urn:x>"),
        (TRIG, f"{VERSION}<urn:g> {{ {ONE}\nMESSAGE\n{TWO} }}"),
        (TTL, f"{VERSION}<urn:a> <urn:p> MESSAGE <urn:1> ."),
        (TTL, f"{VERSION}<urn:a> MESSAGE"),
        (TTL, f"{VERSION}<urn:a> <urn:p> <urn:1> MESSAGE"),
        (TTL, f"{VERSION}<urn:a> <urn:p> [ MESSAGE ] ."),
        (NQ, f"{VERSION}<urn:a> MESSAGE"),
        (NQ, f"{VERSION}{ONE} MESSAGE"),
        (NT, f"{VERSION}@message ."),
    ],
)
def test_delimiters_elsewhere_are_mistakes(kind: str, body: str) -> None:
    with pytest.raises(DataError) as caught:
        pushed(body, kind)
    assert caught.value.span is not None


def test_places_are_those_of_the_body() -> None:
    with pytest.raises(DataError) as caught:
        pushed(f"{VERSION}{ONE}\nMESSAGE\n<urn:b> oops", NQ)
    assert caught.value.span is not None
    assert caught.value.span.line == 4


def test_versions_that_nobody_knows_are_refused() -> None:
    assert pushed(ONE, TTL, "1.2").values == [ONE]
    for version in ("2.0", "messages", "1.2-message"):
        with pytest.raises(MediaTypeError):
            pushed(ONE, TTL, version)


# --- JSON-LD ---


def test_lines_of_json_ld_are_messages() -> None:
    lines = [
        '{"@id":"urn:a","urn:p":{"@id":"urn:1"}}',
        "{}",
        '{"@context":{"p":{"@id":"urn:p","@type":"@id"}}}',
        '{"@id":"urn:b","p":"urn:2"}',
        '{"@context":{"q":"urn:q"},"@id":"urn:b","p":"urn:2","q":"x"}',
        '{"@id":"urn:b","q":"not a property"}',
    ]
    assert pushed("\n".join(lines) + "\n", NDJSON_LD).values == [
        ONE,
        TWO,
        f'{TWO}\n<urn:b> <urn:q> "x" .',
    ]


@pytest.mark.parametrize(
    "line", ["", "[]", "oops", '{"@id":', "[" * 5_000, '{"@context":"http://127.0.0.1:1/","p":1}']
)
def test_a_bad_line_has_its_place(line: str) -> None:
    with pytest.raises(DataError) as caught:
        pushed('{"@id":"urn:a","urn:p":"x"}\n' + line + '\n{"@id":"urn:a"}', NDJSON_LD)
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_a_context_that_makes_much_of_little_is_refused() -> None:
    context = '{"@context":{"p":"urn:' + "p" * 1_000_000 + '"}}'
    with pytest.raises(LimitError):
        pushed("\n".join([context, *['{"p":1}'] * 1_000]), NDJSON_LD)


# --- bodies that become too large, or nest too deeply ---

LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (TTL, f"@prefix p: <urn:{LONG}> .\n" + "p: p: p: .\n" * 1_000),
        (TTL, f"@base <urn:{LONG}/> .\n" + "<#> <#> <#> .\n" * 1_000),
        (TRIG, f"@prefix p: <urn:{LONG}> .\n" + "p: { p: p: p: }\n" * 1_000),
        (TTL, f"{VERSION}@prefix p: <urn:{LONG}> .\n" + "p: p: p: .\nMESSAGE\n" * 1_000),
        (
            "application/ld+json",
            f'{{"@context":{{"p":"urn:{LONG}"}},"@graph":[' + ",".join(['{"p":1}'] * 1_000) + "]}",
        ),
    ],
)
def test_a_body_that_becomes_too_large_is_refused(kind: str, body: str) -> None:
    with pytest.raises(LimitError):
        pushed(body, kind)


@pytest.mark.parametrize("kind", [*ALL, "text/x-timed-lines"])
@pytest.mark.parametrize("count", [17, 300_000])
@pytest.mark.parametrize("hidden", ["", "# '\n", '<urn:a> <urn:b> "\'\\"" .\n'])
def test_triple_terms_that_nest_too_deeply_are_refused(kind: str, count: int, hidden: str) -> None:
    begin = "<urn:a> <urn:b> "
    line = begin + f"<<( {begin}" * count + "<urn:c> " + ")>> " * count + "."
    if kind == "text/x-timed-lines":
        hidden, line = "", f"1 {line}"
    with pytest.raises(QuadweirError):
        pushed(hidden + line, kind)


@pytest.mark.parametrize("kind", ALL)
def test_triple_terms_that_do_not_are_taken(kind: str) -> None:
    line = '<urn:a> <urn:b> <<( <urn:a> <urn:b> "<<(" )>> .'
    assert pushed("\n".join([line] * 500), kind).statements in (1, 500)


@pytest.mark.parametrize("kind", ALL)
def test_texts_with_a_direction_are_refused(kind: str) -> None:
    with pytest.raises(DataError) as caught:
        pushed('<urn:a> <urn:b> "x"@en--rtl .', kind)
    assert "direction" in caught.value.message
