"""Packages that only a part of the library needs: an import that fails says what to install."""

from __future__ import annotations

__all__ = ["extra"]

from collections.abc import Iterator
from contextlib import contextmanager

from dicoflex.errors import MissingPackageError


@contextmanager
def extra(name: str, *, to: str) -> Iterator[None]:
    """Imports inside the block that fail are told as a missing extra of the package. to: what it is needed for.

    >>> with extra("fit", to="learn a model"):
    ...     import dicoflex_has_no_such_package
    Traceback (most recent call last):
    dicoflex.errors.MissingPackageError: to learn a model, the package dicoflex_has_no_such_package is needed: \
pip install "dicoflex[fit]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        lacking = (error.name or "").partition(".")[0]
        if lacking == "dicoflex" or isinstance(error, MissingPackageError):
            raise
        raise MissingPackageError(
            f'to {to}, the package {lacking} is needed: pip install "dicoflex[{name}]"'
        ) from error
