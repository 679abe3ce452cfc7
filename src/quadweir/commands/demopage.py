"""`quadweir demo --page`: the motorway on the page of the service."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from quadweir.commands.output import stderr_console
from quadweir.commands.serve import check_packages, serve_application


def serve_motorway(folder: Path, port: int) -> None:
    """Serve the motorway until Ctrl-C, and open its page in a browser if there is one.

    Args:
        folder: where the recordings and the state go; it is new.
        port: the port; 0 for a free one.
    """
    check_packages()
    from quadweir.bench.motorwaypage import write_application
    from quadweir.commands.application import load

    folder.mkdir()
    stderr_console().print("generating a day of sensor readings", style="dim")
    app = load(write_application(folder))
    serve_application(app, folder / "state", port=port, when_served=_open)


def _open(url: str) -> None:
    console = stderr_console()
    console.print(f"\nThe page: {url}/\n", style="bold", highlight=False)
    if can_show():
        webbrowser.open(f"{url}/")


def can_show() -> bool:
    """Whether a browser can open a window here: text browsers would take the terminal."""
    if not sys.stderr.isatty():
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
