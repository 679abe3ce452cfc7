"""GeoSPARQL's functions over WKT literals."""

from __future__ import annotations

import pytest

from quadweir.algebra import geo
from quadweir.algebra.functions import call, default_context
from quadweir.algebra.geo import GEO, GEOF, UOM
from quadweir.algebra.moments import ExpressionError
from quadweir.errors import UnsupportedError
from quadweir.syntax import parse
from quadweir.terms import IRI, Literal, Term
from quadweir.testing import Oracle
from quadweir.testing.elements import MemoryStream

LATITUDE_FIRST = "<http://www.opengis.net/def/crs/EPSG/0/4326> "
AMSTERDAM = "POINT(4.9041 52.3676)"
PARIS = "POINT(2.3522 48.8566)"
SQUARE = "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))"


def wkt(text: str) -> Literal:
    return Literal(text, IRI(GEO.wktLiteral))


def asked(name: str, *terms: Term) -> Term:
    return call(IRI(GEOF[name]), terms, default_context())


def distance(one: str, other: str, unit: str = UOM.metre) -> float:
    found = asked("distance", wkt(one), wkt(other), IRI(unit))
    assert isinstance(found, Literal)
    return float(found.lexical)


@pytest.mark.parametrize(
    ("name", "one", "other", "truth"),
    [
        ("sfWithin", "POINT(1 1)", SQUARE, True),
        ("sfWithin", "POINT(0 0)", SQUARE, False),  # on the border is not within
        ("sfWithin", SQUARE, "POINT(1 1)", False),
        ("sfContains", SQUARE, "POINT(1 1)", True),
        ("sfIntersects", SQUARE, "POINT(0 0)", True),
        ("sfIntersects", SQUARE, "LINESTRING(-5 5, 5 5)", True),
        ("sfIntersects", SQUARE, "POINT(11 11)", False),
        ("sfDisjoint", SQUARE, "POINT(11 11)", True),
        ("sfTouches", SQUARE, "POINT(0 0)", True),
        ("sfEquals", SQUARE, "POLYGON((10 0, 10 10, 0 10, 0 0, 10 0))", True),
        ("sfOverlaps", SQUARE, "POLYGON((5 5, 15 5, 15 15, 5 15, 5 5))", True),
        ("sfCrosses", SQUARE, "LINESTRING(-5 5, 5 5)", True),
        # The latitude first.
        ("sfWithin", LATITUDE_FIRST + "POINT(1 20)", "POLYGON((19 0, 21 0, 21 2, 19 2, 19 0))", True),
    ],
)  # fmt: skip
def test_relations(name: str, one: str, other: str, truth: bool) -> None:
    assert asked(name, wkt(one), wkt(other)) == Literal(
        str(truth).lower(), IRI("http://www.w3.org/2001/XMLSchema#boolean")
    )


def test_distances_over_the_globe() -> None:
    # 430 km as the crow flies.
    assert distance(AMSTERDAM, PARIS) == pytest.approx(430_000, rel=0.005)
    assert distance(AMSTERDAM, PARIS, UOM.kilometre) == pytest.approx(430, rel=0.005)
    assert distance(AMSTERDAM, PARIS, "http://qudt.org/vocab/unit/KiloM") == pytest.approx(
        430, rel=0.005
    )
    assert distance("POINT(0 0)", "POINT(3 4)", UOM.degree) == 5
    assert distance("POINT(0 0)", "POINT(180 0)", UOM.radian) == pytest.approx(3.14159, rel=1e-5)
    assert distance("POINT(0 89)", "POINT(180 89)") == pytest.approx(2 * 111_195, rel=1e-3)
    swapped = LATITUDE_FIRST + "POINT(48.8566 2.3522)"
    assert distance(AMSTERDAM, swapped) == distance(AMSTERDAM, PARIS)


def test_distances_between_shapes_are_those_of_their_nearest_points() -> None:
    assert distance("POINT(5 5)", SQUARE) == 0
    assert distance("POINT(11 5)", SQUARE) == pytest.approx(110_772, rel=1e-3)
    # In the north a degree of longitude is short: the eastern side is the nearer one.
    north = "LINESTRING(11 80, 11 81)"
    south = "LINESTRING(8 79.5, 9 79.5)"
    far = "MULTIPOINT((9 80.5), (8 79.6))"
    assert distance(north, far) < 50_000
    assert distance(north, south) > 50_000


@pytest.mark.parametrize(
    "terms",
    [
        (wkt("POINT(1"), wkt(SQUARE)),
        (wkt(""), wkt(SQUARE)),
        (wkt("POINT(1 1) POINT(2 2)"), wkt(SQUARE)),
        (Literal("POINT(1 1)"), wkt(SQUARE)),
        (IRI("urn:x"), wkt(SQUARE)),
        (wkt("<urn:crs> POINT(1 1)"), wkt(SQUARE)),
        (wkt("POINT(1 1)" + " " * 1_000_001), wkt(SQUARE)),
        (wkt(SQUARE),),
    ],
)
def test_what_is_no_shape_is_an_expression_error(terms: tuple[Term, ...]) -> None:
    with pytest.raises(ExpressionError):
        asked("sfWithin", *terms)


@pytest.mark.parametrize(
    ("one", "other", "unit"),
    [
        ("POINT EMPTY", SQUARE, UOM.metre),
        ("POINT(nan 1)", SQUARE, UOM.metre),
        ("POINT(1 1)", SQUARE, UOM.gridspacing),
        ("<urn:crs> POINT(1 1)", "<urn:crs> POINT(2 2)", UOM.metre),
    ],
)
def test_a_distance_that_is_not_known_is_an_expression_error(
    one: str, other: str, unit: str
) -> None:
    with pytest.raises(ExpressionError):
        distance(one, other, unit)


def test_shapes_in_one_foreign_system_can_be_compared() -> None:
    assert asked("sfEquals", wkt("<urn:crs> POINT(1 1)"), wkt("<urn:crs> POINT(1 1)")) == Literal(
        "true", IRI("http://www.w3.org/2001/XMLSchema#boolean")
    )


NEAR = f"""PREFIX geo: <{GEO}> PREFIX geof: <{GEOF}> PREFIX uom: <{UOM}>
SELECT ?car {{ STREAM <urn:cars> [NOW] {{ ?car <urn:at> ?where }}
  FILTER(geof:distance(?where, "{AMSTERDAM}"^^geo:wktLiteral, uom:metre) < 1000) }}"""


def test_a_query_over_places() -> None:
    cars = MemoryStream("urn:cars")
    for time, place in ((1, "POINT(4.905 52.368)"), (2, PARIS), (3, "POINT(oops)")):
        cars.add(time, f'<urn:c{time}> <urn:at> "{place}"^^<{GEO.wktLiteral}> .')
    assert [(each.t, dict(each.solution)["car"]) for each in Oracle(NEAR).answers(list(cars))] == [
        (1, IRI("urn:c1"))
    ]


def test_without_shapely_a_query_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(geo, "_has_shapely", lambda: False)
    with pytest.raises(UnsupportedError, match="needs shapely") as caught:
        parse(NEAR)
    assert "quadweir[geo]" in (caught.value.hint or "")
    assert caught.value.span is not None
