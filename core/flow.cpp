#include "flow.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "clones.hpp"
#include "numeric.hpp"

namespace dicoflex {
namespace {

constexpr double LOG_SLOPE = -0x1.ba18a998fffap+2;  // log 0.001: a step scales by no less, and by no more than 1000

// total[u] += weights[u] * value for u from `start` to `end`.
DICOFLEX_CLONES
void add(double* __restrict total, const double* weights, double value, Index start, Index end) {
    for (Index u = start; u < end; ++u) {
        total[u] += weights[u] * value;
    }
}

// One transform on one point after the other; the room is made once.
class Transform {
public:
    explicit Transform(const Flow& of)
        : flow(of), before(of.n_layers * of.n_units), out(2 * of.n_steps), known(of.n_layers) {}

    // z = x * exp(alpha) + mu, or x = (z - mu) / exp(alpha), step by step, in place; returns the log determinant.
    double on(Index at, const double* start, std::span<double> point, bool inverse) {
        const Index units = flow.n_units, steps = flow.n_steps, rest = (flow.n_layers - 1) * units;
        std::copy_n(start, units, before.begin());
        std::copy_n(flow.hidden_bias.begin() + at * rest, rest, before.begin() + units);
        std::copy_n(flow.out_bias.begin() + at * 2 * steps, 2 * steps, out.begin());
        std::fill(known.begin(), known.end(), 0);
        double log_det = 0.0;
        for (Index t = 0; t < steps; ++t) {
            wake(at, t);
            const Index j = flow.sequence[at * steps + t];
            const double mu = out[t], raw = out[steps + t], alpha = raw / (1.0 + std::abs(raw / LOG_SLOPE));
            const double x = inverse ? (point[j] - mu) / exp(alpha) : point[j];
            point[j] = inverse ? x : x * exp(alpha) + mu;
            log_det += alpha;
            add(before.data(), flow.first.data() + (at * steps + t) * units, x, known[0], units);
        }
        return log_det;
    }

private:
    // Pass on the units that are ready at step t, layer by layer; `known` counts those done in each layer.
    void wake(Index at, Index t) {
        const Index units = flow.n_units, layers = flow.n_layers, steps = flow.n_steps;
        for (Index m = 0; m < layers; ++m) {
            const Index* ready = flow.ready.data() + (at * layers + m) * units;
            Index u = known[m];
            for (; u < units && ready[u] <= t; ++u) {
                const double active = before[m * units + u];
                if (active <= 0.0) {  // the rectifier; a NaN is passed on
                    continue;
                }
                if (m + 1 < layers) {
                    const double* weights = flow.hidden.data() + ((at * (layers - 1) + m) * units + u) * units;
                    add(before.data() + (m + 1) * units, weights, active, known[m + 1], units);
                } else {
                    const double* weights = flow.out.data() + (at * units + u) * 2 * steps;
                    add(out.data(), weights, active, t, steps);
                    add(out.data() + steps, weights + steps, active, t, steps);
                }
            }
            known[m] = u;
        }
    }

    const Flow& flow;
    std::vector<double> before, out;
    std::vector<Index> known;
};

}  // namespace

void condition(const Flow& flow, Matrix<const float> contexts, Index low, Index high, std::span<double> hidden) {
    const Index units = flow.n_units;
    for (Index i = low; i < high; ++i) {
        for (Index k = 0; k < flow.n_transforms; ++k) {
            double* total = hidden.data() + (i * flow.n_transforms + k) * units;
            std::copy_n(flow.context_bias.begin() + k * units, units, total);
            for (Index c = 0; c < flow.n_context; ++c) {
                const auto value = static_cast<double>(contexts(i, c));
                if (value != 0.0) {
                    add(total, flow.context.data() + (k * flow.n_context + c) * units, value, 0, units);
                }
            }
        }
    }
}

void pass(const Flow& flow, std::span<const double> hidden, Index draws, bool inverse, Index low, Index high,
          Matrix<double> points, std::span<double> log_det) {
    Transform transform(flow);
    for (Index i = low; i < high; ++i) {
        const double* starts = hidden.data() + i / draws * flow.n_transforms * flow.n_units;
        log_det[i] = 0.0;
        for (Index k = 0; k < flow.n_transforms; ++k) {
            const Index at = inverse ? flow.n_transforms - 1 - k : k;
            log_det[i] += transform.on(at, starts + at * flow.n_units, points[i], inverse);
        }
    }
}

}  // namespace dicoflex
