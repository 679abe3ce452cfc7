"""Bodies in Jelly: each frame is a message, unless the stream is flat."""

from __future__ import annotations

from collections.abc import Iterator

import pyoxigraph as ox

from quadweir.errors import LimitError
from quadweir.jelly import is_flat, read_frames
from quadweir.rdfguards import MOST_CHARACTERS
from quadweir.service.rdfbody import read_rdf


def read_jelly_body(body: bytes) -> tuple[Iterator[list[ox.Quad]], bool]:
    """Return the statements of each message, and whether the body is a single document instead.

    Raises:
        DataError: it is no Jelly.
        LimitError: it is too large when it is written out.
        EnvironmentProblem: the extra `jelly` is not installed.
    """
    texts = [*_texts(body)]
    flat = is_flat(body)
    if flat:
        texts = ["\n".join(texts)]
    return (list(read_rdf(each.encode(), ox.RdfFormat.N_QUADS)) for each in texts), flat


def _texts(body: bytes) -> Iterator[str]:
    size = 0
    for quads in read_frames(body):
        text = "\n".join(map(str, quads))
        size += len(text)
        if size > MOST_CHARACTERS:
            raise LimitError(
                f"the terms of the body have more than {MOST_CHARACTERS:,} characters together, "
                "written out",
                hint="Send it in parts.",
            )
        yield text
