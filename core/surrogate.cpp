#include "surrogate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "lanes.hpp"
#include "numeric.hpp"
#include "values.hpp"

namespace dicoflex {
namespace {

// Standardised numbers are held within ten deviations: one absurd value must not swamp the others.
constexpr float BOUND = 10.0f;

// out = a + b
template <typename Number>
INLINE void add_up(const Number* a, const Number* b, std::size_t n, Number* out) {
    for (std::size_t k = 0; k < n; ++k) {
        out[k] = a[k] + b[k];
    }
}

// What feature j tells: x times the weights of its number, and the weights of its level.
template <typename Number>
INLINE void tell(const RealPlaces& places, std::size_t j, double value, Number x, const Number* weight,
                 std::size_t width, Number* out) {
    if (places.number_at[j] >= 0) {
        const Number* own = weight + static_cast<std::size_t>(places.number_at[j]) * width;
        for (std::size_t k = 0; k < width; ++k) {
            out[k] = x * own[k];
        }
    } else {
        std::fill(out, out + width, Number{0});
    }
    if (places.level_at[j] >= 0) {
        const auto level = places.is_pair[j] ? static_cast<std::int64_t>(std::isnan(value)) : code_of(value);
        const Number* own = weight + static_cast<std::size_t>(places.level_at[j] + level) * width;
        for (std::size_t k = 0; k < width; ++k) {
            out[k] += own[k];
        }
    }
}

// Bring the sums of a first layer up to date: of the features that moved, or of all.
template <typename Number, typename Input>
INLINE void hear(const RealPlaces& places, std::span<const double> row, std::span<const std::int32_t> moved,
                 const Number* weight, Input input, FirstLayer<Number>& layer) {
    const std::size_t d = row.size(), width = layer.width;
    Number* sums = layer.sums.data();
    for (const std::int32_t feature : moved) {
        const auto j = static_cast<std::size_t>(feature);
        tell(places, j, row[j], input(j, row[j]), weight, width, sums + (d + j) * width);
    }
    const auto join = [=](std::size_t node) {
        add_up(sums + 2 * node * width, sums + (2 * node + 1) * width, width, sums + node * width);
    };
    if (moved.size() * static_cast<std::size_t>(std::bit_width(d)) >= d) {
        for (std::size_t node = d - 1; node >= 1; --node) {
            join(node);
        }
        return;
    }
    for (const std::int32_t feature : moved) {
        for (std::size_t node = (d + static_cast<std::size_t>(feature)) / 2; node >= 1; node /= 2) {
            join(node);
        }
    }
}

DICOFLEX_CLONES void run_perceptron(const Perceptron& net, std::span<const double> row,
                                    std::span<const std::int32_t> moved, SurrogateWork& work) {
    const auto standard = [&net](std::size_t j, double value) {
        if (std::isnan(value)) {
            return 0.0f;
        }
        return std::min(std::max(static_cast<float>((value - net.mean[j]) / net.scale[j]), -BOUND), BOUND);
    };
    const std::size_t n_first = net.b0.size(), n_second = net.b1.size();
    hear(net.places, row, moved, net.w0.data(), standard, work.heard);
    float *first = work.first.data(), *second = work.second.data();
    add_up(net.b0.data(), work.heard.sums.data() + n_first, n_first, first);
    std::copy(net.b1.begin(), net.b1.end(), second);
    add_rectified(first, n_first, net.w1.data(), n_second, second, n_second, work.rectified.data());
    for (std::size_t k = 0; k < n_second; ++k) {
        second[k] = second[k] > 0.0f ? second[k] : 0.0f;
    }
    for (std::size_t c = 0; c < net.b2.size(); ++c) {
        const float score = net.b2[c] + dot(second, net.w2.data() + c * n_second, n_second);
        work.scores[c] = static_cast<double>(score);
    }
}

double activated(double x, std::int64_t activation) {
    switch (activation) {
        case RELU: return x > 0.0 ? x : 0.0;
        case TANH: return tanh(x);
        case LOGISTIC: return 1.0 / (1.0 + exp(-x));
        default: return x;
    }
}

DICOFLEX_CLONES void add_layer(const double* from, std::size_t n, const double* weight, double* to, std::size_t m) {
    for (std::size_t i = 0; i < n; ++i) {
        const double x = from[i];
        if (x != 0.0) {
            for (std::size_t k = 0; k < m; ++k) {
                to[k] += x * weight[i * m + k];
            }
        }
    }
}

void run_network(const Network& net, std::span<const double> row, std::span<const std::int32_t> moved,
                 SurrogateWork& work) {
    const auto as_it_is = [](std::size_t, double value) { return std::isnan(value) ? 0.0 : value; };
    hear(net.places, row, moved, net.weight.data(), as_it_is, work.heard_network);
    const auto reals = static_cast<std::size_t>(net.size[0]), width = static_cast<std::size_t>(net.size[1]);
    const double *weight = net.weight.data() + reals * width, *bias = net.bias.data() + width;
    add_up(net.bias.data(), work.heard_network.sums.data() + width, width, work.units.data());
    for (std::size_t layer = 1; layer + 1 < net.size.size(); ++layer) {
        const auto n = static_cast<std::size_t>(net.size[layer]), m = static_cast<std::size_t>(net.size[layer + 1]);
        for (std::size_t i = 0; i < n; ++i) {
            work.units[i] = activated(work.units[i], net.activation);
        }
        std::copy(bias, bias + m, work.units_next.begin());
        add_layer(work.units.data(), n, weight, work.units_next.data(), m);
        std::swap(work.units, work.units_next);
        weight += n * m;
        bias += m;
    }
    std::copy_n(work.units.begin(), net.n_scores(), work.scores.begin());
}

// More features times trees than these are not remembered: it would take more memory than it saves time.
constexpr std::size_t MOST_REMEMBERED = std::size_t{1} << 22;

// Follow a tree to its leaf, and show every step to `see`: the feature, the threshold, whether it went left.
template <typename See>
INLINE double walk(const Trees& trees, std::size_t t, std::span<const double> row, See see) {
    const TreeNode* node = &trees.nodes[static_cast<std::size_t>(trees.start[t])];
    while (node->feature >= 0) {
        const auto j = static_cast<std::size_t>(node->feature);
        const double x = row[j];
        const bool go_left = std::isnan(x) ? node->missing_left : x <= node->threshold;
        see(j, node->threshold, go_left);
        node = &trees.nodes[static_cast<std::size_t>(go_left ? node->left : node->right)];
    }
    return node->threshold;
}

// Mark the trees that may not come to the leaf they come to at rest, where feature j has another value.
DICOFLEX_CLONES void mark_elsewhere(const TreesAtRest& rest, std::size_t j, double value,
                                    std::vector<std::uint8_t>& marks) {
    const std::size_t n = marks.size();
    const double *above = rest.above.data() + j * n, *upto = rest.upto.data() + j * n;
    const std::uint8_t* reads = rest.reads.data() + j * n;
    std::uint8_t* out = marks.data();
    if (std::isnan(value) || std::isnan(rest.row[j])) {
        for (std::size_t t = 0; t < n; ++t) {
            out[t] |= reads[t];
        }
        return;
    }
    for (std::size_t t = 0; t < n; ++t) {
        out[t] |= static_cast<std::uint8_t>((value <= above[t]) | (value > upto[t]));
    }
}

// Mark the trees that may say something else of a row than at rest.
void compare_with_rest(std::span<const double> row, SurrogateWork& work) {
    std::fill(work.elsewhere.begin(), work.elsewhere.end(), static_cast<std::uint8_t>(!work.rest.known));
    for (std::size_t j = 0; work.rest.known && j < row.size(); ++j) {
        if (differ(row[j], work.rest.row[j])) {
            mark_elsewhere(work.rest, j, row[j], work.elsewhere);
        }
    }
}

// Add up what trees say, four sums side by side, as trees stand one score after the other.
void add_leaves(const Trees& trees, std::span<const double> leaf, std::span<double> scores) {
    const std::size_t n = trees.n_scores(), n_trees = leaf.size();
    for (std::size_t k = 0; k < n; ++k) {
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        std::size_t t = k;
        for (; t + 3 * n < n_trees; t += 4 * n) {
            for (std::size_t s = 0; s < 4; ++s) {
                sums[s] += leaf[t + s * n];
            }
        }
        for (; t < n_trees; t += n) {
            sums[0] += leaf[t];
        }
        scores[k] = trees.baseline[k] + ((sums[0] + sums[2]) + (sums[1] + sums[3]));
    }
}

void run_trees(const Trees& trees, std::span<const double> row, SurrogateWork& work) {
    compare_with_rest(row, work);
    if (work.rest.known) {
        std::copy(work.rest.leaf.begin(), work.rest.leaf.end(), work.leaf.begin());
    }
    for (std::size_t t = 0; t < work.leaf.size(); ++t) {
        if (work.elsewhere[t]) {
            work.leaf[t] = walk(trees, t, row, [](std::size_t, double, bool) {});
        }
    }
    add_leaves(trees, work.leaf, work.scores);
}

// Remember what tree t says of a row, and what may move before it says something else.
void settle_tree(const Trees& trees, std::size_t t, std::span<const double> row, TreesAtRest& rest) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const std::size_t n = rest.leaf.size();
    std::int32_t* path = rest.path.data() + trees.path_at[t];
    for (std::int64_t k = 0; k < rest.n_path[t]; ++k) {
        const std::size_t at = static_cast<std::size_t>(path[k]) * n + t;
        rest.above[at] = -inf;
        rest.upto[at] = inf;
        rest.reads[at] = 0;
    }
    std::int64_t length = 0;
    rest.leaf[t] = walk(trees, t, row, [&](std::size_t j, double threshold, bool left) {
        const std::size_t at = j * n + t;
        (left ? rest.upto : rest.above)[at] =
            left ? std::min(rest.upto[at], threshold) : std::max(rest.above[at], threshold);
        rest.reads[at] = 1;
        path[length++] = static_cast<std::int32_t>(j);
    });
    rest.n_path[t] = length;
}

// The probabilities of logits; one is that of the second of two classes.
void share(std::span<const double> scores, std::span<double> chances) {
    const bool single = scores.size() == 1;
    const double top = single ? std::max(0.0, scores[0]) : *std::max_element(scores.begin(), scores.end());
    double total = 0.0;
    for (std::size_t c = 0; c < chances.size(); ++c) {
        const double score = single ? (c == 0 ? 0.0 : scores[0]) : scores[c];
        chances[c] = score == top ? 1.0 : exp(score - top);
        total += chances[c];
    }
    for (double& chance : chances) {
        chance /= total;
    }
}

void average(const Trees& trees, std::span<const double> scores, std::span<double> chances) {
    if (scores.size() == 1) {
        chances[1] = scores[0] / trees.averaged;
        chances[0] = 1.0 - chances[1];
        return;
    }
    for (std::size_t c = 0; c < chances.size(); ++c) {
        chances[c] = scores[c] / trees.averaged;
    }
}

// Remember a row, and find out in which features it differs from the last one.
std::span<const std::int32_t> take_in(std::span<const double> row, SurrogateWork& work) {
    std::size_t n = 0;
    for (std::size_t j = 0; j < row.size(); ++j) {
        work.moved[n] = static_cast<std::int32_t>(j);
        n += !work.known || differ(row[j], work.row[j]);
        work.row[j] = row[j];
    }
    work.known = true;
    return {work.moved.data(), n};
}

void trees_say(const Surrogate& surrogate, std::span<const double> row, std::span<double> chances,
               SurrogateWork& work) {
    const Trees& trees = *surrogate.trees;
    run_trees(trees, row, work);
    const std::span<const double> scores(work.scores.data(), trees.n_scores());
    if (trees.averaged == 0.0) {
        share(scores, chances);
    } else {
        average(trees, scores, chances);
    }
}

}  // namespace

bool reads_within(const Surrogate& surrogate, std::size_t n_features) {
    if (n_features == 0 || (surrogate.places() != nullptr && surrogate.places()->size() != n_features)) {
        return false;
    }
    return !surrogate.trees || surrogate.trees->n_read <= static_cast<std::int64_t>(n_features);
}

SurrogateWork::SurrogateWork(const Surrogate& surrogate, std::size_t n_features) : row(n_features), moved(n_features + 1) {
    const std::size_t d = n_features;
    std::size_t n_scores = surrogate.n_classes;
    if (surrogate.perceptron) {
        const Perceptron& net = *surrogate.perceptron;
        heard.width = net.b0.size();
        heard.sums.resize(2 * d * heard.width);
        first.resize(net.b0.size());
        second.resize(net.b1.size());
        rectified.resize(net.b0.size());
        n_scores = std::max(n_scores, net.n_scores());
    }
    if (surrogate.network) {
        const Network& net = *surrogate.network;
        heard_network.width = static_cast<std::size_t>(net.size[1]);
        heard_network.sums.resize(2 * d * heard_network.width);
        const auto most = static_cast<std::size_t>(*std::max_element(net.size.begin() + 1, net.size.end()));
        units.resize(most);
        units_next.resize(most);
        n_scores = std::max(n_scores, net.n_scores());
    }
    if (surrogate.trees) {
        leaf.resize(surrogate.trees->start.size());
        elsewhere.resize(surrogate.trees->start.size());
        n_scores = std::max(n_scores, surrogate.trees->n_scores());
    }
    scores.resize(n_scores);
    chances.resize(surrogate.n_classes);
    other_chances.resize(surrogate.n_classes);
}

void rest_on(const Surrogate& surrogate, std::span<const double> row, SurrogateWork& work) {
    if (!surrogate.trees || row.size() * work.leaf.size() > MOST_REMEMBERED) {
        return;
    }
    constexpr double inf = std::numeric_limits<double>::infinity();
    const Trees& trees = *surrogate.trees;
    TreesAtRest& rest = work.rest;
    compare_with_rest(row, work);
    if (!rest.known) {
        const std::size_t n_trees = work.leaf.size(), n = row.size() * n_trees;
        rest.leaf.resize(n_trees);
        rest.above.assign(n, -inf);
        rest.upto.assign(n, inf);
        rest.reads.assign(n, 0);
        rest.path.resize(static_cast<std::size_t>(trees.path_at.back()));
        rest.n_path.assign(n_trees, 0);
        rest.known = true;
    }
    rest.row.assign(row.begin(), row.end());
    for (std::size_t t = 0; t < rest.leaf.size(); ++t) {
        if (work.elsewhere[t]) {
            settle_tree(trees, t, row, rest);
        }
    }
}

std::span<const double> scores_of(const Surrogate& surrogate, std::span<const double> row, SurrogateWork& work) {
    const auto moved = take_in(row, work);
    std::size_t n = 0;
    if (surrogate.network) {
        run_network(*surrogate.network, row, moved, work);
        n = surrogate.network->n_scores();
    } else if (surrogate.perceptron) {
        run_perceptron(*surrogate.perceptron, row, moved, work);
        n = surrogate.perceptron->n_scores();
    } else {
        run_trees(*surrogate.trees, row, work);
        n = surrogate.trees->n_scores();
    }
    return {work.scores.data(), n};
}

std::span<const double> probabilities_of(const Surrogate& surrogate, std::span<const double> row, SurrogateWork& work) {
    const auto moved = take_in(row, work);
    const std::span<double> chances(work.chances);
    if (surrogate.network) {
        run_network(*surrogate.network, row, moved, work);
        share({work.scores.data(), surrogate.network->n_scores()}, chances);
        return chances;
    }
    if (surrogate.perceptron) {
        run_perceptron(*surrogate.perceptron, row, moved, work);
        share({work.scores.data(), surrogate.perceptron->n_scores()}, chances);
    }
    if (surrogate.trees && surrogate.perceptron) {
        trees_say(surrogate, row, work.other_chances, work);
        for (std::size_t c = 0; c < chances.size(); ++c) {
            chances[c] = 0.5 * (chances[c] + work.other_chances[c]);
        }
    } else if (surrogate.trees) {
        trees_say(surrogate, row, chances, work);
    }
    return chances;
}

}  // namespace dicoflex
