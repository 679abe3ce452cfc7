"""A service of its own for the test that kills it between requests.

    python killed_service.py FOLDER

Serves over FOLDER/data, and writes its address to FOLDER/address once it is ready.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from quadweir.runtime.spark.session import build
from quadweir.service.access import Access
from quadweir.service.server import ServiceServer
from quadweir.service.service import LiveService
from quadweir.service.settings import ServedApplication, ServiceSettings


def main(folder: Path) -> None:
    config = {"spark.driver.memory": "600m"}
    spark = build(master="local[2]", shards=2, app_name="killed-service", config=config)
    settings = ServiceSettings(data=folder / "data", port=0)
    service = LiveService(spark, ServedApplication(shards=2), settings)
    with ServiceServer(service, Access()) as server:
        service.start()
        scratch = folder / "address.new"
        scratch.write_text(server.url)
        scratch.rename(folder / "address")
        threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
