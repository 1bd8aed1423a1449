// Programs as Python hands them over: their arrays, kept alive and checked once, and the core's view of them.
#pragma once

#include "arrays.hpp"
#include "programs.hpp"

namespace dicoflex {

struct ProgramsOwner {
    Array<const std::int64_t, 1> at, op;
    Array<const bool, 1> was;
    Array<const std::int64_t, 1> feature, start;
    Array<const double, 1> constant, table;
    Programs view{};

    // Check that the programs read rows of `n_features` values, and nothing beyond them.
    void check(std::size_t n_features);
};

struct ConsequencesOwner {
    ProgramsOwner programs;
    Array<const std::int64_t, 1> feature, stored;
    Array<const bool, 1> may_miss;
    Consequences view{};

    void check(std::size_t n_features);
};

}  // namespace dicoflex
