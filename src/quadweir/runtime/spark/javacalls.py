"""Java method calls as Spark columns, for what Spark has no function for.

The object is a literal in the plan. Each task gets its own copy with the plan, as the driver made
it. Large objects should be broadcast: then all tasks of an executor share one copy. The classes
used here are internal to Spark and reached through py4j, so the session has to be a classic one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql.classic.column import Column as ClassicColumn

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_BROADCAST: Final = "org.apache.spark.broadcast.Broadcast"


@final
class JavaCalls:
    """Wraps Java method calls as Spark columns.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self.jvm = context._jvm
        self._context = context._jsc
        self._catalyst = self.jvm.org.apache.spark.sql.catalyst
        self._convert = self.jvm.org.apache.spark.sql.classic.ExpressionUtils

    def literal(self, value: Any, name: str) -> Any:
        """Return a target for `call`: an object, which is of the named class."""
        return self._catalyst.expressions.Literal(value, self._kind(name))

    def broadcast(self, value: Any, name: str) -> Any:
        """Return a target for `call` that each executor fetches once."""
        held = self.literal(self._context.broadcast(value), _BROADCAST)
        return self._call(held, "value", self._kind(name), (), is_pure=True)

    def call(
        self, target: Any, method: str, result: str, *arguments: Column, is_pure: bool = True
    ) -> Column:
        """Return a column with the result of a method; NULL if an argument is NULL.

        Args:
            target: what `literal` or `broadcast` returned.
            method: the name of the method.
            result: Spark's type of the result, which must not be null.
            arguments: columns of the types that the method takes.
            is_pure: whether the same arguments always give the same result.
        """
        kind = self.jvm.org.apache.spark.sql.types.DataType.fromDDL(result)
        given = [self._convert.expression(each._jc) for each in arguments]
        called = self._call(target, method, kind, given, is_pure=is_pure)
        return ClassicColumn(self._convert.column(called))

    def texts(self, texts: Sequence[str]) -> Any:
        """Return texts without line feeds as a Java list of Spark's strings.

        They go to Java in one call: one for each text would take seconds.
        """
        jvm = self.jvm
        listed = jvm.java.util.regex.Pattern.compile("\n").splitAsStream("\n".join(texts)).toList()
        given = jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toSeq()
        held = self._catalyst.CatalystTypeConverters.convertToCatalyst(given)
        return jvm.java.util.Arrays.asList(held.array())

    def shared(self, name: str, kind: str) -> Any:
        """Return a target for `call`: an object among the properties of this Java, by its name.

        It is looked up for each row, so it is the present one. Tasks have to be in this Java.
        """
        objects = self._catalyst.expressions.objects
        nothing = self.jvm.java.util.ArrayList()
        empty = self.jvm.scala.jdk.javaapi.CollectionConverters.asScala(nothing).toSeq()
        properties = objects.StaticInvoke(
            self.jvm.java.lang.Class.forName("java.lang.System"),
            self._kind("java.util.Properties"),
            "getProperties",
            empty,
            empty,
            True,
            False,
            False,
            self.jvm.scala.Option.empty(),
        )
        key = self.literal(name, "java.lang.String")
        return self._call(properties, "get", self._kind(kind), (key,), is_pure=False)

    def _call(
        self, target: Any, method: str, kind: Any, given: Sequence[Any], *, is_pure: bool
    ) -> Any:
        arguments = self.jvm.java.util.ArrayList()
        for each in given:
            arguments.add(each)
        as_seq = self.jvm.scala.jdk.javaapi.CollectionConverters.asScala
        nothing = self.jvm.java.util.ArrayList()
        return self._catalyst.expressions.objects.Invoke(
            target,
            method,
            kind,
            as_seq(arguments).toSeq(),
            as_seq(nothing).toSeq(),
            True,
            False,
            is_pure,
        )

    def _kind(self, name: str) -> Any:
        types = self.jvm.org.apache.spark.sql.types
        return types.ObjectType(self.jvm.java.lang.Class.forName(name))
