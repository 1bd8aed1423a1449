// A flow's pass on single points, forward and back; Python's `generators.flow_pass` packs the weights.
#pragma once

#include <span>

#include "matrix.hpp"

namespace dicoflex {

// A flow's weights in the order in which its inverse needs them.
//
// The inverse of an autoregressive transform finds one real per step. A hidden unit is ready at the first step at which
// all reals that it depends on are known. With the units sorted by that step, the inverse evaluates each unit once.
// Arrays by axes: l transform, t step, u and v hidden units, m hidden layer, c entry of the context.
struct Flow {
    Index n_transforms, n_layers, n_units, n_steps, n_context;
    std::span<const Index> sequence;        // (l, t): the real that is found at step t
    std::span<const Index> ready;           // (l, m, u): the step at which a unit is ready
    std::span<const double> context;        // (l, c, u)
    std::span<const double> context_bias;   // (l, u)
    std::span<const double> first;          // (l, t, u)
    std::span<const double> hidden;         // (l, m - 1, u, v)
    std::span<const double> hidden_bias;    // (l, m - 1, v)
    std::span<const double> out;            // (l, u, 2, t): shift and scale
    std::span<const double> out_bias;       // (l, 2, t)
};

// Fill in what contexts `low` to `high` add to the first hidden layer of every transform (n, l, u).
void condition(const Flow& flow, Matrix<const float> contexts, Index low, Index high, std::span<double> hidden);

// Take points `low` to `high` through the flow or back, in place, and fill in the log determinants of the way forward.
// hidden: what the contexts add, one for each `draws` points.
void pass(const Flow& flow, std::span<const double> hidden, Index draws, bool inverse, Index low, Index high,
          Matrix<double> points, std::span<double> log_det);

}  // namespace dicoflex
