// Single values of an encoded row: a number, NaN where it is missing, or a level's code.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dicoflex {

// Whether two values differ; missing equals missing.
inline bool differ(double a, double b) { return !(a == b || (a != a && b != b)); }

// A level's code as a whole number.
inline std::int64_t code_of(double value) { return static_cast<std::int64_t>(value); }

// The first place of a sorted stretch whose value is not below this one; `last` where there is none.
inline std::size_t place_of(double value, std::span<const double> values, std::size_t first, std::size_t last) {
    while (first < last) {
        const std::size_t middle = (first + last) / 2;
        if (values[middle] < value) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first;
}

}  // namespace dicoflex
