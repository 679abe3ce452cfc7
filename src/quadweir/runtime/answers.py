"""The form in which answers leave: columns of a DataFrame."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from quadweir.kernel.answers import Answers
from quadweir.terms import Variable

TIME: Final = "t"
SIGN: Final = "sign"
BINDINGS: Final = "bindings"


def answer_schema(variables: tuple[Variable, ...]) -> StructType:
    """Give the schema of answers: report instant, sign, and what each variable is bound to."""
    bindings = StructType([StructField(each.name, StringType()) for each in variables])
    return StructType(
        [
            StructField(TIME, LongType(), nullable=False),
            StructField(SIGN, StringType(), nullable=False),
            StructField(BINDINGS, bindings, nullable=False),
        ]
    )


def answer_batch(answers: Answers) -> pa.RecordBatch:
    """Give a shard's answers in that form."""
    sign = pa.array(answers.sign > 0)
    names = [variable.name for variable in answers.variables]
    if names:
        bindings = pa.StructArray.from_arrays(list(answers.values), names=names)
    else:
        bindings = pa.array([{}] * len(answers), pa.struct([]))
    signs = pa.compute.if_else(sign, "+", "-")
    return pa.RecordBatch.from_arrays(
        [pa.array(answers.t), signs, bindings], names=[TIME, SIGN, BINDINGS]
    )
