"""How a run of the command line ends, and that help is fast."""

import json
import os
import subprocess
import sys
import textwrap
import time

import pytest

import quadweir.commands
from quadweir import __version__, cli
from quadweir.cli import VERBS, Verb, main


@pytest.fixture
def run(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(words)
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


@pytest.fixture
def verb(tmp_path, monkeypatch):
    """Add a verb named `trial` whose body is the given text."""

    def add(body: str) -> None:
        indented = textwrap.indent(textwrap.dedent(body), "    ")
        text = (
            "from quadweir.errors import *\nfrom quadweir.spans import Span\n"
            f"def trial(word: str = 'x') -> None:\n{indented}\n"
        )
        (tmp_path / "trial.py").write_text(text)
        monkeypatch.setattr(
            quadweir.commands, "__path__", [*quadweir.commands.__path__, str(tmp_path)]
        )
        monkeypatch.setattr(cli, "VERBS", (*VERBS, Verb("trial", "Try.")))

    yield add
    sys.modules.pop("quadweir.commands.trial", None)


def test_help_lists_every_verb(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for verb in VERBS:
        assert f"\n  {verb.name} " in out


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.exists()], ids=lambda v: v.name)
def test_every_verb_explains_itself(verb, run):
    code, out, err = run(verb.name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: quadweir {verb.name}")
    assert "Args:" not in out
    assert ">>>" not in out


def test_version(run):
    assert run("--version") == (0, f"quadweir {__version__}\n", "")


def test_a_verb_without_a_module_says_so_whatever_its_arguments(run, monkeypatch):
    monkeypatch.setattr(cli, "VERBS", (Verb("yonder", "Look far."),))
    code, out, err = run("yonder", "file.rq", "--option", "3")
    assert (code, out) == (1, "")
    assert "error[QW-NOT-YET]" in err
    assert "not available yet" in run("--help")[1]


@pytest.mark.parametrize(
    "words", [("nonsense",), ("doctor", "--nonsense"), ("--nonsense",), ("doctor", "extra")]
)
def test_wrong_usage_ends_with_2(words, run):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "--help" in err or "-h" in err


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("pass", 0, ""),
        ("raise SourceError('no such file: a.nt')", 1, "error[QW-SOURCE]: no such file: a.nt"),
        ("raise UsageError('not HOST:PORT')", 2, "error[QW-USAGE]"),
        ("raise QuerySyntaxError('expected {', span=Span(1, 7))", 3, "QW-SYNTAX]: 1:7: expected {"),
        ("raise MappingError('no subject', hint='Add one.')", 3, "hint: Add one."),
        ("raise DataError('11 of 20 records were bad')", 4, "error[QW-DATA]"),
        ("raise KeyboardInterrupt", 130, "quadweir: interrupted"),
        ("raise TypeError('gone wrong')", 1, "error[QW-INTERNAL]: unexpected TypeError"),
    ],
)
def test_exit_codes(body, code, said, verb, run):
    verb(body)
    ended, out, err = run("trial")
    assert (ended, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
    assert err.count("interrupted") == (code == 130)


def test_an_error_in_a_file_shows_the_place(verb, run, tmp_path):
    (tmp_path / "q.rq").write_text("SELECT ?x\nWHER { }\n")
    verb(
        f"""
        raise QuerySyntaxError("expected WHERE", span=Span(2, 1, 2, 5, {str(tmp_path / "q.rq")!r}))
        """
    )
    _, _, err = run("trial")
    assert "q.rq:2:1: expected WHERE\n2 | WHER { }\n  | ^^^^\n" in err


def test_an_error_from_a_spark_worker_keeps_its_exit_code(verb, run):
    verb(
        """
        raise RuntimeError('''job aborted
          File "a.py", line 3, in f
        quadweir.errors.DataError: 7 of 10 records were bad
        Driver stacktrace:''')
        """
    )
    code, _, err = run("trial")
    assert code == 4
    assert "error[QW-DATA]: 7 of 10 records were bad" in err


def test_control_codes_in_data_do_not_reach_the_terminal(verb, run):
    verb("raise DataError('bad: \\x1b[2J\\x07')")
    _, _, err = run("trial")
    assert "bad: \\x1b[2J\\x07" in err
    assert "\x1b" not in err


@pytest.mark.parametrize("how", ["option", "variable"])
def test_debugging_shows_the_traceback(how, verb, monkeypatch):
    monkeypatch.setenv("QUADWEIR_DEBUG", "1" if how == "variable" else "")
    verb("raise TypeError('gone wrong')")
    with pytest.raises(TypeError, match="gone wrong"):
        main((["--debug"] if how == "option" else []) + ["trial"])


def test_errors_are_coloured_on_a_terminal_only():
    pty = pytest.importorskip("pty")
    command = [sys.executable, "-m", "quadweir.cli", "doctor", "--kafka", "nonsense"]
    shown = {}
    for name, extra in (("colour", {}), ("plain", {"NO_COLOR": "1"})):
        ours, theirs = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM")}
        done = subprocess.run(
            command, stderr=theirs, env=environment | {"TERM": "xterm"} | extra, check=False
        )
        os.close(theirs)
        shown[name] = os.read(ours, 10_000).decode()
        os.close(ours)
        assert done.returncode == 2
    assert "\x1b[" in shown["colour"]
    assert "\x1b[3" not in shown["plain"]
    piped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "\x1b" not in piped.stderr
    assert "error[QW-USAGE]" in piped.stderr


def test_help_imports_nothing_heavy():
    heavy = ("pyspark", "pandas", "pyarrow", "numpy", "numba", "pyoxigraph", "lark", "rich")
    text = textwrap.dedent(
        f"""
        import json, sys
        from quadweir.cli import main
        try:
            main(["--help"])
        except SystemExit:
            print(json.dumps([name for name in {heavy!r} if name in sys.modules]), file=sys.stderr)
        """
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr) == []


def test_help_costs_a_few_times_what_python_costs_to_start():
    def once(*words: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    # What typer itself costs, the floor of any command line built on it, is measured in turns with
    # it, so that a machine that is slow for a while is slow for both.
    turns = [(once("-c", "import typer"), once("-m", "quadweir.cli", "--help")) for _ in range(5)]
    floors, helps = zip(*turns, strict=True)
    assert min(helps) < 3 * min(floors)
