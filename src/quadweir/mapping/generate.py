"""Term maps as Spark columns that spell terms canonically.

A column is NULL where a record gives no term. If the record is at fault, and does not just lack a
value, one of `problems` holds the reason.

Spec: https://kg-construct.github.io/rml-core/spec/docs/#generated-rdf-term
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, assert_never, final

from pyspark.sql import functions as F

from quadweir.errors import InternalError
from quadweir.mapping import iris
from quadweir.mapping.functions.compile import (
    CompiledCondition,
    compile_condition,
    compile_function,
)
from quadweir.mapping.functions.compile import CompiledValues as FunctionValues
from quadweir.mapping.functions.registry import FUNCTIONS, MappingFunctions
from quadweir.mapping.literals import after, double_inside, escape_text, literal
from quadweir.mapping.model import (
    ConstantTerm,
    FunctionExecution,
    MapExpression,
    PerRecord,
    Reference,
    ReferencePart,
    Template,
    TermMap,
    TermType,
    TextPart,
    expression_references,
)
from quadweir.mapping.values import ColumnForm, ReferenceValues, Terms, has_several, put_together
from quadweir.terms import IRI, IRI_FORBIDDEN, BlankNode, Literal, Term, TripleTerm
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FORBIDDEN: Final = re.compile(f"[{IRI_FORBIDDEN}]")
_TAG: Final = "^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*+\\z"
_SHOWN: Final = 200


class SharedColumns(Protocol):
    """Keeps columns that several terms share, so that each is computed once."""

    def __call__(self, done: str, to: str, column: Column, *, is_second: bool = False) -> Column:
        """The shared column for an operation on a reference.

        Args:
            done: the name of the operation.
            to: the reference or references that it applies to.
            column: the expression that computes it.
            is_second: whether it needs columns that were shared before.
        """


def _no_share(done: str, to: str, column: Column, *, is_second: bool = False) -> Column:  # noqa: ARG001
    return column


class Encoding(StrEnum):
    """The characters to percent-encode in a template's values."""

    IRI = "iri"
    """All but unreserved characters and those beyond ASCII."""
    URI = "uri"
    """All but unreserved characters."""


@final
@dataclass(frozen=True, slots=True)
class Made:
    """Terms (or texts for terms), and the reasons why a record has none."""

    terms: Terms
    problems: tuple[Column, ...] = ()
    term: Term | None = None
    """The term, if it is the same for every record."""


@final
@dataclass(frozen=True, slots=True)
class Generator:
    """Makes terms from the values of one source's records."""

    values: Mapping[str, ReferenceValues]
    base: str | None
    label: Column
    """A blank node label that is unique for each record of the source."""
    registry: MappingFunctions = field(default=FUNCTIONS)
    share: SharedColumns = field(default=_no_share)
    """Shares the columns that depend on one reference alone."""

    def term(self, term_map: TermMap) -> Made:
        """Spell the terms of a term map."""
        match term_map.expression:
            case ConstantTerm(term=term):
                made = Made(put_together(spell_constant(term)), term=term)
            case PerRecord():
                made = Made(Terms(F.concat(F.lit("_:"), self.label)))
            case _:
                made = self._generated(term_map)
        if term_map.condition is None:
            return made
        condition = self.condition(term_map.condition)
        problems = tuple(F.when(condition.holds, problem) for problem in made.problems)
        return Made(made.terms.when(condition.holds), (*condition.problems, *problems))

    def needs(self, term_map: TermMap) -> frozenset[str] | None:
        """Return the references whose values decide whether a record has terms (`Terms.needs`)."""
        expression = term_map.expression
        if term_map.condition is not None or isinstance(expression, FunctionExecution):
            return None
        if isinstance(expression, ConstantTerm | PerRecord):
            return frozenset()
        found = expression_references(expression)
        match term_map.term_type:
            case TermType.BLANK_NODE:
                return found
            case TermType.LITERAL:
                return found if self._is_always_spelled(term_map, found) else None
            case TermType.IRI | TermType.URI if isinstance(expression, Template):
                return found if _prepare(expression, ascii_only=False)[1] else None
            case _:
                return None

    def _is_always_spelled(self, term_map: TermMap, references: Iterable[str]) -> bool:
        """Whether every value makes a literal."""
        if term_map.language is not None:
            return isinstance(term_map.language.expression, ConstantTerm)
        if term_map.datatype is not None:
            datatype = term_map.datatype.expression
            # Some texts are no numbers.
            return isinstance(datatype, ConstantTerm) and _text_of(datatype.term) != XSD.double
        values = [self.values[reference] for reference in references]
        return not any(
            one.form is ColumnForm.TYPED or one.datatype == str(XSD.double) for one in values
        )

    def condition(self, execution: FunctionExecution) -> CompiledCondition:
        """Compile a condition that belongs to no term map."""
        one = compile_condition(execution, self._resolve, self.registry)
        is_several = self._has_several(execution)
        if is_several is None:
            return one
        many = compile_condition(execution, self._resolve_many, self.registry)
        return CompiledCondition(
            F.when(is_several, many.holds).otherwise(one.holds),
            _either(is_several, many.problems, one.problems),
        )

    def texts(self, expression: MapExpression) -> Made:
        """The values of an expression as plain text, as join conditions compare them."""
        return self._texts(expression, None)

    def _generated(self, term_map: TermMap) -> Made:
        match term_map.term_type:
            case TermType.LITERAL:
                return self._literal(term_map)
            case TermType.BLANK_NODE:
                texts = self._texts(term_map.expression, None)
                terms = texts.terms.map(lambda t: F.concat(F.lit("_:"), iris.blank_label(t)))
                return Made(terms, texts.problems)
            case TermType.IRI | TermType.URI | TermType.UNSAFE_IRI | TermType.UNSAFE_URI:
                plain = self._iri(term_map)
                return Made(plain.terms.between("<", ">"), plain.problems)
            case unknown:
                assert_never(unknown)

    # -- IRIs ------------------------------------------------------------------------------------

    def _iri(self, term_map: TermMap) -> Made:
        """IRIs without their brackets."""
        expression, kind = term_map.expression, term_map.term_type
        if isinstance(expression, ConstantTerm):
            return Made(Terms(F.lit(_text_of(expression.term))))
        ascii_only = kind in (TermType.URI, TermType.UNSAFE_URI)
        if kind in (TermType.UNSAFE_IRI, TermType.UNSAFE_URI):
            texts = self._texts(expression, None)
            return Made(
                texts.terms.map(lambda text: iris.unsafe_iri(text, self.base)), texts.problems
            )
        if isinstance(expression, Template):
            expression, is_sure = _prepare(expression, ascii_only)
            texts = self._texts(expression, Encoding.URI if ascii_only else Encoding.IRI)
            if is_sure:
                return texts
        else:
            texts = self._texts(expression, None)
            if ascii_only:
                texts = Made(texts.terms.map(iris.encode_beyond_ascii), texts.problems)
        problem = _problem(
            texts.terms,
            lambda text: iris.checked_iri(text, self.base).isNull(),
            "is not an IRI" if self.base else "is not an absolute IRI, and there is no base IRI",
        )
        return Made(
            texts.terms.map(lambda text: iris.checked_iri(text, self.base)),
            (*texts.problems, problem),
        )

    # -- literals --------------------------------------------------------------------------------

    def _literal(self, term_map: TermMap) -> Made:
        expression = term_map.expression
        if term_map.language is not None:
            return self._tagged(expression, term_map.language)
        if term_map.datatype is not None:
            return self._datatyped(expression, term_map.datatype)
        if isinstance(expression, Reference):
            value = self.values[expression.reference]
            problems = _nested(value, expression.reference)
            if value.form is ColumnForm.TEXT or (value.is_plain and not value.many):
                return Made(self._plain_literal(value.text(), expression, value.datatype), problems)
            return Made(value.natural(), problems)
        if isinstance(expression, FunctionExecution):
            called, datatype = self._call(expression)
            terms = called.terms.map(lambda text: literal(text, datatype=datatype))
            return Made(terms, called.problems)
        texts = self._texts(expression, None)
        return Made(texts.terms.map(lambda text: literal(text)), texts.problems)

    def _tagged(self, expression: MapExpression, language: TermMap) -> Made:
        texts = self._texts(expression, None)
        if isinstance(language.expression, ConstantTerm):
            tag = _text_of(language.expression.term).lower()
            return Made(self._plain_literal(texts.terms, expression, language=tag), texts.problems)
        tags = self._texts(language.expression, None)
        problem = _problem(tags.terms, lambda tag: ~tag.rlike(_TAG), "is not a language tag")
        valid = tags.terms.map(lambda tag: F.when(tag.rlike(_TAG), tag))
        return Made(
            combine((texts.terms, valid), lambda text, tag: literal(text, language=tag)),
            (*texts.problems, *tags.problems, problem),
        )

    def _datatyped(self, expression: MapExpression, datatype: TermMap) -> Made:
        texts = self._texts(expression, None)
        if isinstance(datatype.expression, ConstantTerm):
            iri = _text_of(datatype.expression.term)
            return Made(self._plain_literal(texts.terms, expression, iri), texts.problems)
        if datatype.term_type.is_iri:
            types = self._iri(datatype)
        else:
            # Without a term type, the author of this function or reference still means an IRI.
            plain = self._texts(datatype.expression, None)
            problem = _problem(
                plain.terms,
                lambda text: iris.checked_iri(text, self.base).isNull(),
                "is not an IRI",
            )
            types = Made(
                plain.terms.map(lambda text: iris.checked_iri(text, self.base)),
                (*plain.problems, problem),
            )
        return Made(
            combine((texts.terms, types.terms), lambda text, iri: literal(text, datatype=iri)),
            (*texts.problems, *types.problems),
        )

    def _plain_literal(
        self,
        terms: Terms,
        expression: MapExpression,
        datatype: str | None = None,
        language: str | None = None,
    ) -> Terms:
        if isinstance(expression, Reference) and not terms.many:
            escaped = terms.column
            if datatype == XSD.double:
                escaped = self.share("double", expression.reference, double_inside(escaped))
            elif not self.values[expression.reference].is_clean:
                escaped = self.share("escaped", expression.reference, escape_text(escaped))
            several = terms.several
            if several is not None:
                several = F.transform(
                    several, lambda text: literal(text, datatype=datatype, language=language)
                )
            return replace(put_together('"', escaped, after(datatype, language)), several=several)
        return terms.map(lambda text: literal(text, datatype=datatype, language=language))

    # -- texts -----------------------------------------------------------------------------------

    def _texts(self, expression: MapExpression, encoding: Encoding | None) -> Made:
        match expression:
            case ConstantTerm(term=term):
                return Made(Terms(F.lit(_text_of(term))))
            case Reference(reference=reference):
                value = self.values[reference]
                return Made(value.text(), _nested(value, reference))
            case Template():
                return self._template(expression, encoding)
            case FunctionExecution():
                return self._call(expression)[0]
            case PerRecord():
                return Made(Terms(self.label))
            case unknown:
                assert_never(unknown)

    def _template(self, template: Template, encoding: Encoding | None) -> Made:
        problems: list[Column] = []
        parts: list[Terms] = []
        seen: dict[str, Terms] = {}
        for part in template.parts:
            if isinstance(part, TextPart):
                parts.append(Terms(F.lit(part.text)))
                continue
            if part.reference not in seen:
                value = self.values[part.reference]
                problems.extend(_nested(value, part.reference))
                seen[part.reference] = self._encoded(part.reference, value.text(), encoding)
            parts.append(seen[part.reference])
        if not seen or any(part.many for part in parts):
            return Made(combine(parts, lambda *texts: F.concat(*texts)), tuple(problems))
        terms = put_together(*self._middle(template, parts, encoding))
        if has_several(parts) is not None:
            several = combine(parts, lambda *texts: F.concat(*texts)).several
            terms = replace(terms, several=several)
        return Made(terms, tuple(problems))

    def _middle(
        self, template: Template, parts: Sequence[Terms], encoding: Encoding | None
    ) -> Iterator[str | Column]:
        """The pieces of a template; the part between its fixed ends is built only once."""
        fixed = [part.text if isinstance(part, TextPart) else None for part in template.parts]
        varied = [number for number, text in enumerate(fixed) if text is None]
        first, last = varied[0], varied[-1]
        before, behind = "".join(filter(None, fixed[:first])), "".join(filter(None, fixed[last:]))
        if before:
            yield before
        if first == last:
            yield parts[first].column
        else:
            made = F.concat(*[part.column for part in parts[first : last + 1]])
            inner = repr(template.parts[first : last + 1])
            yield self.share(f"template {encoding}", inner, made, is_second=True)
        if behind:
            yield behind

    def _encoded(self, reference: str, texts: Terms, encoding: Encoding | None) -> Terms:
        if encoding is None:
            return texts
        # Without characters beyond ASCII, URIs and IRIs are encoded alike.
        ascii_only = encoding is Encoding.URI or self.values[reference].is_clean
        if texts.many:
            return texts.map(lambda text: iris.percent_encode(text, ascii_only=ascii_only))
        encoded = texts.map(lambda text: iris.percent_encode(text, ascii_only=ascii_only))
        return replace(encoded, column=self.share(encoding, reference, encoded.column))

    # -- functions -------------------------------------------------------------------------------

    def _call(self, execution: FunctionExecution) -> tuple[Made, str | None]:
        """The results of a function as texts, and their natural datatype."""
        one = compile_function(execution, self._resolve, self.registry)
        is_several = self._has_several(execution)
        if is_several is None:
            return Made(Terms(one.column, one.many), one.problems), one.datatype
        # The function is also compiled for several values; Spark computes that only for records
        # that have them.
        many = compile_function(execution, self._resolve_many, self.registry)
        problems = _either(is_several, many.problems, one.problems)
        if one.many == many.many:
            column = F.when(is_several, many.column).otherwise(one.column)
            return Made(Terms(column, one.many), problems), one.datatype
        several = F.when(is_several, F.coalesce(many.column, F.array().cast("array<string>")))
        terms = Terms(F.when(~is_several, one.column), several=several)
        return Made(terms, problems), one.datatype

    def _has_several(self, execution: FunctionExecution) -> Column | None:
        """Whether a function gets several values of some reference; None if it cannot."""
        references = sorted(expression_references(execution))
        return has_several(self.values[reference].text() for reference in references)

    def _resolve(self, term_map: TermMap) -> FunctionValues:
        texts = self._texts(term_map.expression, None)
        return FunctionValues(texts.terms.column, texts.terms.many, None, texts.problems)

    def _resolve_many(self, term_map: TermMap) -> FunctionValues:
        texts = self._texts(term_map.expression, None)
        terms = texts.terms.as_many()
        return FunctionValues(terms.column, terms.many, None, texts.problems)


def needs_type(term_map: TermMap) -> bool:
    """Whether the term depends on the type of a reference's value."""
    return (
        term_map.term_type is TermType.LITERAL
        and term_map.language is None
        and term_map.datatype is None
    )


def _either(
    is_first: Column, first: Sequence[Column], second: Sequence[Column]
) -> tuple[Column, ...]:
    """The problems of one of two ways to compute something."""
    return (
        *(F.when(is_first, problem) for problem in first),
        *(F.when(~is_first, problem) for problem in second),
    )


def combine(parts: Sequence[Terms], join: Callable[..., Column]) -> Terms:
    """Join every combination of the parts' strings; equal parts vary together only if single."""
    is_several = has_several(parts)
    if is_several is not None:
        every = combine([part.as_many() for part in parts], join)
        if any(part.many for part in parts):
            return every
        one = join(*[part.column for part in parts])
        return Terms(one, several=F.when(is_several, every.column))
    varied = [number for number, part in enumerate(parts) if part.many]
    if not varied:
        return Terms(join(*[part.column for part in parts]))

    def level(position: int, fixed: dict[int, Column]) -> Column:
        if position == len(varied):
            return F.array(
                join(*[fixed.get(number, part.column) for number, part in enumerate(parts)])
            )
        number = varied[position]
        return F.flatten(
            F.transform(
                parts[number].column, lambda one: level(position + 1, {**fixed, number: one})
            )
        )

    return Terms(level(0, {}), many=True)


def spell_constant(term: Term) -> str:
    """Spell a constant; a blank node's label must differ from those made from records.

    >>> spell_constant(BlankNode("b0"))
    '_:m_6230'
    """
    if isinstance(term, BlankNode):
        return f"_:m_{term.label.encode().hex()}"
    return str(term)


def _text_of(term: Term) -> str:
    match term:
        case IRI(value=value):
            return value
        case BlankNode(label=label):
            return label
        case Literal(lexical=lexical):
            return lexical
        case TripleTerm():
            raise InternalError("a mapping has a triple term for a constant")


def _prepare(template: Template, ascii_only: bool) -> tuple[Template, bool]:
    """Encode a template's fixed text for a URI; return also whether it always makes an absolute
    IRI.
    """
    parts = tuple(
        TextPart(_beyond_ascii(part.text)) if ascii_only and isinstance(part, TextPart) else part
        for part in template.parts
    )
    first = parts[0] if parts else None
    is_sure = (
        isinstance(first, TextPart)
        and _SCHEME.match(first.text) is not None
        and not any(isinstance(part, TextPart) and _FORBIDDEN.search(part.text) for part in parts)
    )
    return Template(parts=parts), is_sure


def _beyond_ascii(text: str) -> str:
    return "".join(one if one.isascii() else urllib.parse.quote(one) for one in text)


def _nested(value: ReferenceValues, reference: str) -> tuple[Column, ...]:
    fault = value.fault()
    if fault is None:
        return ()
    return (F.when(fault, F.lit(f"the value of {reference} is an array or an object, not a term")),)


def _problem(terms: Terms, is_bad: Callable[[Column], Column], why: str) -> Column:
    """The first bad text, NULL if there is none."""
    if terms.several is not None:
        inner = _problem(Terms(terms.several, many=True), is_bad, why)
        return F.coalesce(_problem(Terms(terms.column), is_bad, why), inner)
    if not terms.many:
        text = terms.column
        return F.when(text.isNotNull() & is_bad(text), _told(text, why))
    bad = F.filter(terms.column, lambda text: text.isNotNull() & is_bad(text))
    return F.when(F.size(bad) > 0, _told(F.try_element_at(bad, F.lit(1)), why))


def _told(text: Column, why: str) -> Column:
    return F.concat(F.lit("'"), F.substring(text, 1, _SHOWN), F.lit(f"' {why}"))


__all__ = ["Generator", "Made", "ReferencePart", "combine", "spell_constant"]
