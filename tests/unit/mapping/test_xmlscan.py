"""The results of scanning an XML file, compared with lxml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from quadweir.mapping.formats import xmlscan
from quadweir.mapping.formats.xmlfile import XmlPlan
from quadweir.mapping.formats.xmlscan import PlainXml, look_at_xml

PLAN = XmlPlan("/l/r", ("a", "b", "@i"), ())


def look(folder: Path, text: str | bytes, plan: XmlPlan = PLAN) -> PlainXml | str:
    path = folder / "file.xml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return look_at_xml(path, plan)


def plain(folder: Path, text: str, plan: XmlPlan = PLAN) -> PlainXml:
    found = look(folder, text, plan)
    assert isinstance(found, PlainXml), found
    return found


def test_a_list_of_records_is_plain(tmp_path: Path) -> None:
    found = plain(tmp_path, "<l>\n<r><a>1</a><b></b></r></l>")
    assert found == PlainXml("r", False, (">",), ("a", "b"), True, ("a", "b", None), False, True, 1)


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ("<r><a>1</a></r><r><b>1</b></r>", "is_regular", False),
        ("<r><a>1</a><b>1</b></r><r><a>1</a></r>", "is_regular", False),
        ("<r><a>1</a></r><r><a>1</a><b>1</b></r>", "is_regular", False),
        ("<r><a>1</a><b>2</b></r><r><b>1</b><a>2</a></r>", "is_regular", False),
        ("<r>\r\n <a>1</a>\t</r>\r\n\r\n<r><a>2</a></r>", "is_regular", True),
        ('<r i="1"><a>1</a></r><r i="2" j="x y"><a>1</a></r>', "has_attributes", True),
        ('<r i="1"><a>1</a></r>', "found", ("a", None, "@i")),
        ("<r><a>x &amp; &lt;y&gt; &quot;&apos;</a></r>", "has_references", True),
        ("<r><a>x &amp; y</a></r>", "is_clean", False),
        ("<r><a>é</a></r>", "is_clean", False),
        ("<r><a>one\ntwo</a></r>", "is_clean", False),
        ('<r><a>"</a></r>', "is_clean", False),
        ("<r><a>\\</a></r>", "is_clean", False),
        ('<r><a i="1">1</a></r><r><a>2</a></r>', "ends", (">", " ")),
        ('<r><a i="1">1</a></r>', "found", ("a", None, None)),
        ('<r><b>1</b><a i="1" j="2"/></r>', "ends", (">", " ", "/>")),
        ("<r><a/></r><r><a/></r>", "is_regular", False),
        ("<r><other.name-2>1</other.name-2></r>", "found", (None, None, None)),
    ],
)
def test_what_is_learnt(tmp_path: Path, body: str, field: str, value: object) -> None:
    for head in ("<l>", '<?xml version="1.0" encoding="utf-8"?>\n<!-- x --><l k="v">'):
        assert getattr(plain(tmp_path, f"{head}{body}</l>\n<!-- y -->"), field) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<l><r><a>1</a><a>2</a></r></l>", "different elements"),
        ("<l><r><a><c>1</c></a></r></l>", "different elements"),
        ("<l><r><a k='1'>1</a></r></l>", "different elements"),
        ('<l><r><a k="1" k="2">1</a></r></l>', "different elements"),
        ('<l><r><a p:k="1">1</a></r></l>', "more than their parents"),
        ('<l><r><a xmlns:p="u">1</a></r></l>', "declare namespaces"),
        ("<l><r><a / ></a></r></l>", "different elements"),
        ("<l><r><a>1</a>text</r></l>", "different elements"),
        ("<l><r><a>1</a><!-- <r> --></r></l>", "different elements"),
        ("<l><r><a><![CDATA[<]]></a></r></l>", "different elements"),
        ("<l><r><a>&#65;</a></r></l>", "different elements"),
        ("<l><r><a>&own;</a></r></l>", "different elements"),
        ("<l><r><a>1\r\n</a></r></l>", "different elements"),
        ("<l><r><a>]]></a></r></l>", "different elements"),
        ("<l><r><a>1</b></r></l>", "different elements"),
        ("<l><r><a>\x01</a></r></l>", "different elements"),
        ("<l><r><a:b:c>1</a:b:c></r></l>", "different elements"),
        ("<l><r><a>1</a></r><s/><r><a>1</a></r></l>", "different elements"),
        ('<l><r i="1" i="2"><a>1</a></r></l>', "different elements"),
        ('<l><r i="a\nb"><a>1</a></r></l>', "different elements"),
        ("<l><r i='1'><a>1</a></r></l>", "different elements"),
        ('<l><r j=" i="><a>1</a></r></l>', "different elements"),
        ('<l><r i="1"><a>1</a></r><r><a>1</a></r></l>', "some records have attributes"),
        ('<l><r xmlns="u"><a>1</a></r></l>', "declare namespaces"),
        ('<l xmlns="u"><r><a>1</a></r></l>', "more than their parents"),
        ("<l><r><p:a>1</p:a></r></l>", "more than their parents"),
        ("<l><a/><r><a>1</a></r></l>", "before its first record"),
        ("<l><a>0</a><r><a>1</a></r></l>", "before its first record"),
        ("<l><m><r><a>1</a></r></m></l>", "more than their parents"),
        ("<l><r><a>1</a></r></m>", "more than their parents"),
        ("<l><r><a>1</a></r></l><l/>", "more than their parents"),
        ("<!DOCTYPE l [<!ENTITY e 'x'>]><l><r><a>1</a></r></l>", "more than their parents"),
        ('<?xml version="1.1"?><l><r><a>1</a></r></l>', "not XML 1.0"),
        ('<?xml version="1.0" encoding="latin1"?><l><r><a>1</a></r></l>', "not XML 1.0"),
        (b"<l><r><a>\xff</a></r></l>", "not UTF-8"),
        ("<l><r><a>\uffff</a></r></l>", "not UTF-8"),
        ("<l></l>", "one tag"),
        ("<l><r/></l>", "one tag"),
        ("<l><r><a>1</a>", "longer than"),
        ("", "one tag"),
    ],
)
def test_what_is_left_to_lxml(tmp_path: Path, text: str | bytes, words: str) -> None:
    found = look(tmp_path, text)
    assert isinstance(found, str) and words in found


@pytest.mark.parametrize(
    ("iterator", "reference", "words"),
    [
        ("/l/r[a]", "a", "the iterator /l/r[a]"),
        ("/l/r", "a/b", "a/b is more"),
        ("/l/r", "../k", "../k is more"),
        ("/l/r", "a[1]", "a[1] is more"),
    ],
)
def test_paths_that_are_more(tmp_path: Path, iterator: str, reference: str, words: str) -> None:
    found = look(tmp_path, "<l><r><a>1</a></r></l>", XmlPlan(iterator, (reference,), ()))
    assert isinstance(found, str) and words in found


def test_prefixes_of_the_document_and_of_the_mapping_differ(tmp_path: Path) -> None:
    plan = XmlPlan("/n:l/n:r", ("n:a", "b", "@n:i"), (("n", "urn:n"),))
    text = '<d:l xmlns:d="urn:n"><d:r d:i="1"><d:a>1</d:a><b>2</b></d:r></d:l>'
    assert plain(tmp_path, text, plan).found == ("d:a", "b", "@d:i")
    default = '<l xmlns="urn:n"><r><a>1</a><b>2</b></r></l>'
    assert plain(tmp_path, default, plan).found == ("a", None, None)


@pytest.mark.parametrize("chunk", [32, 37, 64, 2**24])
def test_cuts_in_any_place(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xmlscan, "_CHUNK", chunk)
    records = "".join(f"<r><a>{n}</a><b>é{n}</b></r>\n" for n in range(20))
    assert plain(tmp_path, f"<l>{records}</l>").is_regular
    broken = look(tmp_path, f"<l>{records}<r><a>1</a><b>2</c></r></l>")
    assert isinstance(broken, str)


TEXTS = st.text("ab1 \n\r\t<>&;\"'\\é]-!?/", max_size=6)
MARKUP = st.sampled_from(
    [
        "<r>",
        "</r>",
        "<a>",
        "<a/>",
        '<b k="1">',
        "<c/>",
        "</a>",
        "<b>",
        "</b>",
        "&amp;",
        "&lt;",
        "<!--",
        "-->",
        "<r i=",
        '"',
        ">",
    ]
)


@given(st.lists(st.tuples(st.integers(0, 200), TEXTS | MARKUP), max_size=3), st.booleans())
@example([(9, "&amp;")], False)
@example([], True)
def test_what_is_called_plain_is_so_for_lxml(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, str]], has_attributes: bool
) -> None:
    """Edits of a plain document: if the scan still calls it plain, lxml reads it in the same
    way."""
    tag = '<r i="x y">' if has_attributes else "<r>"
    text = (
        f"<l>{tag}<a>1</a><b>x y</b></r>\n {tag} <a>2</a><b></b> </r>{tag}<a>3</a><b>z</b></r></l>"
    )
    for place, piece in edits:
        text = f"{text[: place % len(text)]}{piece}{text[place % len(text) :]}"
    found = look(tmp_path_factory.getbasetemp(), text)
    if not isinstance(found, PlainXml):
        return
    root = etree.fromstring(text.encode())
    records = root.findall("r")
    assert records and not [one for one in root.iter() if one.tag is etree.Comment]
    pieces = text.split("</r>")
    assert len(pieces) == len(records) + 1 == found.records + 1
    for record, piece in zip(records, pieces, strict=False):
        names = [child.tag for child in record]
        assert len(set(names)) == len(names) and not any(len(child) for child in record)
        assert set(names) <= set(found.children)
        assert not found.is_regular or tuple(names) == found.children
        assert bool(record.attrib) == found.has_attributes
        for child in record:
            (start,) = [end for end in found.ends if f"<{child.tag}{end}" in piece]
            cut = piece.rpartition(f"<{child.tag}{start}")[2].partition("<")[0].rpartition(">")[2]
            for entity, sign in (("lt", "<"), ("gt", ">"), ("quot", '"'), ("apos", "'")):
                cut = cut.replace(f"&{entity};", sign)
            assert cut.replace("&amp;", "&") == (child.text or "")
            assert "&" not in (child.text or "") or found.has_references
            assert not found.is_clean or re.fullmatch(r"[ -~]*", child.text or "")
