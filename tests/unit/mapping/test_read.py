"""RML texts into the model."""

from __future__ import annotations

import pytest

from quadweir.errors import MappingError
from quadweir.mapping.model import (
    DEFAULT_GRAPH,
    ConstantTerm,
    FunctionExecution,
    JoinWindowKind,
    PerRecord,
    Reference,
    RefObjectMap,
    Template,
    TermType,
    constant,
)
from quadweir.mapping.read import parse_mapping
from quadweir.mapping.sources import (
    Compression,
    DeclaredStream,
    FileStream,
    FormulationKind,
    FrameSource,
    KafkaStream,
    MappedFile,
    MqttStream,
    PathRoot,
    TcpStream,
    WebSocketStream,
)
from quadweir.terms import IRI, Literal
from rml_texts import (
    PREFIXES,
    SOURCE,
    join,
    only,
    read,
    read_object,
    read_source,
)

# -- vocabularies ------------------------------------------------------------------------------


def test_both_vocabularies_may_be_mixed_in_one_file():
    triples_map = only("""
        ex:t a rr:TriplesMap ;
          orml:logicalSource [ rml:source "a.json" ; orml:referenceFormulation ql:JSONPath ;
            rml:iterator "$.x[*]" ] ;
          rr:subjectMap [ rml:template "http://ex.org/{id}" ; rr:class ex:C ;
            rml:graph rr:defaultGraph ] ;
          rml:predicateObjectMap [ rr:predicate ex:p ; rml:objectMap [ rr:column "name" ] ] .
        """)
    assert triples_map.source.formulation.kind is FormulationKind.JSONPATH
    assert triples_map.source.iterator == "$.x[*]"
    assert triples_map.subject.classes == (IRI("http://ex.org/C"),)
    assert triples_map.subject.graphs[0].expression == ConstantTerm(term=DEFAULT_GRAPH)
    assert triples_map.subject.graphs[0].is_default_graph
    (term,) = triples_map.predicate_objects[0].objects
    assert term.expression == Reference(reference="name")


def test_default_term_types_follow_the_place_and_the_expression():
    assert read_object('rml:reference "a"').term_type is TermType.LITERAL
    assert read_object('rml:template "{a}"').term_type is TermType.IRI
    assert read_object('rml:template "{a}" ; rml:language "en"').term_type is TermType.LITERAL
    assert read_object('rml:constant "x"').term_type is TermType.LITERAL
    assert read_object("rml:constant ex:x").term_type is TermType.IRI
    assert read_object('rml:reference "a" ; rml:termType rml:URI').term_type is TermType.URI
    subject = only(f'ex:t {SOURCE} ; rml:subjectMap [ rml:reference "a" ] .').subject
    assert subject.term.term_type is TermType.IRI


def test_shortcuts_are_constant_maps():
    triples_map = only(
        f"ex:t {SOURCE} ; rml:subject ex:s ; rml:predicateObjectMap"
        ' [ rml:predicate ex:p, ex:q ; rml:object "o"@en, 5 ; rml:graph ex:g ] .'
    )
    (pair,) = triples_map.predicate_objects
    assert triples_map.subject.term == constant(IRI("http://ex.org/s"))
    assert [p.expression.term.value for p in pair.predicates] == [
        "http://ex.org/p",
        "http://ex.org/q",
    ]
    integer = IRI("http://www.w3.org/2001/XMLSchema#integer")
    assert [o.expression.term for o in pair.objects] == [
        Literal("o", language="en"),
        Literal("5", integer),
    ]
    assert pair.graphs == (constant(IRI("http://ex.org/g")),)


def test_languages_and_datatypes_are_term_maps():
    term = read_object('rml:reference "a" ; rml:languageMap [ rml:template "{l}-{r}" ]')
    assert term.language.expression == Template.parse("{l}-{r}")
    assert term.language.term_type is TermType.LITERAL
    term = read_object('rml:reference "a" ; rml:datatypeMap [ rml:template "http://x/{t}" ]')
    assert term.datatype.term_type is TermType.IRI
    assert read_object('rml:reference "a" ; rml:datatype xsd:date').datatype == constant(
        IRI("http://www.w3.org/2001/XMLSchema#date")
    )


def test_a_blank_node_needs_no_expression():
    triples_map = only(f"ex:t {SOURCE} ; rml:subjectMap [ rml:termType rml:BlankNode ] .")
    assert triples_map.subject.term.expression == PerRecord()


def test_yarrrmls_string_constants_with_type_iri_are_iris():
    term = read_object('rml:constant "http://ex.org/x" ; rml:termType rml:IRI')
    assert term.expression == ConstantTerm(term=IRI("http://ex.org/x"))


def test_base_iris_of_the_document_and_of_a_triples_map():
    mapping = parse_mapping(
        "@base <http://b.org/> ." + PREFIXES + f"<t> {SOURCE} ; rml:subject ex:s ;"
        " rml:baseIRI <http://c.org/> ."
    )
    assert mapping.base_iri == "http://b.org/"
    assert mapping.triples_maps[0].base_iri == "http://c.org/"
    assert mapping.triples_maps[0].name == "http://b.org/t"


def test_without_a_base_names_stay_relative():
    assert read(f"<#t> {SOURCE} ; rml:subject ex:s .").triples_maps[0].name == "#t"
    assert read(f"<t> {SOURCE} ; rml:subject ex:s .").triples_maps[0].name == "t"


@pytest.mark.parametrize(
    "body",
    [
        "rml:subject <s>",
        "rml:subjectMap [ rml:constant <s> ]",
        "rml:subjectMap [ rml:constant ex:s ; rml:class <C> ]",
        "rml:subjectMap [ rml:constant ex:s ; rml:graph <g> ]",
    ],
)
def test_without_a_base_relative_iris_do_not_reach_the_output(body: str):
    with pytest.raises(MappingError, match="has no base"):
        read(f"ex:t {SOURCE} ; {body} .")
    assert parse_mapping("@base <http://b.org/> ." + PREFIXES + f"ex:t {SOURCE} ; {body} .")


# -- joins -------------------------------------------------------------------------------------


def pairs(item: RefObjectMap) -> list[tuple[str, str]]:
    return [(c.child.reference, c.parent.reference) for c in item.conditions]


def test_any_number_of_join_conditions():
    item = join(
        'rml:joinCondition [ rml:child "a" ; rml:parent "b" ],'
        ' [ rml:childMap [ rml:template "{c}-{d}" ] ; rml:parentMap [ rml:constant "e" ] ]'
    )
    assert len(item.conditions) == 2
    assert item.conditions[1].child == Template.parse("{c}-{d}")
    assert item.conditions[1].parent == ConstantTerm(term=Literal("e"))
    assert join("").conditions == ()


def test_comma_lists_are_several_conditions():
    item = join('rr:joinCondition [ rr:child "id , lat,long" ; rr:parent "i,la,lo" ]')
    assert pairs(item) == [("id", "i"), ("lat", "la"), ("long", "lo")]


@pytest.mark.parametrize(
    ("child", "parent"),
    [("$['a','b']", "$['c','d']"), ("a,b", "c"), ("$.a[0,1]", "$.b[0,1]")],
)
def test_other_commas_belong_to_the_reference(child: str, parent: str):
    item = join(f'rr:joinCondition [ rr:child "{child}" ; rr:parent "{parent}" ]')
    assert pairs(item) == [(child, parent)]


def test_a_csv_column_may_have_a_comma_unless_streams_are_joined():
    body = 'rr:joinCondition [ rr:child "a,b" ; rr:parent "c,d" ]'
    assert pairs(join(body, SOURCE)) == [("a,b", "c,d")]
    assert len(pairs(join(body + " ; rmls:windowType rmls:Tumbling", SOURCE))) == 2


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("rmls:Tumbling", JoinWindowKind.TUMBLING),
        ("rmls:TumblingWindow", JoinWindowKind.TUMBLING),
        ("rmls:SlidingWindow", JoinWindowKind.SLIDING),
        ("rmls:DynamicWindow", JoinWindowKind.DYNAMIC),
        ("qw:Interval", JoinWindowKind.INTERVAL),
    ],
)
def test_windows_in_every_spelling(spelling: str, kind: JoinWindowKind):
    assert join(f"rmls:windowType {spelling}").window.kind is kind


@pytest.mark.parametrize("spelling", ["DynamicJoin", "DynamicWindowJoin"])
def test_the_join_type_alone_names_the_window(spelling: str):
    window = join(
        f"rmls:joinConfig [ a rmls:JoinConfigMap ; rmls:joinType rmls:{spelling} ]"
    ).window
    assert window.kind is JoinWindowKind.DYNAMIC


def test_our_own_parameters_are_kept_in_milliseconds():
    window = join(
        'rmls:joinConfig [ rmls:joinType rmls:DynamicJoin ; qw:size "PT2S"^^xsd:duration ;'
        ' qw:minSize "50 ms" ; qw:upperThreshold 1.2 ] ; qw:timestamp "$.t"'
    ).window
    assert window.parameters == (
        ("minSize", "50"),
        ("size", "2000"),
        ("timestamp", "$.t"),
        ("upperThreshold", "1.2"),
    )
    assert window.parameter("size") == "2000"
    assert window.parameter("slide") is None


def test_the_papers_mapping_is_read_as_it_stands():
    mapping = read("""
        @base <http://example.com/base/> .
        _:speed a rmls:KafkaStream ; rmls:broker "host:9092"; rmls:groupId "1"; rmls:topic "ndwspeed".
        _:flow a rmls:KafkaStream ; rmls:broker "host:9092"; rmls:groupId "1"; rmls:topic "ndwflow".
        <JoinConfigMap> a rmls:JoinConfigMap; rmls:joinType rmls:DynamicWindowJoin.
        <NDWSpeedMap> a rr:TriplesMap;
          orml:logicalSource [ orml:source _:speed; orml:referenceFormulation ql:JSONPath;
            orml:iterator "$" ];
          rr:subjectMap [ rr:template "http://example.com/resource/{internalId}?lat={lat}" ];
          rr:predicateObjectMap [
            rr:predicate <http://example.com/ontology/laneFlow> ;
            rr:objectMap [ rr:parentTriplesMap <NDWFlowMap>; rmls:joinConfig <JoinConfigMap>;
              rmls:windowType rmls:DynamicWindow;
              rr:joinCondition [ rr:child "internalId,lat" ; rr:parent "internalId,lat" ; ] ] ] .
        <NDWFlowMap> a rr:TriplesMap;
          orml:logicalSource [ orml:source _:flow; orml:referenceFormulation ql:JSONPath;
            orml:iterator "$" ];
          rr:subjectMap [ rr:template "http://example.com/resource/{internalId}" ].
        """)
    assert not mapping.findings
    speed = mapping.triples_map("http://example.com/base/NDWSpeedMap")
    assert speed.source.source == KafkaStream(brokers="host:9092", topic="ndwspeed", group_id="1")
    (item,) = speed.ref_object_maps()
    assert item.window.kind is JoinWindowKind.DYNAMIC
    assert len(item.conditions) == 2


# -- sources and targets -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a.json"', MappedFile(path="a.json")),
        ('"{frame}"', FrameSource(name="frame")),
        ("<dir/a%20b.json>", MappedFile(path="dir/a b.json")),
        ("<file:///dir/a.json>", MappedFile(path="/dir/a.json")),
        ("ex:stream", DeclaredStream(iri="http://ex.org/stream")),
        (
            '[ a rml:FilePath ; rml:root rml:CurrentWorkingDirectory ; rml:path "a.json.gz" ;'
            " rml:encoding rml:UTF-16 ; rml:compression rml:gzip ]",
            MappedFile(
                path="a.json.gz",
                root=PathRoot.WORKING_DIRECTORY,
                encoding="UTF-16",
                compression=Compression.GZIP,
            ),
        ),
        ('[ a rml:RelativePathSource ; rml:root "data" ; rml:path "a" ]', MappedFile(path="a", root="data")),
        ('[ a rmls:TCPSocketStream ; rmls:hostName "h" ; rmls:port "5005" ]', TcpStream(host="h", port=5005)),
        ('[ a rmls:FileStream ; rmls:path "dir" ]', FileStream(path="dir")),
        (
            '[ a rmls:KafkaStream ; rmls:broker "b:1,c:2" ; rmls:topic "t" ; rmls:offset "earliest" ]',
            KafkaStream(brokers="b:1,c:2", topic="t", offset="earliest"),
        ),
        (
            '[ a td:Thing ; td:hasPropertyAffordance [ td:hasForm [ hctl:hasTarget "mqtt://h/a/b" ;'
            ' hctl:forContentType "application/json" ; mqv:controlPacketValue "SUBSCRIBE" ;'
            ' mqv:options ( [ mqv:optionName "qos" ; mqv:optionValue "1" ] [ mqv:optionName "dup" ] )'
            " ] ] ]",
            MqttStream(host="h", topic="a/b", options=(("dup", ""), ("qos", "1"))),
        ),
        (
            '[ a td:Thing ; td:hasPropertyAffordance [ td:hasForm [ hctl:hasTarget "kafka://h/t" ;'
            ' <http://k/groupId> "g" ] ] ]',
            KafkaStream(brokers="h:9092", topic="t", group_id="g"),
        ),
        (
            '[ a td:Thing ; td:hasPropertyAffordance [ td:hasForm [ hctl:hasTarget "ws://h/x" ] ] ]',
            WebSocketStream(url="ws://h/x"),
        ),
        (
            '[ a td:Thing ; td:hasPropertyAffordance [ td:hasForm [ hctl:hasTarget "tcp://h:1/x" ] ] ]',
            TcpStream(host="h", port=1),
        ),
    ],
)  # fmt: skip
def test_sources(text: str, expected: object):
    assert read_source(text).source == expected


def test_streams_and_bounded_sources_are_distinguished():
    assert read_source("ex:stream").is_stream
    assert not read_source('"a.json"').is_stream


def test_csvw_dialects_and_nulls():
    source = read_source(
        '[ a csvw:Table ; csvw:url "a.csv" ; csvw:null "NA" ; csvw:dialect [ csvw:delimiter ";" ;'
        ' csvw:quoteChar "\'" ; csvw:header false ; csvw:skipRows 2 ; csvw:commentPrefix "#" ;'
        ' csvw:trim true ; csvw:encoding "latin-1" ] ]',
        "rml:CSV",
    )
    dialect = source.source.dialect
    assert (dialect.delimiter, dialect.quote, dialect.header) == (";", "'", False)
    assert (dialect.skip_rows, dialect.comment_prefix, dialect.trim) == (2, "#", True)
    assert source.source.encoding == "latin-1"
    assert source.nulls == ("NA",)
    assert read_source('"a.tsv"', "rml:CSV").source.dialect.delimiter == "\t"


def test_equal_sources_are_equal_wherever_they_are_written():
    mapping = read(f"ex:a {SOURCE} ; rml:subject ex:s .\nex:b\n {SOURCE} ; rml:subject ex:s .")
    first, second = mapping.triples_maps
    assert first.source == second.source
    assert hash(first.source) == hash(second.source)


def test_targets_of_both_vocabularies():
    mapping = read(f"""
        @prefix rmlt: <http://semweb.mmlab.be/ns/rml-target#> .
        @prefix comp: <http://semweb.mmlab.be/ns/rml-compression#> .
        @prefix void: <http://rdfs.org/ns/void#> .
        @prefix formats: <http://www.w3.org/ns/formats/> .
        ex:t {SOURCE} ; rml:subjectMap [ rml:constant ex:s ; rml:logicalTarget ex:one, ex:two ] .
        ex:one a rml:LogicalTarget ; rml:target [ rml:path "a.nq" ] .
        ex:two a rmlt:LogicalTarget ; rmlt:target [ a void:Dataset ; void:dataDump <file://d/b.ttl> ] ;
          rmlt:serialization formats:Turtle ; rmlt:compression comp:gzip .
        """)
    assert not mapping.findings
    one, two = mapping.targets()
    assert (one.path, one.serialization[-7:], one.root) == (
        "a.nq",
        "N-Quads",
        PathRoot.WORKING_DIRECTORY,
    )
    assert (two.path, two.compression) == ("d/b.ttl", Compression.GZIP)
    assert two.serialization.endswith("Turtle")


# -- functions ---------------------------------------------------------------------------------


def test_functions_of_both_vocabularies_become_the_same():
    new = read_object(
        "rml:functionExecution [ rml:function grel:toUpperCase ; rml:input [ rml:parameter"
        ' grel:valueParameter ; rml:inputValueMap [ rml:reference "n" ] ] ]'
    )
    old = read_object(
        "fnml:functionValue [ rr:predicateObjectMap [ rr:predicate fno:executes ;"
        " rr:objectMap [ rr:constant grel:toUpperCase ] ], [ rr:predicate grel:valueParameter ;"
        ' rr:objectMap [ orml:reference "n" ] ] ]'
    )
    assert new == old
    assert isinstance(new.expression, FunctionExecution)
    assert new.term_type is TermType.LITERAL


def test_inputs_are_texts_even_where_templates_make_iris():
    term = read_object(
        "rml:functionExecution [ rml:function ex:f ; rml:input [ rml:parameter ex:p ;"
        ' rml:inputValueMap [ rml:template "a {b}" ] ] ] ; rml:returnMap [ rml:constant ex:out ]'
    )
    assert term.expression.inputs[0].value.term_type is TermType.LITERAL
    assert term.expression.returns == "http://ex.org/out"
