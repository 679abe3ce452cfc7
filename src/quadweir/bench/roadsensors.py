"""Records like those of road sensors, in every format, with mappings and hand-written jobs.

A record has eight members. The mapping makes a subject from a template with five references, and
three triples. The same seed gives the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
NAMES: Final = ("lane", "lat", "long", "timestamp", "location", "flow", "speed", "period")
_SUBJECT: Final = ("location", "lane", "lat", "long", "timestamp")
_OBJECTS: Final = {"flow": "integer", "speed": "decimal", "lane": "string"}
# The older vocabulary, which other engines read as well.
_PREFIXES: Final = f"""
@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> .
@prefix ql: <http://semweb.mmlab.be/ns/ql#> . @prefix ex: <http://ex.org/> .
@prefix xsd: <{_XSD}> .
"""
_SOURCES: Final[dict[str, str]] = {
    "jsonl": 'rml:source "records.jsonl"; rml:referenceFormulation ql:JSONPath; rml:iterator "$"',
    "json": 'rml:source "records.json"; rml:referenceFormulation ql:JSONPath; rml:iterator "$[*]"',
    "csv": 'rml:source "records.csv"; rml:referenceFormulation ql:CSV',
    "xml": 'rml:source "records.xml"; rml:referenceFormulation ql:XPath; '
    'rml:iterator "/records/record"',
}
_SOURCES["comments.xml"] = _SOURCES["xml"].replace("records.xml", "records.comments.xml")
TRIPLES: Final = len(_OBJECTS)
"""How many triples a record gives."""


def rows(count: int, seed: int = 1) -> Iterator[tuple[Any, ...]]:
    """The values of `count` records."""
    rng = random.Random(seed)
    for number in range(count):
        yield (
            f"lane{number % 19}",
            round(51 + rng.random(), 6),
            round(4 + rng.random(), 6),
            f"2026-03-03T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z",
            f"RWS01 {number % 1000}",
            number % 120,
            round(rng.random() * 120, 1),
            60,
        )


def write_records(folder: Path, count: int, form: str) -> None:
    """Write `count` records in one of the formats `jsonl`, `json`, `csv` and `xml`.

    `comments.xml` is XML with a comment in each record.
    """
    with (folder / f"records.{form}").open("w", encoding="utf-8") as file:
        found = rows(count)
        if form == "csv":
            file.write(",".join(NAMES) + "\n")
            file.writelines(",".join(map(str, row)) + "\n" for row in found)
        elif form.endswith("xml"):
            shape = "".join(f"<{name}>%s</{name}>" for name in NAMES)
            shape += "<!-- -->" if form == "comments.xml" else ""
            file.write("<records>\n")
            file.writelines(f"<record>{shape % row}</record>\n" for row in found)
            file.write("</records>\n")
        else:
            lines = (json.dumps(dict(zip(NAMES, row, strict=True))) for row in found)
            if form == "json":
                file.write("[")
                file.writelines(
                    f"{',' if number else ''}\n{one}" for number, one in enumerate(lines)
                )
                file.write("\n]\n")
            else:
                file.writelines(f"{line}\n" for line in lines)


def mapping_text(form: str, *, maps: int = 1, repeats: int = 1) -> str:
    """The mapping: `maps` triples maps over one source, each with its predicates `repeats` times."""
    subject = "/".join(f"{{{name}}}" for name in _SUBJECT)
    text = _PREFIXES
    for number in range(maps):
        text += f"""
<http://ex.org/m{number}> rml:logicalSource [ {_SOURCES[form]} ];
  rr:subjectMap [ rr:template "http://ex.org/{number}/{subject}" ]"""
        for copy in range(repeats):
            for name, kind in _OBJECTS.items():
                predicate = f"{name}{copy or ''}"
                text += f""";
  rr:predicateObjectMap [ rr:predicate ex:{predicate};
    rr:objectMap [ rml:reference "{name}"; rr:datatype xsd:{kind} ] ]"""
        text += " .\n"
    return text


def by_hand(spark: SparkSession, folder: Path, form: str) -> DataFrame:
    """The lines of the mapping, by a Spark job written for exactly this input."""
    from pyspark.sql import functions as F

    path = str(folder / f"records.{form}")
    fields = ", ".join(f"{name} string" for name in NAMES)
    if form == "jsonl":
        text = spark.read.text(path)
        frame = text.select(F.from_json("value", fields).alias("r")).select("r.*")
    else:
        frame = spark.read.csv(path, header=True, schema=fields)
    frame = frame.select(_subject("http://ex.org/0/", _SUBJECT).alias("s"), *_OBJECTS)
    return frame.select(
        F.explode(
            F.array(
                *[
                    F.concat(
                        "s",
                        F.lit(f' <http://ex.org/{name}> "'),
                        name,
                        F.lit('" .' if kind == "string" else f'"^^<{_XSD}{kind}> .'),
                    )
                    for name, kind in _OBJECTS.items()
                ]
            )
        ).alias("value")
    )


def _subject(start: str, names: tuple[str, ...]) -> Any:
    from pyspark.sql import functions as F

    parts: list[Any] = [F.lit(f"<{start}")]
    for number, name in enumerate(names):
        parts += [F.lit("/")] if number else []
        parts.append(F.replace(F.url_encode(name), F.lit("+"), F.lit("%20")))
    return F.concat(*parts, F.lit(">"))


# -- a join -----------------------------------------------------------------------------------

JOIN_MAPPING: Final = (
    _PREFIXES
    + """
<http://ex.org/measured> rml:logicalSource [
    rml:source "measured.csv"; rml:referenceFormulation ql:CSV ];
  rr:subjectMap [ rr:template "http://ex.org/measured/{id}" ];
  rr:predicateObjectMap [ rr:predicate ex:at; rr:objectMap [
    rr:parentTriplesMap <http://ex.org/place>;
    rr:joinCondition [ rr:child "site"; rr:parent "site" ];
    rr:joinCondition [ rr:child "lane"; rr:parent "lane" ] ] ] .
<http://ex.org/place> rml:logicalSource [
    rml:source "places.csv"; rml:referenceFormulation ql:CSV ];
  rr:subjectMap [ rr:template "http://ex.org/place/{name}" ] .
"""
)


def write_join(folder: Path, count: int) -> None:
    """Write two files of `count` records; each record joins with one of the other file."""
    with (folder / "places.csv").open("w", encoding="utf-8") as file:
        file.write("name,site,lane\n")
        file.writelines(f"place {n},site{n // 4},lane{n % 4}\n" for n in range(count))
    with (folder / "measured.csv").open("w", encoding="utf-8") as file:
        file.write("id,site,lane,flow\n")
        for number in range(count):
            at = number * 7919 % count
            file.write(f"{number},site{at // 4},lane{at % 4},{number % 120}\n")


def join_by_hand(spark: SparkSession, folder: Path) -> DataFrame:
    """The lines of the join, written as a Spark job."""
    from pyspark.sql import functions as F

    measured = spark.read.csv(
        str(folder / "measured.csv"),
        header=True,
        schema="id string, site string, lane string, flow string",
    ).select(_subject("http://ex.org/measured/", ("id",)).alias("s"), "site", "lane")
    places = spark.read.csv(
        str(folder / "places.csv"), header=True, schema="name string, site string, lane string"
    ).select(_subject("http://ex.org/place/", ("name",)).alias("o"), "site", "lane")
    return measured.join(places, ["site", "lane"]).select(
        F.concat("s", F.lit(" <http://ex.org/at> "), "o", F.lit(" .")).alias("value")
    )
