"""Built-in and users' functions of mappings, computed by Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quadweir.errors import MappingError
from quadweir.mapping.functions import (
    FUNCTIONS,
    Kind,
    MappingFunctions,
    Output,
    Parameter,
    register,
)
from quadweir.mapping.functions.columns import BUILDERS
from quadweir.mapping.functions.compile import (
    CompiledValues,
    compile_condition,
    compile_function,
    uses_python,
)
from quadweir.mapping.functions.dateformats import is_date_format
from quadweir.mapping.functions.patterns import BY_PATTERN
from quadweir.mapping.model import (
    FunctionExecution,
    FunctionInput,
    Reference,
    TermMap,
    TermType,
    constant,
)
from quadweir.mapping.vocabulary import GREL, IDLAB
from quadweir.terms import Literal
from quadweir.vocab import XSD

pytestmark = pytest.mark.spark

MANY = {"list", "empty"}


def resolve(term: TermMap) -> CompiledValues:
    assert isinstance(term.expression, Reference)
    name = term.expression.reference
    return CompiledValues(F.col(name), name in MANY)


def ref(name: str) -> TermMap:
    return TermMap(expression=Reference(reference=name), term_type=TermType.LITERAL)


def call(function: str, *inputs: tuple[str, object], returns: str | None = None):
    made = []
    for parameter, value in inputs:
        if isinstance(value, FunctionExecution):
            value = TermMap(expression=value, term_type=TermType.LITERAL)
        elif isinstance(value, str):
            value = constant(Literal(value))
        made.append(FunctionInput(parameter=parameter, value=value))
    return FunctionExecution(function=function, inputs=tuple(made), returns=returns)


V, V2 = GREL.valueParam, GREL.valueParameter2
ARRAY, SEP = GREL.p_array_a, GREL.p_string_sep
LIST = ref("list")

# Calls and their results: a string, a list, or None for no term.
CASES = [
    (call(GREL.toUpperCase, (V, "straße é")), "STRASSE É"),
    (call(GREL.toLowerCase, (V, "ABC")), "abc"),
    (call(GREL.toTitleCase, (V, "one two")), "One Two"),
    (call(GREL.toUpperCase, (V, ref("absent"))), None),
    (call(GREL.string_trim, (V, " \t a b\n")), "a b"),
    (call(GREL.string_chomp, (V, "hardly"), (SEP, "ly")), "hard"),
    (call(GREL.string_chomp, (V, "hard"), (SEP, "ly")), "hard"),
    (call(GREL.string_length, (V, "Venus")), "5"),
    (call(GREL.string_substring, (V, "Venus"), (GREL.p_int_i_from, "1")), "enus"),
    (call(GREL.string_substring, (V, "Venus"), (GREL.p_int_i_from, "5")), ""),
    (call(GREL.string_substring, (V, "Venus"), (GREL.p_int_i_from, "6")), None),
    (call(GREL.string_substring, (V, "Venus"), (GREL.p_int_i_from, str(2**63 - 1))), None),
    (call(GREL.string_substring, (V, "Venus"), (GREL.p_int_i_from, str(-(2**63)))), "Venus"),
    (
        call(
            GREL.string_substring,
            (V, "Venus"),
            (GREL.p_int_i_from, "1"),
            (GREL.param_int_i_opt_to, "-1"),
        ),
        "enu",
    ),
    (call(GREL.string_replace, (V, "a.b.c"), (GREL.param_find, "."), (GREL.param_replace, "-")), "a-b-c"),
    (call(GREL.string_replaceChars, (V, "abc"), (GREL.param_find, "ac"), (GREL.param_replace, "xz")), "xbz"),
    (call(GREL.string_contains, (V, "abc"), (GREL.string_sub, "bc")), "true"),
    (call(GREL.string_startsWith, (V, "abc"), (GREL.string_sub, "bc")), "false"),
    (call(GREL.string_endsWith, (V, "abc"), (GREL.string_sub, "bc")), "true"),
    (call(GREL.string_indexOf, (V, "abcabc"), (GREL.string_sub, "c")), "2"),
    (call(GREL.string_indexOf, (V, "abc"), (GREL.string_sub, "z")), "-1"),
    (call(GREL.string_lastIndexOf, (V, "abcab"), (GREL.string_sub, "ab")), "3"),
    (call(GREL.string_lastIndexOf, (V, "abc"), (GREL.string_sub, "z")), "-1"),
    (call(GREL.string_split, (V, "a.b..c"), (SEP, ".")), ["a", "b", "", "c"]),
    (call(GREL.string_split, (V, "a\\Eb"), (SEP, "\\E")), ["a", "b"]),
    (call(GREL.string_match, (V, "2024-05"), (GREL.param_regex, r"(\d+)-(\d+)")), ["2024", "05"]),
    (call(GREL.string_match, (V, "x2024-05"), (GREL.param_regex, r"(\d+)-(\d+)")), []),
    (call(GREL.string_find, (V, "a1b22"), (GREL.param_regex, r"\d+")), ["1", "22"]),
    (call(GREL.string_md5, (V, "a")), "0cc175b9c0f1b6a831c399e269772661"),
    (call(GREL.string_sha1, (V, "a")), "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    (call(GREL.string_toNumber, (GREL.p_any_e, "1.50")), "1.5"),
    (call(GREL.string_toNumber, (GREL.p_any_e, "one")), None),
    (call(GREL.escape, (V, "A&B <\"'>"), (GREL.modeParam, "html")), "A&amp;B &lt;&quot;'&gt;"),
    (call(GREL.escape, (V, "a'b"), (GREL.modeParam, "XML")), "a&apos;b"),
    (call(GREL.escape, (V, "a b&c"), (GREL.modeParam, "url")), "a+b%26c"),
    (call(GREL.escape, (V, 'a,"b"'), (GREL.modeParam, "csv")), '"a,""b"""'),
    (call(GREL.escape, (V, 'a"\n'), (GREL.modeParam, "javascript")), 'a\\"\\n'),
    (call(GREL.escape, (V, "<"), (GREL.modeParam, ref("mode"))), "&lt;"),
    (call(GREL.string_unescape, (V, "&amp;lt; &quot;"), (GREL.modeParam, "html")), '&lt; "'),
    (call(GREL.string_unescape, (V, '"a,""b"""'), (GREL.modeParam, "csv")), 'a,"b"'),
    (call(GREL.string_unescape, (V, "%zz"), (GREL.modeParam, "url")), None),
    (call(GREL.array_join, (ARRAY, LIST), (SEP, "-")), "b-a-b"),
    (call(GREL.array_join, (ARRAY, "x"), (ARRAY, LIST), (ARRAY, "y"), (SEP, "")), "xbaby"),
    (call(GREL.array_length, (ARRAY, LIST)), "3"),
    (call(GREL.array_get, (ARRAY, LIST), (GREL.p_int_i_from, "1")), ["a"]),
    (call(GREL.array_slice, (ARRAY, LIST), (GREL.p_int_i_from, "1")), ["a", "b"]),
    (call(GREL.array_reverse, (ARRAY, call(GREL.string_split, (V, "1,2"), (SEP, ",")))), ["2", "1"]),
    (call(GREL.array_sort, (ARRAY, LIST)), ["a", "b", "b"]),
    (call(GREL.array_uniques, (ARRAY, LIST)), ["b", "a"]),
    (call(GREL.array_sum, (ARRAY, "1"), (ARRAY, "2.5")), "3.5"),
    (call(GREL.boolean_and, (GREL.param_rep_b, "true"), (GREL.param_rep_b, "TRUE")), "true"),
    (call(GREL.boolean_or, (GREL.param_rep_b, "no"), (GREL.param_rep_b, "1")), "true"),
    (call(GREL.boolean_xor, (GREL.param_rep_b, "true"), (GREL.param_rep_b, "true")), "false"),
    (call(GREL.boolean_not, (GREL.bool_b, call(IDLAB.isNull, (IDLAB.str, ref("absent"))))), "false"),
    (call(GREL.controls_if, (GREL.bool_b, "true"), (GREL.any_true, "y"), (GREL.any_false, "n")), "y"),
    (call(GREL.controls_if, (GREL.bool_b, "false"), (GREL.any_true, "y")), None),
    (call(GREL.controls_isBlank, (GREL.p_any_e, " ")), "true"),
    (call(GREL.controls_isNonBlank, (GREL.p_any_e, ref("absent"))), "false"),
    (call(GREL.controls_isNumeric, (GREL.p_any_e, "1e3")), "true"),
    (call(GREL.controls_isNotNull, (GREL.p_any_e, ref("absent"))), "false"),
    (call(GREL.other_coalesce, (GREL.p_any_rep_e, ref("absent")), (GREL.p_any_rep_e, "z")), "z"),
    (call(GREL.math_floor, (GREL.p_dec_n, "-1.5")), "-2"),
    (call(GREL.math_ceil, (GREL.p_dec_n, "1.2")), "2"),
    (call(GREL.math_round, (GREL.p_dec_n, "-1.5")), "-1"),
    (call(GREL.math_min, (GREL.p_dec_n, "2"), (GREL.param_n2, "3")), "2.0"),
    (call(GREL.math_max, (GREL.p_dec_n, "2"), (GREL.param_n2, ref("absent"))), None),
    (call(GREL.math_mod, (GREL.p_int_i, "7"), (GREL.p_int_i2, "4")), "3"),
    (call(GREL.math_mod, (GREL.p_int_i, "7"), (GREL.p_int_i2, "0")), None),
    (call(GREL.math_ln, (GREL.p_dec_n, "0")), None),
    (call(GREL.math_log, (GREL.p_dec_n, "1000")), "3.0"),
    (call(GREL.math_exp, (GREL.p_dec_n, "0")), "1.0"),
    (call(GREL.math_pow, (GREL.p_dec_n, "2"), (GREL.p_any_exp, "10")), "1024.0"),
    (call(GREL.date_toDate, (V, "03/02/2024"), (GREL.p_string_pattern, "dd/MM/yyyy")), "2024-02-03"),
    (call(GREL.math_pow, (GREL.p_dec_n, "10"), (GREL.p_any_exp, "400")), "INF"),
    (call(GREL.math_pow, (GREL.p_dec_n, "-10"), (GREL.p_any_exp, "401")), "-INF"),
    (call(GREL.math_pow, (GREL.p_dec_n, "-1"), (GREL.p_any_exp, "0.5")), "NaN"),
    (call(GREL.math_exp, (GREL.p_dec_n, "1000")), "INF"),
    (call(GREL.math_max, (GREL.p_dec_n, "-INF"), (GREL.param_n2, "-Infinity")), "-INF"),
    (call(GREL.string_toNumber, (GREL.p_any_e, "1e999")), "INF"),
    (call(GREL.array_sum, (ARRAY, "1e308"), (ARRAY, "1e308")), "INF"),
    (call(GREL.array_sum, (ARRAY, ref("absent"))), None),
    (call(GREL.math_mod, (GREL.p_int_i, str(-(2**63))), (GREL.p_int_i2, "-1")), "0"),
    (call(GREL.array_get, (ARRAY, LIST), (GREL.p_int_i_from, str(2**63 - 1))), []),
    (
        call(
            GREL.date_toDate,
            (V, "3 February 12345"),
            (GREL.p_string_pattern, "d MMMM yyyyy"),
        ),
        "12345-02-03",
    ),
    (
        call(
            IDLAB.normalizeDateTime,
            (IDLAB.strDate, "3 Feb 2024 um 4 Uhr"),
            (IDLAB.pattern, "d MMM uuuu 'um' H 'Uhr'"),
        ),
        "2024-02-03T04:00:00",
    ),
    (call(GREL.date_toDate, (V, "soon"), (GREL.p_string_pattern, "dd/MM/yyyy")), None),
    (call(IDLAB.equal, (V, "a"), (V2, "a")), "true"),
    (call(IDLAB.notEqual, (V, "a"), (V2, "a")), "false"),
    (call(IDLAB.equal, (V, "a"), (V2, ref("absent"))), None),
    (call(IDLAB.trueCondition, (IDLAB.strBoolean, "true"), (IDLAB.str, "v")), "v"),
    (call(IDLAB.trueCondition, (IDLAB.strBoolean, "false"), (IDLAB.str, "v")), None),
    (call(IDLAB.decide, (IDLAB.str, "a"), (IDLAB.expectedStr, "a"), (IDLAB.result, "r")), "r"),
    (
        call(
            IDLAB.stringContainsOtherString,
            (IDLAB.str, "a;b"),
            (IDLAB.otherStr, "b"),
            (IDLAB.delimiter, ";"),
        ),
        "true",
    ),
    (call(IDLAB.listContainsElement, (IDLAB.list, LIST), (IDLAB.str, "z")), "false"),
    (call(IDLAB.inRange, (IDLAB.p_test, "3"), (IDLAB.p_from, "3"), (IDLAB.p_to, "4")), "true"),
    (call(IDLAB.concat, (IDLAB.str, "a"), (IDLAB.otherStr, "b"), (IDLAB.delimiter, "/")), "a/b"),
    (call(IDLAB.slugify, (IDLAB.str, " Ça va, où? ")), "ca-va-ou"),
    (call(IDLAB.toUpperCaseURL, (IDLAB.str, "www.a.b")), "http://WWW.A.B"),
    (call(GREL.toUpperCaseURL, (V, "www.a.b")), "http://WWW.A.B"),
    (call(IDLAB.toUpperCaseURL, (IDLAB.str, "https://a.b")), "HTTPS://A.B"),
    (call(IDLAB.alwaysReturnsABC), "ABC"),
    (
        call(IDLAB.normalizeDateTime, (IDLAB.strDate, "2024-02-03 04:05"), (IDLAB.pattern, "uuuu-MM-dd HH:mm")),
        "2024-02-03T04:05:00",
    ),
    # One call for each value, and for each combination of values.
    (call(GREL.toUpperCase, (V, LIST)), ["B", "A", "B"]),
    (call(GREL.toUpperCase, (V, ref("empty"))), []),
    (call(IDLAB.concat, (IDLAB.str, LIST), (IDLAB.otherStr, LIST)), ["bb", "ba", "bb", "ab", "aa", "ab", "bb", "ba", "bb"]),
    (call(GREL.string_split, (V, LIST), (SEP, "a")), ["b", "", "", "b"]),
    (call(GREL.toUpperCase, (V, call(GREL.string_split, (V, "a b"), (SEP, " ")))), ["A", "B"]),
    # Functions inside functions keep their types.
    (
        call(GREL.string_substring, (V, "Venus"), (GREL.p_int_i_from, call(GREL.string_indexOf, (V, "abc"), (GREL.string_sub, "c")))),
        "nus",
    ),
    (
        call(GREL.toUpperCase, (V, call(GREL.string_replace, (V, "M V"), (GREL.param_find, " "), (GREL.param_replace, "-")))),
        "M-V",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def record(spark: SparkSession):
    return spark.sql(
        "SELECT CAST(NULL AS STRING) absent, '(((' bad, '1e300' huge, 'NaN' nan, '0' zero,"
        " '-Infinity' infinite, 'HHH' format, 'yyyy ''' open, '(a|a)+b' slow, 'html' mode, array('b','a','b') list,"
        " CAST(array() AS ARRAY<STRING>) empty"
    )


def test_every_built_in_gives_what_it_should(record) -> None:
    compiled = [compile_function(execution, resolve) for execution, _ in CASES]
    row = record.select(*(v.column.alias(f"c{i}") for i, v in enumerate(compiled))).first()
    wrong = {
        f"{i} {execution.function}": (row[i], expected)
        for i, (execution, expected) in enumerate(CASES)
        if row[i] != expected
    }
    assert not wrong


def test_every_built_in_has_an_expression_and_a_case() -> None:
    built_in = {function.iri for function in FUNCTIONS if function.code is None}
    assert built_in == {*BUILDERS, *BY_PATTERN}
    aliases = {
        GREL.string_toTitlecase,
        GREL.string_strip,
        GREL.string_slice,
        GREL.string_escape,
        GREL.string_toString,
        GREL.controls_isNull,
        IDLAB.normalizeDate,
        GREL.date_now,
        IDLAB.random,
    }
    nested = {
        item.value.expression.function
        for execution, _ in CASES
        for item in execution.inputs
        if isinstance(item.value.expression, FunctionExecution)
    }
    tested = {execution.function for execution, _ in CASES} | nested
    assert built_in - tested == aliases


def test_natural_datatypes_and_plain_strings() -> None:
    length = call(GREL.string_length, (V, "a"))
    assert compile_function(length, resolve).datatype == XSD.integer
    as_text = call(GREL.string_length, (V, "a"), returns=GREL.stringOut)
    assert compile_function(as_text, resolve).datatype is None
    assert compile_function(call(IDLAB.equal, (V, "a"), (V2, "b")), resolve).datatype == XSD.boolean


def test_conditions_are_never_null(record) -> None:
    conditions = [
        call(IDLAB.equal, (V, "a"), (V2, "a")),
        call(IDLAB.equal, (V, "a"), (V2, ref("absent"))),
        call(IDLAB.equal, (V, "a"), (V2, LIST)),
        call(GREL.toLowerCase, (V, "TRUE")),
    ]
    columns = [compile_condition(c, resolve).holds for c in conditions]
    assert list(record.select(*columns).first()) == [True, False, True, True]


def test_users_functions_run_on_values_lists_and_combinations(record) -> None:
    registry = FUNCTIONS.copy()
    register("urn:f:add", lambda a, b: a + b, [
        Parameter("a", ("urn:f:a",), Kind.INTEGER), Parameter("b", ("urn:f:b",), Kind.INTEGER)
    ], returns=[Output(("urn:f:sum",), Kind.INTEGER)], registry=registry)  # fmt: skip
    register("urn:f:twice", lambda s: [s, s], ["urn:f:s"], registry=registry)
    register(
        "urn:f:parts",
        lambda s: tuple(s.split("-")),
        ["urn:f:s"],
        returns=["urn:f:first", "urn:f:second"],
        registry=registry,
    )
    register("urn:f:none", lambda s: "none" if s is None else s, ["urn:f:s"], registry=registry)
    register(
        "urn:f:upper", lambda s: s.str.upper(), ["urn:f:s"], vectorized=True, registry=registry
    )
    executions = [
        (call("urn:f:add", ("urn:f:a", "1"), ("urn:f:b", "2"), returns="urn:f:sum"), ["3"]),
        (call("urn:f:twice", ("urn:f:s", LIST)), ["b", "b", "a", "a", "b", "b"]),
        (call("urn:f:parts", ("urn:f:s", "x-y"), returns="urn:f:second"), ["y"]),
        (call("urn:f:none", ("urn:f:s", ref("absent"))), ["none"]),
        (call("urn:f:none"), ["none"]),
        (call("urn:f:upper", ("urn:f:s", ref("mode"))), "HTML"),
        (call(GREL.toUpperCase, (V, call("urn:f:twice", ("urn:f:s", "q")))), ["Q", "Q"]),
    ]
    compiled = [compile_function(execution, resolve, registry) for execution, _ in executions]
    row = record.select(*(v.column for v in compiled)).first()
    assert list(row) == [expected for _, expected in executions]


def test_a_users_function_that_raises_is_a_problem_of_the_record(record) -> None:
    registry = MappingFunctions()
    register("urn:f:bad", lambda s: 1 / 0, ["urn:f:s"], registry=registry)
    register(
        "urn:f:int", lambda n: n, [Parameter("n", ("urn:f:n",), Kind.INTEGER)], registry=registry
    )
    for execution, reason in [
        (call("urn:f:bad", ("urn:f:s", "x")), "ZeroDivisionError"),
        (call("urn:f:int", ("urn:f:n", ref("mode"))), "ValueError"),
    ]:
        values = compile_function(execution, resolve, registry)
        assert values.many
        row = record.select(values.column.alias("v"), values.problems[0].alias("p")).first()
        assert row["v"] is None
        assert reason in row["p"]
        assert execution.function in row["p"]


def test_calls_of_python_functions_are_found() -> None:
    registry = FUNCTIONS.copy()
    register("urn:f:x", str, ["urn:f:s"], deterministic=False, registry=registry)
    inner = call(GREL.toUpperCase, (V, call("urn:f:x", ("urn:f:s", "a"))))
    assert uses_python(inner, registry)
    assert not uses_python(call(IDLAB.random))


BAD = ref("bad")
FIND = (GREL.string_find, GREL.string_match)
# Calls with an unusable argument, and the reason in the dead letter.
FAULTS = [
    *((call(name, (V, "a"), (GREL.param_regex, BAD)), "'(((' is not a regular") for name in FIND),
    *((call(name, (V, LIST), (GREL.param_regex, BAD)), "'(((' is not a regular") for name in FIND),
    *(
        (call(name, (GREL.p_dec_n, BAD)), "'(((' is not a number")
        for name in (
            *(GREL.math_floor, GREL.math_ceil, GREL.math_round),
            *(GREL.math_ln, GREL.math_log, GREL.math_exp),
        )
    ),
    *(
        (call(name, (GREL.p_dec_n, ref(number))), f"gives nothing for '{shown}'")
        for name in (GREL.math_floor, GREL.math_ceil, GREL.math_round)
        for number, shown in (("huge", "1.0E300"), ("nan", "NaN"), ("infinite", "-INF"))
    ),
    *(
        (call(name, (GREL.p_dec_n, "1"), (GREL.param_n2, BAD)), "'(((' is not a number")
        for name in (GREL.math_min, GREL.math_max)
    ),
    (call(GREL.math_pow, (GREL.p_dec_n, "1"), (GREL.p_any_exp, BAD)), "'(((' is not a number"),
    (call(GREL.math_mod, (GREL.p_int_i, "1"), (GREL.p_int_i2, ref("zero"))), "divided by 0"),
    (call(GREL.math_mod, (GREL.p_int_i, ref("huge")), (GREL.p_int_i2, "1")), "not a whole number"),
    (call(GREL.math_ln, (GREL.p_dec_n, ref("zero"))), "only numbers above 0"),
    (call(GREL.math_log, (GREL.p_dec_n, ref("infinite"))), "only numbers above 0"),
    (call(GREL.array_sum, (ARRAY, LIST)), "some element is not a number"),
    (call(GREL.string_toNumber, (GREL.p_any_e, BAD)), "gives nothing for '((('"),
    (call(GREL.string_toNumber, (GREL.p_any_e, LIST)), "gives nothing for 'b'"),
    (call(GREL.string_substring, (V, "a"), (GREL.p_int_i_from, BAD)), "not a whole number"),
    (call(GREL.array_get, (ARRAY, LIST), (GREL.p_int_i_from, BAD)), "not a whole number"),
    (call(GREL.escape, (V, "a"), (GREL.modeParam, BAD)), "no such mode"),
    (call(GREL.string_unescape, (V, "%zz"), (GREL.modeParam, "url")), "no such mode, or"),
    (call(IDLAB.inRange, (IDLAB.p_test, BAD), (IDLAB.p_from, "3"), (IDLAB.p_to, "4")), "number"),
    *(
        (call(name, (value, "2024"), (pattern, given)), words)
        for name, value, pattern in (
            (GREL.date_toDate, V, GREL.p_string_pattern),
            (IDLAB.normalizeDate, IDLAB.strDate, IDLAB.pattern),
            (IDLAB.normalizeDateTime, IDLAB.strDate, IDLAB.pattern),
        )
        for given, words in (
            (BAD, "does not fit the format"),
            (ref("format"), "'HHH' is not a date format"),
            (ref("open"), "is not a date format"),
            ("yyyy-MM-dd", "does not fit the format"),
        )
    ),
]
# Calls without a result that do not make the record bad.
NO_FAULTS = [
    call(GREL.math_floor, (GREL.p_dec_n, ref("absent"))),
    call(GREL.string_find, (V, ref("absent")), (GREL.param_regex, BAD)),
    call(GREL.string_match, (V, "a"), (GREL.param_regex, "b")),
    call(
        GREL.controls_if,
        (GREL.bool_b, call(GREL.controls_isNumeric, (GREL.p_any_e, BAD))),
        (GREL.any_true, call(GREL.string_toNumber, (GREL.p_any_e, BAD))),
    ),
    call(
        IDLAB.trueCondition,
        (IDLAB.strBoolean, "false"),
        (IDLAB.str, call(GREL.string_toNumber, (GREL.p_any_e, BAD))),
    ),
]


def reasons_of(execution: FunctionExecution):
    problems = compile_function(execution, resolve).problems
    return F.array_compact(F.array(F.lit(None).cast("string"), *problems))


def test_an_argument_that_cannot_be_used_is_a_problem_of_the_record(record) -> None:
    executions = [execution for execution, _ in FAULTS] + NO_FAULTS
    row = record.select(*(reasons_of(one) for one in executions)).first()
    wrong = [
        (execution.function, words, found)
        for (execution, words), found in zip(FAULTS, row, strict=False)
        if len(found) != 1 or words not in found[0]
    ]
    assert not wrong
    assert list(row[len(FAULTS) :]) == [[]] * len(NO_FAULTS)


def test_a_condition_that_cannot_be_computed_fails_with_a_problem(record) -> None:
    inputs = (IDLAB.p_test, BAD), (IDLAB.p_from, "3"), (IDLAB.p_to, "4")
    condition = compile_condition(call(IDLAB.inRange, *inputs), resolve)
    row = record.select(condition.holds, *condition.problems).first()
    assert row[0] is False
    assert "is not a number" in row[1]


@pytest.mark.parametrize("pattern", [ref("slow"), "(a+)+$"], ids=["of the record", "constant"])
def test_patterns_are_matched_in_linear_time(record, pattern) -> None:
    """Java's matcher would take hours for this text: it tries every way to cut it."""
    text = "a" * 60 + "!"
    calls = [call(name, (V, text), (GREL.param_regex, pattern)) for name in FIND]
    assert all(map(uses_python, calls))
    columns = [compile_function(one, resolve).column for one in calls]
    assert list(record.select(*columns).first()) == [[], []]


def test_every_date_format_is_one_to_spark(spark: SparkSession) -> None:
    formats = [field * count for field in "yuGDMLdahKkHmsSVzOXxZ" for count in range(1, 10)]
    formats += ["yyyy[-MM[-dd]]", "[yyyy][MM]", "'a''b' yyyy", "''", "yyyy#"]
    formats += ["E", "Y", "w", "Q", "é;"]
    known = [one for one in formats if is_date_format(one)]
    frame = spark.createDataFrame([(one,) for one in formats], "format string")
    given = call(GREL.date_toDate, (V, "x"), (GREL.p_string_pattern, ref("format")))
    problems = compile_function(given, resolve).problems
    rows = frame.select("format", F.coalesce(*problems)).collect()
    assert {one for one, reason in rows if "does not fit" in reason} == set(known)
    assert {"yyyyyy", "SSSSSSSSS", "VV", "OOOO", "[yyyy][MM]", "''", "é;"} <= set(known)


@pytest.mark.parametrize(
    ("execution", "words"),
    [
        (call(GREL.escape, (V, "a"), (GREL.modeParam, "rot13")), "not a mode of grel:escape"),
        (call(GREL.string_match, (V, "a"), (GREL.param_regex, "(")), "not a regular expression"),
        (call(GREL.string_find, (V, "a"), (GREL.param_regex, "(((")), "not a regular expression"),
        (call(GREL.string_find, (V, "a"), (GREL.param_regex, r"(a)\1")), "not a regular expression"),
        (call(GREL.math_floor, (GREL.p_dec_n, "x")), "not a number"),
        (call(GREL.math_mod, (GREL.p_int_i, "1.5"), (GREL.p_int_i2, "1")), "not a whole number"),
        (call(GREL.date_toDate, (V, "a"), (GREL.p_string_pattern, "HHH")), "not a date format"),
    ],
)  # fmt: skip
def test_what_can_be_known_before_a_run_is_an_error_then(execution, words: str) -> None:
    with pytest.raises(MappingError, match=words):
        compile_function(execution, resolve)
