// Arrays from Python, and what is checked of them where they enter; behind that nothing is checked again.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "matrix.hpp"

namespace dicoflex {

template <typename Number, int Axes>
using Array = nanobind::ndarray<Number, nanobind::ndim<Axes>, nanobind::c_contig, nanobind::device::cpu>;

inline void require(bool holds, const char* what) {
    if (!holds) {
        throw std::invalid_argument(std::string("the arrays do not fit each other: ") + what);
    }
}

template <typename AnyArray>
void require_shape(const AnyArray& array, std::initializer_list<std::size_t> shape, const char* what) {
    std::size_t axis = 0;
    for (const std::size_t size : shape) {
        require(array.shape(axis++) == size, what);
    }
}

// Whether all of some whole numbers lie in [low, high].
template <typename Number>
bool lie_within(const Number* numbers, std::size_t n, std::int64_t low, std::int64_t high) {
    return std::all_of(numbers, numbers + n, [=](Number number) { return low <= number && number <= high; });
}

// Whether numbers are where lists laid end to end start: they rise from 0 to the number of entries.
inline bool are_offsets(std::span<const std::int64_t> offsets, std::size_t entries) {
    return !offsets.empty() && offsets.front() == 0 && offsets.back() == static_cast<std::int64_t>(entries) &&
           std::is_sorted(offsets.begin(), offsets.end());
}

// All entries of an array, whatever its axes.
template <typename AnyArray>
auto span_of(const AnyArray& array) {
    return std::span(array.data(), array.size());
}

// An array with two axes.
template <typename AnyArray>
auto matrix_of(const AnyArray& array) {
    return Matrix<std::remove_pointer_t<decltype(array.data())>>{span_of(array), static_cast<Index>(array.shape(1))};
}

// Whether a slice of n rows is one.
inline void require_slice(std::int64_t low, std::int64_t high, std::size_t n) {
    require(0 <= low && low <= high && high <= static_cast<std::int64_t>(n), "low, high");
}

}  // namespace dicoflex
