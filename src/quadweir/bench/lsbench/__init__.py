"""The social network of LSBench: parameters come in, five streams and static data go out.

Every value is drawn from the seed and from what it is a value of (`draw.py`), never from what was
drawn before; so users, days and cores can be split as one likes, and the bytes stay the same.
Read `parameters.py` first, then `network.py`, `activity.py`, `spell.py` and `write.py`.
"""
