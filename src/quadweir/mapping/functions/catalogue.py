"""The built-in functions: GREL and idlab-fn, as their published descriptions name them.

Facts: https://users.ugent.be/~bjdmeest/function/grel.ttl and
https://w3id.org/imec/idlab/function. `columns.py` holds an expression for each of them.
"""

from __future__ import annotations

from typing import Final

from quadweir.mapping.functions.registry import Function, Kind, Output, Parameter
from quadweir.mapping.vocabulary import GREL, IDLAB

_STRINGS: Final = (
    GREL.stringOut,
    GREL.stringOutput,
    GREL.output_any,
    GREL.o_any,
    IDLAB["_stringOut"],
    IDLAB.stringOut,
)
_NUMBERS: Final = (GREL.output_number, GREL.o_number, GREL.output_any, GREL.o_any)
_BOOLEANS: Final = (
    GREL.output_bool,
    GREL.o_bool,
    IDLAB["_boolOut"],
    IDLAB.o_boolOut,
    GREL.output_any,
    GREL.o_any,
)
_LISTS: Final = (
    GREL.output_array,
    GREL.o_array,
    IDLAB["_listOut"],
    IDLAB.listOut,
    GREL.output_any,
    GREL.o_any,
)
# Published descriptions give some boolean and numeric functions a string output as well.
_OUTPUTS: Final[dict[Kind, tuple[Output, ...]]] = {
    Kind.STRING: (Output(_STRINGS),),
    Kind.INTEGER: (Output(_NUMBERS, Kind.INTEGER), Output(_STRINGS)),
    Kind.NUMBER: (Output(_NUMBERS, Kind.NUMBER), Output(_STRINGS)),
    Kind.BOOLEAN: (Output(_BOOLEANS, Kind.BOOLEAN), Output(_STRINGS)),
    Kind.LIST: (Output((*_LISTS, *_STRINGS), Kind.LIST),),
    Kind.DATE: (Output((GREL.output_date, GREL.o_date), Kind.DATE), Output(_STRINGS)),
    Kind.DATE_TIME: (
        Output((GREL.output_datetime, GREL.o_datetime), Kind.DATE_TIME),
        Output(_STRINGS),
    ),
}


def _grel(
    name: str, iri: str, predicate: str, kind: Kind = Kind.STRING, *, required: bool = True
) -> Parameter:
    return Parameter(name, (GREL[iri], GREL[predicate]), kind, required)


def _idlab(name: str, local: str, kind: Kind = Kind.STRING, *, required: bool = True) -> Parameter:
    # `p_test` and the like have an underscore in place of the whole prefix.
    return Parameter(
        name,
        (IDLAB[local], IDLAB[f"_{local}"], IDLAB[f"_{local.removeprefix('p_')}"]),
        kind,
        required,
    )


VALUE: Final = _grel("value", "valueParam", "valueParameter")
VALUE2: Final = _grel("value2", "valueParam2", "valueParameter2")
FIND: Final = _grel("find", "param_find", "p_string_find")
REPLACE: Final = _grel("replace", "param_replace", "p_string_replace")
SEPARATOR: Final = _grel("separator", "param_string_sep", "p_string_sep")
SUB: Final = _grel("sub", "param_string_sub", "string_sub")
REGEX: Final = _grel("regex", "param_regex", "p_string_regex", Kind.REGEX)
MODE: Final = _grel("mode", "modeParam", "modeParameter")
PATTERN: Final = _grel("pattern", "param_string_pattern", "p_string_pattern", Kind.DATE_FORMAT)
FROM: Final = _grel("start", "p_int_i_from", "param_int_i_from", Kind.INTEGER)
TO: Final = _grel("end", "p_int_i_opt_to", "param_int_i_opt_to", Kind.INTEGER, required=False)
ARRAY: Final = _grel("array", "param_a", "p_array_a", Kind.LIST)
CONDITION: Final = _grel("condition", "param_b", "bool_b", Kind.BOOLEAN)
CONDITIONS: Final = _grel("conditions", "bool_array_b", "param_rep_b", Kind.LIST)
ANY: Final = _grel("value", "param_any_e", "p_any_e")
ANYS: Final = _grel("values", "param_any_rep_e", "p_any_rep_e", Kind.LIST)
THEN: Final = _grel("then", "param_true", "any_true")
ELSE: Final = _grel("otherwise", "param_false", "any_false", required=False)
NUMBER: Final = _grel("number", "param_dec_n", "p_dec_n", Kind.NUMBER)
NUMBER2: Final = _grel("number2", "param_dec_n2", "param_n2", Kind.NUMBER)
EXPONENT: Final = _grel("exponent", "param_dec_n_exp", "p_any_exp", Kind.NUMBER)
INTEGER: Final = _grel("integer", "param_int_i", "p_int_i", Kind.INTEGER)
INTEGER2: Final = _grel("integer2", "param_int_i2", "p_int_i2", Kind.INTEGER)
STR: Final = _idlab("value", "str")
OTHER: Final = _idlab("other", "otherStr")
DATE: Final = _idlab("value", "strDate")
DATE_PATTERN: Final = _idlab("pattern", "pattern", Kind.DATE_FORMAT)


def _function(
    iri: str, parameters: tuple[Parameter, ...], kind: Kind, *, deterministic: bool = True
) -> Function:
    return Function(
        iri=iri, parameters=parameters, outputs=_OUTPUTS[kind], deterministic=deterministic
    )


_S, _I, _N, _B, _L = Kind.STRING, Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN, Kind.LIST

BUILT_IN: Final[tuple[Function, ...]] = (
    # Strings
    _function(GREL.toUpperCase, (VALUE,), _S),
    _function(GREL.toLowerCase, (VALUE,), _S),
    _function(GREL.toUpperCaseURL, (VALUE,), _S),
    _function(GREL.string_toTitlecase, (VALUE,), _S),
    _function(GREL.toTitleCase, (VALUE,), _S),
    _function(GREL.string_trim, (VALUE,), _S),
    _function(GREL.string_strip, (VALUE,), _S),
    _function(GREL.string_chomp, (VALUE, SEPARATOR), _S),
    _function(GREL.string_length, (VALUE,), _I),
    _function(GREL.string_substring, (VALUE, FROM, TO), _S),
    _function(GREL.string_slice, (VALUE, FROM, TO), _S),
    _function(GREL.string_replace, (VALUE, FIND, REPLACE), _S),
    _function(GREL.string_replaceChars, (VALUE, FIND, REPLACE), _S),
    _function(GREL.string_contains, (VALUE, SUB), _B),
    _function(GREL.string_startsWith, (VALUE, SUB), _B),
    _function(GREL.string_endsWith, (VALUE, SUB), _B),
    _function(GREL.string_indexOf, (VALUE, SUB), _I),
    _function(GREL.string_lastIndexOf, (VALUE, SUB), _I),
    _function(GREL.string_split, (VALUE, SEPARATOR), _L),
    _function(GREL.string_match, (VALUE, REGEX), _L),
    _function(GREL.string_find, (VALUE, REGEX), _L),
    _function(GREL.string_md5, (VALUE,), _S),
    _function(GREL.string_sha1, (VALUE,), _S),
    _function(GREL.string_toString, (ANY,), _S),
    _function(GREL.string_toNumber, (ANY,), _N),
    _function(GREL.escape, (VALUE, MODE), _S),
    _function(GREL.string_escape, (VALUE, MODE), _S),
    _function(GREL.string_unescape, (VALUE, MODE), _S),
    # Arrays
    _function(GREL.array_join, (ARRAY, SEPARATOR), _S),
    _function(GREL.array_length, (ARRAY,), _I),
    _function(GREL.array_get, (ARRAY, FROM, TO), _L),
    _function(GREL.array_slice, (ARRAY, FROM, TO), _L),
    _function(GREL.array_reverse, (ARRAY,), _L),
    _function(GREL.array_sort, (ARRAY,), _L),
    _function(GREL.array_sum, (ARRAY,), _N),
    _function(GREL.array_uniques, (ARRAY,), _L),
    # Booleans and choices
    _function(GREL.boolean_and, (CONDITIONS,), _B),
    _function(GREL.boolean_or, (CONDITIONS,), _B),
    _function(GREL.boolean_xor, (CONDITIONS,), _B),
    _function(GREL.boolean_not, (CONDITION,), _B),
    _function(GREL.controls_if, (CONDITION, THEN, ELSE), _S),
    _function(GREL.controls_isNull, (ANY,), _B),
    _function(GREL.controls_isNotNull, (ANY,), _B),
    _function(GREL.controls_isBlank, (ANY,), _B),
    _function(GREL.controls_isNonBlank, (ANY,), _B),
    _function(GREL.controls_isNumeric, (ANY,), _B),
    _function(GREL.other_coalesce, (ANYS,), _S),
    # Numbers
    _function(GREL.math_floor, (NUMBER,), _I),
    _function(GREL.math_ceil, (NUMBER,), _I),
    _function(GREL.math_round, (NUMBER,), _I),
    _function(GREL.math_min, (NUMBER, NUMBER2), _N),
    _function(GREL.math_max, (NUMBER, NUMBER2), _N),
    _function(GREL.math_mod, (INTEGER, INTEGER2), _I),
    _function(GREL.math_ln, (NUMBER,), _N),
    _function(GREL.math_log, (NUMBER,), _N),
    _function(GREL.math_exp, (NUMBER,), _N),
    _function(GREL.math_pow, (NUMBER, EXPONENT), _N),
    # Dates
    _function(GREL.date_now, (), Kind.DATE_TIME, deterministic=False),
    _function(GREL.date_toDate, (VALUE, PATTERN), Kind.DATE),
    # idlab-fn
    _function(IDLAB.equal, (VALUE, VALUE2), _B),
    _function(IDLAB.notEqual, (VALUE, VALUE2), _B),
    _function(IDLAB.isNull, (STR,), _B),
    _function(IDLAB.trueCondition, (_idlab("condition", "strBoolean", _B), STR), _S),
    _function(
        IDLAB.decide, (STR, _idlab("expected", "expectedStr"), _idlab("result", "result")), _S
    ),
    _function(IDLAB.stringContainsOtherString, (STR, OTHER, _idlab("delimiter", "delimiter")), _B),
    _function(IDLAB.listContainsElement, (_idlab("array", "list", _L), STR), _B),
    _function(
        IDLAB.inRange,
        (_idlab("number", "p_test", _N), _idlab("low", "p_from", _N), _idlab("high", "p_to", _N)),
        _B,
    ),
    _function(IDLAB.concat, (STR, OTHER, _idlab("delimiter", "delimiter", required=False)), _S),
    _function(IDLAB.slugify, (STR,), _S),
    _function(IDLAB.toUpperCaseURL, (STR,), _S),
    _function(IDLAB.alwaysReturnsABC, (), _S),
    _function(IDLAB.random, (), _S, deterministic=False),
    _function(IDLAB.normalizeDate, (DATE, DATE_PATTERN), _S),
    _function(IDLAB.normalizeDateTime, (DATE, DATE_PATTERN), _S),
)
"""Every built-in function."""
