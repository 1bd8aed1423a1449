// The default density: autoregressive over features, a softmax over each feature's states; Python's `generators.mixed`.
//
// Draws of one query that agree so far share their work: they are one group until their states part. All arithmetic of a
// draw depends on its own query, key and number alone, so batching and threads can't change it.
#pragma once

#include <cstdint>
#include <span>

#include "cells.hpp"
#include "lookahead.hpp"
#include "matrix.hpp"

namespace dicoflex {

// Sums over states go block by block: a feature's last layer has columns for no state up to a multiple of this.
inline constexpr Index BLOCK = 16;

// The weights. A feature sees the rectified sum of what the context and the features before it add.
//
// Feature j's first layer is inner[j] (hidden, head), its last one stands alone in `outer`, from outer_at[j] on, with a
// column per state and some for none.
struct Net {
    Matrix<const float> query, query_slope, settings, trunk;
    std::span<const float> trunk_bias;
    Matrix<const float> prefix, prefix_slope, prefix_kept;
    Matrix<const float> inner, inner_bias;
    std::span<const float> outer;
    std::span<const Index> outer_at;
    Matrix<const float> outer_bias;

    Index n_hidden() const { return prefix.columns; }
    Index n_head() const { return inner_bias.columns; }
    Index widest() const { return outer_bias.columns; }
    Index width(Index j) const { return (outer_at[j + 1] - outer_at[j]) / n_head(); }
};

struct Density {
    Cells cells;
    Net net;
};

// Draws of each query from `low` to `high`: numbers first[i] and on of keys[i], as many as there is room for.
//
// limits: what may be drawn, or nullptr. out: (queries, draws, features). log_density: (queries, draws), filled in.
void draw(const Density& density, const Queries& queries, const Limits* limits, std::span<const std::uint64_t> keys,
          std::span<const std::uint64_t> first, Index low, Index high, Index n_draws, std::span<double> out,
          std::span<double> log_density);

// Rows whose density is sought: each one's query, cells, places in them, and which values are kept.
struct Answers {
    std::span<const Index> of;
    Matrix<const Index> cell;
    Matrix<const float> where;
    Matrix<const bool> kept;
};

// Fill in the log probability of the states of rows `low` to `high`: the sampler's arithmetic, so the two agree.
//
// What rows of one query begin with alike is worked out once, where they stand together.
void score(const Density& density, const Queries& queries, const Answers& answers, Index low, Index high,
           std::span<double> out);

}  // namespace dicoflex
