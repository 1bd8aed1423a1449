// What the files of doors share: arrays copied into the core, and rows whose codes are checked.
#pragma once

#include <type_traits>
#include <vector>

#include "arrays.hpp"

namespace dicoflex {

template <typename To, typename AnyArray>
std::vector<To> copied_as(const AnyArray& array) {
    return std::vector<To>(array.data(), array.data() + array.size());
}

template <typename AnyArray>
auto copied(const AnyArray& array) {
    return copied_as<std::remove_cvref_t<decltype(*array.data())>>(array);
}

// Require that rows low to high have codes that there are: codes[j] of feature j, or 0 if it is a number.
template <typename AnyArray>
void require_codes(const AnyArray& values, std::int64_t low, std::int64_t high,
                   const std::vector<std::int64_t>& codes, const char* what) {
    const std::size_t d = codes.size();
    for (std::size_t j = 0; j < d; ++j) {
        if (codes[j] == 0) {
            continue;
        }
        const auto most = static_cast<double>(codes[j] - 1);
        bool fine = true;
        for (auto i = static_cast<std::size_t>(low); i < static_cast<std::size_t>(high); ++i) {
            const double code = values.data()[i * d + j];
            fine &= code >= 0.0 && code <= most;
        }
        require(fine, what);
    }
}

}  // namespace dicoflex
