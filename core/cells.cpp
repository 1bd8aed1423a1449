#include "cells.hpp"

#include <algorithm>
#include <cmath>

namespace dicoflex {

void locate(std::span<const Index> offset, std::span<const double> low, std::span<const double> high,
            Matrix<const double> values, Matrix<Index> cell, Matrix<double> where) {
    for (Index j = 0; j < values.columns; ++j) {
        const Index start = offset[j], end = offset[j + 1];
        const Index last = std::isnan(low[end - 1]) ? end - 2 : end - 1;
        for (Index i = 0; i < values.rows(); ++i) {
            const double value = values(i, j);
            where(i, j) = 0.0;
            if (std::isnan(value)) {
                cell(i, j) = end - start - 1;
                continue;
            }
            Index left = start, right = last;
            while (left < right) {
                const Index middle = (left + right + 1) / 2;
                if (low[middle] <= value) {
                    left = middle;
                } else {
                    right = middle - 1;
                }
            }
            cell(i, j) = left - start;
            const double width = high[left] - low[left];
            if (width > 0.0) {
                where(i, j) = std::min(std::max((value - low[left]) / width, 0.0), 1.0);
            }
        }
    }
}

}  // namespace dicoflex
