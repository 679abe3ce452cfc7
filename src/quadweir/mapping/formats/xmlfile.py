"""Elements of XML documents, with DTDs and entities refused.

A prefix that the mapping does not declare is the document's own.

An iterator that goes by element names from the root (or from anywhere, `//a/b`) is followed while
the document is read, and each element is dropped after use, as long as no reference looks above
it. Any other iterator needs the whole document in memory.

Spec: https://www.w3.org/TR/xpath-10/
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Final, final

from lxml import etree

from quadweir.errors import LimitError, MappingError
from quadweir.mapping.formats.batches import MAX_RECORD_CHARACTERS, RecordRow, bad_row
from quadweir.mapping.formats.xpaths import compile_xpath

_NAME: Final = r"[^\W\d][\w.\-]*(?::[^\W\d][\w.\-]*)?"
_NAME_PATH: Final = re.compile(rf"(//|/)?({_NAME}(?:/{_NAME})*)")
_CHILD: Final = re.compile(rf"({_NAME})(?:/text\(\))?")
_ATTRIBUTE: Final = re.compile(rf"@({_NAME})")
_UPWARD: Final = re.compile(r"\.\.|(?:^|[\[(|,=<>+*\s-])/|::")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_PREFIX: Final = re.compile(r"(?<![\w.\-:])([^\W\d][\w.\-]*):(?=[^\W\d]|\*)")
_UNDECLARED: Final = "urn:quadweir:undeclared-prefix"
"""The namespace of undeclared prefixes: no document has elements in it."""
_XML: Final = "http://www.w3.org/XML/1998/namespace"
_MOST_READERS: Final = 64
_DTD: Final = "it has a document type declaration, which is refused"
_PARSER_OPTIONS: Final[dict[str, Any]] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "remove_comments": True,
    "remove_pis": True,
    "huge_tree": False,
}

Texts = list[str]
Reader = Callable[[Any], Texts]


class MalformedXml(ValueError):  # noqa: N818 - a reason, caught where it can be reported
    """The document cannot be read, or is refused."""


@final
@dataclass(frozen=True, slots=True)
class XmlPlan:
    """The evaluation plan of an iterator and its references."""

    iterator: str
    references: tuple[str, ...]
    namespaces: tuple[tuple[str, str], ...]

    @property
    def names(self) -> dict[str, str]:
        """Prefixes and their namespaces."""
        return {"xml": _XML, **dict(self.namespaces)}

    def path(self) -> tuple[bool, tuple[str, ...]] | None:
        """Whether the iterator starts at the root, and its element names; None for a more complex
        iterator.
        """
        match = _NAME_PATH.fullmatch(self.iterator.strip())
        if match is None:
            return None
        names = tuple(expand(name, self.names) for name in match[2].split("/"))
        return match[1] != "//", names

    def foreign(self) -> frozenset[str]:
        """The prefixes that only documents can declare."""
        used = frozenset[str]().union(*map(prefixes_of, (self.iterator, *self.references)))
        return used - self.names.keys()

    def within(self, declared: Mapping[str, str]) -> XmlPlan:
        """The plan for a document that declares these prefixes; the mapping's own come first."""
        own = {prefix: declared[prefix] for prefix in self.foreign() & declared.keys()}
        return replace(self, namespaces=tuple(sorted({**own, **dict(self.namespaces)}.items())))

    def why_whole(self) -> str | None:
        """The reason why the whole document must be held, or None if elements can come one by
        one.
        """
        if self.path() is None:
            return f"the iterator {self.iterator} is more than element names"
        for reference in self.references:
            if _UPWARD.search(reference):
                return f"the reference {reference} may look outside of its element"
        return None


def expand(name: str, namespaces: Mapping[str, str]) -> str:
    """Write a prefixed name as lxml does.

    >>> expand("e:a", {"e": "urn:e"})
    '{urn:e}a'
    """
    prefix, colon, local = name.partition(":")
    if not colon:
        return name
    return f"{{{namespaces.get(prefix, _UNDECLARED)}}}{local}"


def prefixes_of(path: str) -> frozenset[str]:
    """The prefixes that an XPath uses.

    >>> sorted(prefixes_of("a:b/child::c[@d:e = 'f:g']"))
    ['a', 'd']
    """
    return frozenset(_PREFIX.findall(_QUOTED.sub("''", path)))


def known_names(path: str, namespaces: Mapping[str, str]) -> dict[str, str]:
    """Prefixes and namespaces, with one that matches nothing for those that are not declared.

    >>> known_names("a:b", {"c": "urn:c"})["c"]
    'urn:c'
    """
    return {**dict.fromkeys(prefixes_of(path), _UNDECLARED), "xml": _XML, **namespaces}


def simple_reference(reference: str) -> str | None:
    """The name of a child, or `@` and that of an attribute; None if a reference is more than that.

    >>> simple_reference("./lane/text()"), simple_reference("@id"), simple_reference("a/b")
    ('lane', '@id', None)
    """
    text = reference.strip().removeprefix("./")
    if match := _ATTRIBUTE.fullmatch(text):
        return f"@{match[1]}"
    match = _CHILD.fullmatch(text)
    return match[1] if match else None


def asks_text(reference: str) -> bool:
    """Whether a reference asks for an element's text nodes, which may be empty."""
    return reference.strip().endswith("text()")


def check_plan(plan: XmlPlan) -> None:
    """Raise a MappingError if the iterator or a reference is not an XPath."""
    paths = [("the iterator", plan.iterator), *(("a reference", one) for one in plan.references)]
    for what, path in paths:
        xpath = _compile(path, plan.names, what)
        try:
            # Prefixes and functions are looked up only when a path is evaluated.
            xpath(etree.Element("none"))
        except (etree.XPathError, ValueError) as error:
            raise _not_an_xpath(path, what, error) from None


def read_elements(
    stream: IO[bytes] | str, plan: XmlPlan, encoding: str | None
) -> Iterator[RecordRow]:
    """The values of each reference in each element that the iterator selects."""
    source = io.BytesIO(stream.encode()) if isinstance(stream, str) else stream
    read = _whole if plan.why_whole() else _one_by_one
    document = _Document(plan)
    number = 0
    try:
        for element in read(source, document, encoding):
            number += 1
            values = document.read(element)
            yield RecordRow(f"record {number}", values, weight=64 * len(values))
        unknown = sorted(document.plan.foreign())
        if unknown:
            text = f"nothing declares the prefix {unknown[0]}: of the iterator {plan.iterator}"
            yield bad_row("the document", text)
    except (etree.XMLSyntaxError, etree.XPathEvalError, MalformedXml, LookupError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        excerpt = stream[:1000] if isinstance(stream, str) else ""
        yield bad_row(f"after record {number}", f"not usable XML: {text}", excerpt)
    except LimitError as error:
        yield bad_row(f"after record {number}", f"{error.code}: {error.message}")
    except ValueError as error:
        # A regular expression from the record or the path is not valid.
        yield bad_row(f"after record {number}", str(error))


class _Document:
    """A plan for the current document, which may declare prefixes at any place.

    The iterator's prefixes mean what the document first declares them as; those of references what
    is declared for the record or, if nothing is, first inside of it.
    """

    def __init__(self, plan: XmlPlan) -> None:
        self.why_whole = plan.why_whole()
        self.plan = replace(plan, references=())
        self._own = replace(plan, iterator="/*")
        self._foreign = self._own.foreign()
        self._readers: dict[tuple[tuple[str, str], ...], Callable[[Any], tuple[Texts, ...]]] = {}

    def declare(self, element: Any) -> None:
        """Add the prefixes of an element, unless they are known already."""
        self.plan = self.plan.within(_declared(element))

    def read(self, record: Any) -> tuple[Texts, ...]:
        """The values of all references in a record."""
        found: dict[str, str] = {}
        for element in record.iter(etree.Element) if self._foreign else ():
            found = {**_declared(element), **found}
            if found.keys() >= self._foreign:
                break
        declared = tuple(sorted((one, found[one]) for one in self._foreign & found.keys()))
        if declared not in self._readers:
            if len(self._readers) >= _MOST_READERS:
                self._readers.clear()
            self._readers[declared] = _readers(self._own.within(dict(declared)))
        return self._readers[declared](record)


def _declared(element: Any) -> dict[str, str]:
    return {prefix: name for prefix, name in element.nsmap.items() if prefix is not None}


def _whole(source: IO[bytes], document: _Document, encoding: str | None) -> Iterator[Any]:
    data = source.read(MAX_RECORD_CHARACTERS * 4 + 1)
    if len(data) > MAX_RECORD_CHARACTERS * 4:
        raise MalformedXml(f"the document is too large to be held whole: {document.why_whole}")
    # Refused before any parser could expand its entities.
    if b"<!DOCTYPE" in data[:65536] or b"<!ENTITY" in data:
        raise MalformedXml(_DTD)
    tree = etree.fromstring(data, etree.XMLParser(encoding=encoding, **_PARSER_OPTIONS))
    _refuse_dtd(tree)
    for element in tree.iter(etree.Element):
        if not document.plan.foreign():
            break
        document.declare(element)
    plan = document.plan
    iterator = plan.iterator.strip()
    # XPath takes a path without a slash from the root element; iterators mean the document.
    start = tree if iterator.startswith("/") else tree.getroottree()
    found = _compile(iterator, plan.names, "the iterator")(start)
    if isinstance(found, list):
        yield from (one for one in found if isinstance(one, etree._Element))


def _one_by_one(source: IO[bytes], document: _Document, encoding: str | None) -> Iterator[Any]:
    path = document.plan.path()
    assert path is not None
    anchored, names = path
    context = etree.iterparse(
        source, events=("start", "end"), encoding=encoding, tag=None, **_PARSER_OPTIONS
    )
    target, depth = names[-1], 0
    is_open = bool(document.plan.foreign())
    checked = False
    inside = 0
    for event, element in context:
        if event == "start":
            if not checked:
                _refuse_dtd(element)
                checked = True
            if is_open:
                # A prefix is declared before its first element, so no element was missed.
                document.declare(element)
                is_open = bool(document.plan.foreign())
                anchored, names = document.plan.path() or path
                target = names[-1]
            depth += 1
            if element.tag == target:
                inside += 1
            continue
        depth -= 1
        if element.tag != target:
            if not inside:
                element.clear()
            continue
        inside -= 1
        if _matches(element, names, anchored, depth):
            yield element
        if not inside:
            # Drop the element and those before it: the parent would keep them all.
            element.clear(keep_tail=False)
            parent = element.getparent()
            while parent is not None and element.getprevious() is not None:
                del parent[0]


def _matches(element: Any, names: Sequence[str], anchored: bool, depth: int) -> bool:
    if anchored and depth != len(names) - 1:
        return False
    for name in reversed(names):
        if element is None or element.tag != name:
            return False
        element = element.getparent()
    return True


def _refuse_dtd(element: Any) -> None:
    info = element.getroottree().docinfo
    if info.internalDTD is not None or info.externalDTD is not None or info.doctype:
        raise MalformedXml(_DTD)


def _readers(plan: XmlPlan) -> Callable[[Any], tuple[Texts, ...]]:
    """A function that returns the values of all references; names and attributes need no XPath."""
    children: dict[str, list[tuple[int, bool]]] = {}
    others: list[tuple[int, Reader]] = []
    for number, reference in enumerate(plan.references):
        name = simple_reference(reference)
        if name is None:
            text = reference.strip().removeprefix("./")
            others.append((number, _general(_compile(text, plan.names, "a reference"))))
        elif name.startswith("@"):
            others.append((number, _attribute(expand(name[1:], plan.names))))
        else:
            wanted = children.setdefault(expand(name, plan.names), [])
            wanted.append((number, asks_text(reference)))
    width = len(plan.references)

    def read(element: Any) -> tuple[Texts, ...]:
        found: list[Texts] = [[] for _ in range(width)]
        if children:
            # One walk for all names: one walk for each name takes four times as long.
            for child in element:
                for number, own_text in children.get(child.tag, ()):
                    text = _child_text(child, own_text)
                    if text is not None:
                        found[number].append(text)
        for number, part in others:
            found[number] = part(element)
        return tuple(found)

    return read


def _attribute(name: str) -> Reader:
    def read(element: Any) -> Texts:
        value = element.get(name)
        return [value] if value is not None else []

    return read


def _child_text(child: Any, own_text: bool) -> str | None:
    if len(child) and not own_text:
        return "".join(child.itertext())
    text: str | None = child.text
    return text if text is not None or own_text else ""


def _general(xpath: Any) -> Reader:
    def read(element: Any) -> Texts:
        found = xpath(element)
        if not isinstance(found, list):
            found = [found]
        return [text for one in found if (text := _text(one)) is not None]

    return read


def _text(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() else str(value)
        case str():
            return str(value)
        case etree._Element():
            return "".join(value.itertext())
        case _:
            return None


def _compile(path: str, namespaces: Mapping[str, str], what: str) -> Any:
    try:
        return compile_xpath(path, known_names(path, namespaces))
    except etree.XPathError as error:
        raise _not_an_xpath(path, what, error) from None


def _not_an_xpath(path: str, what: str, error: Exception) -> MappingError:
    return MappingError(
        f"{what} is not an XPath: {path}",
        detail=str(error),
        hint="Write it in XPath 1.0.",
    )
