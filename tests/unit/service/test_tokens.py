"""The file of tokens, and quotas."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.errors import DeclarationError
from quadweir.service.access import Caller, Role, TokenQuota, digest_of_token
from quadweir.service.declarations import Declarations
from quadweir.service.problems import PressureError
from quadweir.service.tokens import Ownership, Quotas, new_token, read_tokens, token_table

DIGEST = "0" * 64


def test_the_file_has_hashes_only(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    token = new_token()
    file.write_text(token_table("ann", "push", token) + "queries = 5\n")
    assert token not in file.read_text()
    (found,) = read_tokens(file)
    assert (found.name, found.role, found.digest) == ("ann", Role.PUSH, digest_of_token(token))
    assert found.quota == TokenQuota(queries=5)
    assert len({new_token() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tokens = 5",
        "not TOML",
        '[tokens.a]\nrole = "root"\nsha256 = "{d}"',
        '[tokens.a]\nrole = "read"\nsha256 = "secret"',
        '[tokens.a]\nrole = "read"',
        '[tokens.a]\nrole = "read"\nsha256 = "{d}"\ntoken = "secret"',
        '[tokens.a]\nrole = "read"\nsha256 = "{d}"\nqueries = -1',
        '[tokens.a]\nrole = "read"\nsha256 = "{d}"\nqueries = true',
    ],
)
def test_a_file_that_is_not_right_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text.replace("{d}", DIGEST))
    with pytest.raises(DeclarationError):
        read_tokens(file)


def test_bytes_are_counted_for_a_minute() -> None:
    now = 0.0
    quotas = Quotas(lambda: now)
    quota = TokenQuota(bytes_per_minute=100)
    quotas.push("a", quota, 60)
    with pytest.raises(PressureError) as caught:
        quotas.push("a", quota, 60)
    assert caught.value.retry_after_s == 60
    quotas.push("b", quota, 60)
    now = 61.0
    quotas.push("a", quota, 100)


def test_what_belongs_to_a_token_is_known_after_a_restart(tmp_path: Path) -> None:
    few = Caller("few", Role.ADMIN, TokenQuota(queries=2))
    owned = Ownership(Declarations(tmp_path), "queries")
    owned.check(few, ["a", "b"])
    owned.note(few, ["a", "b"])
    again = Ownership(Declarations(tmp_path), "queries")
    again.check(few, ["a"])
    with pytest.raises(PressureError):
        again.check(few, ["c"])
    again.check(Caller("ann", Role.ADMIN), ["c"])
    again.forget("a")
    again.check(few, ["c"])
