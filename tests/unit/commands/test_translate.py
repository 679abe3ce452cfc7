import io
import json
import sys

import pytest

from command_line import main

QUERY = "PREFIX x: <urn:x:> SELECT ?s { STREAM x:s [RANGE 10s] { ?s x:p ?o } }"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "q.rq"
    path.write_text(QUERY, encoding="utf-8")
    return str(path)


def test_the_text_goes_to_standard_output_and_warnings_to_standard_error(file, capsys):
    main(["translate", file, "--to", "rspql"])
    out, err = capsys.readouterr()
    assert out == (
        "PREFIX w: <urn:quadweir:window:>\n"
        "PREFIX x: <urn:x:>\n"
        "SELECT ISTREAM ?s\n"
        "FROM NAMED WINDOW w:1 ON x:s [RANGE PT10S]\n"
        "WHERE {\n"
        "  WINDOW w:1 {\n"
        "    ?s x:p ?o .\n"
        "  }\n"
        "}\n"
    )
    assert err.startswith(f"quadweir: warning[content]: {file}:1:32: ")


def test_as_json(file, capsys):
    main(["translate", file, "--to", "csparql", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert "FROM STREAM x:s [RANGE 10s STEP 10s]" in found["query"]
    assert {"report", "output", "step"} <= {each["aspect"] for each in found["warnings"]}


def test_from_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(QUERY.encode())))
    main(["translate", "-", "--to", "cqels"])
    out, err = capsys.readouterr()
    assert "STREAM x:s [RANGE 10s] {" in out
    assert err == ""


def test_strict_refuses_to_lose_anything(file, capsys):
    main(["translate", file, "--to", "cqels", "--strict"])
    with pytest.raises(SystemExit) as ended:
        main(["translate", file, "--to", "csparql", "--strict"])
    assert ended.value.code == 3
    assert "does not keep" in capsys.readouterr().err


def test_an_unknown_dialect_is_wrong_usage(file):
    with pytest.raises(SystemExit) as ended:
        main(["translate", file, "--to", "sql"])
    assert ended.value.code == 2
