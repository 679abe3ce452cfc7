"""Watch a running network: a live panel on a terminal, or plain lines elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.commands.output import printable
from quadweir.commands.querydashboard import BatchDisplay, grid_of, line_of, panel_of, rows_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from quadweir.commands.board import Board
    from quadweir.runtime.network.network import Network
    from quadweir.runtime.network.status import QueryStatus

_MOST: Final = 10


@final
class NetworkDashboard:
    """Shows the metrics of a network on a board, and says which queries were stopped."""

    def __init__(self, title: str, board: Board, network: Network) -> None:
        self._title = title
        self._board = board
        self._network = network
        self._display = BatchDisplay(board)
        self._stopped: set[tuple[str, str | None]] = set()

    def show(self) -> None:
        """Show metrics; nothing changes before there is a new batch."""
        found = self._network.metrics()
        if not self._display.is_new(found):
            return
        status = self._network.status()
        for each in status:
            if each.state == "stopped" and (each.id, each.reason) not in self._stopped:
                self._stopped.add((each.id, each.reason))
                self._board.say(f"quadweir: the query {each.id} was stopped: {each.reason}")
        if self._board.is_drawn:
            costs = expensive(status, self._network.template_costs())
            self._board.draw(network_panel(self._title, found, status, costs))
        else:
            self._board.say(f"{queries_of(found, status)}, {line_of(found)}", style="dim")


def expensive(
    status: Sequence[QueryStatus], costs: Mapping[int, float]
) -> list[tuple[QueryStatus, float]]:
    """Return the ten most expensive queries, and the milliseconds that each took.

    The time of a template is divided among the queries that share it.
    """
    priced = [
        (each, costs.get(each.template, 0.0) / (each.shared_with + 1))
        for each in status
        if each.state != "stopped"
    ]
    return sorted(priced, key=lambda pair: (-pair[1], -pair[0].answers, pair[0].id))[:_MOST]


def queries_of(found: Mapping[str, Any], status: Sequence[QueryStatus]) -> str:
    """How many queries there are, in words."""
    counts = Counter(each.state for each in status)
    parts = [f"{found['queries']:,} queries in {found['templates']:,} templates"]
    parts += [f"{counts[each]:,} {each}" for each in ("paused", "stopped") if counts[each]]
    return ", ".join(parts)


def network_panel(
    title: str,
    found: dict[str, Any],
    status: Sequence[QueryStatus],
    costs: Sequence[tuple[QueryStatus, float]],
) -> RenderableType:
    """Format metrics, expensive queries and stopped queries as a panel."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left")
    for name in ("most expensive", "ms of the batch", "answers", "shares with"):
        table.add_column(name, justify="left" if name.startswith("most") else "right")
    for query, ms in costs:
        table.add_row(
            Text(printable(query.id)), f"{ms:,.2f}", f"{query.answers:,}", f"{query.shared_with:,}"
        )
    rows = [("queries", queries_of(found, status)), *rows_of(found)]
    stopped = [(each.id, each.reason or "") for each in status if each.state == "stopped"][:_MOST]
    parts: list[RenderableType] = [grid_of(rows), Text(""), table]
    if stopped:
        parts += [Text("\nstopped", style="bold red"), grid_of(stopped)]
    return panel_of(title, Group(*parts))
