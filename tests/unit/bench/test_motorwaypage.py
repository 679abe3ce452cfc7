"""The application of `quadweir demo --page`: everything that it names is there and valid."""

from __future__ import annotations

import json
from pathlib import Path

import pyoxigraph
import pytest

from quadweir.algebra.analyze import analyze, refuse_unbounded
from quadweir.bench.motorway import Motorway
from quadweir.bench.motorwaypage import places, write_application
from quadweir.commands.application import Application, load
from quadweir.commands.run import check

GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Application:
    return load(write_application(tmp_path_factory.mktemp("motorway"), hours=1))


def test_all_queries_are_valid(app: Application) -> None:
    check(app, None)
    for each in app.queries.values():
        analyze(each.query)
        refuse_unbounded(each.query)
    # Each dialect is shown.
    assert {"jams", "traffic", "stopping", "queue", "places"} <= app.queries.keys()


def test_a_few_records_are_cut(app: Application) -> None:
    folder = app.streams["http://example.org/motorway/speed"].source.path.parent  # type: ignore[union-attr]
    lines = (Path(folder) / "speed.jsonl").read_text().splitlines()
    bad = [line for line in lines if not _is_json(line)]
    assert (len(lines), len(bad)) == (60 * 36, 3)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_every_sensor_has_a_place() -> None:
    road = Motorway(points=4)
    store = pyoxigraph.Store()
    store.load(places(road).encode(), pyoxigraph.RdfFormat.TURTLE)
    found = store.query(
        f"SELECT * {{ ?s <http://example.org/motorway/at> ?p . ?p <{GEO}lat> ?lat ; <{GEO}long> ?long }}"
    )
    assert isinstance(found, pyoxigraph.QuerySolutions)
    assert len([*found]) == len(road.sensors)
