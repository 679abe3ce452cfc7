"""The file of tokens, and how much each of them may still ask for."""

from __future__ import annotations

import secrets
import threading
import time
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.errors import DeclarationError
from quadweir.service.access import Role, TokenQuota, TokenRecord, digest_of_token
from quadweir.service.problems import PressureError

if TYPE_CHECKING:
    from quadweir.service.access import Caller
    from quadweir.service.declarations import Declarations

_ROLES: Final = {"read": Role.READ, "push": Role.PUSH, "admin": Role.ADMIN}
_QUOTAS: Final = ("queries", "streams", "subscribers", "bytes_per_minute")
_DIGITS: Final = frozenset("0123456789abcdef")
_MINUTE: Final = 60.0


def new_token() -> str:
    """Return a token that nobody can guess."""
    return f"qw_{secrets.token_urlsafe(32)}"


def token_table(name: str, role: str, token: str) -> str:
    """Return what the file of tokens has for a token.

    >>> print(token_table("ann", "read", "secret"), end="")
    [tokens.ann]
    role = "read"
    sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    """
    return f'[tokens.{name}]\nrole = "{role}"\nsha256 = "{digest_of_token(token)}"\n'


def read_tokens(path: Path) -> tuple[TokenRecord, ...]:
    """Read the file of tokens.

    Raises:
        DeclarationError: it cannot be read, or is not valid.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"cannot read the tokens in {path}: {error}") from None
    tables = document.get("tokens")
    if not isinstance(tables, dict) or not tables:
        raise DeclarationError(
            f"{path} has no tokens", hint="`quadweir serve --new-token admin` makes one."
        )
    return tuple(_token(path, name, table) for name, table in tables.items())


def _token(path: Path, name: str, table: Any) -> TokenRecord:
    if not isinstance(table, dict) or table.keys() - {"role", "sha256", *_QUOTAS}:
        raise DeclarationError(
            f"{path}: the token {name} may have role, sha256, {', '.join(_QUOTAS)}"
        )
    role = _ROLES.get(table.get("role", ""))
    digest = str(table.get("sha256", "")).lower()
    if role is None:
        raise DeclarationError(f"{path}: the role of {name} must be read, push or admin")
    if len(digest) != 64 or not _DIGITS.issuperset(digest):
        raise DeclarationError(
            f"{path}: the sha256 of {name} must be 64 hexadecimal digits",
            hint="The file has the hashes of tokens, not the tokens.",
        )
    given = {key: table[key] for key in _QUOTAS if key in table}
    for key, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise DeclarationError(f"{path}: {key} of {name} must be a whole number")
    return TokenRecord(name, role, digest, TokenQuota(**given))


@final
class Quotas:
    """What tokens have used.

    Args:
        clock: seconds that only grow; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._subscribers: Counter[str] = Counter()
        self._pushed: dict[str, deque[tuple[float, int]]] = {}

    def subscribe(self, name: str, quota: TokenQuota) -> Callable[[], None]:
        """Count a subscriber; return what ends that.

        Raises:
            PressureError: the token has no more.
        """
        with self._lock:
            if quota.subscribers is not None and self._subscribers[name] >= quota.subscribers:
                raise PressureError(
                    f"this token may have {quota.subscribers:,} subscribers at once",
                    retry_after_s=10,
                )
            self._subscribers[name] += 1

        def leave() -> None:
            with self._lock:
                self._subscribers[name] -= 1

        return leave

    def push(self, name: str, quota: TokenQuota, size: int) -> None:
        """Count the bytes of a push.

        Raises:
            PressureError: the token has no more for now.
        """
        if quota.bytes_per_minute is None:
            return
        now = self._clock()
        with self._lock:
            pushed = self._pushed.setdefault(name, deque())
            while pushed and pushed[0][0] <= now - _MINUTE:
                pushed.popleft()
            if sum(each for _, each in pushed) + size > quota.bytes_per_minute:
                wait = pushed[0][0] + _MINUTE - now if pushed else _MINUTE
                raise PressureError(
                    f"this token may push {quota.bytes_per_minute:,} bytes in a minute",
                    retry_after_s=max(1, round(wait)),
                )
            pushed.append((now, size))


@final
class Ownership:
    """Which queries and streams belong to tokens that may not have many.

    Args:
        declarations: the log of the service.
        kind: what belongs to them: `queries` or `streams`.
    """

    def __init__(self, declarations: Declarations, kind: str) -> None:
        self._declarations = declarations
        self._kind = kind
        # Held from the check to the note, so that requests at the same time do not exceed it.
        self.changing = threading.Lock()

    def check(self, caller: Caller, names: Iterable[str]) -> None:
        """Refuse more than a token may have.

        Raises:
            PressureError: there would be more.
        """
        most = getattr(caller.quota, self._kind)
        if most is None:
            return
        owners = self._declarations.now.owners
        own = {key for key, owner in owners.items() if owner == caller.name and self._is_own(key)}
        if len(own | {self._key(name) for name in names}) > most:
            raise PressureError(
                f"this token may have {most:,} {self._kind}",
                retry_after_s=60,
                hint="Delete some of them first.",
            )

    def note(self, caller: Caller, names: Iterable[str]) -> None:
        """Note to whom new things belong."""
        keys = [self._key(name) for name in names]
        if getattr(caller.quota, self._kind) is not None and keys:
            self._declarations.change(
                lambda now: now.owners.update(dict.fromkeys(keys, caller.name))
            )

    def forget(self, name: str) -> None:
        """Forget to whom a thing belonged."""
        key = self._key(name)
        if key in self._declarations.now.owners:
            self._declarations.change(lambda now: _drop(now.owners, key))

    def _key(self, name: str) -> str:
        return f"{self._kind}:{name}"

    def _is_own(self, key: str) -> bool:
        return key.startswith(f"{self._kind}:")


def _drop(owners: dict[str, str], key: str) -> None:
    owners.pop(key, None)
