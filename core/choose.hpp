// Choosing answers that are different to a person; Python's `answers.ways` and `answers.selection` tell the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dicoflex {

// Rows of which some are chosen: their values, the features that they change, and how far numbers reach.
struct Choice {
    std::size_t n, d;
    const double* values;         // [n][d]
    const std::uint8_t* changed;  // [n][d]
    const double* ranges;         // [d]: 0 for levels
};

// What speaks for candidates: how far they are; of equals how likely; and what is taken from their merit.
struct Merits {
    const double *distance, *likely, *handicap;
};

// Number rows by what they change, in the order in which that first appears; how many ways there are.
std::size_t number_ways(const std::uint8_t* changed, std::size_t n, std::size_t d, std::int64_t* ways);

// Fill in which features of n rows differ from their query's.
void find_changes(const double* values, const double* query, std::size_t n, std::size_t d,
                  std::vector<std::uint8_t>& changed);

// The positions of at most `n` of different candidates, best first.
std::vector<std::size_t> choose(const Choice& choice, const Merits& merits, std::size_t n, double diversity);

// The positions of at most `n` rows: each next one has the most merit and is far from those already taken. `scale` is
// the distance that counts as 1.
std::vector<std::size_t> choose_spread(const Choice& choice, std::span<const double> merit, double scale,
                                       std::size_t n, double diversity);

// The greatest distance between any two of the rows, as a mean over features.
double widest(const Choice& choice);

}  // namespace dicoflex
