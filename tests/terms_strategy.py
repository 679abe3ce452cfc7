"""Generated RDF terms and quads, with every character and escape that N-Triples has."""

from __future__ import annotations

from hypothesis import strategies as st

from quadweir.terms import IRI, BlankNode, Literal, Quad, TripleTerm

# Every character but surrogates; those that need an escape come often.
TEXT = st.text(
    st.one_of(
        st.sampled_from(
            '\x00\x01\b\t\n\x0b\f\r\x1f "\\\x7f\x80\x85\u2028\ufffe\uffff\U0001f600.<>#@^'
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=12,
)
_IRI_TAIL = st.text(
    st.one_of(
        st.sampled_from("abcXYZ019/#?&=:;,.-_~!$'()*+@"),
        st.characters(min_codepoint=0xA0, max_codepoint=0xD7FF, categories=["L", "N"]),
    ),
    max_size=12,
)
IRIS = st.builds(
    lambda scheme, tail: IRI(scheme + tail), st.sampled_from(["urn:x:", "http://e.org/"]), _IRI_TAIL
)
BLANK_NODES = st.builds(
    BlankNode, st.from_regex(r"[A-Za-z0-9_é][A-Za-z0-9_.\-é]{0,6}[A-Za-z0-9_é]", fullmatch=True)
)
LITERALS = st.one_of(
    st.builds(Literal, TEXT),
    st.builds(Literal, TEXT, datatype=IRIS),
    st.builds(Literal, TEXT, language=st.sampled_from(["en", "EN-us", "de-Latn-CH", "zh-Hans"])),
)
RESOURCES = st.one_of(IRIS, BLANK_NODES)
OBJECTS = st.recursive(
    st.one_of(IRIS, BLANK_NODES, LITERALS),
    lambda inner: st.builds(TripleTerm, RESOURCES, IRIS, inner),
    max_leaves=4,
)
QUADS = st.builds(
    Quad,
    RESOURCES,
    IRIS,
    OBJECTS,
    st.one_of(st.none(), IRIS, BLANK_NODES),
)
