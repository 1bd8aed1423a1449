// Cells: each feature's values cut into finitely many states; Python's `generators.mixed.cells` makes them.
#pragma once

#include <cmath>
#include <span>

#include "matrix.hpp"

namespace dicoflex {

// The cells of all features, end to end: feature j owns cells offset[j] to offset[j + 1].
//
// low, high: a cell's least and greatest value, NaN for missing. count: how many values it holds, 0 for an interval.
// slope_at: where a feature's slopes start, -1 for one without. step: the spacing of a feature's values, 0 where it is
// continuous. scale: ten to the power of its digits. order, rank: the features as they are drawn, and the place of each.
struct Cells {
    std::span<const Index> offset, slope_at;
    std::span<const double> low, high;
    std::span<const Index> count;
    std::span<const double> step, scale;
    std::span<const Index> order, rank;

    Index n_features() const { return static_cast<Index>(order.size()); }
    Index size(Index j) const { return offset[j + 1] - offset[j]; }

    // Value number k of a run that starts at `start`.
    double on_run(Index j, double start, Index k) const {
        return std::nearbyint((start + static_cast<double>(k) * step[j]) * scale[j]) / scale[j];
    }

    // Which number of a run a value is.
    Index place(Index j, double start, double value) const {
        return static_cast<Index>(std::nearbyint((value - start) / step[j]));
    }
};

// Fill in the cell of every value, counted from its feature's first, and where in it the value lies, from 0 to 1.
//
// A value beyond the limits belongs to the nearest cell: queries may lie there, draws can't.
void locate(std::span<const Index> offset, std::span<const double> low, std::span<const double> high,
            Matrix<const double> values, Matrix<Index> cell, Matrix<double> where);

}  // namespace dicoflex
