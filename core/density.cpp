#include "density.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "clones.hpp"
#include "numeric.hpp"
#include "random.hpp"

namespace dicoflex {
namespace {

// A row that is scored is compared with so many before it.
constexpr Index RECALLED = 16;
// Entries of a rectified vector that are multiplied at a time.
constexpr Index TERMS = 8;
constexpr float LEAST_SHARE = 1e-9f, LOWEST = -1e4f, LEAST_POWER = -126.0f, LOG2_E_FLOAT = 0x1.715476p+0f;
// Densities outside are moved into the log, before they run out of range.
constexpr double SMALLEST = 1e-150, GREATEST = 1e150;

// -- arithmetic of the network ------------------------------------------------------------------------------------------

// The entries of a vector that count, and which they are; zeros fill up the last of the TERMS.
struct Actives {
    std::vector<float> value;
    std::vector<Index> at;

    explicit Actives(Index most) : value(most + TERMS), at(most + TERMS) {}
};

template <typename Counts>
INLINE Index gather(const float* x, Index n, Counts counts, float* value, Index* at) {
    Index count = 0;
    for (Index i = 0; i < n; ++i) {
        value[count] = x[i];
        at[count] = i;
        count += counts(x[i]);
    }
    const Index whole = (count + TERMS - 1) / TERMS * TERMS;
    for (Index i = count; i < whole; ++i) {
        value[i] = 0.0f;
        at[i] = 0;
    }
    return whole;
}

// What a rectifier lets through.
INLINE bool is_positive(float x) { return x > 0.0f; }

// out[k] += the sum of value * weight[at, k], eight terms at a time in a tree: the same order for every width of vectors.
INLINE void add_product(const float* value, const Index* at, Index count, const float* weight, Index width,
                        float* __restrict out) {
    for (Index i = 0; i < count; i += TERMS) {
        const float *x = value + i, a = x[0], b = x[1], c = x[2], d = x[3], e = x[4], f = x[5], g = x[6], h = x[7];
        const float *wa = weight + at[i] * width, *wb = weight + at[i + 1] * width, *wc = weight + at[i + 2] * width,
                    *wd = weight + at[i + 3] * width, *we = weight + at[i + 4] * width, *wf = weight + at[i + 5] * width,
                    *wg = weight + at[i + 6] * width, *wh = weight + at[i + 7] * width;
        for (Index k = 0; k < width; ++k) {
            out[k] += ((a * wa[k] + b * wb[k]) + (c * wc[k] + d * wd[k])) +
                      ((e * we[k] + f * wf[k]) + (g * wg[k] + h * wh[k]));
        }
    }
}

// The bits of a float as a whole number that compares as the float does, and back.
INLINE std::int32_t ordered(std::int32_t bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

// 2 to the power of y <= 0, of at least LEAST_POWER: a polynomial that interpolates at Chebyshev nodes (error 2e-8).
INLINE float power_of_two(float y) {
    y = y > LEAST_POWER ? y : LEAST_POWER;
    auto whole = static_cast<std::int32_t>(y);
    whole -= static_cast<float>(whole) > y;
    const float f = y - static_cast<float>(whole);
    float power = 0x1.ca8f0ap-13f * f + 0x1.44d4d2p-10f;
    power = power * f + 0x1.3d54d8p-7f;
    power = power * f + 0x1.c67f5p-5f;
    power = power * f + 0x1.ebfdf2p-3f;
    power = power * f + 0x1.62e428p-1f;
    power = power * f + 1.0f;
    return power * std::bit_cast<float>(static_cast<std::uint32_t>(whole + 127) << 23);
}

// Logits become masses, exp(logit) times the states' shares, but for a common factor; `sums` are their running sums at
// the end of each block. Loops are free of what compilers shy at, so that they do many states at once: the greatest is
// found among whole numbers.
INLINE double to_masses(float* masses, Index width, const float* bias, const float* share, double* sums) {
    for (Index s = 0; s < width; ++s) {
        // Weights that are not finite must not stop the draw: a comparison with NaN is false.
        float x = masses[s] + bias[s];
        x = x > LOWEST ? x : LOWEST;
        x = x < -LOWEST ? x : -LOWEST;
        masses[s] = share[s] > 0.0f ? x : LOWEST;
    }
    std::int32_t greatest = std::numeric_limits<std::int32_t>::min();
    for (Index s = 0; s < width; ++s) {
        const std::int32_t here = ordered(std::bit_cast<std::int32_t>(masses[s]));
        greatest = here > greatest ? here : greatest;
    }
    const float top = std::bit_cast<float>(ordered(greatest));
    for (Index s = 0; s < width; ++s) {
        masses[s] = share[s] * power_of_two((masses[s] - top) * LOG2_E_FLOAT);
    }
    double running = 0.0;
    for (Index b = 0; b < width / BLOCK; ++b) {
        double block[BLOCK];
        for (Index s = 0; s < BLOCK; ++s) {
            block[s] = static_cast<double>(masses[b * BLOCK + s]);
        }
        for (Index half = BLOCK / 2; half > 0; half /= 2) {
            for (Index s = 0; s < half; ++s) {
                block[s] += block[s + half];
            }
        }
        running += block[0];
        sums[b] = running;
    }
    return running;
}

// One feature's layers, and room to work in.
struct Layers {
    const float *inner, *inner_bias, *outer, *outer_bias;
    Index n_hidden, n_head, width;
    float *head, *value;
    Index* at;
};

// The masses of a feature's states, given the sum that it sees; returns the total.
DICOFLEX_CLONES
double weigh_states(const Layers& layers, const float* seen, const float* share, float* masses, double* sums) {
    float* head = layers.head;
    for (Index k = 0; k < layers.n_head; ++k) {
        head[k] = layers.inner_bias[k];
    }
    Index count = gather(seen, layers.n_hidden, is_positive, layers.value, layers.at);
    add_product(layers.value, layers.at, count, layers.inner, layers.n_head, head);
    for (Index k = 0; k < layers.width; ++k) {
        masses[k] = 0.0f;
    }
    count = gather(head, layers.n_head, is_positive, layers.value, layers.at);
    add_product(layers.value, layers.at, count, layers.outer, layers.width, masses);
    return to_masses(masses, layers.width, layers.outer_bias, share, sums);
}

// out += x @ weight, rectified.
DICOFLEX_CLONES
void add_layer(const float* x, Index n, const float* weight, Index width, Actives& actives, float* out) {
    const auto counts = [](float value) { return value != 0.0f; };
    const Index count = gather(x, n, counts, actives.value.data(), actives.at.data());
    add_product(actives.value.data(), actives.at.data(), count, weight, width, out);
    for (Index k = 0; k < width; ++k) {
        out[k] = out[k] > 0.0f ? out[k] : 0.0f;
    }
}

// out = before + (row + x * slope), or without the slope; and kept, if any.
DICOFLEX_CLONES
void tell(const float* before, const float* row, const float* slope, float x, const float* kept, Index n,
          float* __restrict out) {
    if (slope != nullptr) {
        for (Index k = 0; k < n; ++k) {
            out[k] = before[k] + (row[k] + x * slope[k]);
        }
    } else {
        for (Index k = 0; k < n; ++k) {
            out[k] = before[k] + row[k];
        }
    }
    if (kept != nullptr) {
        for (Index k = 0; k < n; ++k) {
            out[k] += kept[k];
        }
    }
}

// What the network knows of one query and its conditions.
void context_of(const Density& density, const Queries& queries, Index i, Actives& actives, std::span<float> out) {
    const auto& [cells, net] = density;
    const Index n = net.n_hidden();
    std::vector<float> sum(static_cast<std::size_t>(n), 0.0f), next(sum);
    for (Index j = 0; j < cells.n_features(); ++j) {
        const Index own = queries.own(i, j);
        const float x = queries.where(i, j);
        const bool sloped = cells.slope_at[j] >= 0 && x != 0.0f;
        const float* slope = sloped ? net.query_slope[cells.slope_at[j] + own].data() : nullptr;
        tell(sum.data(), net.query[cells.offset[j] + own].data(), slope, x, nullptr, n, next.data());
        std::swap(sum, next);
    }
    add_layer(queries.settings[i].data(), queries.settings.columns, net.settings.entries.data(), n, actives, sum.data());
    std::copy(net.trunk_bias.begin(), net.trunk_bias.end(), out.begin());
    add_layer(sum.data(), n, net.trunk.entries.data(), n, actives, out.data());
    for (Index k = 0; k < n; ++k) {
        out[k] += sum[k];
    }
}

// What a feature adds to what later ones see: of its state and, in a cell with several values, its place there.
void tell_state(const Density& density, Index j, Index state, Index own, float where, std::span<const float> before,
                std::span<float> out) {
    const auto& [cells, net] = density;
    const Index cell = state == 0 ? own : state - 1;
    const bool sloped = cells.slope_at[j] >= 0 && where != 0.0f;
    const float* slope = sloped ? net.prefix_slope[cells.slope_at[j] + cell].data() : nullptr;
    const float* kept = state == 0 ? net.prefix_kept[j].data() : nullptr;
    tell(before.data(), net.prefix[cells.offset[j] + cell].data(), slope, where, kept, net.n_hidden(), out.data());
}

Layers layers_of(const Net& net, Index j, std::span<float> head, Actives& actives) {
    return {net.inner[j].data(), net.inner_bias[j].data(), net.outer.data() + net.outer_at[j], net.outer_bias[j].data(),
            net.n_hidden(),      net.n_head(),             net.width(j),                       head.data(),
            actives.value.data(), actives.at.data()};
}

// -- shares of states ----------------------------------------------------------------------------------------------------

// The share of each state that may be drawn when nothing is limited: all but the query's own value.
void open_all(Index own, bool alone, std::span<double> share) {
    std::fill(share.begin(), share.end(), 1.0);
    if (alone) {
        share[own + 1] = 0.0;
    }
}

// Rule keeping out where it is closed; but where nothing is left, keep: such a draw is dropped when finished.
void no_dead_end(std::span<double> share, bool closed) {
    if (closed) {
        share[0] = 0.0;
    }
    if (std::none_of(share.begin(), share.end(), [](double some) { return some > 0.0; })) {
        share[0] = 1.0;
    }
}

// The shares in single precision, what is allowed never 0; 0 for the columns that are no states.
void round_shares(std::span<const double> share, std::span<float> out) {
    std::fill(out.begin(), out.end(), 0.0f);
    for (std::size_t s = 0; s < share.size(); ++s) {
        if (share[s] > 0.0) {
            out[s] = std::max(static_cast<float>(share[s]), LEAST_SHARE);
        }
    }
}

// The last feature that can change, -1 if none can: where a draw that kept all others has to.
Index last_free(std::span<const bool> stuck, std::span<const Index> order) {
    Index last = -1;
    for (const Index j : order) {
        last = stuck[j] ? last : j;
    }
    return last;
}

// -- drawing ---------------------------------------------------------------------------------------------------------

// A value of a whole run or interval; a run lacks the query's own value where `number`, how many may be drawn, is less
// than how many it has.
double anywhere(const Cells& cells, Index j, Index at, Index number, double query, double u) {
    const double low = cells.low[at], high = cells.high[at];
    if (cells.count[at] == 0) {
        return std::min(low + u * (high - low), high);
    }
    Index k = std::min(static_cast<Index>(u * static_cast<double>(number)), number - 1);
    if (number < cells.count[at]) {
        k += k >= cells.place(j, low, query);
    }
    return cells.on_run(j, low, k);
}

// Groups of draws that agree so far: what later features see, how many draws there are, what was changed and spent.
struct Groups {
    std::vector<float> seen;
    std::vector<Index> size, used;
    std::vector<double> spent;

    Groups(Index n, Index n_hidden) : seen(n * n_hidden), size(n), used(n), spent(n) {}
};

// The draws of one query after the other; the room is made once.
class Sampler {
public:
    Sampler(const Density& of, const Queries& asked, const Limits* within, Index n_draws, Index n_fits)
        : density(of), cells(of.cells), net(of.net), queries(asked), limits(within), n(n_draws),
          now(n, net.n_hidden()), next(n, net.n_hidden()), actives(std::max(net.n_hidden(), queries.settings.columns)),
          group(n), state(n), member(n), source(n), live(n), row_of(n), successor(n * net.widest()), ends(n),
          inside(n), density_of(n), masses(n * net.widest()), sums(n * (net.widest() / BLOCK)), total(n),
          base(net.widest()), share(net.widest()), rounded(net.widest()), head(net.n_head()),
          fits(std::make_unique<bool[]>(n_fits)), n_fits(n_fits), many(std::make_unique<bool[]>(net.widest())) {}

    void draw(Index i, std::uint64_t key, std::uint64_t first, Matrix<double> out, std::span<double> log_density) {
        const Index d = cells.n_features(), last = last_free(queries.stuck[i], cells.order);
        const auto stride = static_cast<std::uint64_t>(2 * d);
        std::fill(group.begin(), group.end(), 0);
        std::fill(density_of.begin(), density_of.end(), 1.0);
        std::fill(log_density.begin(), log_density.end(), 0.0);
        now.size[0] = n;
        now.used[0] = member[0] = 0;
        now.spent[0] = 0.0;
        context_of(density, queries, i, actives, std::span(now.seen).first(net.n_hidden()));
        Index n_groups = 1;
        for (const Index j : cells.order) {
            if (queries.stuck(i, j)) {
                keep_all(i, j, out);
            } else {
                weigh(i, j, last, n_groups, out);
                const Stream stream{key, first * stride + static_cast<std::uint64_t>(2 * j), stride};
                pick(j, stream);
                fill(i, j, stream, out, log_density);
            }
            if (j != cells.order.back()) {
                n_groups = part_groups(i, j, n_groups, out);
            }
        }
        for (Index t = 0; t < n; ++t) {
            log_density[t] += log(density_of[t]);
        }
    }

private:
    // A key's numbers for one feature: two for each draw, a stride apart.
    struct Stream {
        std::uint64_t key, first, stride;

        double operator()(Index t, std::uint64_t which) const {
            return uniform(key, first + static_cast<std::uint64_t>(t) * stride + which);
        }
    };

    void keep_all(Index i, Index j, Matrix<double> out) {
        std::fill(state.begin(), state.end(), 0);
        std::fill(inside.begin(), inside.end(), queries.where(i, j));
        for (Index t = 0; t < n; ++t) {
            out(t, j) = queries.values(i, j);
        }
    }

    // The masses of feature j's states, for each group that may change it.
    void weigh(Index i, Index j, Index last, Index n_groups, Matrix<double> out) {
        const Index n_states = cells.size(j) + 1;
        const Index n_live = find_live(i, j, n_groups);
        const auto open = std::span(base).first(n_states), own = std::span(share).first(n_states);
        bool varies = false;
        if (limits == nullptr) {
            open_all(queries.own(i, j), queries.alone(i, j), open);
        } else {
            const Step step{cells, queries, *limits, i, j};
            varies = depends(step);
            open_shares(step, open);
            std::fill(ends.begin(), ends.begin() + n_groups, Ends{limits->bounds.low(i, j), limits->bounds.high(i, j)});
        }
        const bool alike = !varies && j != last;
        const Layers layers = layers_of(net, j, head, actives);
        for (Index k = 0; k < n_live; ++k) {
            const Index r = live[k];
            if (k == 0 || !alike) {
                std::copy(open.begin(), open.end(), own.begin());
                if (varies) {
                    const Step step{cells, queries, *limits, i, j};
                    ends[r] = narrow_shares(step, out[member[r]], now.used[r], now.spent[r], {fits.get(), n_fits}, own);
                }
                no_dead_end(own, j == last && now.used[r] == 0);
                round_shares(own, rounded);
            }
            total[k] = weigh_states(layers, now.seen.data() + r * net.n_hidden(), rounded.data(),
                                    masses.data() + k * net.widest(), sums.data() + k * (net.widest() / BLOCK));
        }
    }

    // How many groups may change feature j: their numbers in `live`, and in `row_of` the place of each, -1 for none.
    Index find_live(Index i, Index j, Index n_groups) {
        Index found = 0;
        for (Index r = 0; r < n_groups; ++r) {
            row_of[r] = -1;
            if (limits == nullptr || !is_spent({cells, queries, *limits, i, j}, now.used[r], now.spent[r])) {
                live[found] = r;
                row_of[r] = found++;
            }
        }
        return found;
    }

    // The state of every draw: the first at which the running sum of its group's masses exceeds a uniform number. A
    // group that can't afford a change keeps.
    void pick(Index j, Stream stream) {
        const Index n_blocks = net.width(j) / BLOCK;
        for (Index t = 0; t < n; ++t) {
            const Index k = row_of[group[t]];
            state[t] = 0;
            if (k < 0) {
                continue;
            }
            const double* sum = sums.data() + k * (net.widest() / BLOCK);
            const float* mass = masses.data() + k * net.widest();
            const double u = stream(t, 0) * total[k];
            Index b = 0;
            while (b < n_blocks - 1 && sum[b] <= u) {
                ++b;
            }
            double running = b > 0 ? sum[b - 1] : 0.0;
            for (Index s = b * BLOCK; s < (b + 1) * BLOCK && running <= u; ++s) {
                if (mass[s] > 0.0f) {
                    state[t] = s;
                    running += static_cast<double>(mass[s]);
                }
            }
            density_of[t] *= static_cast<double>(mass[state[t]]) / total[k];
        }
    }

    // Feature j of every draw, given its state: the value, and where in its cell it lies.
    void fill(Index i, Index j, Stream stream, Matrix<double> out, std::span<double> log_density) {
        const double q = queries.values(i, j);
        const Index own = queries.own(i, j);
        const bool exact = queries.exact(i, j);
        for (Index t = 0; t < n; ++t) {
            if (state[t] == 0) {
                out(t, j) = q;
                inside[t] = queries.where(i, j);
            } else {
                const Index cell = state[t] - 1, at = cells.offset[j] + cell, count = cells.count[at];
                const double low = cells.low[at], high = cells.high[at];
                double drawn = low, size = 1.0;
                if (count != 1 && limits == nullptr) {
                    const Index number = count - (cell == own && exact);
                    drawn = anywhere(cells, j, at, number, q, stream(t, 1));
                    size = size_of(number, low, high);
                } else if (count != 1) {
                    const Step step{cells, queries, *limits, i, j};
                    const Part part = part_of(step, cell, ends[group[t]]);
                    drawn = value_of(step, cell, part, stream(t, 1));
                    size = size_of(part.number, part.low, part.high);
                }
                out(t, j) = drawn;
                inside[t] = high > low ? static_cast<float>((drawn - low) / (high - low)) : 0.0f;
                density_of[t] /= size;
            }
            if (!(SMALLEST < density_of[t] && density_of[t] < GREATEST)) {
                log_density[t] += log(density_of[t]);
                density_of[t] = 1.0;
            }
        }
    }

    // The size of what a value was drawn from: how many values, or how long a stretch.
    static double size_of(Index number, double low, double high) {
        return number > 0 ? static_cast<double>(number) : high > low ? high - low : 1.0;
    }

    // Put draws that agree so far into one group; returns how many there are.
    Index part_groups(Index i, Index j, Index n_groups, Matrix<double> out) {
        const Index found = regroup(j, n_groups);
        const Index own = queries.own(i, j), n_hidden = net.n_hidden();
        for (Index g = 0; g < found; ++g) {
            const Index r = source[g], t = member[g];
            tell_state(density, j, state[t], own, inside[t], {now.seen.data() + r * n_hidden, std::size_t(n_hidden)},
                       {next.seen.data() + g * n_hidden, std::size_t(n_hidden)});
            next.used[g] = now.used[r] + (state[t] > 0);
            next.spent[g] = now.spent[r];
            if (limits != nullptr && state[t] > 0) {
                next.spent[g] += cost(out(t, j), queries.values(i, j), limits->bounds.fixed[j], limits->bounds.unit[j]);
            }
        }
        std::swap(now, next);
        return found;
    }

    // Which group each draw is in after feature j; of each new one the old group, and one of its draws. Draws of a state
    // with several values part.
    Index regroup(Index j, Index n_groups) {
        const Index n_states = cells.size(j) + 1, widest = net.widest();
        many[0] = false;
        for (Index s = 1; s < n_states; ++s) {
            many[s] = cells.count[cells.offset[j] + s - 1] != 1;
        }
        for (Index r = 0; r < n_groups; ++r) {
            if (now.size[r] > 1) {
                std::fill_n(successor.begin() + r * widest, n_states, -1);
            }
        }
        Index found = 0;
        for (Index t = 0; t < n; ++t) {
            const Index r = group[t], s = state[t];
            if (now.size[r] > 1 && !many[s]) {
                std::int32_t& joined = successor[r * widest + s];
                if (joined >= 0) {
                    group[t] = joined;
                    ++next.size[joined];
                    continue;
                }
                joined = static_cast<std::int32_t>(found);
            }
            source[found] = r;
            member[found] = t;
            next.size[found] = 1;
            group[t] = found++;
        }
        return found;
    }

    const Density& density;
    const Cells& cells;
    const Net& net;
    const Queries& queries;
    const Limits* limits;
    Index n;
    Groups now, next;
    Actives actives;
    std::vector<Index> group, state, member, source, live, row_of;
    std::vector<std::int32_t> successor;
    std::vector<Ends> ends;
    std::vector<float> inside;
    std::vector<double> density_of;
    std::vector<float> masses;
    std::vector<double> sums, total, base, share;
    std::vector<float> rounded, head;
    std::unique_ptr<bool[]> fits;
    std::size_t n_fits;
    std::unique_ptr<bool[]> many;
};

// -- scoring ---------------------------------------------------------------------------------------------------------

// The row among those before i, of the same query, that begins like it for longest, -1 if there is none; and for how many
// features.
std::pair<Index, Index> likest(const Answers& answers, std::span<const Index> order, Index i, Index low) {
    Index found = -1, longest = -1;
    for (Index other = std::max(low, i - RECALLED + 1); other < i; ++other) {
        if (answers.of[other] != answers.of[i]) {
            continue;
        }
        Index alike = 0;
        for (const Index j : order) {
            if (answers.kept(other, j) != answers.kept(i, j) || answers.cell(other, j) != answers.cell(i, j) ||
                answers.where(other, j) != answers.where(i, j)) {
                break;
            }
            ++alike;
        }
        if (alike > longest) {
            found = other;
            longest = alike;
        }
    }
    return {found, std::max<Index>(longest, 0)};
}

}  // namespace

void draw(const Density& density, const Queries& queries, const Limits* limits, std::span<const std::uint64_t> keys,
          std::span<const std::uint64_t> first, Index low, Index high, Index n_draws, std::span<double> out,
          std::span<double> log_density) {
    const Index d = density.cells.n_features();
    const Index n_levels = limits != nullptr && limits->rules ? limits->rules->levels.columns : 0;
    Sampler sampler(density, queries, limits, n_draws, std::max(density.net.widest(), n_levels));
    for (Index i = low; i < high; ++i) {
        sampler.draw(i, keys[i], first[i], {out.subspan(i * n_draws * d, n_draws * d), d},
                     log_density.subspan(i * n_draws, n_draws));
    }
}

void score(const Density& density, const Queries& queries, const Answers& answers, Index low, Index high,
           std::span<double> out) {
    const auto& [cells, net] = density;
    const Index d = cells.n_features(), n_hidden = net.n_hidden(), recalled = std::min(RECALLED, high - low);
    std::vector<double> share(net.widest()), sums(net.widest() / BLOCK);
    std::vector<float> rounded(net.widest()), masses(net.widest()), head(net.n_head());
    Actives actives(std::max(n_hidden, queries.settings.columns));
    // Of each of the last rows what each of its features sees, the sum up to it, and whether one changed.
    std::vector<float> seen(recalled * (d + 1) * n_hidden);
    std::vector<double> so_far(recalled * (d + 1));
    std::vector<char> changed(recalled * (d + 1));
    const auto seen_at = [&](Index at) {
        return std::span(seen).subspan(at * n_hidden, n_hidden);
    };
    for (Index i = low; i < high; ++i) {
        const Index q = answers.of[i], start = (i - low) % recalled * (d + 1);
        const Index last = last_free(queries.stuck[q], cells.order);
        const auto [like, first] = likest(answers, cells.order, i, low);
        if (like < 0) {
            context_of(density, queries, q, actives, seen_at(start));
            so_far[start] = 0.0;
            changed[start] = false;
        } else {
            const Index other = (like - low) % recalled * (d + 1);
            std::copy_n(seen.begin() + other * n_hidden, (first + 1) * n_hidden, seen.begin() + start * n_hidden);
            std::copy_n(so_far.begin() + other, first + 1, so_far.begin() + start);
            std::copy_n(changed.begin() + other, first + 1, changed.begin() + start);
        }
        for (Index k = first; k < d; ++k) {
            const Index j = cells.order[k], at = start + k;
            const Index state = answers.kept(i, j) ? 0 : answers.cell(i, j) + 1;
            double more = 0.0;
            bool moved = changed[at];
            if (!queries.stuck(q, j)) {
                const auto own = std::span(share).first(cells.size(j) + 1);
                open_all(queries.own(q, j), queries.alone(q, j), own);
                no_dead_end(own, j == last && !moved);
                round_shares(own, rounded);
                const double total = weigh_states(layers_of(net, j, head, actives), seen_at(at).data(), rounded.data(),
                                                  masses.data(), sums.data());
                more = masses[state] > 0.0f ? log(static_cast<double>(masses[state]) / total)
                                            : -std::numeric_limits<double>::infinity();
                moved = moved || state > 0;
            }
            so_far[at + 1] = so_far[at] + more;
            changed[at + 1] = moved;
            tell_state(density, j, state, answers.cell(i, j), answers.where(i, j), seen_at(at), seen_at(at + 1));
        }
        out[i] = so_far[start + d];
    }
}

}  // namespace dicoflex
