import json

import pytest

from command_line import main

QUERY = (
    "SELECT ?s { STREAM <urn:s> [RANGE 10s SLIDE 2s] { ?s <urn:p> ?o } "
    "STREAM <urn:t> [ALL] { ?s <urn:q> ?o } ?s <urn:r> 1 FILTER(1 + 1 = 2) }"
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "q.rq"
    path.write_text(QUERY, encoding="utf-8")
    return str(path)


def test_it_says_what_a_query_means(file, capsys):
    main(["explain", file])
    out = capsys.readouterr().out
    assert "dialect   CQELS-QL\n" in out
    assert "output    ISTREAM; derivations are compared\n" in out
    assert "report    on change" in out
    assert "over <urn:s>\n  scope   the last 10 s, evaluated every 2 s\n  content bag\n" in out
    assert "state   every element ever seen (refused unless allowed by name)\n" in out
    assert "\nstatic\n  (bgp\n    (triple ?s <urn:r> 1))\n" in out
    before, after = out.split("\noptimized")
    assert "(filter" in before
    assert "(filter" not in after


def test_all_of_it_as_json(file, capsys):
    main(["explain", file, "--json", "--steps", "--content", "graph"])
    facts = json.loads(capsys.readouterr().out)
    assert [window["bounded"] for window in facts["windows"]] == [True, False]
    assert {window["content"] for window in facts["windows"]} == {"graph"}
    assert facts["compares"] == "solutions"
    assert facts["steps"][-1]["algebra"] == facts["optimized"]
    assert "fold_constants" in facts["rules"]


def test_plain_sparql_is_explained_too(tmp_path, capsys):
    path = tmp_path / "q.rq"
    path.write_text("ASK { ?s ?p ?o }", encoding="utf-8")
    main(["explain", str(path)])
    out = capsys.readouterr().out
    assert out.startswith("dialect   SPARQL\nanswers   ASK\nreport    once\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"SELECT ?s { ?s ?p }", 3),
        (b"SELECT ?s { STREAM <urn:s> { ?s ?p ?o } }", 3),
        (b"\xff\xfe", 3),
        (None, 1),
    ],
)
def test_bad_queries_end_with_their_exit_code(text, code, tmp_path, capsys):
    path = tmp_path / "bad.rq"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(path)])
    assert ended.value.code == code
    assert "error[" in capsys.readouterr().err


def test_wrong_usage_ends_with_2(file, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["explain", file, "--content", "set"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        main(["explain", file, "--dialect", "sql"])
    assert ended.value.code == 2
