"""Counterfactuals for the rows of a Spark DataFrame: the executors ask the model, batch by batch."""

from __future__ import annotations

__all__ = ["explain"]

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dicoflex.batch.explaining import BatchExplainer, check_columns, explain_batches, keys_of, seeded
from dicoflex.batch.tables import Tables
from dicoflex.errors import SettingError, named
from dicoflex.explainer import Explainer, load
from dicoflex.request import Request
from dicoflex.runtime.extras import extra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLES = ("answers", "shortfall", "errors")


def explain(
    df: DataFrame,
    model: Explainer | str | os.PathLike[str],
    request: Request,
    *,
    id: str,
    table: str = "answers",
) -> DataFrame:
    """Explain every row of a Spark DataFrame.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Rows with the model's columns; others are ignored.
    model : Explainer or path
        The model to ask, or its file on the driver. It is sent to the executors, which need dicoflex and no file.
    request : Request
        What to ask. Without a seed it is 0.
    id : str
        The column that names a row. Spark has no order of rows, so they can't be numbered.
    table : {"answers", "shortfall", "errors"}
        Which result: the counterfactuals, the rows that got fewer than asked for, or those that could not be read.

    Returns
    -------
    pyspark.sql.DataFrame
        As lazy as any; the same answers however the rows are partitioned.

    Raises
    ------
    QueryError
        If the request or the columns do not fit the model; before Spark does anything.

    Examples
    --------
    >>> from dicoflex import Request, spark
    >>> answers = spark.explain(df, "income.dicoflex", Request(target=">50K", n=5), id="customer")  # doctest: +SKIP
    >>> answers.write.mode("overwrite").parquet("s3a://bucket/answers")  # doctest: +SKIP
    """
    with extra("spark", to="explain Spark DataFrames"):
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
    if table not in TABLES:
        raise SettingError(named("table", table, TABLES))
    asked = (model if isinstance(model, Explainer) else load(model)).model_
    names = [str(name) for name in asked.schema.names]
    keys = keys_of(to_arrow_schema(df.schema), id)
    asker = BatchExplainer(Tables(asked, seeded(request), keys))
    check_columns(asked, df.columns)
    schema = getattr(asker.tables, table)

    def answered(batches: Iterator[Any]) -> Iterator[Any]:
        from dicoflex.runtime.threads import use_threads

        # An executor runs as many tasks as it has cores.
        use_threads(1)
        for found in explain_batches(Explainer(asked), batches, request, id=id):
            yield from getattr(found, table).cast(schema).to_batches()

    return df.select(id, *names).mapInArrow(answered, from_arrow_schema(schema))
