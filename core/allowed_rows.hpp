// Finished rows against limits: which break one, and all that limits allow, one after the other.
#pragma once

#include <span>

#include "matrix.hpp"

namespace dicoflex {

// What changed features of some queries may be; see Python's `limits.Limits`.
struct Allowance {
    Matrix<const double> low, high;
    Matrix<const bool> states, may_keep;
    std::span<const Index> offset;
    std::span<const bool> is_level, uncounted;
    Index most_changes;
};

// Mark rows with a value that is kept or changed where it may not be, or with too many changes; `which` says to which
// entry of the allowance a row belongs, `query` is its query's values.
void mark_broken(const Allowance& allowance, Matrix<const double> values, Matrix<const double> query,
                 std::span<const Index> which, std::span<bool> broken);

// The values that each feature may take, end to end: feature j owns those from at[j] to at[j + 1], its own first where
// it may be kept. Of a row's features at most so many change.
struct Choices {
    std::span<const double> value;
    std::span<const Index> at;
    std::span<const bool> keeps;
    Index most_changes;
};

// Write rows until there is no room or no row is left; how many were written. turn: which value each feature has next,
// and at the end whether no row is left.
Index fill_rows(const Choices& choices, std::span<Index> turn, Matrix<double> rows);

}  // namespace dicoflex
