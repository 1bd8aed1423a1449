// How far apart values are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "values.hpp"

namespace dicoflex {

// How far two values of one feature, which differ, are apart.
//
// Numbers by standard deviations; another level by one, or, of levels that have an order, by a half and up to another
// half the more steps lie between; what appears or vanishes by one.
inline double move(double a, double b, bool number, double scale, double gaps) {
    const double apart = std::abs(a - b);
    if (std::isnan(apart)) {
        return 1.0;
    }
    if (number) {
        return apart / scale;
    }
    return a <= gaps && b <= gaps ? 0.5 + 0.5 * apart / gaps : 1.0;
}

// How far two rows of d values are apart: 1 for another level or a missing value, a share of its range for a number.
inline double apart(const double* a, const double* b, const double* ranges, std::size_t d) {
    double total = 0.0;
    for (std::size_t j = 0; j < d; ++j) {
        if (differ(a[j], b[j])) {
            const double share = ranges[j] > 0.0 ? std::abs(a[j] - b[j]) / ranges[j] : 1.0;
            total += std::isnan(share) ? 1.0 : std::min(share, 1.0);
        }
    }
    return total;
}

}  // namespace dicoflex
