// Draws made into rows and judged: what they are stored as, which are unlikely, repeated, doubtful or refused.
#pragma once

#include <cstdint>
#include <span>

#include "matrix.hpp"

namespace dicoflex {

// What is said of a draw, from best to worst; Python's `answers.draws.Verdict`.
enum Verdict : std::int8_t { GOOD, UNLIKELY, REPEAT, DOUBTFUL, REFUSED };
inline constexpr Index VERDICTS = 5;

// How features hold values: between which they lie, and which are whole numbers.
struct Storage {
    std::span<const double> least, greatest;
    std::span<const bool> whole;
};

// Fill in the rows of queries `low` to `high`, `each` for a query, and whether each differs from its query: what is
// frozen or unchanged is the query's, all else as its feature holds it.
void finish(const Storage& storage, Matrix<const double> query, Matrix<const bool> frozen,
            Matrix<const double> values, Index each, Index low, Index high, Matrix<double> rows, std::span<bool> moved);

// Draws to be judged, `each` for a query. unlikely: the share of a query's draws that are so. said: what the surrogate
// gives the classes, of no row where there is none. target, least: by query, its class and what it must have at least.
// query: of each row. fine: which rows may be drawn at all. key: the row's hash.
struct Judged {
    std::span<const double> log_density;
    Index each;
    double unlikely;
    Matrix<const double> said;
    std::span<const Index> target;
    std::span<const double> least;
    std::span<const Index> query;
    std::span<const bool> fine;
    std::span<const std::uint64_t> key;
};

// Fill in what the surrogate gives each row's target, and the verdicts.
void judge(const Judged& draws, std::span<double> probability, std::span<std::int8_t> verdict);

// Mark keys of a query that stand further ahead already.
void mark_seen(std::span<const std::uint64_t> key, std::span<const Index> query, std::span<bool> seen);

// The places of `n` rows per query in the order of the verdicts, none worse than `worst`; with `exact` again and again if
// they lack. Returns how many were filled in.
Index first_rows(std::span<const Index> query, std::span<const std::int8_t> verdict, std::int8_t worst, Index n_queries, Index n,
                 bool exact, std::span<Index> places);

}  // namespace dicoflex
