from __future__ import annotations

import pytest
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from dicoflex import errors
from dicoflex.errors import DiCoFlexError, ModelFileError, NotFittedError, UserError, named

CLASSES = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
USER_ERRORS = [kind for kind in CLASSES if kind is not DiCoFlexError]


@pytest.mark.parametrize("kind", USER_ERRORS)
def test_what_a_caller_can_mend_is_one_tree(kind: type[UserError]) -> None:
    assert issubclass(kind, UserError)
    assert issubclass(kind, DiCoFlexError)
    assert issubclass(kind, ValueError)
    assert kind.exit_code == (3 if issubclass(kind, ModelFileError) else 2)
    assert str(kind("say what to do")) == "say what to do"
    assert kind.__doc__


def test_all_names_are_there() -> None:
    assert len(CLASSES) == 16
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert defined == set(errors.__all__) - {"named"}


def test_not_fitted_has_the_bases_of_scikit_learns() -> None:
    for base in (ValueError, AttributeError):
        assert issubclass(NotFittedError, base)
        assert issubclass(SklearnNotFittedError, base)


def test_a_near_name_is_offered() -> None:
    assert named("feature", "agee", ["age", "sex"]) == "feature 'agee' is unknown; did you mean 'age'?"


def test_all_names_are_listed_where_none_is_near() -> None:
    assert named("kind", "zzz", ["age", "sex"]) == "kind 'zzz' is unknown; known: age, sex"
    many = named("feature", "zzz", [f"f{i}" for i in range(100)])
    assert many.endswith("f18, f19")


def test_names_that_are_numbers_are_told_from_text() -> None:
    assert named("feature", "1", [1, 2]) == "feature '1' is unknown; did you mean 1?"
    assert named("feature", 1, ["1", "2"]) == "feature 1 is unknown; did you mean '1'?"
    assert named("feature", 7, [1, "b"]) == "feature 7 is unknown; known: 1, b"
