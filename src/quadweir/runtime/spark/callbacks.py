"""A token for calls from Spark's Java to this process, so that only that Java can make them.

For each batch of a stream, Java calls Python through a port of this machine. PySpark lets anybody
connect to this port, so any user of the machine could make calls, and end a query. Here both ends
get a token. Java's end takes a token only when it is created, and loses it when it learns the port
(`PythonClient.copyWith` of Py4J 0.10.9). So its field is set afterwards.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def guard_callbacks(spark: SparkSession) -> None:
    """Require a token on the port for calls from Java."""
    from py4j.java_gateway import JavaObject
    from pyspark import java_gateway

    start: Any = java_gateway.ensure_callback_server_started
    gateway: Any = spark.sparkContext._gateway
    parameters = gateway.callback_server_parameters
    if parameters.auth_token is not None:
        return
    # The token is set before the server starts, so the port never answers without it.
    parameters.auth_token = secrets.token_hex(32)
    start(gateway)
    java = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    field = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(java, parameters.auth_token)
