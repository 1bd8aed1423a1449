#include <nanobind/stl/optional.h>

#include <limits>

#include "bind_values.hpp"
#include "bindings.hpp"
#include "coherence.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

template <typename Number>
using Vector = Array<const Number, 1>;
using Table = Array<const double, 2>;

void require_rows(const Table& values, const Bins& bins, const char* what) {
    require_shape(values, {values.shape(0), bins.n_features()}, what);
    require_codes(values, 0, static_cast<std::int64_t>(values.shape(0)), codes_of(bins), what);
}

Bins make_bins(const Vector<std::int64_t>& offset, const Vector<double>& edge, const Vector<std::int64_t>& edge_at,
               const Vector<bool>& number) {
    const std::size_t d = number.size();
    require_shape(offset, {d + 1}, "offset");
    require_shape(edge_at, {d + 1}, "edge_at");
    require(are_offsets(span_of(edge_at), edge.size()), "edge_at");
    require(offset.data()[0] == 0 && offset.data()[d] < std::numeric_limits<std::int32_t>::max(), "offset");
    Bins bins{copied(offset), copied(edge_at), copied(edge), copied_as<std::uint8_t>(number)};
    for (std::size_t j = 0; j < d; ++j) {
        const std::int64_t edges = bins.edge_at[j + 1] - bins.edge_at[j], least = bins.number[j] ? edges + 1 : 1;
        require(bins.size_of(j) >= least && (bins.number[j] || edges == 0), "offset");
    }
    return bins;
}

void locate(const Bins& bins, const Table& values, const Array<std::int64_t, 2>& out) {
    const std::size_t n = values.shape(0), d = bins.n_features();
    require_rows(values, bins, "values");
    require_shape(out, {n, d}, "out");
    const nb::gil_scoped_release released;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            out.data()[i * d + j] = cell_of(bins, j, values.data()[i * d + j]);
        }
    }
}

// Which rows have a marked pair that their query, if there is one, has not.
void find_marked(const MarkedPairs& pairs, const Table& values, const std::optional<Table>& query,
                 const Array<bool, 1>& out) {
    const std::size_t n = values.shape(0), d = pairs.bins.n_features();
    require_rows(values, pairs.bins, "values");
    require_shape(out, {n}, "out");
    if (query) {
        require_rows(*query, pairs.bins, "query");
        require(query->shape(0) == n, "query");
    }
    const nb::gil_scoped_release released;
    std::vector<std::int32_t> cell(d), own(d, -1);
    CellBits bits;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            cell[j] = cell_of(pairs.bins, j, values.data()[i * d + j]);
            if (query) {
                own[j] = cell_of(pairs.bins, j, query->data()[i * d + j]);
            }
        }
        set_bits(pairs, cell, own, bits);
        out.data()[i] = !is_coherent(pairs, cell, own, bits);
    }
}

// Count how many rows have each pair of cells; cells are numbered through all features.
void count_pairs(const Bins& bins, const Table& values, const Array<std::int64_t, 2>& counts) {
    const std::size_t n = values.shape(0), d = bins.n_features(), n_cells = bins.n_cells();
    require_rows(values, bins, "values");
    require_shape(counts, {n_cells, n_cells}, "counts");
    const nb::gil_scoped_release released;
    std::int64_t* count = counts.data();
    std::vector<std::size_t> cell(d);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            cell[j] = static_cast<std::size_t>(bins.offset[j] + cell_of(bins, j, values.data()[i * d + j]));
        }
        for (const std::size_t a : cell) {
            for (const std::size_t b : cell) {
                ++count[a * n_cells + b];
            }
        }
    }
}

Dependencies make_dependencies(const Vector<std::int64_t>& kind, const Vector<std::int64_t>& follows,
                               const Vector<std::int64_t>& at, const Vector<std::int64_t>& source,
                               const Vector<double>& weight, const Vector<double>& constant,
                               const Vector<double>& scale, const Vector<std::int64_t>& table_at,
                               const Vector<double>& key, const Vector<double>& value,
                               const Vector<std::int64_t>& level, std::int64_t n_features) {
    const std::size_t n = kind.size();
    require_shape(follows, {n}, "follows");
    require_shape(at, {n + 1}, "at");
    require_shape(weight, {source.size()}, "weight");
    require_shape(constant, {n}, "constant");
    require_shape(scale, {n}, "scale");
    require_shape(table_at, {n + 1}, "table_at");
    require_shape(value, {key.size()}, "value");
    require_shape(level, {key.size()}, "level");
    require(are_offsets(span_of(at), source.size()), "at");
    require(are_offsets(span_of(table_at), key.size()), "table_at");
    require(lie_within(follows.data(), n, 0, n_features - 1), "follows");
    require(lie_within(source.data(), source.size(), 0, n_features - 1), "source");
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t of = at.data()[i + 1] - at.data()[i], own = kind.data()[i];
        require(LINEAR <= own && own <= LOOKUP && of >= (own == PRODUCT || own == RATE ? 2 : 1), "kind");
    }
    return {copied(kind),  copied(follows),  copied(at),  copied(source), copied(weight), copied(constant),
            copied(scale), copied(table_at), copied(key), copied(value),  copied(level),  n_features};
}

void settle(const Dependencies& dependencies, const Array<double, 2>& values, const Table& query,
            const Array<bool, 1>& settled) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require(static_cast<std::int64_t>(d) == dependencies.n_features, "values");
    require_shape(query, {n, d}, "query");
    require_shape(settled, {n}, "settled");
    const nb::gil_scoped_release released;
    for (std::size_t i = 0; i < n; ++i) {
        settled.data()[i] = follow(dependencies, {values.data() + i * d, d}, {query.data() + i * d, d});
    }
}

void find_broken(const Dependencies& dependencies, const Table& values, const Table& query,
                 const Array<bool, 1>& out) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require(static_cast<std::int64_t>(d) == dependencies.n_features, "values");
    require_shape(query, {n, d}, "query");
    require_shape(out, {n}, "out");
    const nb::gil_scoped_release released;
    std::vector<double> room(d);
    for (std::size_t i = 0; i < n; ++i) {
        out.data()[i] = breaks(dependencies, {values.data() + i * d, d}, {query.data() + i * d, d}, room);
    }
}

RowDensity make_density(const Bins& bins, const Vector<std::int64_t>& order, const Array<const float, 2>& told,
                        const Vector<float>& start, const Array<const float, 3>& inner,
                        const Array<const float, 2>& inner_bias, const Array<const float, 3>& outer,
                        const Array<const float, 2>& outer_bias) {
    const std::size_t d = bins.n_features(), hidden = start.size(), head = inner.shape(2), states = outer.shape(2);
    require(d >= 1 && hidden >= 1 && head >= 1, "start");
    require_shape(order, {d}, "order");
    require_shape(told, {bins.n_cells(), hidden}, "told");
    require_shape(inner, {d, hidden, head}, "inner");
    require_shape(inner_bias, {d, head}, "inner_bias");
    require_shape(outer, {d, head, states}, "outer");
    require_shape(outer_bias, {d, states}, "outer_bias");
    std::vector<std::int64_t> rank(d, -1);
    for (std::size_t k = 0; k < d; ++k) {
        const std::int64_t j = order.data()[k];
        require(0 <= j && j < static_cast<std::int64_t>(d) && rank[static_cast<std::size_t>(j)] < 0, "order");
        rank[static_cast<std::size_t>(j)] = static_cast<std::int64_t>(k);
        require((bins.size_of(k) + 7) / 8 * 8 <= static_cast<std::int64_t>(states), "outer");
    }
    return {bins,         copied(order), rank,          hidden,             head,          states,
            copied(told), copied(start), copied(inner), copied(inner_bias), copied(outer), copied(outer_bias)};
}

// Fill in the log density and the weakest factor of rows low to high (2, rows).
void judge(const RowDensity& density, const Table& values, std::int64_t low, std::int64_t high,
           const Array<double, 2>& out) {
    const std::size_t n = values.shape(0), d = density.size();
    require_shape(values, {n, d}, "values");
    require_slice(low, high, n);
    require_codes(values, low, high, codes_of(density.bins), "values");
    require_shape(out, {2, n}, "out");
    constexpr double inf = std::numeric_limits<double>::infinity();
    const nb::gil_scoped_release released;
    std::vector<std::int32_t> cell(d);
    Factors factors(density);
    DensityRoom room(density);
    for (auto i = static_cast<std::size_t>(low); i < static_cast<std::size_t>(high); ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            cell[j] = cell_of(density.bins, j, values.data()[i * d + j]);
        }
        out.data()[i] = edited(density, cell, 0, -inf, -inf, factors, factors, room);
        out.data()[n + i] = *std::min_element(factors.factor.begin(), factors.factor.end());
    }
}

}  // namespace

void bind_coherence(nb::module_& m) {
    nb::class_<Bins>(m, "Bins", "Cells of all features, end to end.")
        .def(
            "__init__",
            [](Bins* self, Vector<std::int64_t> offset, Vector<double> edge, Vector<std::int64_t> edge_at,
               Vector<bool> number) { new (self) Bins(make_bins(offset, edge, edge_at, number)); },
            nb::kw_only(), "offset"_a, "edge"_a, "edge_at"_a, "number"_a)
        .def("locate", &locate, "values"_a, "out"_a.noconvert(), "Fill in the cell of each value.")
        .def("count_pairs", &count_pairs, "values"_a, "counts"_a.noconvert(),
             "Count how many rows have each pair of cells.");
    nb::class_<MarkedPairs>(m, "MarkedPairs", "Pairs of cells that don't go together.")
        .def(
            "__init__",
            [](MarkedPairs* self, const Bins& bins, Array<const bool, 2> marked) {
                require_shape(marked, {bins.n_cells(), bins.n_cells()}, "marked");
                new (self) MarkedPairs(marked_pairs(bins, marked.data()));
            },
            "bins"_a, "marked"_a)
        .def("find", &find_marked, "values"_a, "query"_a.none(), "out"_a.noconvert(),
             "Fill in which rows have a marked pair that their query, if there is one, has not.");
    nb::class_<Dependencies>(m, "Dependencies", "Features that follow from others of a table.")
        .def(
            "__init__",
            [](Dependencies* self, Vector<std::int64_t> kind, Vector<std::int64_t> follows, Vector<std::int64_t> at,
               Vector<std::int64_t> source, Vector<double> weight, Vector<double> constant, Vector<double> scale,
               Vector<std::int64_t> table_at, Vector<double> key, Vector<double> value, Vector<std::int64_t> level,
               std::int64_t n_features) {
                new (self) Dependencies(make_dependencies(kind, follows, at, source, weight, constant, scale, table_at,
                                                          key, value, level, n_features));
            },
            nb::kw_only(), "kind"_a, "follows"_a, "at"_a, "source"_a, "weight"_a, "constant"_a, "scale"_a,
            "table_at"_a, "key"_a, "value"_a, "level"_a, "n_features"_a)
        .def("settle", &settle, "values"_a.noconvert(), "query"_a, "settled"_a.noconvert(),
             "Let dependent features of rows follow, in place, and fill in which rows are settled.")
        .def("find_broken", &find_broken, "values"_a, "query"_a, "out"_a.noconvert(),
             "Fill in which rows break a dependency.");
    nb::class_<RowDensity>(m, "RowDensity", "A density of rows, autoregressive over cells.")
        .def(
            "__init__",
            [](RowDensity* self, const Bins& bins, Vector<std::int64_t> order, Array<const float, 2> told,
               Vector<float> start, Array<const float, 3> inner, Array<const float, 2> inner_bias,
               Array<const float, 3> outer, Array<const float, 2> outer_bias) {
                new (self) RowDensity(make_density(bins, order, told, start, inner, inner_bias, outer, outer_bias));
            },
            "bins"_a, nb::kw_only(), "order"_a, "told"_a, "start"_a, "inner"_a, "inner_bias"_a, "outer"_a,
            "outer_bias"_a)
        .def("judge", &judge, "values"_a, "low"_a, "high"_a, "out"_a.noconvert(),
             "Fill in the log density and the weakest factor of rows low to high.");
}

}  // namespace dicoflex
