import json

import pytest

from command_line import main

STREAM = """\
1000 <urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
1970-01-01T00:00:02Z\t<urn:b> <urn:p> _:x .
this is no statement
1500 <urn:late> <urn:p> "1" .
9000 <urn:c> <urn:p> "1"@en .
"""


@pytest.fixture
def run(tmp_path, capsys):
    """Run a query text over files of the given contents; give its answers and its messages."""

    def ask(text, *options, **files):
        for name, content in {"s.stream": STREAM, **files}.items():
            (tmp_path / name.replace("_", ".")).write_text(content, encoding="utf-8")
        (tmp_path / "q.rq").write_text(text, encoding="utf-8")
        arguments = [option.replace("@", str(tmp_path)) for option in options]
        main(["query", str(tmp_path / "q.rq"), "--oracle", *arguments])
        out, err = capsys.readouterr()
        return [json.loads(line) for line in out.splitlines()], err

    return ask


GIVEN = ["--stream", "urn:s=@/s.stream"]
CQELS = "SELECT ?s ?o { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } }"


def test_answers_are_lines_of_json(run):
    answers, err = run(CQELS, "--stream", "urn:s=@/s.stream")
    assert [(each["t"], each["sign"], each["bindings"]["s"]["value"]) for each in answers] == [
        (1000, "+", "urn:a"),
        (2000, "+", "urn:b"),
        (9000, "+", "urn:c"),
    ]
    assert answers[0]["bindings"]["o"] == {
        "type": "literal",
        "value": "1",
        "datatype": "http://www.w3.org/2001/XMLSchema#integer",
    }
    assert answers[1]["bindings"]["o"]["type"] == "bnode"
    assert answers[2]["bindings"]["o"] == {"type": "literal", "value": "1", "xml:lang": "en"}
    assert "1 record could not be read" in err
    assert "1 late element" in err


def test_within_the_allowed_delay_nothing_is_late(run):
    answers, err = run(CQELS, "--stream", "urn:s=@/s.stream", "--delay", "1s")
    assert "urn:late" in {each["bindings"]["s"]["value"] for each in answers}
    assert "late" not in err


def test_static_data_by_default_and_by_name(run):
    text = (
        "SELECT ?n ?g FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S] { WINDOW <urn:w> "
        "{ <urn:a> <urn:p> 1 } <urn:a> <urn:n> ?n }"
    )
    files = {"d_ttl": "<urn:a> <urn:n> 'default' .", "g_ttl": "<urn:a> <urn:n> 'named' ."}
    options = ["--stream", "urn:s=@/s.stream", "--static", "@/d.ttl", "--static", "urn:g=@/g.ttl"]
    answers, _ = run(text, *options, **files)
    assert {each["bindings"]["n"]["value"] for each in answers} == {"default"}
    named = text.replace("FROM NAMED WINDOW", "FROM <urn:g> FROM NAMED WINDOW")
    answers, _ = run(named, *options, **files)
    assert {each["bindings"]["n"]["value"] for each in answers} == {"named"}


def test_construct_answers_are_graphs_and_go_to_a_file(run, tmp_path):
    text = "CONSTRUCT { ?s <urn:seen> ?o } { STREAM <urn:s> [NOW] { ?s <urn:p> ?o } }"
    printed, _ = run(text, "--stream", "urn:s=@/s.stream", "--output", "@/out.jsonl")
    assert printed == []
    first = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["t"] == 1000
    assert first["graph"] == [
        '<urn:a> <urn:seen> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    ]


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("SELECT", [], 3),
        ("SELECT ?s { STREAM <urn:s> [ALL] { ?s ?p ?o . ?o ?p ?s } }", [], 3),
        ("SELECT ?s FROM <urn:missing> { STREAM <urn:s> [NOW] { ?s ?p ?o } ?s ?p 1 }", GIVEN, 3),
        (CQELS, ["--stream", "s.stream"], 2),
        (CQELS, ["--stream", "urn:s=@/nowhere.stream"], 1),
        (CQELS, [*GIVEN, "--static", "@/nowhere.ttl"], 1),
        (CQELS, [], 2),
        (CQELS, [*GIVEN, *GIVEN], 2),
        (CQELS, [*GIVEN, "--live"], 2),
        (CQELS, ["--stream", "urn:s=@", "--live"], 2),
        (CQELS, [*GIVEN, "--checkpoint", "@/c"], 2),
        (CQELS, [*GIVEN, "--reload-static"], 2),
        (CQELS, [*GIVEN, "--format", "nquads"], 2),
        (CQELS, ["--stream", "urn:s=@/s.stream", "--strict"], 4),
        (CQELS, ["--stream", "urn:s=@/s.stream", "--max-reports", "1"], 3),
        (CQELS, ["--delay", "soon"], 2),
        (CQELS, ["--format", "xml"], 2),
    ],
)
def test_what_goes_wrong_ends_with_its_exit_code(run, text, options, code, capsys):
    with pytest.raises(SystemExit) as ended:
        run(text, *options)
    assert ended.value.code == code
    assert "error[" in capsys.readouterr().err


def test_unbounded_state_can_be_allowed_by_name(run):
    text = "SELECT ?s { STREAM <urn:s> [ALL] { ?s <urn:p> ?o . ?s <urn:p> ?q } }"
    options = ["--stream", "urn:s=@/s.stream", "--allow-unbounded", "urn:s"]
    answers, _ = run(text, *options)
    assert len(answers) == 3
