"""`--schema`, `--entailment` and `--why` on the command line, answered by the oracle."""

from __future__ import annotations

import json

import pytest

from command_line import main

SCHEMA = """@prefix : <urn:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Cat rdfs:subClassOf :Pet , "odd" .
:feeds rdfs:range :Pet ; owl:inverseOf :fedBy .
:partOf a owl:TransitiveProperty .
"""
STREAM = """\
1000 <urn:tom> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Cat> .
2000 <urn:eve> <urn:feeds> <urn:rex> .
3000 <urn:tom> <urn:at> <urn:kitchen> .
"""
STATIC = "<urn:kitchen> <urn:partOf> <urn:house> . <urn:house> <urn:partOf> <urn:street> ."
PETS = "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x a <urn:Pet> } }"


@pytest.fixture
def files(tmp_path):
    names = {"schema.ttl": SCHEMA, "s.stream": STREAM, "static.ttl": STATIC}
    for name, text in names.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def ask(files, capsys):
    def run(text, *options):
        (files / "q.rq").write_text(text, encoding="utf-8")
        words = ["query", str(files / "q.rq"), "--oracle", "--schema", str(files / "schema.ttl")]
        words += ["--stream", f"urn:s={files / 's.stream'}", "--static", str(files / "static.ttl")]
        main([*words, *options])
        out, err = capsys.readouterr()
        return [json.loads(line) for line in out.splitlines()], err

    return run


def bound(answers, name="x"):
    return [each["bindings"][name]["value"] for each in answers]


def test_answers_rest_on_what_the_schema_derives(ask):
    answers, err = ask(PETS)
    assert bound(answers) == ["urn:tom", "urn:rex"]
    assert "schema.ttl:3:29: the literal" in err


def test_why_shows_elements_and_steps(ask):
    answers, _ = ask(PETS, "--why")
    first, second = (each["why"] for each in answers)
    assert first == [
        {
            "triple": "<urn:tom> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Pet> .",
            "elements": [
                {
                    "stream": "urn:s",
                    "time": 1000,
                    "position": 1,
                    "carries": "<urn:tom> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
                    "<urn:Cat> .",
                    "steps": [{"rule": "rdfs9", "axiom": "<urn:Cat> rdfs:subClassOf <urn:Pet>"}],
                }
            ],
        }
    ]
    assert second[0]["elements"][0]["steps"][0]["rule"] == "rdfs3"


def test_why_shows_static_triples_and_chains_of_them(ask):
    text = """SELECT ?x ?y { STREAM <urn:s> [RANGE 5s] { ?x <urn:at> ?k }
        ?k <urn:partOf> ?y }"""
    answers, _ = ask(text, "--why")
    assert set(bound(answers, "y")) == {"urn:house", "urn:street"}
    static_of = {each["bindings"]["y"]["value"]: each["why"][1]["static"] for each in answers}
    assert static_of["urn:house"] == [{}]
    assert static_of["urn:street"] == [{"steps": [{"rule": "transitive"}]}]


def test_why_of_a_count_is_all_that_was_counted_and_of_negation_what_there_is(ask):
    text = "SELECT (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?x a <urn:Pet> } }"
    answers, _ = ask(text, "--why")
    of_two = next(each for each in answers if each["bindings"]["n"]["value"] == "2")
    assert len(of_two["why"]) == 2
    text = """SELECT ?x ?k { STREAM <urn:s> [RANGE 5s] { ?x a <urn:Pet>
        OPTIONAL { ?x <urn:at> ?k } MINUS { ?y <urn:feeds> ?x } } }"""
    answers, _ = ask(text, "--why")
    assert {len(each["why"]) for each in answers} == {1, 2}
    assert all("feeds" not in part["triple"] for each in answers for part in each["why"])


def test_why_of_what_is_gone_is_what_was_there(ask):
    text = "REGISTER DSTREAM <urn:q> AS SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S]"
    answers, _ = ask(f"{text} {{ WINDOW <urn:w> {{ ?x a <urn:Pet> }} }}", "--why")
    assert [each["sign"] for each in answers] == ["-", "-"]
    assert all(part["elements"] for each in answers for part in each["why"])


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (PETS, ["--why", "--live", "--verify"], "either"),
        ("CONSTRUCT { ?x a <urn:P> } { STREAM <urn:s> [RANGE 5s] { ?x a <urn:Pet> } }",
         ["--why"], "solutions"),
        (PETS, ["--why", "--format", "csv"], "jsonl"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_refused(ask, capsys, text, options, words):
    with pytest.raises(SystemExit):
        ask(text, *options)
    assert words in capsys.readouterr().err


def test_explain_shows_epsilon_networks_and_ways(files, capsys):
    (files / "q.rq").write_text(PETS, encoding="utf-8")
    drawing = files / "net.svg"
    main(["explain", str(files / "q.rq"), "--schema", str(files / "schema.ttl"), "--plan",
          "--entailment", "--svg", str(drawing)])  # fmt: skip
    out = capsys.readouterr().out
    assert "full epsilon network: 3 properties, 2 classes; 1 S-link, 1 O-link, 2 OS-links" in out
    assert "reduced epsilon network: 2 properties, 2 classes; 2 S-links, 1 O-link" in out
    assert "also with predicate <urn:feeds>, as (object)" in out
    svg = drawing.read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert svg.count("</text>") > 8


def test_a_window_that_needs_chains_is_refused_with_the_place(files, capsys):
    text = "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x <urn:partOf> ?y } }"
    (files / "q.rq").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["explain", str(files / "q.rq"), "--schema", str(files / "schema.ttl")])
    err = capsys.readouterr().err
    assert "schema.ttl:5:11" in err
    assert "transitive" in err
