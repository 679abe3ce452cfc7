"""The part of the Berlin SPARQL Benchmark that paper 003 streams: product types, offers, countries.

A tree of product types is the schema; products have types that are leaves of it. An offer is eleven
triples, the type of its product among them. Vendors and producers, with their countries, are static.
The same seed gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from quadweir.bench.live import FILES
from quadweir.vocab import RDF, RDFS, XSD

VOCABULARY: Final = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/"
INSTANCES: Final = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/"
COUNTRIES: Final = "http://downlode.org/rdf/iso-3166/countries#"
STREAM: Final = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/offers"
_DC: Final = "http://purl.org/dc/elements/1.1/"

START: Final = 1_700_000_000_000
OFFER_TRIPLES: Final = 11
OFFERS_PER_SECOND: Final = 2_000
"""In event time."""

SMALL: Final = (8, 8, 4)
LARGE: Final = (14, 8, 8, 8, 2)
"""How many types there are below one of each level: 329 types in 4 levels, 22,527 in 6."""

_SHARES: Final = {"US": 40, "GB": 10, "JP": 10, "CN": 10, "DE": 5, "FR": 5, "ES": 5, "RU": 5,
                  "KR": 5, "AT": 5}  # fmt: skip

Ints = NDArray[np.int64]


@final
@dataclass(frozen=True)
class Shop:
    """The size of the shop.

    Attributes:
        branching: how many types there are below one of each level.
        products: how many products there are.
        vendors: how many vendors.
        producers: how many producers.
        seed: the seed of all random numbers.
    """

    branching: tuple[int, ...] = SMALL
    products: int = 10_000
    vendors: int = 200
    producers: int = 200
    seed: int = 42

    # --- the schema ---

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many types each level has, the root's first.

        >>> Shop(LARGE).sizes, sum(Shop(LARGE).sizes), sum(Shop(SMALL).sizes)
        ((1, 14, 112, 896, 7168, 14336), 22527, 329)
        """
        found = [1]
        for each in self.branching:
            found.append(found[-1] * each)
        return tuple(found)

    def first(self, level: int) -> int:
        """The number of the first type of a level; the root is number 1, of level 0."""
        return 1 + sum(self.sizes[:level])

    def below(self, level: int) -> int:
        """How many types are below one of a level.

        >>> Shop(LARGE).below(1), Shop(SMALL).below(1), Shop(SMALL).below(3)
        (1608, 40, 0)
        """
        count, found = 1, 0
        for each in self.branching[level:]:
            count *= each
            found += count
        return found

    def parents(self) -> Iterator[tuple[int, int]]:
        """Pairs of a type and the one above it."""
        for level, each in enumerate(self.branching, start=1):
            for place in range(self.sizes[level]):
                yield self.first(level) + place, self.first(level - 1) + place // each

    def schema(self, file: Path) -> None:
        """Write the tree as Turtle."""
        lines = [f"@prefix rdfs: <{RDFS}> .", f"@prefix inst: <{INSTANCES}> ."]
        lines += [
            f"inst:ProductType{one} rdfs:subClassOf inst:ProductType{above} ."
            for one, above in self.parents()
        ]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def target(self, level: int) -> str:
        """The IRI of the first type of a level."""
        return f"{INSTANCES}ProductType{self.first(level)}"

    # --- static data ---

    @cached_property
    def _leaves(self) -> Ints:
        """For each product the place of its type among the leaves."""
        dice = np.random.default_rng([self.seed, 1])
        return dice.integers(0, self.sizes[-1], self.products)

    def static(self, file: Path, *, triples: int | None = None, producers: bool = True) -> int:
        """Write vendors and producers with their countries as N-Triples; return the number of
        triples.

        Args:
            file: the file to write.
            triples: the least number of triples; vendors are added until it is reached.
            producers: whether to write producers too.
        """
        names = list(_SHARES)
        shares = np.array(list(_SHARES.values())) / sum(_SHARES.values())
        dice = np.random.default_rng([self.seed, 2])
        count = 0
        with file.open("w", encoding="utf-8") as out:

            def countries(kind: str, first: int, many: int) -> None:
                for number, place in enumerate(dice.choice(len(names), many, p=shares), first):
                    out.write(
                        f"<{INSTANCES}{kind}{number}> <{VOCABULARY}country> "
                        f"<{COUNTRIES}{names[place]}> .\n"
                    )

            countries("Vendor", 0, self.vendors)
            count += self.vendors
            if producers:
                countries("Producer", 0, self.producers)
                makers = dice.integers(0, self.producers, self.products)
                for product, maker in enumerate(makers):
                    out.write(
                        f"<{INSTANCES}Product{product}> <{VOCABULARY}producer> "
                        f"<{INSTANCES}Producer{maker}> .\n"
                    )
                count += self.producers + self.products
            if triples is not None and triples > count:
                countries("Vendor", self.vendors, triples - count)
                count = triples
        return count

    # --- the stream ---

    def offers(
        self, first: int, count: int, *, closed: bool = False, level: int | None = None
    ) -> pa.Table:
        """The statements of offers; each triple is an element of its own.

        Args:
            first: the number of the first offer.
            count: how many.
            closed: add all supertypes of each product's type, as reasoning would find them.
            level: replace each product's type by its supertype of this level.
        """
        numbers = np.arange(first, first + count, dtype=np.int64)
        dice = np.random.default_rng([self.seed, 3, first])
        products = dice.integers(0, self.products, count)
        vendors = dice.integers(0, self.vendors, count)
        offer = _names("Offer", numbers)
        product, vendor = _names("Product", products), _names("Vendor", vendors)
        days = dice.integers(0, 365, count)
        columns = [
            (offer, f"<{RDF.type}>", _same(f"<{VOCABULARY}Offer>", count)),
            (offer, f"<{VOCABULARY}product>", product),
            *self._types(product, self._leaves[products], closed=closed, level=level),
            (offer, f"<{VOCABULARY}vendor>", vendor),
            (offer, f"<{VOCABULARY}price>", _literals(dice.integers(1, 10_000, count), "double")),
            (offer, f"<{VOCABULARY}validFrom>", _literals(days, "integer")),
            (offer, f"<{VOCABULARY}validTo>", _literals(days + 90, "integer")),
            (
                offer,
                f"<{VOCABULARY}deliveryDays>",
                _literals(dice.integers(1, 22, count), "integer"),
            ),
            (offer, f"<{VOCABULARY}offerWebpage>", _names("Webpage", numbers)),
            (offer, f"<{_DC}publisher>", vendor),
            (offer, f"<{_DC}date>", _literals(days, "integer")),
        ]
        width = len(columns)
        order = pa.array(np.arange(count * width).reshape(width, count).T.ravel())
        subjects = pa.concat_arrays([subject for subject, _, _ in columns])
        places = pa.array(np.repeat(np.arange(width), count))
        ends = pa.concat_arrays([end for _, _, end in columns])
        return pa.table(
            {
                "stream": _same(STREAM, count * width),
                "event_time": np.repeat(START + numbers * 1000 // OFFERS_PER_SECOND, width),
                "position": np.arange(first * width, (first + count) * width),
                "subject": subjects.take(order),
                "predicate": pa.array([name for _, name, _ in columns]).take(places.take(order)),
                "object": ends.take(order),
                "graph": pa.nulls(count * width, pa.string()),
            }
        )

    def _types(
        self, product: pa.Array, leaves: Ints, *, closed: bool, level: int | None
    ) -> Iterator[tuple[pa.Array, str, pa.Array]]:
        lowest = len(self.branching)
        first, last = (level, level) if level is not None else (lowest, 0 if closed else lowest)
        places = leaves
        for at in range(lowest, last - 1, -1):
            if at <= first:
                yield product, f"<{RDF.type}>", _names("ProductType", self.first(at) + places)
            places = places // self.branching[at - 1] if at else places

    def write(
        self,
        folder: Path,
        *,
        batches: int,
        offers: int,
        closed: bool = False,
        level: int | None = None,
    ) -> int:
        """Write batches of offers, `FILES` files each; return the number of triples in a batch.

        `closed` and `level` are those of `offers`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        written = 0
        for batch in range(batches):
            table = self.offers(batch * offers, offers, closed=closed, level=level)
            size = -(-table.num_rows // FILES)
            for part in range(FILES):
                file = folder / f"{batch:05}-{part}.parquet"
                pq.write_table(table.slice(part * size, size), file, compression="snappy")
                # Spark reads files in the order of their modification times.
                at = START // 1000 + batch * FILES + part
                os.utime(file, (at, at))
            written = table.num_rows
        return written


def _same(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [text]).cast(pa.string())


def _names(kind: str, numbers: Ints) -> pa.Array:
    return _around(f"<{INSTANCES}{kind}", numbers, ">")


def _literals(numbers: Ints, kind: str) -> pa.Array:
    return _around('"', numbers, f'"^^<{XSD}{kind}>')


def _around(before: str, numbers: Ints, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, pa.array(numbers).cast(pa.string()), after, "")


# --- queries ------------------------------------------------------------------------------

_PARTS: Final = (
    "?offer voc:product ?product . ?product a <{target}> .",
    " ?offer voc:vendor ?vendor .",
)


def pattern(number: int, target: str, seconds: int) -> str:
    """One of the paper's three patterns, in CQELS-QL.

    Args:
        number: 1 asks for offers of products of a type; 2 also that the vendor is from Great
            Britain; 3 also that the producer is.
        target: the IRI of the type.
        seconds: the length of the window.
    """
    inside = _PARTS[0].format(target=target) + (_PARTS[1] if number > 1 else "")
    static = " ?vendor voc:country <{0}GB> ." if number > 1 else ""
    if number > 2:
        static += " ?product voc:producer ?producer . ?producer voc:country <{0}GB> ."
    return (
        f"PREFIX voc: <{VOCABULARY}>\nSELECT ?offer ?product {{\n"
        f"  STREAM <{STREAM}> [RANGE {seconds}s] {{ {inside} }}\n"
        f" {static.format(COUNTRIES)}\n}}\n"
    )
