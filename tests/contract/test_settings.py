"""Settings, and what `report_` says of a fit."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from comparing import LABELS, ROWS, BlackBox, N, Quickly, assert_layout, assert_within
from dicoflex import DiCoFlex, load
from dicoflex.errors import QueryError
from dicoflex.learning.config import FitConfig
from dicoflex.learning.training import TrainingConfig


def test_scikit_learn_rules(mixed: DiCoFlex) -> None:
    model = DiCoFlex("maf", k=3, training={"min_steps": 0, "epochs": 1})
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(clone(mixed), "model_")
    assert mixed.n_features_in_ == 10
    assert mixed.feature_names_in_.tolist() == mixed.schema_.names
    assert mixed.classes_.tolist() == ["no", "yes"]


def test_settings_as_objects_and_as_dicts(quickly: Quickly) -> None:
    as_dicts = quickly(ROWS, LABELS, k=4, fit_config={"passes": 1, "rounds": 0}, training={"min_steps": 0, "epochs": 1})
    config = FitConfig(passes=1, rounds=0)
    as_objects = quickly(ROWS, LABELS, k=4, fit_config=config, training={"min_steps": 0, "epochs": 1})
    for key, array in as_dicts.model_.content()[1].items():
        np.testing.assert_array_equal(array, as_objects.model_.content()[1][key])
    assert quickly(ROWS, LABELS, training=TrainingConfig(epochs=1, patience=1)).history_


def test_paper_preset() -> None:
    setting = DiCoFlex.paper()._plan(False).settings
    assert (setting.fit.k, setting.fit.alpha, setting.fit.exponents) == (16, 10.0, (0.01, 0.08, 0.25, 1.0, 2.0))
    training = setting.training
    assert (training.epochs, training.learning_rate, training.patience) == (1000, 1e-4, 300)
    config = setting.generator_config.model_dump()
    assert DiCoFlex.paper().generator == "maf"
    assert (config["layers"], config["hidden_features"]) == (5, 32)
    assert DiCoFlex.paper(max_seconds=5)._plan(False).settings.training.max_seconds == 5


def test_report_counts_the_calls_of_the_black_box(applicants: pd.DataFrame, labels: np.ndarray, black_box: BlackBox,
                                                  quickly: Quickly) -> None:  # fmt: skip
    counted = mock.Mock(side_effect=black_box)
    model = quickly(applicants, labels, predict_proba=counted, fit_config={"passes": 1, "rounds": 1, "own_draws": 400})
    assert model.report_["black_box_calls"] == counted.call_count
    assert model.report_["black_box_rows"] == sum(len(c.args[0]) for c in counted.call_args_list)
    for asked in counted.call_args_list:
        pd.testing.assert_series_equal(asked.args[0].dtypes, applicants.dtypes)
    counted.reset_mock()
    model.explain(applicants.head(3), target="yes", n=2)
    counted.assert_not_called()


def test_report_without_a_black_box(mixed: DiCoFlex, applicants: pd.DataFrame) -> None:
    assert mixed.report_["black_box_calls"] == mixed.report_["black_box_rows"] == 0
    assert mixed.report_["rows"] == len(applicants)
    assert mixed.report_["confidence"] == {}
    assert json.dumps(mixed.report_, allow_nan=False)


def test_exponents_set_the_range_of_p(quickly: Quickly) -> None:
    model = quickly(ROWS, LABELS, exponents=[0.5])
    assert len(model.sample(ROWS.head(2), n=2, p=0.5)) == 4
    with pytest.raises(QueryError, match=r"trained range, 0\.5 to 0\.5, got 1"):
        model.sample(ROWS.head(2), p=1.0)
    assert len(quickly(ROWS, LABELS, exponents=np.array([2, 1])).sample(ROWS.head(2), n=2, p=1.7)) == 4


TINY = {
    "two rows": (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), ["no", "yes"]),
    "one column": (pd.DataFrame({"a": np.linspace(0, 1, 30)}), np.arange(30) > 14),
    "one switch": (pd.DataFrame({"a": [True, False] * 10}), [1, 0] * 10),
    "a rare class": (ROWS, ["rare"] + ["common"] * (N - 1)),
    "two rare classes": (ROWS, ["b", "c"] + ["a"] * (N - 2)),
    "a constant column": (ROWS.assign(one=1, same="x", half=0.5), LABELS),
    "a column of missing levels": (ROWS.assign(gone=pd.Series([None] * N, dtype=object)), LABELS),
    "many classes": (ROWS, np.arange(N) % 12),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TINY)
@pytest.mark.parametrize("name", ["mixed", "maf", "kde"])
def test_tables_that_hardly_are_one(name: str, case: str, quickly: Quickly, tmp_path: Path) -> None:
    rows, labels = TINY[case]
    model = quickly(rows, labels, name)
    query = rows.tail(1)
    target = model.classes_.tolist()[0]
    draws = model.sample(query, target=target, n=4, random_state=0)
    assert_layout(draws, rows)
    assert_within(draws, model.schema_)
    assert len(draws) == 4
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex").sample(query, target=target, n=4, random_state=0)
    pd.testing.assert_frame_equal(draws, again)
