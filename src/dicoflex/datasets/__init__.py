"""Named tables with their schema, split and label: two ship inside the package, four are read from a folder.

The folder is the one that the environment variable `DICOFLEX_DATA` names, or `../shared/data` beside the current
directory or the project. It holds one folder per table with `train.csv` and `test.csv`.

Bank and Default can be fetched from OpenML instead, if the caller asks for it. OpenML has the whole tables, of which
the DiCoFlex paper takes a part: `data/NAME.rows` holds a short digest of each of the paper's rows, by which they are
found and put in order, and a SHA-256 checksum of the result must be the one in the recipe.
"""

from __future__ import annotations

__all__ = ["Dataset", "checksum", "load", "names", "two_moons"]

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from dicoflex.constraints import Constraints
from dicoflex.datasets.downloads import digest_of, fetch_pair, find, read_pair, read_shipped, split_rows
from dicoflex.datasets.recipes import RECIPES, Recipe
from dicoflex.errors import DataError, named
from dicoflex.runtime.extras import extra
from dicoflex.table.feature import Kind
from dicoflex.table.schema import Schema


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table split in two, with what a method must know about it.

    The schema describes the whole table, so that every test row fits it. `positive` is the label that a person hopes
    for. `immutable`, `increase`, `decrease` and `never_again` are sensible conditions on answers: what people can't or
    may not be asked to change (protected features among it), what only ever grows, such as age, what nobody is advised
    to have more of, such as losses, and levels that nobody comes back to. `preset` has all of them as constraints, with
    what the schema suggests of ages and of missing values.
    """

    name: str
    X_train: pd.DataFrame
    y_train: pd.Series
    X_test: pd.DataFrame
    y_test: pd.Series
    schema: Schema
    label: str
    positive: int | str
    immutable: tuple[str, ...] = ()
    increase: tuple[str, ...] = ()
    decrease: tuple[str, ...] = ()
    never_again: Mapping[str, str] = field(default_factory=dict)

    @property
    def preset(self) -> Constraints:
        """What a person can do: the table's sensible conditions as constraints.

        >>> [text for _, _, text in load("adult").preset.describe()][:2]
        ['race may not change', 'sex may not change']
        """
        others = {name: [x for x in self.schema[name].levels if x != level] for name, level in self.never_again.items()}
        moves = {name: dict.fromkeys(levels, levels) for name, levels in others.items()}
        named = self.schema.suggested()
        return Constraints(
            frozen=self.immutable,
            ranges={name: limits for name, limits in named.ranges.items() if name not in self.immutable},
            increase=self.increase,
            decrease=self.decrease,
            forbidden={name: values for name, values in named.forbidden.items() if name not in self.immutable},
            transitions=moves,
        )


def names() -> list[str]:
    """The names that `load` knows; the first two ship inside the package.

    >>> names()
    ['adult', 'german', 'bank', 'default', 'gmc', 'lending-club']
    """
    return list(RECIPES)


def load(
    name: str,
    *,
    split: str | None = None,
    fetch: bool = False,
    verify: bool = True,
    cache: str | os.PathLike[str] | None = None,
) -> Dataset:
    """The table called `name`, split in training and test rows; the same rows at every call.

    Shipped tables are split at random, 80 to 20; the others come in the split of the DiCoFlex paper. `split="paper"`
    asks for that split by name, which matters for Adult: its two files are then read from the folder.

    fetch: whether a table that is in no folder may be downloaded from OpenML; nothing is downloaded otherwise.
    verify: whether a download must hold the paper's rows, by their checksum, which are then returned in the paper's
    split. With False, whatever OpenML has is returned whole, split at random, 80 to 20.
    cache: the folder that keeps downloads for the next call; None is scikit-learn's data folder.

    >>> adult = load("adult")
    >>> adult.X_train.shape, adult.X_test.shape, adult.positive
    ((39074, 12), (9768, 12), '>50K')
    """
    if name not in RECIPES:
        raise DataError(named("dataset", name, RECIPES))
    recipe = RECIPES[name]
    if split not in (None, "paper"):
        raise DataError(f"split {split!r} is unknown; give 'paper', or None for the usual split of {name!r}")
    if split == "paper" and not recipe.in_folder:
        raise DataError(f"dataset {name!r} has no split of the paper; leave split=None for the usual one")
    if recipe.ships and split is None:
        train, test = split_rows(read_shipped(name))
    elif fetch and recipe.remote and not find(name, "train.csv"):
        train, test = fetch_pair(name, recipe.remote, split, verify, cache)
    else:
        train, test = read_pair(name)
    return _dataset(name, recipe, train, test)


def checksum(data: Dataset) -> str:
    """The SHA-256 checksum of the training and test rows with their labels: 64 hexadecimal digits.

    It depends on names, values and order, and not on dtypes: 36 and 36.0 count as the same.
    """
    parts = [X.assign(**{data.label: y}) for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test))]
    return digest_of(*parts)


def two_moons(n: int = 2000, *, noise: float = 0.1, random_state: int = 0) -> Dataset:
    """Two interleaved half circles in the plane: features `x1` and `x2`, label `moon` (0 or 1), split 80 to 20.

    >>> moons = two_moons(100)
    >>> moons.X_train.shape, moons.schema.names
    ((80, 2), ['x1', 'x2'])
    """
    with extra("fit", to="make two moons"):
        from sklearn.datasets import make_moons

    points, moon = make_moons(n, noise=noise, random_state=random_state)
    table = pd.DataFrame(points, columns=["x1", "x2"]).assign(moon=moon)
    recipe = Recipe(label="moon", positive=1, numbers=("x1", "x2"))
    return _dataset("two-moons", recipe, *split_rows(table))


def _dataset(name: str, recipe: Recipe, train: pd.DataFrame, test: pd.DataFrame) -> Dataset:
    X_train, X_test = train.drop(columns=recipe.label), test.drop(columns=recipe.label)
    return Dataset(
        name=name,
        X_train=X_train,
        y_train=train[recipe.label],
        X_test=X_test,
        y_test=test[recipe.label],
        schema=_schema(pd.concat([X_train, X_test]), recipe),
        label=recipe.label,
        positive=recipe.positive,
        immutable=recipe.immutable,
        increase=recipe.increase,
        decrease=recipe.decrease,
        never_again=recipe.never_again,
    )


def _schema(rows: pd.DataFrame, recipe: Recipe) -> Schema:
    """The schema of `rows`, in which whole numbers that are no numbers of the recipe stand for categories."""
    picked = [c for c in rows.columns if c not in recipe.numbers and c not in recipe.orders]
    return Schema.infer(rows, kinds=dict.fromkeys(picked, Kind.CATEGORICAL), orders=recipe.orders)
