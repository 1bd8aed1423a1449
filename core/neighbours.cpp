#include "neighbours.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "clones.hpp"
#include "numeric.hpp"

namespace dicoflex {
namespace {

// Leaves visited in the order of their bounds; to sort the others costs more than it saves.
constexpr int BEST_FIRST = 4;
// Pairs of rows that are looked at to choose the column along which rows are halved.
constexpr std::int64_t PAIRS = 128;
constexpr double MISMATCH = 2.0;
// Below this exponent a small difference counts nearly as much as a large one: how many there are is a good bound.
constexpr float COUNTING = 0.5f;
// With so few rows left of a leaf, measuring them is faster than bounding all of them once more.
constexpr int FEW = 2;
// Counts are sums in int16, far from overflow. OUT marks a row that may not be found.
constexpr double MAX_COUNT = 15000.0, MAX_COUNTED_WEIGHT = 256.0;
constexpr std::int16_t OUT = 16000;
// Bounds are sums in float. Numbers, weights and powers are cut to these sizes, which can only lower a bound, so that
// none reaches FAR. GONE marks what has been looked at.
constexpr double MAX_NUMBER = 1e9, MAX_WEIGHT = 1e12;
constexpr float MAX_LOG = 60.0f, FAR = 1e36f, GONE = 1e37f;
// The error of a difference of floats relative to the anchor's number; and of a bound relative to the distance.
constexpr float ROUNDING = 0x1p-22f, UNDERFLOW_LIMIT = 0x1p-120f;
constexpr double SLACK = 3e-5;

// One anchor as bounds need it: numbers and weights as floats, and counted weights in units of `unit`.
struct Aim {
    std::vector<float> near, code_weight, number_weight, least;
    std::vector<std::int16_t> counted;
    float unit = 1.0f, p = 2.0f;
};

// What one leaf's rows are worked on in.
struct Workspace {
    alignas(64) std::int16_t counts[LEAF];
    alignas(64) float sums[LEAF];
    alignas(64) float sorted[LEAF];
};

// How far the nearest other of values[low, high) is from `value`; 0 if there is none.
double nearest_other(const double* values, std::int64_t low, std::int64_t high, double value) {
    std::int64_t at = low;
    for (std::int64_t n = high - low; n > 1; n -= n / 2) {
        at = values[at + n / 2] <= value ? at + n / 2 : at;
    }
    double gap = std::numeric_limits<double>::infinity();
    for (std::int64_t j = std::max(low, at - 1); j < std::min(high, at + 2); ++j) {
        if (values[j] != value) {
            gap = std::min(gap, std::abs(values[j] - value));
        }
    }
    return gap < std::numeric_limits<double>::infinity() ? gap : 0.0;
}

// Fill in the weights as whole numbers, rounded down; what one of them stands for is a power of two.
void to_counts(Aim& aim) {
    double total = 1.0;
    for (const auto* weights : {&aim.code_weight, &aim.least}) {
        for (const float weight : *weights) {
            total += std::min(static_cast<double>(weight), MAX_COUNTED_WEIGHT);
        }
    }
    double unit = 1.0;
    while (unit * MAX_COUNT < total) {
        unit *= 2.0;
    }
    while (0.5 * unit * MAX_COUNT >= total) {
        unit *= 0.5;
    }
    auto* out = aim.counted.data();
    for (const auto* weights : {&aim.code_weight, &aim.least}) {
        for (const float weight : *weights) {
            *out++ = static_cast<std::int16_t>(std::min(static_cast<double>(weight), MAX_COUNTED_WEIGHT) / unit);
        }
    }
    aim.unit = static_cast<float>(unit);
}

void aim_at(std::int64_t i, const Anchors& anchors, const Leaves& leaves, Aim& aim) {
    const int d = leaves.n_numbers;
    const double* numbers = anchors.numbers + i * d;
    const double* weight = anchors.number_weight + i * d;
    const std::int64_t* edges = leaves.edges + anchors.target[i] * (d + 1);
    aim.p = static_cast<float>(anchors.p[i]);
    for (int c = 0; c < d; ++c) {
        aim.near[c] = static_cast<float>(std::min(std::max(numbers[c], -MAX_NUMBER), MAX_NUMBER));
        aim.number_weight[c] = static_cast<float>(std::min(weight[c], MAX_WEIGHT));
        aim.least[c] = 0.0f;
        if (anchors.p[i] < COUNTING) {
            const double gap = nearest_other(leaves.values, edges[c], edges[c + 1], numbers[c]);
            aim.least[c] = static_cast<float>(std::min(weight[c] * power(gap, anchors.p[i]), MAX_WEIGHT));
        }
    }
    for (int c = 0; c < leaves.n_codes; ++c) {
        aim.code_weight[c] = static_cast<float>(std::min(anchors.code_weight[i * leaves.n_codes + c], MAX_WEIGHT));
    }
    to_counts(aim);
}

// log2 x: the exponent of x, plus a polynomial of its significand in [sqrt 1/2, sqrt 2) (error 1e-6).
INLINE float log2_bound(float x) {
    const auto bits = std::bit_cast<std::int32_t>(x);
    const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
    const auto shifted = static_cast<std::uint32_t>(bits) - (static_cast<std::uint32_t>(exponent) << 23);
    const float u = std::bit_cast<float>(shifted) - 1.0f;
    float log = 0.16818659f * u - 0.26796387f;
    log = log * u + 0.29611956f;
    log = log * u - 0.35952446f;
    log = log * u + 0.48061313f;
    log = log * u - 0.72136018f;
    log = log * u + 1.44269652f;
    return log * u + static_cast<float>(exponent);
}

// 2^x, or 0 below the range of float: a polynomial of what x is off the next whole number (error 1e-7).
INLINE float exp2_bound(float x) {
    const float inside = x > -126.0f ? x : -126.0f;
    const float shifted = inside + 126.5f;  // positive, so that cutting it off is rounding down
    const auto whole = static_cast<std::int32_t>(shifted) - 126;
    const float u = inside - static_cast<float>(whole);
    float power = 0.0013390863f * u + 0.0096760319f;
    power = power * u + 0.0555035711f;
    power = power * u + 0.2402210749f;
    power = power * u + 0.6931471880f;
    power = power * u + 1.0000000755f;
    const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(whole + 127) << 23);
    return x > -126.0f ? power * scale : 0.0f;
}

// x^p for x >= 0, in steps that a compiler can do for many x at once.
INLINE float power_bound(float x, float p) {
    const float exponent = p * log2_bound(x);
    const float power = exp2_bound(exponent < MAX_LOG ? exponent : MAX_LOG);
    return x >= UNDERFLOW_LIMIT ? power : 0.0f;
}

INLINE float larger(float a, float b) { return a > b ? a : b; }

// sums[r] += weight * gap(r)^p for r < n.
template <typename Gap>
INLINE void add_powers(float* sums, int n, float weight, float p, Gap gap) {
    if (p == 2.0f) {
        for (int r = 0; r < n; ++r) {
            const float x = gap(r);
            sums[r] += weight * (x * x);
        }
    } else if (p == 1.0f) {
        for (int r = 0; r < n; ++r) {
            sums[r] += weight * gap(r);
        }
    } else {
        for (int r = 0; r < n; ++r) {
            sums[r] += weight * power_bound(gap(r), p);
        }
    }
}

// Fill in how far each leaf of a class is at least.
INLINE void bound_leaves(float* bounds, std::int64_t first, int n, const std::int32_t* code, const Aim& aim,
                         const Leaves& leaves) {
    std::fill(bounds, bounds + n, 0.0f);
    for (int c = 0; c < leaves.n_codes; ++c) {
        const std::uint32_t* levels = leaves.levels + static_cast<std::int64_t>(c) * leaves.n_leaves + first;
        const std::uint32_t bit = 1u << (static_cast<std::uint32_t>(code[c]) & 31u);
        const float weight = aim.code_weight[c];
        for (int leaf = 0; leaf < n; ++leaf) {
            bounds[leaf] += (levels[leaf] & bit) == 0u ? weight : 0.0f;
        }
    }
    for (int c = 0; c < leaves.n_numbers; ++c) {
        const float* low = leaves.low + static_cast<std::int64_t>(c) * leaves.n_leaves + first;
        const float* high = leaves.high + static_cast<std::int64_t>(c) * leaves.n_leaves + first;
        const float value = aim.near[c];
        if (aim.p < COUNTING) {
            const float weight = aim.least[c];
            for (int leaf = 0; leaf < n; ++leaf) {
                bounds[leaf] += ((value < low[leaf]) | (value > high[leaf])) ? weight : 0.0f;
            }
        } else {
            const float doubt = ROUNDING * std::abs(value) + UNDERFLOW_LIMIT;
            add_powers(bounds, n, aim.number_weight[c], aim.p, [=](int leaf) {
                return larger(larger(low[leaf] - value, value - high[leaf]) - doubt, 0.0f);
            });
        }
    }
}

// Add the weights of the columns from `begin` to `end` in which a leaf's rows differ.
INLINE void count(std::int16_t* counts, const std::int16_t* keys, const std::int16_t* key, const std::int16_t* weight,
                  int begin, int end) {
    for (int c = begin; c < end; ++c) {
        const std::int16_t mine = key[c], heavy = weight[c];
        const std::int16_t* theirs = keys + static_cast<std::int64_t>(c) * LEAF;
        for (int r = 0; r < LEAF; ++r) {
            counts[r] = static_cast<std::int16_t>(counts[r] + (theirs[r] != mine ? heavy : 0));
        }
    }
}

// How many of a leaf's bounds are within a limit.
template <typename Number>
INLINE int within(const Number* bounds, Number limit) {
    std::int16_t n = 0;
    for (int r = 0; r < LEAF; ++r) {
        n = static_cast<std::int16_t>(n + (bounds[r] <= limit ? 1 : 0));
    }
    return n;
}

INLINE void to_sums(Workspace& work, float unit) {
    for (int r = 0; r < LEAF; ++r) {
        work.sums[r] = work.counts[r] < OUT ? unit * static_cast<float>(work.counts[r]) : GONE;
    }
}

// Bound a leaf's rows in `work.sums`; whether any is within the limit.
INLINE bool bound_rows(std::int64_t leaf, std::int64_t i, const Anchors& anchors, const Leaves& leaves, const Aim& aim,
                       float limit, Workspace& work) {
    const int width = leaves.n_codes + leaves.n_numbers;
    const std::int16_t* key = anchors.keys + i * width;
    const std::int16_t* keys = leaves.keys + leaf * width * LEAF;
    const auto most = static_cast<std::int16_t>(std::min(static_cast<double>(limit / aim.unit), MAX_COUNT));
    const bool whole = leaves.last[leaf] < anchors.stop[i];
    for (int r = 0; r < LEAF; ++r) {
        work.counts[r] = whole || leaves.positions[leaf * LEAF + r] < anchors.stop[i] ? 0 : OUT;
    }
    count(work.counts, keys, key, aim.counted.data(), 0, leaves.n_codes);
    if (within(work.counts, most) == 0) {
        return false;
    }
    to_sums(work, aim.unit);
    if (aim.p < COUNTING) {
        count(work.counts, keys, key, aim.counted.data(), leaves.n_codes, width);
        const int left = within(work.counts, most);
        if (left <= FEW) {
            to_sums(work, aim.unit);
            return left > 0;
        }
    }
    for (int c = 0; c < leaves.n_numbers; ++c) {
        const float* near = leaves.near + (leaf * leaves.n_numbers + c) * LEAF;
        const float value = aim.near[c], doubt = ROUNDING * std::abs(value) + UNDERFLOW_LIMIT;
        add_powers(work.sums, LEAF, aim.number_weight[c], aim.p,
                   [=](int r) { return larger(std::abs(near[r] - value) - doubt, 0.0f); });
    }
    return within(work.sums, limit) > 0;
}

// What the paper defines, between a row and anchor `i`.
INLINE double distance(std::int64_t row, std::int64_t i, const Anchors& anchors, const Leaves& leaves) {
    double total = 0.0;
    for (int c = 0; c < leaves.n_codes; ++c) {
        const std::int64_t at = i * leaves.n_codes + c;
        total += leaves.codes[row * leaves.n_codes + c] != anchors.codes[at] ? anchors.code_weight[at] : 0.0;
    }
    for (int c = 0; c < leaves.n_numbers; ++c) {
        const std::int64_t at = i * leaves.n_numbers + c;
        const double gap = leaves.numbers[row * leaves.n_numbers + c] - anchors.numbers[at];
        total += anchors.number_weight[at] * power(gap, anchors.p[i]);
    }
    return total;
}

// Keep the two arrays sorted by distance, then position; what comes last is dropped.
INLINE void insert(double distance, std::int64_t position, int k, double* distances, std::int64_t* positions) {
    int i = k;
    while (i > 0 && (distances[i - 1] > distance || (distances[i - 1] == distance && positions[i - 1] > position))) {
        --i;
        if (i + 1 < k) {
            distances[i + 1] = distances[i];
            positions[i + 1] = positions[i];
        }
    }
    if (i < k) {
        distances[i] = distance;
        positions[i] = position;
    }
}

// Measure the rows of a leaf whose bounds are within the limit, and return the limit of the next leaf.
INLINE float measure_rows(std::int64_t leaf, std::int64_t i, const Anchors& anchors, const Leaves& leaves, float* sums,
                          float limit, double slack, int k, std::int64_t* positions, double* distances) {
    for (int r = 0; r < LEAF; ++r) {
        if (sums[r] > limit) {
            continue;
        }
        sums[r] = GONE;
        const std::int32_t position = leaves.positions[leaf * LEAF + r];
        if (position < anchors.stop[i]) {
            insert(distance(leaf * LEAF + r, i, anchors, leaves), position, k, distances, positions);
            limit = std::min(limit, static_cast<float>(std::min(slack * distances[k - 1], static_cast<double>(FAR))));
        }
    }
    return static_cast<float>(std::min(slack * distances[k - 1], static_cast<double>(FAR)));
}

// The k-th least of a leaf's sums.
INLINE float kth(Workspace& work, int k) {
    if (k > LEAF) {
        return GONE;
    }
    float* least = work.sorted;
    for (int r = 0; r < LEAF; ++r) {
        int at = std::min(r, k - 1);
        if (r >= k && work.sums[r] >= least[at]) {
            continue;
        }
        while (at > 0 && least[at - 1] > work.sums[r]) {
            least[at] = least[at - 1];
            --at;
        }
        least[at] = work.sums[r];
    }
    return least[k - 1];
}

// Where the least of some floats stands that are not negative: their bits have the same order, and vectors of them.
INLINE int lowest(const float* bounds, int n) {
    auto least = std::bit_cast<std::int32_t>(bounds[0]);
    for (int leaf = 1; leaf < n; ++leaf) {
        const auto bits = std::bit_cast<std::int32_t>(bounds[leaf]);
        least = bits < least ? bits : least;
    }
    int leaf = 0;
    while (std::bit_cast<std::int32_t>(bounds[leaf]) != least) {
        ++leaf;
    }
    return leaf;
}

// Look at the leaves of the anchor's class that may hold something nearer than the k-th best.
DICOFLEX_CLONES void visit(std::int64_t i, const Anchors& anchors, const Leaves& leaves, const Aim& aim,
                           Workspace& work, float* bounds, int k, std::int64_t* positions, double* distances) {
    const std::int64_t first = leaves.first[anchors.target[i]];
    const auto n = static_cast<int>(leaves.first[anchors.target[i] + 1] - first);
    bound_leaves(bounds, first, n, anchors.codes + i * leaves.n_codes, aim, leaves);
    const double slack = 1.0 + SLACK * (1.0 + aim.p) + static_cast<double>(ROUNDING) * leaves.n_numbers;
    const int early = std::min(BEST_FIRST, n);
    float limit = FAR;
    for (int turn = 0; turn < early + n; ++turn) {
        const int leaf = turn < early ? lowest(bounds, n) : turn - early;
        if (bounds[leaf] > limit) {
            continue;
        }
        bounds[leaf] = GONE;
        if (!bound_rows(first + leaf, i, anchors, leaves, aim, limit, work)) {
            continue;
        }
        if (limit == FAR) {  // nothing to go by yet: the rows with the least bounds come before the others
            const float nearest = std::min(kth(work, k), FAR);
            limit = measure_rows(first + leaf, i, anchors, leaves, work.sums, nearest, slack, k, positions, distances);
        }
        limit = measure_rows(first + leaf, i, anchors, leaves, work.sums, limit, slack, k, positions, distances);
    }
}

// The column in which two of the rows are farthest apart on average, for p = 1; judged by some pairs.
std::int64_t widest(const std::int64_t* rows, std::int64_t count, const double* columns, std::int64_t n_rows,
                    std::int64_t n_columns, std::int64_t n_codes) {
    std::int64_t best = 0;
    double most = -1.0;
    for (std::int64_t c = 0; c < n_columns; ++c) {
        const double* column = columns + c * n_rows;
        double apart = 0.0;
        for (std::int64_t i = 0; i < PAIRS; ++i) {  // multiples of two primes: as good as random
            const double gap = std::abs(column[rows[i * 7919 % count]] - column[rows[(i + 1) * 104729 % count]]);
            apart += c >= n_codes ? gap : (gap > 0.0 ? MISMATCH : 0.0);
        }
        if (apart > most) {
            best = c;
            most = apart;
        }
    }
    return best;
}

// Where to halve sorted rows: at a change of value in the middle two thirds, else so that leaves are full.
std::int64_t middle_of(const std::int64_t* rows, std::int64_t n, const double* column) {
    for (std::int64_t step = 0; step < n / 3; ++step) {
        for (const std::int64_t at : {n / 2 - step, n / 2 + step}) {
            if (column[rows[at - 1]] != column[rows[at]]) {
                return at;
            }
        }
    }
    return (n / LEAF + 1) / 2 * LEAF;
}

}  // namespace

void search(const Leaves& leaves, const Anchors& anchors, std::int64_t low, std::int64_t high, int k,
            std::int64_t* positions, double* distances) {
    Aim aim;
    aim.near.resize(leaves.n_numbers);
    aim.number_weight.resize(leaves.n_numbers);
    aim.least.resize(leaves.n_numbers);
    aim.code_weight.resize(leaves.n_codes);
    aim.counted.resize(leaves.n_codes + leaves.n_numbers);
    Workspace work;
    std::vector<float> bounds(leaves.n_leaves);
    for (std::int64_t i = low; i < high; ++i) {
        aim_at(i, anchors, leaves, aim);
        visit(i, anchors, leaves, aim, work, bounds.data(), k, positions + i * k, distances + i * k);
    }
}

void sort_alike(std::int64_t* order, bool* begins, std::int64_t count, const double* columns, std::int64_t n_rows,
                std::int64_t n_columns, std::int64_t n_codes) {
    std::vector<std::pair<std::int64_t, std::int64_t>> pending = {{0, count}};
    while (!pending.empty()) {
        const auto [low, high] = pending.back();
        pending.pop_back();
        const std::int64_t n = high - low;
        if (n <= LEAF) {
            if (n > 0) {
                begins[low] = true;
            }
            continue;
        }
        std::int64_t* rows = order + low;
        const double* column = columns + widest(rows, n, columns, n_rows, n_columns, n_codes) * n_rows;
        std::stable_sort(rows, rows + n, [column](std::int64_t a, std::int64_t b) { return column[a] < column[b]; });
        const std::int64_t middle = low + middle_of(rows, n, column);
        pending.emplace_back(low, middle);
        pending.emplace_back(middle, high);
    }
}

}  // namespace dicoflex
