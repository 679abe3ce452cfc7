"""Takes the pictures of docs/reference/page.md, and measures the page: memory and processor time.

Starts `quadweir demo --page`, looks at it with Debian's Chromium, and writes docs/images/page-*.png.
Run it from the repository: .venv/bin/python scripts/pagepictures.py
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser, running_browser  # noqa: E402
from tab import Tab, opened_tab  # noqa: E402

IMAGES = ROOT / "docs" / "images"
MEASURED_S = 60
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def demo(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the demo; yield its address and the id of its process."""
    command = [str(Path(sys.executable).parent / "quadweir"), "demo", "--page", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--output", str(folder / "demo")], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"serving at (http://\S+?);?\s", line):
                yield found[1], process.pid
                break
        else:
            raise SystemExit("the demo did not start")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def shoot(tab: Tab, name: str) -> None:
    """Take a picture, with few colours."""
    from PIL import Image

    raw = IMAGES / f"{name}.png"
    tab.js("new Promise(done => setTimeout(done, 600))")
    tab.picture(raw)
    whole = Image.open(io.BytesIO(raw.read_bytes())).convert("RGB")
    # Median cuts would lose the colours of small things.
    few = whole.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(raw, optimize=True)
    print(f"{raw.name}: {raw.stat().st_size / 1024:.0f} KiB")


def pictures(browser: Browser, url: str) -> None:
    with opened_tab(browser, width=1360) as tab:
        tab.size(1360, 980)
        tab.view(url, "queries/jams")
        tab.until("document.querySelector('.answers tbody tr')", 400)
        tab.view(url, "overview")
        tab.until("document.querySelector('.arrow .moving')", 100)
        shoot(tab, "page-overview")
        tab.dark(True)
        shoot(tab, "page-overview-dark")
        tab.view(url, "queries/places")
        tab.click("Map", "tab")
        tab.until("document.querySelectorAll('.map .point').length > 5")
        tab.js("document.querySelector('.map').scrollIntoView({block: 'end'})")
        shoot(tab, "page-map-dark")
        tab.dark(False)
        tab.click("Chart", "tab")
        tab.until("document.querySelector('.chart canvas')")
        tab.js("document.querySelector('.chart').scrollIntoView({block: 'end'})")
        shoot(tab, "page-chart")
        tab.view(url, "queries/queue")
        tab.until("document.querySelector('.answers tbody tr')")
        tab.click("Graph", "tab")
        tab.until("document.querySelectorAll('.diagram .box').length > 2")
        tab.js("document.querySelector('.diagram').scrollIntoView({block: 'end'})")
        shoot(tab, "page-graph")
        tab.view(url, "queries/stopping")
        tab.until("document.querySelector('.answers tbody tr')")
        tab.click("Why this answer?")
        tab.until("document.querySelector('.why .diagram .box[aria-label*=\"speed \"]')", 200)
        tab.js("document.querySelector('.why').scrollIntoView({block: 'start'})")
        shoot(tab, "page-why")
        tab.view(url, "queries/jams")
        tab.click("Plan", "tab")
        tab.until("document.querySelector('.diagram .box')")
        tab.js("document.querySelector('.diagram').scrollIntoView({block: 'end'})")
        shoot(tab, "page-plan")
        tab.view(url, "queries")
        tab.until_text("Remembers")
        tab.write(
            "The query",
            "SELECT ?sensor (AVG(?speed) AS ?mean)\nFROM NAMED WINDOW :w ON :speed [RANG PT10M]",
        )
        tab.until_text("line 2")
        shoot(tab, "page-error")
        tab.view(url, "mappings/motorway")
        tab.until("document.querySelector('.triples')", 120)
        shoot(tab, "page-mapping")
        tab.view(url, "windows/jams")
        tab.until("document.querySelector('.timeline .mark')", 120)
        tab.js("new Promise(done => setTimeout(done, 8000))")
        shoot(tab, "page-windows")
        tab.view(url, "letters")
        tab.click_on("button.link")
        tab.until_text("Dry run")
        tab.click("Dry run")
        tab.js("new Promise(done => setTimeout(done, 6000))")
        shoot(tab, "page-letters")
        tab.size(400, 860)
        tab.view(url, "overview")
        tab.until("document.querySelector('.chart canvas')")
        shoot(tab, "page-narrow")
        tab.check()


def measure(browser: Browser, url: str, service: int) -> None:
    """Print what a minute of live data costs the browser and the service."""
    for view in ("overview", "queries/places"):
        before = processor_s(service)
        with opened_tab(browser) as tab:
            tab.view(url, view)
            tab.call("Performance.enable")
            time.sleep(MEASURED_S)
            tab.call("HeapProfiler.collectGarbage")
            metrics = {
                each["name"]: each["value"]
                for each in tab.call("Performance.getMetrics")["metrics"]
            }
            heap = metrics["JSHeapUsedSize"] / 2**20
            memory = max(renderers())
        with_page = processor_s(service) - before
        before = processor_s(service)
        time.sleep(MEASURED_S)
        without = processor_s(service) - before
        print(
            f"{view}: after {MEASURED_S} s, {heap:.1f} MiB of JavaScript's heap, {memory:.0f} MiB of "
            f"the tab's process; the service's process took {with_page / MEASURED_S:.1%} of a core "
            f"with the page, and {without / MEASURED_S:.1%} without"
        )


def processor_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def renderers() -> list[float]:
    """Return how many MiB of its own each tab's process has."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if b"--type=renderer" not in command:
                continue
            sizes = (folder / "smaps_rollup").read_text()
        except OSError:
            continue
        own = re.findall(r"^Private_\w+:\s+(\d+) kB", sizes, re.MULTILINE)
        found.append(sum(map(int, own)) / 1024)
    return found


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="quadweir-pictures-") as folder,
        demo(Path(folder)) as (url, service),
        running_browser() as browser,
    ):
        if "--measure" not in sys.argv:
            pictures(browser, url)
        measure(browser, url, service)


if __name__ == "__main__":
    main()
