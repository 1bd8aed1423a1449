"""The compiled core: what runs per row. Its sources are in `core/`."""

import numpy as np
from numpy.typing import NDArray

LEAF: int
STACK: int
GOLDEN: int

class Leaves:
    def __init__(
        self,
        *,
        first: NDArray[np.int64],
        positions: NDArray[np.int32],
        last: NDArray[np.int32],
        keys: NDArray[np.int16],
        near: NDArray[np.float32],
        codes: NDArray[np.int32],
        numbers: NDArray[np.float64],
        levels: NDArray[np.uint32],
        low: NDArray[np.float32],
        high: NDArray[np.float32],
        values: NDArray[np.float64],
        edges: NDArray[np.int64],
    ) -> None: ...

def search(
    leaves: Leaves,
    *,
    codes: NDArray[np.int32],
    numbers: NDArray[np.float64],
    keys: NDArray[np.int16],
    target: NDArray[np.int64],
    stop: NDArray[np.int64],
    p: NDArray[np.float64],
    code_weight: NDArray[np.float64],
    number_weight: NDArray[np.float64],
    low: int,
    high: int,
    positions: NDArray[np.int64],
    distances: NDArray[np.float64],
) -> None: ...
def sort_alike(
    order: NDArray[np.int64], begins: NDArray[np.bool_], columns: NDArray[np.float64], n_codes: int
) -> None: ...
def exp(x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def log(x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def tanh(x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...

class Programs:
    def __init__(
        self,
        at: NDArray[np.int64],
        op: NDArray[np.int64],
        was: NDArray[np.bool_],
        feature: NDArray[np.int64],
        start: NDArray[np.int64],
        constant: NDArray[np.float64],
        table: NDArray[np.float64],
        *,
        n_features: int,
    ) -> None: ...

class Consequences:
    def __init__(
        self,
        programs: Programs,
        feature: NDArray[np.int64],
        stored: NDArray[np.int64],
        may_miss: NDArray[np.bool_],
        *,
        n_features: int,
    ) -> None: ...

def hold(
    programs: Programs, *, values: NDArray[np.float64], query: NDArray[np.float64], out: NDArray[np.bool_]
) -> None: ...
def settle(
    consequences: Consequences,
    *,
    values: NDArray[np.float64],
    query: NDArray[np.float64],
    settled: NDArray[np.bool_],
) -> None: ...
def hash_rows(values: NDArray[np.float64], *, low: int, high: int, keys: NDArray[np.uint64]) -> None: ...
def uniforms(*, keys: NDArray[np.uint64], first: NDArray[np.uint64], out: NDArray[np.float64]) -> None: ...
def keyed_hashes(
    values: NDArray[np.float64], *, one: int, two: int, low: int, high: int, hashes: NDArray[np.uint64]
) -> None: ...

BLOCK: int

class Density:
    def __init__(
        self,
        *,
        offset: NDArray[np.int64],
        slope_at: NDArray[np.int64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        count: NDArray[np.int64],
        step: NDArray[np.float64],
        scale: NDArray[np.float64],
        order: NDArray[np.int64],
        rank: NDArray[np.int64],
        query: NDArray[np.float32],
        query_slope: NDArray[np.float32],
        settings: NDArray[np.float32],
        trunk: NDArray[np.float32],
        trunk_bias: NDArray[np.float32],
        prefix: NDArray[np.float32],
        prefix_slope: NDArray[np.float32],
        prefix_kept: NDArray[np.float32],
        inner: NDArray[np.float32],
        inner_bias: NDArray[np.float32],
        outer: NDArray[np.float32],
        outer_at: NDArray[np.int64],
        outer_bias: NDArray[np.float32],
    ) -> None: ...
    def draw(
        self,
        queries: Queries,
        limits: Limits | None,
        *,
        keys: NDArray[np.uint64],
        first: NDArray[np.uint64],
        low: int,
        high: int,
        out: NDArray[np.float64],
        log_density: NDArray[np.float64],
    ) -> None: ...
    def score(
        self,
        queries: Queries,
        *,
        of: NDArray[np.int64],
        cell: NDArray[np.int64],
        where: NDArray[np.float32],
        kept: NDArray[np.bool_],
        low: int,
        high: int,
        out: NDArray[np.float64],
    ) -> None: ...

class Queries:
    def __init__(
        self,
        density: Density,
        *,
        values: NDArray[np.float64],
        settings: NDArray[np.float32],
        stuck: NDArray[np.bool_],
        own: NDArray[np.int64],
        where: NDArray[np.float32],
        alone: NDArray[np.bool_],
        exact: NDArray[np.bool_],
    ) -> None: ...

class Rules:
    def __init__(
        self,
        *,
        least: NDArray[np.float64],
        most: NDArray[np.float64],
        may_miss: NDArray[np.bool_],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        touched: NDArray[np.bool_],
        ranks: NDArray[np.float64],
        start: NDArray[np.int64],
        sort: NDArray[np.int64],
        op: NDArray[np.int64],
        coefficients: NDArray[np.float64],
        constant: NDArray[np.float64],
        feature: NDArray[np.int64],
        levels: NDArray[np.bool_],
        if_missing: NDArray[np.bool_],
        touches: NDArray[np.bool_],
    ) -> None: ...

class Limits:
    def __init__(
        self,
        queries: Queries,
        rules: Rules | None,
        *,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        open: NDArray[np.bool_],
        may_keep: NDArray[np.bool_],
        needed: NDArray[np.int64],
        reserved: NDArray[np.int64],
        price: NDArray[np.float64],
        points: NDArray[np.float64],
        point_at: NDArray[np.int64],
        pointed: NDArray[np.bool_],
        banned: NDArray[np.float64],
        banned_at: NDArray[np.int64],
        level: NDArray[np.bool_],
        fixed: NDArray[np.float64],
        unit: NDArray[np.float64],
        most_changes: int,
        most_cost: float,
    ) -> None: ...

def locate(
    *,
    offset: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    values: NDArray[np.float64],
    cell: NDArray[np.int64],
    where: NDArray[np.float64],
) -> None: ...
def mark_broken(
    *,
    values: NDArray[np.float64],
    query: NDArray[np.float64],
    which: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    states: NDArray[np.bool_],
    may_keep: NDArray[np.bool_],
    offset: NDArray[np.int64],
    is_level: NDArray[np.bool_],
    uncounted: NDArray[np.bool_],
    most_changes: int,
    broken: NDArray[np.bool_],
) -> None: ...
def fill_rows(
    *,
    turn: NDArray[np.int64],
    value: NDArray[np.float64],
    at: NDArray[np.int64],
    keeps: NDArray[np.bool_],
    most_changes: int,
    rows: NDArray[np.float64],
) -> int: ...
def finish(
    *,
    values: NDArray[np.float64],
    query: NDArray[np.float64],
    frozen: NDArray[np.bool_],
    least: NDArray[np.float64],
    greatest: NDArray[np.float64],
    whole: NDArray[np.bool_],
    low: int,
    high: int,
    rows: NDArray[np.float64],
    moved: NDArray[np.bool_],
) -> None: ...
def judge(
    *,
    log_density: NDArray[np.float64],
    each: int,
    unlikely: float,
    said: NDArray[np.float64],
    target: NDArray[np.int64],
    least: NDArray[np.float64],
    query: NDArray[np.int64],
    fine: NDArray[np.bool_],
    key: NDArray[np.uint64],
    probability: NDArray[np.float64],
    verdict: NDArray[np.int8],
) -> None: ...
def mark_seen(*, key: NDArray[np.uint64], query: NDArray[np.int64], seen: NDArray[np.bool_]) -> None: ...
def first_rows(
    *,
    query: NDArray[np.int64],
    verdict: NDArray[np.int8],
    worst: int,
    n_queries: int,
    n: int,
    exact: bool,
    places: NDArray[np.int64],
) -> int: ...

class Flow:
    def __init__(
        self,
        sequence: NDArray[np.int64],
        ready: NDArray[np.int64],
        context: NDArray[np.float64],
        context_bias: NDArray[np.float64],
        first: NDArray[np.float64],
        hidden: NDArray[np.float64],
        hidden_bias: NDArray[np.float64],
        out: NDArray[np.float64],
        out_bias: NDArray[np.float64],
    ) -> None: ...
    def condition(self, contexts: NDArray[np.float32], *, low: int, high: int, hidden: NDArray[np.float64]) -> None: ...
    def pass_points(
        self,
        hidden: NDArray[np.float64],
        *,
        draws: int,
        inverse: bool,
        low: int,
        high: int,
        points: NDArray[np.float64],
        log_det: NDArray[np.float64],
    ) -> None: ...

# -- surrogates, coherence, refinement and choosing -------------------------------------------------------------------

class Perceptron:
    def __init__(
        self,
        *,
        codes: NDArray[np.int64],
        number_at: NDArray[np.int64],
        level_at: NDArray[np.int64],
        is_pair: NDArray[np.bool_],
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
        w0: NDArray[np.float32],
        b0: NDArray[np.float32],
        w1: NDArray[np.float32],
        b1: NDArray[np.float32],
        w2: NDArray[np.float32],
        b2: NDArray[np.float32],
    ) -> None: ...

class Network:
    def __init__(
        self,
        *,
        codes: NDArray[np.int64],
        number_at: NDArray[np.int64],
        level_at: NDArray[np.int64],
        is_pair: NDArray[np.bool_],
        size: NDArray[np.int64],
        weight: NDArray[np.float64],
        bias: NDArray[np.float64],
        activation: int,
    ) -> None: ...

class Trees:
    def __init__(
        self,
        *,
        start: NDArray[np.int64],
        feature: NDArray[np.int32],
        threshold: NDArray[np.float64],
        missing_left: NDArray[np.bool_],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        value: NDArray[np.float64],
        baseline: NDArray[np.float64],
        averaged: float,
    ) -> None: ...

class Surrogate:
    def __init__(
        self,
        *,
        n_classes: int,
        perceptron: Perceptron | None = None,
        trees: Trees | None = None,
        network: Network | None = None,
    ) -> None: ...
    def probabilities(self, values: NDArray[np.float64], low: int, high: int, out: NDArray[np.float64]) -> None: ...
    def scores(self, values: NDArray[np.float64], low: int, high: int, out: NDArray[np.float64]) -> None: ...

class Bins:
    def __init__(
        self,
        *,
        offset: NDArray[np.int64],
        edge: NDArray[np.float64],
        edge_at: NDArray[np.int64],
        number: NDArray[np.bool_],
    ) -> None: ...
    def locate(self, values: NDArray[np.float64], out: NDArray[np.int64]) -> None: ...
    def count_pairs(self, values: NDArray[np.float64], counts: NDArray[np.int64]) -> None: ...

class MarkedPairs:
    def __init__(self, bins: Bins, marked: NDArray[np.bool_]) -> None: ...
    def find(self, values: NDArray[np.float64], query: NDArray[np.float64] | None, out: NDArray[np.bool_]) -> None: ...

class Dependencies:
    def __init__(
        self,
        *,
        kind: NDArray[np.int64],
        follows: NDArray[np.int64],
        at: NDArray[np.int64],
        source: NDArray[np.int64],
        weight: NDArray[np.float64],
        constant: NDArray[np.float64],
        scale: NDArray[np.float64],
        table_at: NDArray[np.int64],
        key: NDArray[np.float64],
        value: NDArray[np.float64],
        level: NDArray[np.int64],
        n_features: int,
    ) -> None: ...
    def settle(self, values: NDArray[np.float64], query: NDArray[np.float64], settled: NDArray[np.bool_]) -> None: ...
    def find_broken(self, values: NDArray[np.float64], query: NDArray[np.float64], out: NDArray[np.bool_]) -> None: ...

class RowDensity:
    def __init__(
        self,
        bins: Bins,
        *,
        order: NDArray[np.int64],
        told: NDArray[np.float32],
        start: NDArray[np.float32],
        inner: NDArray[np.float32],
        inner_bias: NDArray[np.float32],
        outer: NDArray[np.float32],
        outer_bias: NDArray[np.float32],
    ) -> None: ...
    def judge(self, values: NDArray[np.float64], low: int, high: int, out: NDArray[np.float64]) -> None: ...

class Judges:
    def __init__(
        self,
        *,
        surrogate: Surrogate,
        avoided: MarkedPairs,
        density: RowDensity,
        dependencies: Dependencies,
        follower: NDArray[np.bool_],
        scale: NDArray[np.float64],
        gaps: NDArray[np.float64],
        step: NDArray[np.float64],
        digits: NDArray[np.float64],
        stop_at: NDArray[np.int64],
        stop: NDArray[np.float64],
        typical: NDArray[np.float64],
    ) -> None: ...

class Bounds:
    def __init__(
        self,
        *,
        frozen: NDArray[np.bool_],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        states: NDArray[np.bool_],
        may_keep: NDArray[np.bool_],
        offset: NDArray[np.int64],
        has_points: NDArray[np.bool_],
        point_at: NDArray[np.int64],
        point: NDArray[np.float64],
        banned_at: NDArray[np.int64],
        banned: NDArray[np.float64],
        fixed: NDArray[np.float64],
        unit: NDArray[np.float64],
        most_changes: int,
        most_cost: float,
        uncounted: NDArray[np.bool_],
        follows: NDArray[np.bool_],
        rules: Programs,
        consequences: Consequences,
    ) -> None: ...

LESS: int
FOREMOST: int
NEARER: int

def refine_rows(
    judges: Judges,
    bounds: Bounds,
    *,
    rows: NDArray[np.float64],
    query: NDArray[np.float64],
    which: NDArray[np.int64],
    wanted: NDArray[np.float64],
    turned: bool,
    most: int,
    steps: int,
    low: int,
    high: int,
    stands: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    scores: NDArray[np.float64],
) -> None: ...
def judge_rows(
    judges: Judges,
    bounds: Bounds,
    *,
    rows: NDArray[np.float64],
    query: NDArray[np.float64],
    which: NDArray[np.int64],
    wanted: NDArray[np.float64],
    feature: NDArray[np.int64],
    origin: NDArray[np.float64],
    low: int,
    high: int,
    stands: NDArray[np.bool_],
    scores: NDArray[np.float64],
) -> None: ...
def mark_foremost(
    *,
    rows: NDArray[np.float64],
    query: NDArray[np.float64],
    which: NDArray[np.int64],
    number: NDArray[np.bool_],
    scale: NDArray[np.float64],
    gaps: NDArray[np.float64],
    stands: NDArray[np.bool_],
    most: int,
    kept: NDArray[np.bool_],
) -> None: ...
def number_ways(changed: NDArray[np.bool_], ways: NDArray[np.int64]) -> None: ...
def count_ways(
    *,
    values: NDArray[np.float64],
    query: NDArray[np.float64],
    edges: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None: ...
def choose(
    *,
    values: NDArray[np.float64],
    changed: NDArray[np.bool_],
    distance: NDArray[np.float64],
    likely: NDArray[np.float64],
    handicap: NDArray[np.float64],
    ranges: NDArray[np.float64],
    diversity: float,
    chosen: NDArray[np.int64],
) -> int: ...
def choose_each(
    *,
    values: NDArray[np.float64],
    query: NDArray[np.float64],
    edges: NDArray[np.int64],
    distance: NDArray[np.float64],
    likely: NDArray[np.float64],
    handicap: NDArray[np.float64],
    ranges: NDArray[np.float64],
    n: int,
    diversity: float,
    chosen: NDArray[np.int64],
    ways: NDArray[np.int64],
) -> int: ...
def add_distances(
    *,
    values: NDArray[np.float64],
    own: NDArray[np.float64],
    spread: NDArray[np.float64],
    gaps: NDArray[np.float64],
    counted: NDArray[np.bool_],
    p: float,
    out: NDArray[np.float64],
) -> None: ...
def gower(
    *,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    ranges: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def select(
    *,
    values: NDArray[np.float64],
    merit: NDArray[np.float64],
    ranges: NDArray[np.float64],
    diversity: float,
    most_compared: int,
    chosen: NDArray[np.int64],
) -> int: ...
