#include "coherence.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "lanes.hpp"
#include "numeric.hpp"

namespace dicoflex {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity(), NOTHING = std::numeric_limits<double>::quiet_NaN();
// How far a value may be from what follows; a rate may be rounded.
constexpr double ROUNDING = 1e-6, RATE_ROUNDING = 2e-3;

void set_bit(std::vector<std::uint64_t>& bits, std::size_t at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }

}  // namespace

std::vector<std::int64_t> codes_of(const Bins& bins) {
    std::vector<std::int64_t> codes(bins.n_features());
    for (std::size_t j = 0; j < codes.size(); ++j) {
        codes[j] = bins.number[j] ? 0 : bins.size_of(j);
    }
    return codes;
}

MarkedPairs marked_pairs(Bins bins, const bool* marked) {
    const std::size_t n = bins.n_cells(), words = (n + 63) / 64;
    MarkedPairs pairs{std::move(bins), words, std::vector<std::uint64_t>(n * words)};
    for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) {
            if (marked[a * n + b] && a != b) {
                set_bit(pairs.bits, a * words * 64 + b);
                set_bit(pairs.bits, b * words * 64 + a);
            }
        }
    }
    return pairs;
}

std::size_t count_marked(const MarkedPairs& pairs, std::size_t cell, std::span<const std::uint64_t> set) {
    const std::uint64_t* own = pairs.of(cell);
    std::size_t n = 0;
    for (std::size_t w = 0; w < pairs.words; ++w) {
        n += static_cast<std::size_t>(std::popcount(own[w] & set[w]));
    }
    return n;
}

bool is_marked(const MarkedPairs& pairs, std::size_t cell, std::span<const std::uint64_t> set) {
    const std::uint64_t* own = pairs.of(cell);
    std::uint64_t found = 0;
    for (std::size_t w = 0; w < pairs.words; ++w) {
        found |= own[w] & set[w];
    }
    return found != 0;
}

void set_bits(const MarkedPairs& pairs, std::span<const std::int32_t> cell, std::span<const std::int32_t> own,
              CellBits& bits) {
    bits.all.assign(pairs.words, 0);
    bits.changed.assign(pairs.words, 0);
    for (std::size_t j = 0; j < cell.size(); ++j) {
        set_bit(bits.all, pairs.cell(j, cell[j]));
        if (cell[j] != own[j]) {
            set_bit(bits.changed, pairs.cell(j, cell[j]));
        }
    }
}

bool is_coherent(const MarkedPairs& pairs, std::span<const std::int32_t> cell, std::span<const std::int32_t> own,
                 const CellBits& bits) {
    for (std::size_t j = 0; j < cell.size(); ++j) {
        if (cell[j] != own[j] && is_marked(pairs, pairs.cell(j, cell[j]), bits.all)) {
            return false;
        }
    }
    return true;
}

namespace {

// What the table of dependency i has for its second source, within the level of its third; NaN beyond its ends.
double rate_of(const Dependencies& steps, std::size_t i, std::span<const double> row) {
    const auto at = static_cast<std::size_t>(steps.at[i]);
    const double x = row[static_cast<std::size_t>(steps.source[at + 1])];
    const bool by = steps.at[i + 1] - steps.at[i] == 3;
    const std::int64_t level = by ? code_of(row[static_cast<std::size_t>(steps.source[at + 2])]) : 0;
    const auto last = static_cast<std::size_t>(steps.table_at[i + 1]);
    std::size_t before = last;
    for (auto s = static_cast<std::size_t>(steps.table_at[i]); s < last; ++s) {
        if (steps.level[s] != level) {
            continue;
        }
        if (steps.key[s] == x) {
            return steps.value[s];
        }
        if (steps.key[s] > x) {
            if (before == last) {
                return NOTHING;
            }
            const double part = (x - steps.key[before]) / (steps.key[s] - steps.key[before]);
            return steps.value[before] + part * (steps.value[s] - steps.value[before]);
        }
        before = s;
    }
    return NOTHING;
}

// Set what follows by a table of values; whether the table knows it.
bool look_up(const Dependencies& steps, std::size_t i, double key, double& out) {
    bool known = false;
    for (auto s = static_cast<std::size_t>(steps.table_at[i]); s < static_cast<std::size_t>(steps.table_at[i + 1]);
         ++s) {
        if (steps.key[s] == key) {
            out = steps.value[s];
            known = true;
        }
    }
    return known;
}

}  // namespace

bool follow(const Dependencies& steps, std::span<double> row, std::span<const double> query) {
    bool settled = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto t = static_cast<std::size_t>(steps.follows[i]);
        const auto first = static_cast<std::size_t>(steps.at[i]), last = static_cast<std::size_t>(steps.at[i + 1]);
        const auto source = [&steps](std::size_t s) { return static_cast<std::size_t>(steps.source[s]); };
        bool moved = false;
        for (std::size_t s = first; s < last; ++s) {
            moved |= differ(row[source(s)], query[source(s)]);
        }
        if (!moved) {
            row[t] = query[t];
            continue;
        }
        if (steps.kind[i] == LOOKUP) {
            settled &= look_up(steps, i, row[source(first)], row[t]);
            continue;
        }
        double made = steps.constant[i];
        if (steps.kind[i] == PRODUCT) {
            made = row[source(first)] * row[source(first + 1)];
        } else if (steps.kind[i] == RATE) {
            made = row[source(first)] * rate_of(steps, i, row);
        } else {
            for (std::size_t s = first; s < last; ++s) {
                made += steps.weight[s] * row[source(s)];
            }
        }
        row[t] = std::nearbyint(made * steps.scale[i]) / steps.scale[i];
        settled &= !std::isnan(row[t]);
    }
    return settled;
}

bool breaks(const Dependencies& steps, std::span<const double> row, std::span<const double> query,
            std::span<double> room) {
    std::copy(row.begin(), row.end(), room.begin());
    bool broken = !follow(steps, room, query);
    for (std::size_t k = 0; k < steps.size(); ++k) {
        const auto t = static_cast<std::size_t>(steps.follows[k]);
        const double a = row[t], b = room[t], rounding = steps.kind[k] == RATE ? RATE_ROUNDING : ROUNDING;
        const bool near = std::abs(a - b) <= rounding * std::max(1.0, std::abs(a)) || (std::isnan(a) && std::isnan(b));
        broken |= !near;
    }
    return broken;
}

DensityRoom::DensityRoom(const RowDensity& density)
    : hidden(density.n_head),
      logits(density.n_states),
      rectified(std::max(density.n_hidden, density.n_head)) {}

Factors::Factors(const RowDensity& density) : heard(density.size() * density.n_hidden), factor(density.size()) {}

namespace {

// The sum of exp(logits - top) over n logits, n a multiple of LANES.
//
// The exponential is (1 + r + r^2 / 2 + r^3 / 6)^256 at r = x / 256, which is quick on many at a time: within 3e-5 of
// its value for x above -10, and of no weight below.
INLINE float sum_of_exponentials(const float* logits, std::size_t n, float top) {
    Lanes total = Lanes{};
    for (std::size_t s = 0; s < n; s += LANES) {
        float e[LANES];
        for (std::size_t i = 0; i < LANES; ++i) {
            const float x = logits[s + i] - top, r = (x > -60.0f ? x : -60.0f) * (1.0f / 256.0f);
            e[i] = 1.0f + r * (1.0f + r * (0.5f + r * (1.0f / 6.0f)));
        }
        for (int square = 0; square < 8; ++square) {
            for (std::size_t i = 0; i < LANES; ++i) {
                e[i] *= e[i];
            }
        }
        Lanes lanes;
        load(lanes, e);
        add(total, lanes);
    }
    return sum_of(total);
}

INLINE double factor_at(const RowDensity& density, std::size_t k, std::int32_t state, const float* heard,
                        DensityRoom& room) {
    const std::size_t n_hidden = density.n_hidden, n_head = density.n_head, n_states = density.n_states;
    const auto size = static_cast<std::size_t>(density.bins.size_of(static_cast<std::size_t>(density.order[k])));
    const std::size_t n = (size + LANES - 1) / LANES * LANES;
    float *hidden = room.hidden.data(), *logits = room.logits.data();
    float* rectified = room.rectified.data();
    std::copy_n(density.inner_bias.data() + k * n_head, n_head, hidden);
    add_rectified(heard, n_hidden, density.inner.data() + k * n_hidden * n_head, n_head, hidden, n_head, rectified);
    std::copy_n(density.outer_bias.data() + k * n_states, n, logits);
    add_rectified(hidden, n_head, density.outer.data() + k * n_head * n_states, n_states, logits, n, rectified);
    float top = logits[0];
    for (std::size_t s = 1; s < n; ++s) {
        top = logits[s] > top ? logits[s] : top;
    }
    const float total = sum_of_exponentials(logits, n, top);
    return static_cast<double>(logits[static_cast<std::size_t>(state)] - top) - log(static_cast<double>(total));
}

}  // namespace

DICOFLEX_CLONES double factor_of(const RowDensity& density, std::size_t k, std::int32_t state, const float* heard,
                                 DensityRoom& room) {
    return factor_at(density, k, state, heard, room);
}

DICOFLEX_CLONES double edited(const RowDensity& density, std::span<const std::int32_t> cell, std::size_t k,
                              double floor, double weak, const Factors& old, Factors& made, DensityRoom& room) {
    const std::size_t d = density.size(), n_hidden = density.n_hidden;
    double total = 0.0;
    for (std::size_t i = 0; i < k; ++i) {
        total += old.factor[i];
    }
    const float* before = k == 0 ? density.start.data() : old.heard.data() + k * n_hidden;
    if (before != made.heard.data() + k * n_hidden) {
        std::copy_n(before, n_hidden, made.heard.data() + k * n_hidden);
    }
    for (std::size_t i = k; i < d; ++i) {
        const auto j = static_cast<std::size_t>(density.order[i]);
        const float* heard = made.heard.data() + i * n_hidden;
        made.factor[i] = factor_at(density, i, cell[j], heard, room);
        total += made.factor[i];
        if (total < floor || made.factor[i] < weak) {
            return -INF;
        }
        if (i + 1 < d) {
            const auto at = static_cast<std::size_t>(density.bins.offset[j] + cell[j]);
            const float* told = density.told.data() + at * n_hidden;
            float* next = made.heard.data() + (i + 1) * n_hidden;
            for (std::size_t m = 0; m < n_hidden; ++m) {
                next[m] = heard[m] + told[m];
            }
        }
    }
    return total;
}

}  // namespace dicoflex
