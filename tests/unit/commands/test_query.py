import json

import pytest

from command_line import main

STREAM = """\
1000 <urn:a> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
1970-01-01T00:00:02Z\t<urn:b> <urn:p> _:x .
this is no statement
1500 <urn:unsorted> <urn:p> "1" .
9000 <urn:c> <urn:p> "1"@en .
"""


@pytest.fixture
def run(tmp_path, capsys):
    """Run a query text over files of the given contents; return its answers and its messages."""

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
        (1500, "+", "urn:unsorted"),
        (2000, "+", "urn:b"),
        (9000, "+", "urn:c"),
    ]
    assert answers[0]["bindings"]["o"] == {
        "type": "literal",
        "value": "1",
        "datatype": "http://www.w3.org/2001/XMLSchema#integer",
    }
    assert answers[2]["bindings"]["o"]["type"] == "bnode"
    assert answers[3]["bindings"]["o"] == {"type": "literal", "value": "1", "xml:lang": "en"}
    assert "1 record could not be read" in err


def test_S4_no_element_of_a_file_is_late_whatever_its_order(run):
    answers, err = run(CQELS, *GIVEN)
    assert "urn:unsorted" in {each["bindings"]["s"]["value"] for each in answers}
    assert "late" not in err


def test_a_query_without_answers_names_the_pattern_that_nothing_matches(run):
    answers, err = run(CQELS.replace("urn:p", "urn:typo"), *GIVEN)
    assert answers == []
    assert "no answers: no statement of <urn:s> matches ?s <urn:typo> ?o (line 1, column" in err
    assert "nothing passes" in run(CQELS.replace("?o }", "?o FILTER(?o = 7) }"), *GIVEN)[1]


def test_what_is_hardly_meant_is_named(run):
    text = (
        "SELECT ?s ?w { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } FILTER(<urn:f>(?o) || true) }"
    )
    answers, err = run(text, *GIVEN)
    assert len(answers) == 4
    assert "q.rq:1:67: the function <urn:f> is not known" in err
    assert "nothing binds ?w" in err


def test_times_in_seconds_are_doubted(run):
    seconds = "1700000000 <urn:a> <urn:p> <urn:b> .\n1700000001 <urn:a> <urn:p> <urn:c> .\n"
    _, err = run(CQELS, *GIVEN, **{"s.stream": seconds})
    assert err.count("event times begin at 1970-01-20T16:13:20.000Z: they look like seconds") == 1
    assert "look like seconds" not in run(CQELS, *GIVEN)[1]


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
        (CQELS, ["--stream", "urn:s=@/nowhere.stream"], 2),
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
        (CQELS, [*GIVEN, "--delay", "1s"], 2),
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
    assert len(answers) == 4


RELATIVE = "SELECT ?s { STREAM <s> [RANGE 5s] { ?s <p> ?o } }"


def test_relative_iris_mean_the_same_in_the_query_and_after_stream(run):
    answers, _ = run(RELATIVE.replace("<p>", "<urn:p>"), "--stream", "s=@/s.stream")
    assert len(answers) == 4
    elements = STREAM.replace("<urn:p>", "<http://example.org/p>")
    based = ["--base", "http://example.org/", "--stream", "s=@/s.stream"]
    assert len(run(RELATIVE, *based, s_stream=elements)[0]) == 4
    whole = ["--base", "http://example.org/", "--stream", "http://example.org/s=@/s.stream"]
    assert len(run(RELATIVE, *whole, s_stream=elements)[0]) == 4


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (
            "SELECT ?s ?o { STREAM ?t [NOW] { ?s ?p ?o } }",
            ["--stream", "s=@/s.stream"],
            "s is relative",
        ),
        (RELATIVE, ["--base", "here", *GIVEN], "here is not an absolute IRI"),
    ],
)
def test_names_that_cannot_be_terms_are_refused(run, capsys, text, options, says):
    with pytest.raises(SystemExit) as ended:
        run(text, *options)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_windows_begin_and_report_as_the_run_asks(run):
    text = "SELECT ?s { STREAM <urn:s> [RANGE 10s SLIDE 10s] { ?s <urn:p> ?o } }"
    options = ["--start", "1970-01-01T00:00:00.500Z", "--full-windows"]
    answers, _ = run(text, *GIVEN, *options)
    assert {each["t"] for each in answers} == {10_500}
    answers, _ = run(text, *GIVEN, *options, "--report", "content-change")
    assert [each["t"] for each in answers] == [1000, 1500, 2000, 9000]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--start", "soon"], "--start: not an event time"),
        (["--report", "often"], "no report often"),
    ],
)
def test_an_invalid_windowing_is_refused(run, capsys, options, says):
    with pytest.raises(SystemExit) as found:
        run(CQELS, *GIVEN, *options)
    assert found.value.code == 2
    assert says in capsys.readouterr().err


DECLARED = """
[streams."urn:s"]
source = { kind = "folder", path = "in", pattern = "a*.stream" }
format = "timed-lines"
[streams."urn:files"]
source = { kind = "folder", path = "files", start = 1000, step = "1s" }
format = "timed-files"
[streams."urn:live"]
source = { kind = "tcp", port = 1 }
format = "timed-lines"
"""
BOTH = (
    "SELECT ?s ?o { STREAM <urn:s> [RANGE 5s] { ?s <urn:p> ?o } "
    "STREAM <urn:files> [RANGE 5s] { ?s <urn:q> ?x } }"
)


@pytest.fixture
def declared(tmp_path):
    """Declared streams; all but one can be read without Spark."""
    for name in ("in", "files"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "a1.stream").write_text("1000 <urn:a> <urn:p> 'x' .\n".replace("'", '"'))
    (tmp_path / "in" / "a2.stream").write_text("2000 <urn:b> <urn:p> <urn:y> .\n")
    (tmp_path / "in" / "b.stream").write_text("2000 <urn:a> <urn:p> <urn:z> .\n")
    (tmp_path / "files" / "1.ttl").write_text("<urn:c> <urn:q> 1 .")
    (tmp_path / "files" / "2.ttl").write_text("<urn:a> <urn:q> 2 .")
    return DECLARED


@pytest.mark.parametrize("why", [[], ["--why"]])
def test_the_oracle_reads_declared_streams(run, declared, why):
    answers, err = run(BOTH, "--streams", "@/s.toml", *why, s_toml=declared)
    assert [(each["t"], each["bindings"]["s"]["value"]) for each in answers] == [(2000, "urn:a")]
    assert all(("why" in each) == bool(why) for each in answers)
    assert "late" not in err


def test_the_oracle_wants_streams_that_are_declared(run, declared, capsys):
    with pytest.raises(SystemExit):
        run(CQELS.replace("urn:s", "urn:t"), "--streams", "@/s.toml", s_toml=declared)
    assert "<urn:t>, which is not declared" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--time", "--allow-dir", "--allow-net"])
def test_what_is_said_of_mappings_needs_one(run, capsys, option):
    with pytest.raises(SystemExit) as found:
        run(CQELS, *GIVEN, option, "x")
    assert found.value.code == 2
    assert "--mapping" in capsys.readouterr().err
