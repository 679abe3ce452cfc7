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
    from quadweir.runtime.network.status import QueryCost, QueryStatus

_MOST: Final = 10


@final
class NetworkDashboard:
    """Shows the metrics of a network on a board, and says which queries were stopped, or have no backfill."""

    def __init__(self, title: str, board: Board, network: Network) -> None:
        self._title = title
        self._board = board
        self._network = network
        self._display = BatchDisplay(board)
        self._stopped: set[tuple[str, str | None]] = set()
        self._began_empty: set[tuple[str, str]] = set()

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
            empty = each.backfill.reason if each.backfill is not None else ""
            if empty and (each.id, empty) not in self._began_empty:
                self._began_empty.add((each.id, empty))
                self._board.say(f"quadweir: no backfill for the query {each.id}: {empty}")
        if self._board.is_drawn:
            costs = self._network.most_expensive(_MOST)
            self._board.draw(network_panel(self._title, found, status, costs))
        else:
            self._board.say(f"{queries_of(found, status)}, {line_of(found)}", style="dim")


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
    costs: Sequence[QueryCost],
) -> RenderableType:
    """Format metrics, expensive queries and stopped queries as a panel."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left")
    for name in ("most expensive", "ms of the batch", "of all", "mappings held", "answers"):
        table.add_column(name, justify="left" if name.startswith("most") else "right")
    for each in costs:
        table.add_row(
            Text(printable(each.id)),
            f"{each.batch_ms:,.2f}",
            f"{each.share:.0%}",
            f"{each.held:,.0f}",
            f"{each.answers:,}",
        )
    rows = [("queries", queries_of(found, status)), *rows_of(found)]
    stopped = [(each.id, each.reason or "") for each in status if each.state == "stopped"][:_MOST]
    parts: list[RenderableType] = [grid_of(rows), Text(""), table]
    if stopped:
        parts += [Text("\nstopped", style="bold red"), grid_of(stopped)]
    return panel_of(title, Group(*parts))
