#include "allowed_rows.hpp"

#include <cmath>

namespace dicoflex {
namespace {

// Whether a changed value is one that the feature may not take.
bool is_refused(const Allowance& allowance, Index at, Index j, double x) {
    const Index first = allowance.offset[j], end = allowance.offset[j + 1];
    if (allowance.is_level[j]) {
        // A code that the feature does not have is refused, whoever made the row.
        return !(x >= 0.0 && x < static_cast<double>(end - first)) ||
               !allowance.states(at, first + static_cast<Index>(x));
    }
    if (std::isnan(x)) {
        return first == end || !allowance.states(at, first);
    }
    return !(allowance.low(at, j) <= x && x <= allowance.high(at, j));
}

// Of the features before `end`, how many change.
Index changes(const Choices& choices, std::span<const Index> turn, Index end) {
    Index count = 0;
    for (Index j = 0; j < end; ++j) {
        count += turn[j] > 0 || !choices.keeps[j];
    }
    return count;
}

// Go on to the next row; one whose first features change too much already is passed over with all after it.
void step_on(const Choices& choices, std::span<Index> turn) {
    const auto d = static_cast<Index>(turn.size()) - 1;
    for (Index j = d - 1; j >= 0; --j) {
        ++turn[j];
        if (turn[j] < choices.at[j + 1] - choices.at[j] && changes(choices, turn, j + 1) <= choices.most_changes) {
            return;
        }
        turn[j] = 0;
    }
    turn[d] = 1;
}

}  // namespace

void mark_broken(const Allowance& allowance, Matrix<const double> values, Matrix<const double> query,
                 std::span<const Index> which, std::span<bool> broken) {
    for (Index i = 0; i < values.rows(); ++i) {
        const Index at = which[i];
        Index changed = 0;
        bool bad = false;
        for (Index j = 0; j < values.columns; ++j) {
            const double x = values(i, j), q = query(i, j);
            if (x == q || (std::isnan(x) && std::isnan(q))) {
                bad = bad || !allowance.may_keep(at, j);
            } else {
                changed += !allowance.uncounted[j];
                bad = bad || is_refused(allowance, at, j, x);
            }
        }
        broken[i] = broken[i] || bad || changed > allowance.most_changes;
    }
}

Index fill_rows(const Choices& choices, std::span<Index> turn, Matrix<double> rows) {
    const Index d = rows.columns;
    Index filled = 0;
    while (filled < rows.rows() && turn[d] == 0) {
        const Index changed = changes(choices, turn, d);
        if (0 < changed && changed <= choices.most_changes) {
            for (Index j = 0; j < d; ++j) {
                rows(filled, j) = choices.value[choices.at[j] + turn[j]];
            }
            ++filled;
        }
        step_on(choices, turn);
    }
    return filled;
}

}  // namespace dicoflex
