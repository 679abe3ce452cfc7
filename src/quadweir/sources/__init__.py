"""Raw records and RDF elements come in from files, replay, Kafka, TCP and MQTT.

Out go Spark DataFrames in the row forms of `quadweir.rows`.
Read `declare.py` first: it says what a stream is.
"""
