import logging
import signal

import pytest
from py4j.protocol import Py4JNetworkError

from quadweir.cli import main
from quadweir.commands.interrupts import Interrupts, caused_by_interrupt, quieten_gateway


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_interrupts(number):
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        assert not interrupts.seen
        signal.raise_signal(number)
        assert interrupts.seen
        signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_former_handler_comes_back(number):
    before = signal.getsignal(number)
    with Interrupts():
        assert signal.getsignal(number) != before
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("error", [ConnectionRefusedError(), Py4JNetworkError("no answer")])
def test_what_fails_because_the_signal_ended_spark_too_is_an_interrupt(error):
    """For example, a service manager ends all processes of a unit."""
    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(signal.SIGTERM)
        raise error


def test_errors_of_other_kinds_stay_what_they_are():
    with pytest.raises(ValueError, match="wrong"), Interrupts():
        signal.raise_signal(signal.SIGTERM)
        raise ValueError("wrong")
    with pytest.raises(ConnectionRefusedError), Interrupts():
        raise ConnectionRefusedError


def test_a_command_ends_in_order_by_sigterm(monkeypatch, capsys):
    def ends():
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("quadweir.commands.doctor.doctor", ends)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as end:
        main(["doctor"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "quadweir: interrupted\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupt_while_spark_starts_prints_no_traceback(monkeypatch, caplog):
    """A signal often comes during a call to Java, whose gateway logs it by itself."""

    def starts():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            logging.getLogger().exception("KeyboardInterrupt while sending command.")
            raise

    monkeypatch.setattr("quadweir.commands.doctor.doctor", starts)
    monkeypatch.setattr(logging.getLogger(), "filters", [])
    with pytest.raises(SystemExit) as end:
        main(["doctor"])
    assert end.value.code == 130
    assert caplog.records == []


def test_errors_of_other_origin_are_no_interrupts():
    error = ValueError()
    error.__context__ = OSError()
    error.__context__.__context__ = error  # such circles exist
    assert not caused_by_interrupt(error)


def test_the_gateway_says_nothing_of_interrupts_and_the_rest_as_before(caplog):
    root = logging.getLogger()
    filters = list(root.filters)
    try:
        quieten_gateway()
        root.error("KeyboardInterrupt while sending command.")
        root.error("something else")
    finally:
        root.filters = filters
    assert [record.getMessage() for record in caplog.records] == ["something else"]
