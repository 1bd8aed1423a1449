// Exact nearest rows of a class under the paper's masked L_p distance; src/dicoflex/neighbours.py tells the method.
#pragma once

#include <cstdint>

namespace dicoflex {

inline constexpr int LEAF = 64;

// A pool's rows in leaves of up to LEAF rows of one class that are alike; see `Pool.leaves` in Python.
struct Leaves {
    const std::int64_t* first;      // [classes + 1]
    const std::int32_t* positions;  // [leaves][LEAF]
    const std::int32_t* last;       // [leaves]
    const std::int16_t* keys;       // [leaves][n_codes + n_numbers][LEAF]
    const float* near;              // [leaves][n_numbers][LEAF]
    const std::int32_t* codes;      // [leaves * LEAF][n_codes]
    const double* numbers;          // [leaves * LEAF][n_numbers]
    const std::uint32_t* levels;    // [n_codes][leaves]
    const float* low;               // [n_numbers][leaves]
    const float* high;              // [n_numbers][leaves]
    const double* values;           // distinct numbers of each class and column, ascending
    const std::int64_t* edges;      // [classes][n_numbers + 1]
    int n_classes, n_leaves, n_codes, n_numbers;
};

// Anchors and their conditions; `stop` is one past the last position of the pool that an anchor may find.
struct Anchors {
    const std::int32_t* codes;    // [n][n_codes]
    const double* numbers;        // [n][n_numbers]
    const std::int16_t* keys;     // [n][n_codes + n_numbers]
    const std::int64_t* target;   // [n]
    const std::int64_t* stop;     // [n]
    const double* p;              // [n]
    const double* code_weight;    // [n][n_codes]
    const double* number_weight;  // [n][n_numbers]
};

// Fill in the positions [n][k] and distances [n][k] of what the anchors from `low` to `high` find.
void search(const Leaves& leaves, const Anchors& anchors, std::int64_t low, std::int64_t high, int k,
            std::int64_t* positions, double* distances);

// Order rows so that those of a leaf are alike, and mark in `begins` where leaves begin.
//
// Rows are halved, and the halves again, along the column in which they differ most. columns: [n_columns][n_rows], the
// first `n_codes` of them codes. order: [count] rows.
void sort_alike(std::int64_t* order, bool* begins, std::int64_t count, const double* columns, std::int64_t n_rows,
                std::int64_t n_columns, std::int64_t n_codes);

}  // namespace dicoflex
