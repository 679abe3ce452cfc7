import logging
import signal

import pytest

from quadweir.commands.interrupts import Interrupts, caused_by_interrupt, quieten_gateway


def test_the_first_ctrl_c_is_noted_and_the_second_interrupts():
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        assert not interrupts.seen
        signal.raise_signal(signal.SIGINT)
        assert interrupts.seen
        signal.raise_signal(signal.SIGINT)


def test_the_former_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


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
