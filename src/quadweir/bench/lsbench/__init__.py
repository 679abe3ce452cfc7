"""The social network of LSBench: parameters come in, five streams and static data go out.

Every value depends only on the seed and on its own key (`draw.py`), never on earlier draws. So any
split by users, days or cores gives the same bytes.
Read `parameters.py` first, then `network.py`, `activity.py`, `spell.py` and `write.py`.
"""
