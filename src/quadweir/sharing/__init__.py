"""Many queries come in.

Out go templates: queries with parameters, each of which stands for all queries that differ from it
in constants and window lengths only.
Read `generalize.py` first.
"""

from quadweir.sharing.generalize import QueryTemplate, TemplateMember, bind, generalize

__all__ = ["TemplateMember", "QueryTemplate", "bind", "generalize"]
