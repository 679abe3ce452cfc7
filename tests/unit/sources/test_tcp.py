"""Lines from a sender that does not do what senders should."""

from __future__ import annotations

import socket
from pathlib import Path

from quadweir.sources.spool import FAULT, TEXT, Spool, unframe
from quadweir.sources.tcp import LineCutter, TcpReceiver

MOST = 1 << 16
TOO_LONG = b"the line is longer than 65536 bytes"


def test_a_line_that_never_ends_is_reported_once_and_takes_no_room() -> None:
    cutter = LineCutter(MOST)
    found = [line for _ in range(1000) for line in cutter.feed(b"x" * 1000)]
    assert found == [(FAULT, TOO_LONG)]
    assert len(cutter._rest) <= MOST
    assert list(cutter.feed(b"end of it\nnext\r\n")) == [(TEXT, b"next")]
    assert list(cutter.finish()) == []


def test_a_line_of_the_greatest_length_may_end_in_two_characters() -> None:
    for end in (b"\n", b"\r\n"):
        cutter = LineCutter(4)
        found = [line for byte in b"abcd" + end for line in cutter.feed(bytes([byte]))]
        assert found == [(TEXT, b"abcd")]


def test_a_sender_without_line_ends_leaves_a_dead_letter(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        receiver = TcpReceiver(spool, "127.0.0.1", server.getsockname()[1], max_record_bytes=MOST)
        receiver.start()
        try:
            with server.accept()[0] as connection:
                for _ in range(64):
                    connection.sendall(b"x" * MOST)
                # While the line goes on: nobody would hear of it otherwise.
                while spool.sync() == 0:
                    connection.sendall(b"x")
                connection.sendall(b"\nnext\n")
            # It connects again once it has read all of that.
            server.accept()[0].close()
        finally:
            receiver.stop()
    assert receiver.failure is None
    kept = [one for run in spool.read(0, spool.sync()) for _, one in unframe(*run)]
    assert [(one.kind, one.payload) for one in kept] == [(FAULT, TOO_LONG), (TEXT, b"next")]
    spool.close()
