"""Raw records and RDF elements come in from files, replay, Kafka, TCP and MQTT.

Spark DataFrames go out, in the row forms of `quadweir.rows`.
Read `declare.py` first: it says what a stream is.
"""
