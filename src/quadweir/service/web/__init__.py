"""Requests come in over HTTP, checked for who asks and how much.

Out go JSON, problem documents and streams of events. Read `app.py` first.
"""
