// Arrays with two axes, as views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dicoflex {

using Index = std::int64_t;

template <typename Number>
struct Matrix {
    std::span<Number> entries;
    Index columns = 0;

    Index rows() const { return columns == 0 ? 0 : static_cast<Index>(entries.size()) / columns; }
    Number& operator()(Index i, Index j) const { return entries[static_cast<std::size_t>(i * columns + j)]; }
    std::span<Number> operator[](Index i) const {
        return entries.subspan(static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns));
    }
};

}  // namespace dicoflex
