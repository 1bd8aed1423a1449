// What goes together in a table: cells of values, pairs of cells that answers avoid, features that follow from others,
// and a density of the rows. Python's `coherence` tells what they mean and how they are learned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "values.hpp"

namespace dicoflex {

// Feature j owns cells offset[j] to offset[j + 1], and edges edge_at[j] to edge_at[j + 1] between them if it is a
// number; a value equal to an edge belongs below it.
struct Bins {
    std::vector<std::int64_t> offset, edge_at;
    std::vector<double> edge;
    std::vector<std::uint8_t> number;

    std::size_t n_features() const { return number.size(); }
    std::size_t n_cells() const { return static_cast<std::size_t>(offset.back()); }
    std::int64_t size_of(std::size_t j) const { return offset[j + 1] - offset[j]; }
};

// How many codes each feature has, 0 of numbers.
std::vector<std::int64_t> codes_of(const Bins& bins);

// The cell of one value of feature j, counted from the feature's first.
inline std::int32_t cell_of(const Bins& bins, std::size_t j, double value) {
    if (!bins.number[j]) {
        return static_cast<std::int32_t>(code_of(value));
    }
    if (std::isnan(value)) {
        return static_cast<std::int32_t>(bins.size_of(j) - 1);
    }
    const auto first = static_cast<std::size_t>(bins.edge_at[j]), last = static_cast<std::size_t>(bins.edge_at[j + 1]);
    return static_cast<std::int32_t>(place_of(value, bins.edge, first, last) - first);
}

// Pairs of cells that are marked, as bits: cells are numbered through all features.
struct MarkedPairs {
    Bins bins;
    std::size_t words;                // in which the bits of all cells fit
    std::vector<std::uint64_t> bits;  // [cells][words]

    const std::uint64_t* of(std::size_t cell) const { return bits.data() + cell * words; }
    std::size_t cell(std::size_t j, std::int32_t own) const {
        return static_cast<std::size_t>(bins.offset[j]) + static_cast<std::size_t>(own);
    }
};

// The pairs of a table (cells, cells); a pair is marked in whichever order the table has it.
MarkedPairs marked_pairs(Bins bins, const bool* marked);

// The cells of a row as bits, and those of them that are not its query's.
struct CellBits {
    std::vector<std::uint64_t> all, changed;
};

// How many cells of a set are marked with a cell.
std::size_t count_marked(const MarkedPairs& pairs, std::size_t cell, std::span<const std::uint64_t> set);

// Whether any cell of a set is marked with a cell.
bool is_marked(const MarkedPairs& pairs, std::size_t cell, std::span<const std::uint64_t> set);

// Fill in the bits of a row's cells; `own` are those of its query.
void set_bits(const MarkedPairs& pairs, std::span<const std::int32_t> cell, std::span<const std::int32_t> own,
              CellBits& bits);

// Whether a row has no marked pair that its query has not.
bool is_coherent(const MarkedPairs& pairs, std::span<const std::int32_t> cell, std::span<const std::int32_t> own,
                 const CellBits& bits);

enum DependencyKind : std::int64_t { LINEAR, PRODUCT, RATE, LOOKUP };

// Dependencies in an order in which they can be followed: entry i has sources source[at[i]] to source[at[i + 1]], with
// weights alike, and a table from table_at[i] to table_at[i + 1].
struct Dependencies {
    std::vector<std::int64_t> kind, follows, at, source;
    std::vector<double> weight, constant, scale;
    std::vector<std::int64_t> table_at;
    std::vector<double> key, value;
    std::vector<std::int64_t> level;
    std::int64_t n_features;

    std::size_t size() const { return kind.size(); }
};

// Let dependent features of a row follow, in place; whether all are settled: a table may not know a value.
bool follow(const Dependencies& dependencies, std::span<double> row, std::span<const double> query);

// Whether a row breaks a dependency; `room` is as long as a row.
bool breaks(const Dependencies& dependencies, std::span<const double> row, std::span<const double> query,
            std::span<double> room);

// An autoregressive density over cells; what has an entry per place stands in `order`.
struct RowDensity {
    Bins bins;
    std::vector<std::int64_t> order, rank;  // the feature at each place, the place of each feature
    std::size_t n_hidden, n_head, n_states;
    std::vector<float> told;                    // [cells][hidden]
    std::vector<float> start;                   // [hidden]
    std::vector<float> inner, inner_bias;       // [d][hidden][head], [d][head]
    std::vector<float> outer, outer_bias;       // [d][head][states], [d][states]; very low where a feature has fewer

    std::size_t size() const { return order.size(); }
};

// Room to work factors out in.
struct DensityRoom {
    explicit DensityRoom(const RowDensity& density);

    std::vector<float> hidden, logits, rectified;
};

// What the density says of a row, place by place: what was told before it, and its log probability given that.
struct Factors {
    explicit Factors(const RowDensity& density);

    std::vector<float> heard;  // [d][hidden]
    std::vector<double> factor;
};

// The log probability of `state` at place k, given what was told; the room is left with the place's logits.
double factor_of(const RowDensity& density, std::size_t k, std::int32_t state, const float* heard, DensityRoom& room);

// The log density of cells that differ from those of `old` from place k on.
//
// It is -inf where it lies below `floor`, or a factor from k on below `weak`. `made` is filled from k on, unless the
// work was cut short; it may be `old`.
double edited(const RowDensity& density, std::span<const std::int32_t> cell, std::size_t k, double floor, double weak,
              const Factors& old, Factors& made, DensityRoom& room);

}  // namespace dicoflex
