"""GeoSPARQL's functions over WKT literals, by shapely (the extra `geo`).

Coordinates are longitude and latitude in degrees (CRS84) unless the literal names another system;
of these EPSG:4326, which has the latitude first, is understood, and others can only be compared
with themselves. A literal that is not well-formed is an expression error.

Spec: https://docs.ogc.org/is/22-047r1/22-047r1.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.signatures import Signature, Type, TypedFunction
from quadweir.algebra.values import Number, NumberKind
from quadweir.terms import IRI, Literal, Term
from quadweir.vocab import Namespace

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

GEO: Final = Namespace("http://www.opengis.net/ont/geosparql#")
GEOF: Final = Namespace("http://www.opengis.net/def/function/geosparql/")
UOM: Final = Namespace("http://www.opengis.net/def/uom/OGC/1.0/")
_QUDT: Final = "http://qudt.org/vocab/unit/"
_CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_LATITUDE_FIRST: Final = "http://www.opengis.net/def/crs/EPSG/0/4326"
_WKT: Final = re.compile(r"\s*(?:<(?P<system>[^<>\s]+)>)?\s*(?P<shape>.*)", re.DOTALL)
# A polygon of tens of thousands of points; a longer text could keep a shard busy for long.
_LONGEST: Final = 1_000_000
_EARTH_RADIUS_M: Final = 6_371_008.8  # the mean radius of WGS 84

_METRES: Final = {
    UOM.metre: 1.0,
    UOM.kilometre: 1000.0,
    f"{_QUDT}M": 1.0,
    f"{_QUDT}KiloM": 1000.0,
    f"{_QUDT}MI": 1609.344,
}
_DEGREES: Final = {
    UOM.degree: 1.0,
    UOM.radian: math.pi / 180,
    f"{_QUDT}DEG": 1.0,
    f"{_QUDT}RAD": math.pi / 180,
}
_RELATIONS: Final = (
    *("equals", "disjoint", "intersects", "touches"),
    *("crosses", "within", "contains", "overlaps"),
)


def is_missing(name: IRI) -> bool:
    """Whether a function is one of these and cannot run, because shapely is missing."""
    return name in NAMES and not _has_shapely()


@cache
def _has_shapely() -> bool:
    return find_spec("shapely") is not None


@lru_cache(maxsize=4096)
def _shape(lexical: str) -> tuple[str, BaseGeometry]:
    """Read a WKT literal: its coordinate system, and the shape with the longitude first."""
    import shapely

    if len(lexical) > _LONGEST:
        raise ExpressionError(f"a WKT literal may have {_LONGEST:,} characters")
    match = _WKT.fullmatch(lexical)
    assert match is not None
    try:
        shape = shapely.from_wkt(match["shape"])
        if not np.isfinite(shapely.get_coordinates(shape)).all():
            raise ExpressionError(f"a coordinate is no number: {lexical[:80]}")
        if match["system"] == _LATITUDE_FIRST:
            shape = shapely.transform(shape, lambda points: points[:, ::-1])
            return _CRS84, shape
    except shapely.errors.ShapelyError as error:
        raise ExpressionError(f"not WKT: {lexical[:80]} ({error})") from None
    return match["system"] or _CRS84, shape


def _both(first: Term, second: Term) -> tuple[str, BaseGeometry, BaseGeometry]:
    found = []
    for term in (first, second):
        if not isinstance(term, Literal) or term.datatype.value != GEO.wktLiteral:
            raise ExpressionError(f"{str(term)[:80]} is no geo:wktLiteral")
        found.append(_shape(term.lexical))
    (system, one), (other_system, other) = found
    if system != other_system:
        raise ExpressionError(f"the shapes are in {system} and {other_system}")
    return system, one, other


def _relation(name: str, first: Term, second: Term) -> bool:
    import shapely

    _, one, other = _both(first, second)
    try:
        return bool(getattr(shapely, name)(one, other))
    except shapely.errors.ShapelyError as error:
        raise ExpressionError(f"the shapes cannot be compared: {error}") from None


def _distance(first: Term, second: Term, unit: IRI) -> Number:
    import shapely

    system, one, other = _both(first, second)
    if system != _CRS84:
        raise ExpressionError(f"no distances are known in {system}")
    if one.is_empty or other.is_empty:
        raise ExpressionError("an empty shape has no distance")
    if unit.value in _DEGREES:
        degrees = float(shapely.distance(one, other))
        return Number(NumberKind.DOUBLE, degrees * _DEGREES[unit.value])
    if unit.value not in _METRES:
        raise ExpressionError(f"{unit} is no unit of length or angle that is known")
    return Number(NumberKind.DOUBLE, _metres(one, other) / _METRES[unit.value])


def _metres(one: BaseGeometry, other: BaseGeometry) -> float:
    """The distance on the globe between the nearest points.

    Which points are nearest is decided on a map that keeps lengths near the two shapes.
    """
    import shapely

    middle = (one.envelope.centroid.y + other.envelope.centroid.y) / 2
    scale = max(math.cos(math.radians(middle)), 1e-9)

    def flat(shape: BaseGeometry) -> BaseGeometry:
        return shapely.transform(shape, lambda points: points * (scale, 1))

    near = shapely.get_coordinates(shapely.shortest_line(flat(one), flat(other)))
    if len(near) != 2:
        return 0.0
    (x1, y1), (x2, y2) = near
    return _haversine(x1 / scale, y1, x2 / scale, y2)


def _haversine(longitude: float, latitude: float, to_longitude: float, to_latitude: float) -> float:
    """The length of the great circle between two places, in metres.

    >>> round(_haversine(0, 0, 1, 0))
    111195
    """
    low, high = math.radians(latitude), math.radians(to_latitude)
    across = math.radians(to_longitude - longitude)
    chord = (
        math.sin((high - low) / 2) ** 2 + math.cos(low) * math.cos(high) * math.sin(across / 2) ** 2
    )
    return 2 * _EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(chord)))


def _named(
    name: str, arguments: tuple[Type, ...], result: Type, code: Callable[..., Any]
) -> TypedFunction:
    return TypedFunction(IRI(GEOF[name]), (Signature(arguments, result, code),))


FUNCTIONS: Final = (
    _named("distance", (Type.TERM, Type.TERM, Type.IRI), Type.DOUBLE, _distance),
    *(
        _named(
            f"sf{relation.capitalize()}",
            (Type.TERM, Type.TERM),
            Type.BOOLEAN,
            partial(_relation, relation),
        )
        for relation in _RELATIONS
    ),
)
NAMES: Final = frozenset(function.name for function in FUNCTIONS)
