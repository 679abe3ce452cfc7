"""Every function and operator: values, errors, spellings; and the table that declares them."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.algebra.evaluate import Solutions, evaluate
from quadweir.algebra.functions import FUNCTIONS, TIMESTAMP
from quadweir.algebra.moments import ExpressionError, from_epoch_ms
from quadweir.algebra.signatures import Context, Determinism, Type
from quadweir.syntax import parse
from quadweir.terms import IRI, BlankNode, Literal, Term, Variable, parse_term
from quadweir.vocab import XSD

PREFIX = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def value(expression: str) -> Term | None:
    answer = evaluate(
        parse(f"{PREFIX}SELECT ({expression} AS ?value) {{}}"),
        context=Context(now=from_epoch_ms(1_500)),
    )
    assert isinstance(answer, Solutions)
    (row,) = answer.rows
    return row.get(Variable("value"))


def term(text: str) -> Term:
    """Read a term in short form: `5`, `2.5`, `1e0`, `true`, `x^^xsd:y`, or N-Triples."""
    if text in ("true", "false"):
        return Literal(text, IRI(XSD.boolean))
    if text[0] in "<_":
        return parse_term(text)
    if text[0] == '"':
        quoted, caret, datatype = text.rpartition("^^xsd:")
        return parse_term(f"{quoted}^^<{XSD[datatype]}>") if caret else parse_term(text)
    kind = "double" if "e" in text else "decimal" if "." in text else "integer"
    return Literal(text.removesuffix("e"), IRI(XSD[kind]))


VALUES = {
    # Arithmetic and promotion.
    "1 + 2": "3",
    "1 - 3": "-2",
    "2 * 2.5": '"5"^^xsd:decimal',
    "1 / 2": "0.5",
    "4 / 2": '"2"^^xsd:decimal',
    "1 / 3": "0.333333333333333333",
    "1 + 1e0": "2e",
    "1e0 / 0": '"INF"^^xsd:double',
    "-1e0 / 0": '"-INF"^^xsd:double',
    "0e0 / 0": '"NaN"^^xsd:double',
    "xsd:float(1) / 3": '"0.33333334"^^xsd:float',
    "xsd:float(1.1) + xsd:float(2.2)": '"3.3000002"^^xsd:float',
    "xsd:double(1.1) + xsd:float(2.2)": '"3.300000047683716"^^xsd:double',
    "0.1 + 0.2": "0.3",
    "-(1.50)": "-1.5",
    "-xsd:double('0')": '"-0"^^xsd:double',
    '"1"^^xsd:byte + "1"^^xsd:byte': "2",
    "1e21 * 1": '"1.0E21"^^xsd:double',
    "1.5e-8 * 1": '"1.5E-8"^^xsd:double',
    "1e20 * 1": '"100000000000000000000"^^xsd:double',
    # Comparison.
    "1 = 1.0": "true",
    '"01"^^xsd:integer = 1': "true",
    '1 = "1"': "false",
    '"a" = "a"@en': "false",
    '"a"@en = "a"@EN': "true",
    '"NaN"^^xsd:double = "NaN"^^xsd:double': "false",
    '"NaN"^^xsd:double < 1': "false",
    '"a"^^<urn:x> = "a"^^<urn:x>': "true",
    # Whatever an unknown or bad literal means, it is no string with a language.
    '"xyz"@en != "xyz"^^<urn:unknown>': "true",
    '"xyz"@en != "xyz"^^xsd:integer': "true",
    '"xyz"^^<urn:unknown> = "xyz"@en': "false",
    '"xyz"@en IN ("xyz"^^<urn:unknown>, "xyz")': "false",
    # The shortest digits of a power of two are not those nearest to it.
    '"9223372036854775808"^^xsd:float * "16777216"^^xsd:float': '"1.5474251E26"^^xsd:float',
    "<urn:a> = <urn:b>": "false",
    '<urn:a> != "a"': "true",
    "false < true": "true",
    '"a" < "b"': "true",
    '"abc"@en < "abd"@en': "true",
    "1 <= 1.0 && 2 >= 1e0": "true",
    '"2020-01-01T00:00:00Z"^^xsd:dateTime = "2020-01-01T01:00:00+01:00"^^xsd:dateTime': "true",
    '"2020-01-01T00:00:00"^^xsd:dateTime < "2020-01-05T10:00:00Z"^^xsd:dateTime': "true",
    '"2020-01-01"^^xsd:date < "2020-01-02"^^xsd:date': "true",
    '"10:00:00Z"^^xsd:time < "10:30:00Z"^^xsd:time': "true",
    '"PT60M"^^xsd:dayTimeDuration = "PT1H"^^xsd:duration': "true",
    '"P1M"^^xsd:duration > "P27D"^^xsd:duration': "true",
    # Logic with errors; truth of terms.
    "true || (1/0 = 1)": "true",
    "false && (1/0 = 1)": "false",
    '!""': "true",
    '!"NaN"^^xsd:double': "true",
    '!"abc"^^xsd:integer': "true",
    "1 IN (1/0, 1)": "true",
    "1 NOT IN (2, 3)": "true",
    "1 IN ()": "false",
    "IF(1 = 1, 5, 1/0)": "5",
    "COALESCE(1/0, ?unbound, 7)": "7",
    "BOUND(?unbound)": "false",
    # Terms.
    "STR(<urn:a>)": '"urn:a"',
    'STR("007"^^xsd:integer)': '"007"',
    'LANG("a"@EN-gb)': '"en-gb"',
    'LANG("a")': '""',
    'DATATYPE("a"@en)': "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
    'DATATYPE("a")': "<http://www.w3.org/2001/XMLSchema#string>",
    'IRI("http://e/a")': "<http://e/a>",
    "URI(<urn:a>)": "<urn:a>",
    'STRDT("5", xsd:integer)': "5",
    'STRLANG("a", "en")': '"a"@en',
    "isIRI(<urn:a>)": "true",
    'isLiteral("a")': "true",
    "isBlank(BNODE())": "true",
    'isNumeric("300"^^xsd:byte)': "false",
    "isNumeric(1e0)": "true",
    'sameTerm(1, "01"^^xsd:integer)': "false",
    'langMatches("en-GB", "EN")': "true",
    'langMatches("english", "en")': "false",
    'langMatches("", "*")': "false",
    # Strings.
    'STRLEN("a😀b")': "3",
    'SUBSTR("motor car", 6)': '" car"',
    'SUBSTR("metadata", 4, 3)': '"ada"',
    'SUBSTR("12345", 0, 3)': '"12"',
    'SUBSTR("12345", -3)': '"12345"',
    'SUBSTR("a😀b", 2, 1)': '"😀"',
    'SUBSTR("abc"@en, 2)': '"bc"@en',
    'UCASE("straße"@de)': '"STRASSE"@de',
    'LCASE("ÄB")': '"äb"',
    'STRSTARTS("abc"@en, "a")': "true",
    'STRENDS("abc"@en, "c"@en)': "true",
    'CONTAINS("abc", "")': "true",
    'STRBEFORE("abc"@en, "b")': '"a"@en',
    'STRBEFORE("abc"@en, "z")': '""',
    'STRBEFORE("abc"@en, "")': '""@en',
    'STRAFTER("abc"@en, "")': '"abc"@en',
    'STRAFTER("abc", "ab")': '"c"',
    'CONCAT("a"@en, "b"@en)': '"ab"@en',
    'CONCAT("a"@en, "b")': '"ab"',
    "CONCAT()": '""',
    'ENCODE_FOR_URI("a b/é~")': '"a%20b%2F%C3%A9~"',
    'MD5("abc")': '"900150983cd24fb0d6963f7d28e17f72"',
    'SHA1("abc")': '"a9993e364706816aba3e25717850c26c9cd0d89d"',
    # Regular expressions.
    'REGEX("Alice", "^ali", "i")': "true",
    'REGEX("a\\nb", "a.b")': "false",
    'REGEX("a\\nb", "a.b", "s")': "true",
    'REGEX("a\\nb", "^b$", "m")': "true",
    'REGEX("ab", "a b", "x")': "true",
    'REGEX("a.b", "a.b", "q")': "true",
    'REGEX("axb", "a.b", "q")': "false",
    'REGEX("x٣", "\\\\d")': "true",
    'REGEX("a-b", "[\\\\w-]+")': "true",
    'REGEX("a]", "[\\\\]]")': "true",
    'REPLACE("abcb", "b", "[$0]")': '"a[b]c[b]"',
    'REPLACE("darted", "^(.*?)d(.*)$", "$1c$2")': '"carted"',
    'REPLACE("abc"@en, "b", "\\\\$")': '"a$c"@en',
    'REPLACE("abc", "(b)|(z)", "<$1$2>")': '"a<b>c"',
    'REPLACE("ab", "(a)", "$12")': '"a2b"',
    'REPLACE("AbC", "[a-c]", "x", "i")': '"xxx"',
    # Numbers.
    "ABS(-1.5)": "1.5",
    'ABS("-1"^^xsd:byte)': "1",
    "CEIL(1.2)": '"2"^^xsd:decimal',
    "FLOOR(-1.2)": '"-2"^^xsd:decimal',
    "ROUND(2.5)": '"3"^^xsd:decimal',
    "ROUND(-2.5)": '"-2"^^xsd:decimal',
    "ROUND(-2.5e0)": "-2e",
    'ROUND("0.49999999999999994"^^xsd:double)': "0e",
    'CEIL("INF"^^xsd:double)': '"INF"^^xsd:double',
    # Dates.
    "NOW()": '"1970-01-01T00:00:01.5Z"^^xsd:dateTime',
    'YEAR("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)': "2011",
    'YEAR("-0044-03-15"^^xsd:date)': "-44",
    'MONTH("2011-01-10"^^xsd:date)': "1",
    'HOURS("14:45:13Z"^^xsd:time)': "14",
    'MINUTES("2011-01-10T14:45:13Z"^^xsd:dateTime)': "45",
    'SECONDS("2011-01-10T14:45:13.810Z"^^xsd:dateTime)': "13.81",
    'TIMEZONE("2011-01-10T14:45:13-05:30"^^xsd:dateTime)': '"-PT5H30M"^^xsd:dayTimeDuration',
    'TIMEZONE("2011-01-10T14:45:13Z"^^xsd:dateTime)': '"PT0S"^^xsd:dayTimeDuration',
    'TZ("2011-01-10T14:45:13-05:00"^^xsd:dateTime)': '"-05:00"',
    'TZ("2011-01-10T14:45:13"^^xsd:dateTime)': '""',
    '"2020-03-01T00:00:00Z"^^xsd:dateTime - "2020-02-28T12:00:00Z"^^xsd:dateTime': '"P1DT12H"^^xsd:dayTimeDuration',
    '"2020-01-31"^^xsd:date + "P1M"^^xsd:yearMonthDuration': '"2020-02-29"^^xsd:date',
    '"2020-01-01T00:00:00Z"^^xsd:dateTime - "PT0.5S"^^xsd:dayTimeDuration': '"2019-12-31T23:59:59.5Z"^^xsd:dateTime',
    '"23:30:00"^^xsd:time + "PT1H"^^xsd:dayTimeDuration': '"00:30:00"^^xsd:time',
    '"P1Y"^^xsd:yearMonthDuration + "P2M"^^xsd:yearMonthDuration': '"P1Y2M"^^xsd:yearMonthDuration',
    '"PT1H"^^xsd:dayTimeDuration * 2.5': '"PT2H30M"^^xsd:dayTimeDuration',
    '"PT1H"^^xsd:dayTimeDuration / 2': '"PT30M"^^xsd:dayTimeDuration',
    '"PT1H"^^xsd:dayTimeDuration / 3': '"PT20M"^^xsd:dayTimeDuration',
    '"P1Y"^^xsd:yearMonthDuration / 8': '"P2M"^^xsd:yearMonthDuration',
    # Casts.
    'xsd:integer(" 42 ")': "42",
    "xsd:integer(-1.7e0)": "-1",
    "xsd:integer(true)": "1",
    'xsd:byte("5")': '"5"^^xsd:byte',
    "xsd:decimal(0.1e0)": "0.1",
    'xsd:decimal("1.50")': "1.5",
    'xsd:double("1e3")': "1000e",
    'xsd:float("1e50")': '"INF"^^xsd:float',
    'xsd:boolean("0")': "false",
    "xsd:boolean(0.0)": "false",
    "xsd:string(1e0)": '"1"',
    "xsd:string(1e6)": '"1.0E6"',
    'xsd:string("a"@en)': '"a"',
    "xsd:string(<urn:a>)": '"urn:a"',
    'xsd:dateTime("2020-01-01"^^xsd:date)': '"2020-01-01T00:00:00"^^xsd:dateTime',
    'xsd:date("2020-01-01T10:00:00Z"^^xsd:dateTime)': '"2020-01-01Z"^^xsd:date',
    'xsd:time("2020-01-01T10:00:00Z"^^xsd:dateTime)': '"10:00:00Z"^^xsd:time',
    'xsd:dayTimeDuration("P1YT90M"^^xsd:duration)': '"PT1H30M"^^xsd:dayTimeDuration',
}

ERRORS = [
    "1 / 0",
    '1 + "1"',
    "9223372036854775807 + 1",
    "99999999999999999999.0 * 10",
    "<urn:a> < <urn:b>",
    '"a" < 1',
    '"a"@en < "b"@fr',
    '"a"^^<urn:x> = "b"^^<urn:x>',
    '"x"^^xsd:integer = 1',
    '"2020-01-01T00:00:00"^^xsd:dateTime < "2020-01-01T10:00:00Z"^^xsd:dateTime',
    '"P1M"^^xsd:duration < "P30D"^^xsd:duration',
    '"P1Y"^^xsd:duration * 1e9',
    '"-P1D"^^xsd:dayTimeDuration / 1e-12',
    '"P999999999Y"^^xsd:yearMonthDuration + "P12M"^^xsd:yearMonthDuration',
    "!<urn:a>",
    '!"a"@en',
    '"xyz" != "xyz"^^<urn:unknown>',
    '"xyz" = "xyz"^^xsd:integer',
    # Whether these are the same day depends on the time zone.
    '"2006-08-23Z"^^xsd:date != "2006-08-23"^^xsd:date',
    '"2006-08-23"^^xsd:date = "2006-08-23Z"^^xsd:date',
    '"2006-08-23" IN ("2006-08-23"^^xsd:date, "x"^^xsd:date)',
    "?unbound",
    "1 IN (1/0, 2)",
    "IF(1/0, 1, 2)",
    "COALESCE()",
    "STR(BNODE())",
    "LANG(<urn:a>)",
    'IRI("relative")',
    'STRDT("a"@en, xsd:string)',
    'STRLANG("a", "")',
    'STRSTARTS("abc"@en, "a"@fr)',
    'CONTAINS("abc", "a"@en)',
    'SUBSTR("abc", 1.5)',
    "CONCAT(1)",
    'MD5("a"@en)',
    "STRLEN(5)",
    'langMatches("en"@en, "*")',
    'REGEX("a", "(")',
    'REGEX("a", "a", "z")',
    'REGEX(5, "5")',
    'REGEX("aa", "(a)\\\\1")',
    'REGEX("a", "[a-z-[b]]")',
    'REGEX("a", "(?i)A")',
    'REPLACE("abc", "b*", "x")',
    'REPLACE("abc", "b", "$")',
    'REPLACE("abc", "b", "\\\\n")',
    'ABS("a")',
    'YEAR("10:00:00"^^xsd:time)',
    'TIMEZONE("2011-01-10T14:45:13"^^xsd:dateTime)',
    '"2020-01-01"^^xsd:date - "2020-01-01T00:00:00Z"^^xsd:dateTime',
    'xsd:integer("1.5")',
    'xsd:integer("INF"^^xsd:double)',
    "xsd:byte(300)",
    'xsd:boolean("TRUE")',
    'xsd:dateTime("2020-02-30T00:00:00Z")',
    'xsd:date("2020-1-1")',
    "xsd:integer(<urn:a>)",
    'xsd:integer("5"@en)',
    "<urn:no-such-function>(1)",
]


@pytest.mark.parametrize(("expression", "expected"), VALUES.items(), ids=VALUES)
def test_value(expression: str, expected: str) -> None:
    assert value(expression) == term(expected)


@pytest.mark.parametrize("expression", ERRORS)
def test_error(expression: str) -> None:
    assert value(expression) is None


def test_a_pattern_that_would_backtrack_for_ever_does_not() -> None:
    assert value(f'REGEX("{"a" * 5_000}!", "^(a+)+$")') == term("false")


def test_bnode_is_one_for_each_label_and_solution() -> None:
    answer = evaluate(
        parse('SELECT (BNODE("a") AS ?x) (BNODE("a") AS ?y) (BNODE("b") AS ?z) { VALUES ?r {1 2} }')
    )
    assert isinstance(answer, Solutions)
    first, second = answer.rows
    x, y, z = (Variable(name) for name in "xyz")
    assert isinstance(first[x], BlankNode)
    assert first[x] == first[y] != first[z]
    assert first[x] != second[x]


def test_uuids_and_random_numbers_come_from_the_context() -> None:
    query = parse("SELECT (STRUUID() AS ?u) (RAND() AS ?r) (UUID() AS ?i) { VALUES ?n {1 2} }")
    one, again = evaluate(query, context=Context()), evaluate(query, context=Context())
    assert one == again
    assert isinstance(one, Solutions)
    first, second = one.rows
    assert first != second
    assert str(first[Variable("i")]).startswith("<urn:uuid:")


# --- the table --------------------------------------------------------------------------------

SAMPLES: tuple[Term, ...] = tuple(
    map(
        term,
        (
            *("<urn:a>", "_:b", '"text"', '"fr"', '"texte"@fr', "true", "5", "0", "2.5", "1.5e"),
            '"1.5"^^xsd:float',
            '"2020-01-01T10:00:00Z"^^xsd:dateTime',
            '"2020-01-01"^^xsd:date',
            '"10:00:00"^^xsd:time',
            '"P1Y"^^xsd:yearMonthDuration',
            '"PT1H"^^xsd:dayTimeDuration',
            '"P1M"^^xsd:duration',
            '"bad"^^xsd:integer',
            f"<{XSD.integer}>",
        ),
    )
)


def _type_of(sample: Term) -> Type:
    narrow = [t for t in Type if t not in (Type.TRUTH, Type.NUMERIC, Type.TERM, Type.LITERAL)]
    fitting = [t for t in narrow if t.accepts(sample)]
    return fitting[-1] if fitting else Type.TERM


@given(st.sampled_from(sorted(FUNCTIONS, key=str)), st.lists(st.sampled_from(SAMPLES), max_size=4))
def test_results_are_of_the_type_that_the_table_declares(
    name: str | IRI, arguments: list[Term]
) -> None:
    function = FUNCTIONS[name]
    declared = function.result_type(tuple(map(_type_of, arguments)))
    try:
        result = function(tuple(arguments), Context())
    except ExpressionError:
        return
    if not isinstance(name, IRI) or "Integer" not in name.value:
        assert declared.accepts(result), f"{name}{arguments} gave {result}, not {declared}"


def test_the_table_knows_every_built_in_of_the_specification() -> None:
    names = (
        "STR LANG LANGMATCHES DATATYPE IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE"
        " LCASE ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS"
        " MINUTES SECONDS TIMEZONE TZ NOW UUID STRUUID MD5 SHA1 SHA256 SHA384 SHA512 STRLANG STRDT"
        " SAMETERM ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC REGEX SUBSTR REPLACE"
    )
    assert set(names.split()) <= set(FUNCTIONS)
    casts = ("string", "float", "double", "decimal", "integer", "dateTime", "boolean")
    assert {IRI(XSD[name]) for name in casts} <= set(FUNCTIONS)
    assert TIMESTAMP.signatures[0].result is Type.INTEGER


def test_only_these_functions_may_not_be_folded() -> None:
    changing = {f.name for f in FUNCTIONS.values() if f.determinism is not Determinism.PURE}
    assert changing == {"NOW", "RAND", "UUID", "STRUUID", "BNODE"}


# --- an independent judge ---------------------------------------------------------------------

# Where Oxigraph differs, and why we do not follow it.
DIFFERENT = {
    'isNumeric("300"^^xsd:byte)',  # it does not check the bounds of derived integers
    'sameTerm(1, "01"^^xsd:integer)',  # it stores values, not lexical forms
    'STR("007"^^xsd:integer)',
    # It spells floats without exponents.
    '"9223372036854775808"^^xsd:float * "16777216"^^xsd:float',
    '"NaN"^^xsd:double < 1',  # it takes NaN for an error, XPath for false
    'REPLACE("darted", "^(.*?)d(.*)$", "$1c$2")',
    'xsd:dayTimeDuration("P1YT90M"^^xsd:duration)',
    "false < true",  # it has no order of booleans
    '!"abc"^^xsd:integer',  # it takes a bad number for an error, SPARQL for false
    "xsd:string(1e6)",  # it spells all doubles without an exponent
    "1e21 * 1",
    "1.5e-8 * 1",
    "NOW()",
    'REPLACE("abc"@en, "b", "\\\\$")',  # its replacements are not XPath's
    'REPLACE("ab", "(a)", "$12")',
    'REGEX("a.b", "a.b", "q")',
    'REGEX("axb", "a.b", "q")',
    'xsd:integer(" 42 ")',  # it does not strip white space
    'xsd:byte("5")',  # it has no casts to derived integers
    '"PT1H"^^xsd:dayTimeDuration * 2.5',  # nor arithmetic of durations and numbers
    '"PT1H"^^xsd:dayTimeDuration / 2',
    '"PT1H"^^xsd:dayTimeDuration / 3',
    '"P1Y"^^xsd:yearMonthDuration / 8',
    '"2020-01-31"^^xsd:date + "P1M"^^xsd:yearMonthDuration',
    '"23:30:00"^^xsd:time + "PT1H"^^xsd:dayTimeDuration',
    "isBlank(BNODE())",
}


@pytest.mark.parametrize("expression", [each for each in VALUES if each not in DIFFERENT])
def test_oxigraph_agrees(expression: str) -> None:
    (row,) = ox.Store().query(f"{PREFIX}SELECT ({expression} AS ?value) {{}}")
    found = row["value"]
    assert found is not None
    assert parse_term(str(found)) == value(expression)
