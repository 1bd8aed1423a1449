"""Answers in the JSON that DiCE writes, schema 2.0, for tools that read it, such as the Responsible AI dashboard."""

from __future__ import annotations

__all__ = ["dice_record"]

from typing import Any

import numpy as np
import pandas as pd

from dicoflex.values import jsonable
from dicoflex.views.cards import Result, labels, rows

VERSION = "2.0"


def dice_record(result: Result, *, outcome: str, now: list[Any], local: pd.DataFrame, summary: pd.Series) -> Any:
    """The queries, each with its answers, with importances.

    outcome: the name of the label's column. now: the label that each query has. local: shares of changed features per
    query (queries, features); summary: of all queries.
    """
    names = labels(result.schema)
    before = [[*row, label] for row, label in zip(rows(result.queries), now, strict=True)]
    answers: list[list[Any]] = [[] for _ in before]
    targets = result.info["target"].tolist()
    for place, row, target in zip(result.positions.tolist(), rows(result.frame), targets, strict=True):
        answers[place].append([*row, target])
    wanted = list(dict.fromkeys(result.targets))
    return jsonable(
        {
            "test_data": [[row] for row in before],
            "cfs_list": [found or None for found in answers],
            "local_importance": local.to_numpy(dtype=float).tolist(),
            "summary_importance": np.asarray(summary, dtype=float).tolist(),
            "data_interface": {"outcome_name": outcome, "data_df": "dummy_data"},
            "feature_names": names,
            "feature_names_including_target": [*names, outcome],
            "model_type": "classifier",
            "desired_class": _class(wanted[0]) if len(wanted) == 1 else None,
            "desired_range": None,
            "metadata": {"version": VERSION},
        }
    )


def _class(label: Any) -> Any:
    """A label as the schema takes it: a text or a whole number."""
    return label if isinstance(label, str | int) and not isinstance(label, bool) else str(label)
