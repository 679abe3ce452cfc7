"""Many queries come in.

Out go templates: queries with parameters, each of which stands for all queries that differ from it
in constants and window lengths only.
Read `generalize.py` first.
"""

from quadweir.sharing.generalize import Member, Template, bind, generalize

__all__ = ["Member", "Template", "bind", "generalize"]
