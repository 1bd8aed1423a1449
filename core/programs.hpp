// Rules and consequences as programs of a small stack machine; Python's `limits.programs` writes them.
//
// A program reads a row and its query as encoded values. Truth is 1 and 0; a number that is missing or has no result is
// NaN, and whatever compares with it is false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dicoflex {

// How many values a program may hold at once.
inline constexpr std::size_t STACK = 128;

enum Operation : std::int64_t {
    CONSTANT, VALUE, RANK, LOOKED_UP, PAIRED, ADD, SUBTRACT, MULTIPLY, DIVIDE, LEAST, MOST, BELOW, AT_MOST, EQUAL,
    UNEQUAL, AND, OR, NOT, ABSENT, DIFFER, CHOOSE
};

// Programs end to end: number k owns steps at[k] to at[k + 1].
//
// A step has an operation, whether it reads the query, a feature, where its table starts, and a constant.
struct Programs {
    std::span<const std::int64_t> at, op;
    std::span<const bool> was;
    std::span<const std::int64_t> feature, start;
    std::span<const double> constant, table;

    std::size_t size() const { return at.size() - 1; }
};

// Whether every program takes only what it put on its stack, has room for it, and leaves one value; and whether the
// features it reads are among `n_features`.
bool are_sound(const Programs& programs, std::size_t n_features);

// What program k works out for a row.
double run(const Programs& programs, std::size_t k, std::span<const double> row, std::span<const double> query);

// How a column holds a number.
enum Stored : std::int64_t { WHOLE, SINGLE, HALF, DOUBLE };

// Programs, in an order in which they can be run, the features that they set, and how those store a number.
struct Consequences {
    Programs programs;
    std::span<const std::int64_t> feature, stored;
    std::span<const bool> may_miss;
};

// Let features of one row follow, in place; whether each has a value that it can have.
bool follow_on(const Consequences& consequences, std::span<double> row, std::span<const double> query);

}  // namespace dicoflex
