"""What `explain` knows of its answers, and that others can work it out again."""

from __future__ import annotations

import numpy as np
import pandas as pd

from comparing import Quickly, differences, rows_of
from dicoflex import DiCoFlex


def test_info_by_hand(judged: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame) -> None:
    cfs = judged.explain(queries, target="yes", n=4, p=0.25, random_state=3)
    assert list(cfs.info.columns) == ["target", "log_density", "n_changed", "proximity", "probability", "valid"]
    own = queries.iloc[cfs.positions]
    squares = np.zeros(len(own))
    for name in ["age", "gain", "price", "score", "visits"]:
        known = applicants[name].dropna().astype(float)
        scaled = [
            (f[name].astype("Float64").to_numpy(float, na_value=known.mean()) / known.std(ddof=0))
            for f in (own, cfs.frame)
        ]
        squares += (scaled[0] - scaled[1]) ** 2
    assert cfs.info["n_changed"].tolist() == differences(cfs.frame, own).sum(axis=1).tolist()
    np.testing.assert_allclose(cfs.info["proximity"], np.sqrt(squares), rtol=1e-6)
    density = judged.log_density(own, cfs.frame, target="yes", p=0.25)
    np.testing.assert_allclose(cfs.info["log_density"], density, atol=1e-4)
    surrogate = judged.model_.surrogate.probabilities(judged.model_.encoding.encode(cfs.frame))[:, 1]
    np.testing.assert_allclose(cfs.info["probability"], surrogate)
    assert (cfs.info["probability"] >= 0.7 - 1e-9).all()
    assert cfs.info["valid"].dtype == "boolean"
    assert cfs.info["valid"].isna().all()


def test_changes_lead_from_the_query_to_the_answer(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    cfs = judged.explain(queries, target="yes", n=3, random_state=0)
    rebuilt = queries.loc[cfs.frame.index.get_level_values("row")].set_axis(cfs.frame.index)
    for change in cfs.changes().itertuples():
        before = rebuilt.loc[(change.row, change.cf), change.feature]
        assert (pd.isna(before) and pd.isna(change.before)) or before == change.before
        rebuilt.loc[(change.row, change.cf), change.feature] = change.after
    pd.testing.assert_frame_equal(rebuilt, cfs.frame)


def test_densities_of_draws_are_those_of_log_density(model: DiCoFlex, queries: pd.DataFrame) -> None:
    cfs = model.explain(queries, target="yes", n=3, p=1.0, frozen=["city"], random_state=0)
    own = queries.iloc[cfs.positions]
    density = model.log_density(own, cfs.frame, target="yes", p=1.0, frozen=["city"])
    np.testing.assert_allclose(cfs.info["log_density"], density, atol=1e-3, rtol=1e-5)
    one = model.log_density(queries.head(1), cfs.frame, target="yes")
    assert one.shape == (len(cfs.frame),)


def test_settings_tell_how_to_repeat_the_call(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    cfs = judged.explain(queries, target="yes", n=3, p=0.25, confidence=0.8)
    repeat = {k: cfs.settings[k] for k in ("n", "p", "frozen", "confidence", "random_state", "novel")}
    again = judged.explain(queries, target=cfs.settings["targets"], **repeat)
    pd.testing.assert_frame_equal(cfs.frame, again.frame)
    assert cfs.settings["model"] == judged.fingerprint_


def test_confidence_is_what_the_surrogate_sees(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    for confidence in (0.5, 0.9):
        cfs = judged.explain(queries, target="yes", n=5, confidence=confidence, random_state=0)
        assert (cfs.info["probability"] >= confidence).all()


def test_filter_can_be_switched_off(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    def doubtful(draws: pd.DataFrame) -> float:
        return float(np.mean(judged.model_.surrogate.probabilities(judged.model_.encoding.encode(draws))[:, 1] < 0.7))

    given = {"target": "yes", "n": 50, "random_state": 0}
    assert doubtful(judged.sample(queries, **given)) <= doubtful(judged.sample(queries, filter=False, **given))
    assert doubtful(judged.sample(queries, filter=False, **given)) > 0


def test_novel_draws_are_no_training_rows(quickly: Quickly) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.integers(0, 6, 150), "b": rng.integers(0, 6, 150), "c": rng.choice(["x", None], 150)})
    model = quickly(rows, np.where(rows["a"] > 2, "high", "low"), remember_rows=True)
    known = set(rows_of(rows))
    plain = model.sample(rows.head(20), n=10, random_state=0)
    novel = model.sample(rows.head(20), n=10, novel=True, filter=False, random_state=0)
    assert set(rows_of(plain)) & known
    assert not set(rows_of(novel)) & known
    cfs = model.explain(rows.head(20), n=3, novel=True, random_state=0)
    assert not set(rows_of(cfs.frame)) & known
