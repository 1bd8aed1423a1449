"""Fitted models of several libraries, or behind a network, as classifiers that take frames."""

from __future__ import annotations

__all__ = ["WrappedClassifier", "WrappedRegressor", "wrap"]

from dicoflex.models.wrapping import WrappedClassifier, WrappedRegressor, wrap
