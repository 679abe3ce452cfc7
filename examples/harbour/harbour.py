"""Which ships go too fast within the harbour? A query that calls a function of our own.

Run it from this folder: python harbour.py
"""

from pathlib import Path

from quadweir import Engine, register

HERE = Path(__file__).parent


def knots(metres_per_second: float) -> float:
    """Give a speed in knots, to one digit."""
    return round(metres_per_second * 1.943844, 1)


def answers(engine: Engine) -> list[tuple[str, float, float]]:
    """Give the ship, its speed and its distance from the quay."""
    register("http://example.org/knots", knots)
    engine.load_streams(HERE / "streams.toml")
    query = engine.query((HERE / "fast.rq").read_text(encoding="utf-8"))
    rows = query.to_dataframe().orderBy("t").collect()
    return [(row.ship, row.knots, row.metres) for row in rows]


if __name__ == "__main__":
    with Engine() as engine:
        for ship, speed, metres in answers(engine):
            print(ship, speed, metres)
