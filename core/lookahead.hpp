// The limits of one call as the sampler reads them: what part of each state a step may draw.
//
// Everything here depends on a query and on the features drawn so far, never on the network.
#pragma once

#include <optional>
#include <span>

#include "cells.hpp"
#include "matrix.hpp"

namespace dicoflex {

// Room for rounding where sums are compared; Python's `limits.SLACK`.
inline constexpr double SLACK = 1e-9;

// The queries: values, settings, what can't change, own cell, place in it, whether it is all of that cell, and whether
// a draw from the cell can be exactly the value.
struct Queries {
    Matrix<const double> values;
    Matrix<const float> settings;
    Matrix<const bool> stuck;
    Matrix<const Index> own;
    Matrix<const float> where;
    Matrix<const bool> alone, exact;
};

// What changed features of each query may be, by cells.
//
// open: which cells hold an allowed value, as far as levels, atoms and missing states go. needed, price: what later
// features that must change will need of changes and cost. reserved: where a change must be left for later features to
// mend a rule. points, banned: the only values that a number may take, and those that it may not, all features' end to
// end; pointed: which features have points. fixed, unit: cost of a change, and per unit of it.
struct CellBounds {
    Matrix<const double> low, high;
    Matrix<const bool> open, may_keep;
    Matrix<const Index> needed, reserved;
    Matrix<const double> price;
    std::span<const double> points;
    std::span<const Index> point_at;
    std::span<const bool> pointed;
    std::span<const double> banned;
    std::span<const Index> banned_at;
    std::span<const bool> level;
    std::span<const double> fixed, unit;
    Index most_changes = 0;
    double most_cost = 0.0;
};

enum class Sort : Index { LINEAR, LEVELS, MISSING, OPAQUE };
enum class Compared : Index { AT_MOST, BELOW, EQUAL, UNEQUAL };

// The clauses of rules, as Python's `limits.clauses` has them, and what each feature of a draw may end as.
//
// Query i is bound by clauses first[i] to last[i]; touched: whether any clause touches a feature.
struct Rules {
    Matrix<const double> least, most;
    Matrix<const bool> may_miss;
    std::span<const Index> first, last;
    std::span<const bool> touched;
    std::span<const double> ranks;
    std::span<const Index> start, sort, op;
    Matrix<const double> coefficients;
    std::span<const double> constant;
    std::span<const Index> feature;
    Matrix<const bool> levels;
    std::span<const bool> if_missing;
    Matrix<const bool> touches;
};

struct Limits {
    CellBounds bounds;
    std::optional<Rules> rules;
};

// The step that draws feature j of query i.
struct Step {
    const Cells& cells;
    const Queries& queries;
    const Limits& limits;
    Index i, j;
};

// The part of a cell that may be drawn: its share of the cell, its ends, its first value's number, and how many values
// it has: none for an interval, one for an atom. The query's own value does not count.
struct Part {
    double share, low, high;
    Index first, number;
};

// Between which values a changed number lies.
struct Ends {
    double low, high;
};

// The part of a cell within the ends.
Part part_of(const Step& step, Index cell, Ends ends);

// A value of the allowed part of a cell, never the query's own; u is a uniform number.
double value_of(const Step& step, Index cell, const Part& part, double u);

// Whether a draw that changed so many features at such a cost can't afford to change this one.
bool is_spent(const Step& step, Index used, double spent);

// Whether what the feature may change to depends on the features before it.
bool depends(const Step& step);

// Fill in the share of each state that is allowed whatever was drawn before.
void open_shares(const Step& step, std::span<double> share);

// Narrow those shares to what was drawn so far: a row whose features before this one are known. `fits` is room to work
// in, one entry for each state of any feature. Returns the ends for a changed number.
Ends narrow_shares(const Step& step, std::span<const double> row, Index used, double spent, std::span<bool> fits,
                   std::span<double> share);

// What a changed feature costs.
inline double cost(double value, double query, double fixed, double unit) {
    const double apart = std::abs(value - query);
    return fixed + unit * (std::isnan(apart) ? 1.0 : apart);
}

}  // namespace dicoflex
