"""Pictures of plans and pages of handles."""

from xml.etree import ElementTree

from quadweir.optimize.pipeline import optimize
from quadweir.plan.query import plan_query
from quadweir.runtime.pictures import PictureBox, columns_svg, handle_html, plan_svg
from quadweir.syntax.read import parse

SVG = "{http://www.w3.org/2000/svg}"
QUERY = (
    "SELECT ?y (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 1m] { ?x <urn:p> ?y } "
    "STREAM <urn:long-name-of-a-stream/with/many/parts> [RANGE 1m] { ?x <urn:q> ?z } } GROUP BY ?y"
)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_plan_is_drawn_from_its_windows_to_its_answers() -> None:
    plan = plan_query(optimize(parse(QUERY)).query, streams=())
    found = texts(plan_svg(plan))
    assert "over <urn:s>" in found
    assert any(each.endswith("…") for each in found)
    assert "stage 1" in found
    assert found[-2:] == ["answers", "at reports, incremental"]


def test_every_box_leads_to_the_next_column() -> None:
    one = PictureBox("a", "b", "#fff")
    tree = ElementTree.fromstring(columns_svg([[one, one], [], [one, one, one]]))
    assert len(list(tree.iter(f"{SVG}rect"))) == 5
    assert len(list(tree.iter(f"{SVG}line"))) == 6


def test_a_page_shows_what_is_known_and_nothing_as_markup() -> None:
    metrics = {"through": 1500, "input_rate": 2.5, "answers": 1234, "late": None}
    page = handle_html("<q>", "running", metrics, "<svg/>", ["a & b"])
    tree = ElementTree.fromstring(page)
    cells = [(row[0].text, row[1].text) for row in tree.iter("tr")]
    assert cells == [
        ("state", "running"),
        ("watermark", "1970-01-01T00:00:01.500Z"),
        ("statements per second", "2.5"),
        ("answers", "1,234"),
    ]
    assert "&lt;q&gt;" in page and "a &amp; b" in page
