"""Many queries come in.

Out go shapes and templates: queries with parameters and open windows, each of which stands for all
queries that differ from it in constants and window lengths only.
Read `shapes.py` first.
"""

from quadweir.plan.template import QueryTemplate, TemplateMember
from quadweir.sharing.shapes import QueryShape, Shaped, Shapes, shape_of, template_of

__all__ = [
    "QueryTemplate",
    "QueryShape",
    "Shaped",
    "Shapes",
    "TemplateMember",
    "shape_of",
    "template_of",
]
