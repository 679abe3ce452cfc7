"""Streams, queries and mappings come in over HTTP, while the service runs.

Out go answers, as events to any number of subscribers, and a page that shows what runs.
Read `service.py` first: it is everything that the service knows; `web/` is how it is asked.
"""
