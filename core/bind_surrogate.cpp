#include <nanobind/stl/optional.h>

#include "bind_values.hpp"
#include "bindings.hpp"
#include "surrogate.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

template <typename Number>
using Vector = Array<const Number, 1>;

// Where features stand among so many reals; all that rows with such codes have must stand there.
RealPlaces make_places(const Vector<std::int64_t>& codes, const Vector<std::int64_t>& number_at,
                       const Vector<std::int64_t>& level_at, const Vector<bool>& is_pair, std::int64_t n_reals) {
    const std::size_t d = codes.size();
    require(d >= 1, "codes");
    require_shape(number_at, {d}, "number_at");
    require_shape(level_at, {d}, "level_at");
    require_shape(is_pair, {d}, "is_pair");
    RealPlaces places{copied(codes), copied(number_at), copied(level_at), copied_as<std::uint8_t>(is_pair)};
    for (std::size_t j = 0; j < d; ++j) {
        require(-1 <= places.number_at[j] && places.number_at[j] < n_reals, "number_at");
        require(places.codes[j] == 0 || places.number_at[j] == -1, "number_at");
        const std::int64_t levels = places.is_pair[j] ? 2 : places.codes[j], first = places.level_at[j];
        require(first == -1 || (first >= 0 && levels > 0 && first <= n_reals && levels <= n_reals - first), "level_at");
    }
    return places;
}

Perceptron make_perceptron(const Vector<std::int64_t>& codes, const Vector<std::int64_t>& number_at,
                           const Vector<std::int64_t>& level_at, const Vector<bool>& is_pair,
                           const Vector<double>& mean, const Vector<double>& scale,
                           const Array<const float, 2>& w0, const Vector<float>& b0, const Array<const float, 2>& w1,
                           const Vector<float>& b1, const Array<const float, 2>& w2, const Vector<float>& b2) {
    const std::size_t d = codes.size(), n_first = b0.size(), n_second = b1.size(), n_scores = b2.size();
    require_shape(mean, {d}, "mean");
    require_shape(scale, {d}, "scale");
    require_shape(w0, {w0.shape(0), n_first}, "w0");
    require_shape(w1, {n_first, n_second}, "w1");
    require_shape(w2, {n_second, n_scores}, "w2");
    require(n_first >= 1 && n_second >= 1 && n_scores >= 1, "b0, b1, b2");
    std::vector<float> turned(w2.size());
    for (std::size_t i = 0; i < n_second; ++i) {
        for (std::size_t c = 0; c < n_scores; ++c) {
            turned[c * n_second + i] = w2.data()[i * n_scores + c];
        }
    }
    const auto n_reals = static_cast<std::int64_t>(w0.shape(0));
    return {make_places(codes, number_at, level_at, is_pair, n_reals), copied(mean), copied(scale), copied(w0),
            copied(b0), copied(w1), copied(b1), std::move(turned), copied(b2)};
}

Network make_network(const Vector<std::int64_t>& codes, const Vector<std::int64_t>& number_at,
                     const Vector<std::int64_t>& level_at, const Vector<bool>& is_pair,
                     const Vector<std::int64_t>& size, const Vector<double>& weight,
                     const Vector<double>& bias, std::int64_t activation) {
    require(size.size() >= 2 && lie_within(size.data(), size.size(), 1, std::int64_t{1} << 31), "size");
    // The sizes were checked one by one; their products fit, as far as arrays of that length exist.
    std::size_t n_weights = 0, n_biases = 0;
    for (std::size_t layer = 0; layer + 1 < size.size(); ++layer) {
        n_weights += static_cast<std::size_t>(size.data()[layer]) * static_cast<std::size_t>(size.data()[layer + 1]);
        n_biases += static_cast<std::size_t>(size.data()[layer + 1]);
        require(n_weights <= weight.size() && n_biases <= bias.size(), "size");
    }
    require_shape(weight, {n_weights}, "weight");
    require_shape(bias, {n_biases}, "bias");
    require(IDENTITY <= activation && activation <= LOGISTIC, "activation");
    return {make_places(codes, number_at, level_at, is_pair, size.data()[0]), copied(size), copied(weight), copied(bias),
            activation};
}

Trees make_trees(const Vector<std::int64_t>& start, const Vector<std::int32_t>& feature,
                 const Vector<double>& threshold, const Vector<bool>& missing_left, const Vector<std::int32_t>& left,
                 const Vector<std::int32_t>& right, const Vector<double>& value, const Vector<double>& baseline,
                 double averaged) {
    const std::size_t n = feature.size();
    require_shape(threshold, {n}, "threshold");
    require_shape(missing_left, {n}, "missing_left");
    require_shape(left, {n}, "left");
    require_shape(right, {n}, "right");
    require_shape(value, {n}, "value");
    require(baseline.size() >= 1 && averaged >= 0.0, "baseline");
    Trees trees{copied(start), std::vector<TreeNode>(n), copied(baseline), averaged, 0, {0}};
    require(trees.start.empty() ? n == 0 : trees.start[0] == 0, "start");
    for (std::size_t t = 0; t < trees.start.size(); ++t) {
        const auto first = trees.start[t];
        const auto last = t + 1 < trees.start.size() ? trees.start[t + 1] : static_cast<std::int64_t>(n);
        require(first < last && last <= static_cast<std::int64_t>(n), "start");
        std::vector<std::int64_t> depth(static_cast<std::size_t>(last - first));
        std::int64_t deepest = 0;
        for (auto node = first; node < last; ++node) {
            const auto i = static_cast<std::size_t>(node);
            const bool inner = feature.data()[i] >= 0;
            const std::int32_t a = left.data()[i], b = right.data()[i];
            // Links point forward within the tree: every walk ends.
            require(!inner || (node < a && a < last && node < b && b < last), "left, right");
            for (const std::int32_t child : {a, b}) {
                if (inner) {
                    auto& below = depth[static_cast<std::size_t>(child - first)];
                    below = std::max(below, depth[static_cast<std::size_t>(node - first)] + 1);
                    deepest = std::max(deepest, below);
                }
            }
            trees.n_read = std::max(trees.n_read, std::int64_t{feature.data()[i]} + 1);
            trees.nodes[i] = {inner ? threshold.data()[i] : value.data()[i], feature.data()[i], a, b,
                              missing_left.data()[i]};
        }
        trees.path_at.push_back(trees.path_at.back() + deepest);
    }
    return trees;
}

Surrogate make_surrogate(std::size_t n_classes, const std::optional<Perceptron>& perceptron,
                         const std::optional<Trees>& trees, const std::optional<Network>& network) {
    require(network ? !perceptron && !trees : perceptron || trees, "perceptron, trees, network");
    const auto require_scores = [n_classes](std::size_t n) {
        require(n == n_classes || (n == 1 && n_classes == 2), "n_classes");
    };
    if (perceptron) {
        require_scores(perceptron->n_scores());
    }
    if (network) {
        require_scores(network->n_scores());
    }
    if (trees) {
        require_scores(trees->n_scores());
    }
    Surrogate made{n_classes, perceptron, trees, network};
    require(!made.places() || reads_within(made, made.places()->size()), "feature");
    return made;
}

// Fill in what a surrogate says of rows low to high.
template <auto Say>
void say(const Surrogate& surrogate, const Array<const double, 2>& values, std::int64_t low, std::int64_t high,
         const Array<double, 2>& out) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require(reads_within(surrogate, d), "values");
    require_slice(low, high, n);
    require(out.shape(0) == n, "out");
    if (surrogate.places() != nullptr) {
        require_codes(values, low, high, surrogate.places()->codes, "values");
    }
    SurrogateWork work(surrogate, d);
    const nb::gil_scoped_release released;
    for (auto i = static_cast<std::size_t>(low); i < static_cast<std::size_t>(high); ++i) {
        const std::span<const double> said = Say(surrogate, {values.data() + i * d, d}, work);
        require(said.size() == out.shape(1), "out");
        std::copy(said.begin(), said.end(), out.data() + i * said.size());
    }
}

}  // namespace

void bind_surrogate(nb::module_& m) {
    nb::class_<Perceptron>(m, "Perceptron", "Two hidden layers of rectifiers on the one-hot table.")
        .def(
            "__init__",
            [](Perceptron* self, Vector<std::int64_t> codes, Vector<std::int64_t> number_at,
               Vector<std::int64_t> level_at, Vector<bool> is_pair, Vector<double> mean, Vector<double> scale, Array<const float, 2> w0, Vector<float> b0,
               Array<const float, 2> w1, Vector<float> b1, Array<const float, 2> w2, Vector<float> b2) {
                new (self) Perceptron(
                    make_perceptron(codes, number_at, level_at, is_pair, mean, scale, w0, b0, w1, b1, w2, b2));
            },
            nb::kw_only(), "codes"_a, "number_at"_a, "level_at"_a, "is_pair"_a, "mean"_a, "scale"_a, "w0"_a, "b0"_a, "w1"_a,
            "b1"_a, "w2"_a, "b2"_a);
    nb::class_<Network>(m, "Network", "A network of any depth in double precision.")
        .def(
            "__init__",
            [](Network* self, Vector<std::int64_t> codes, Vector<std::int64_t> number_at, Vector<std::int64_t> level_at,
               Vector<bool> is_pair, Vector<std::int64_t> size, Vector<double> weight, Vector<double> bias, std::int64_t activation) {
                new (self) Network(make_network(codes, number_at, level_at, is_pair, size, weight, bias, activation));
            },
            nb::kw_only(), "codes"_a, "number_at"_a, "level_at"_a, "is_pair"_a, "size"_a, "weight"_a, "bias"_a, "activation"_a);
    nb::class_<Trees>(m, "Trees", "Trees whose values are added up, or averaged.")
        .def(
            "__init__",
            [](Trees* self, Vector<std::int64_t> start, Vector<std::int32_t> feature, Vector<double> threshold,
               Vector<bool> missing_left, Vector<std::int32_t> left, Vector<std::int32_t> right, Vector<double> value,
               Vector<double> baseline, double averaged) {
                new (self) Trees(
                    make_trees(start, feature, threshold, missing_left, left, right, value, baseline, averaged));
            },
            nb::kw_only(), "start"_a, "feature"_a, "threshold"_a, "missing_left"_a, "left"_a, "right"_a, "value"_a,
            "baseline"_a, "averaged"_a);
    nb::class_<Surrogate>(m, "Surrogate", "What stands in for the black box: a perceptron, trees, both, or a network.")
        .def(
            "__init__",
            [](Surrogate* self, std::size_t n_classes, std::optional<Perceptron> perceptron, std::optional<Trees> trees,
               std::optional<Network> network) {
                new (self) Surrogate(make_surrogate(n_classes, perceptron, trees, network));
            },
            nb::kw_only(), "n_classes"_a, "perceptron"_a = nb::none(), "trees"_a = nb::none(),
            "network"_a = nb::none())
        .def("probabilities", &say<probabilities_of>, "values"_a, "low"_a, "high"_a, "out"_a.noconvert(),
             "Fill in the probabilities of the classes for rows low to high.")
        .def("scores", &say<scores_of>, "values"_a, "low"_a, "high"_a, "out"_a.noconvert(),
             "Fill in the scores of a surrogate of one kind for rows low to high.");
}

}  // namespace dicoflex
