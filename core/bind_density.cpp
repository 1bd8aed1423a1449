#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "density.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

// The weights and cells of a density; keeps the arrays alive that the core reads.
struct DensityOwner {
    Array<const Index, 1> offset, slope_at;
    Array<const double, 1> low, high;
    Array<const Index, 1> count;
    Array<const double, 1> step, scale;
    Array<const Index, 1> order, rank;
    Array<const float, 2> query, query_slope, settings, trunk;
    Array<const float, 1> trunk_bias;
    Array<const float, 2> prefix, prefix_slope, prefix_kept;
    Array<const float, 3> inner;
    Array<const float, 2> inner_bias;
    Array<const float, 1> outer;
    Array<const Index, 1> outer_at;
    Array<const float, 2> outer_bias;
    Density view{};

    void check() {
        check_cells();
        check_net();
        view = {{span_of(offset), span_of(slope_at), span_of(low), span_of(high), span_of(count), span_of(step),
                 span_of(scale), span_of(order), span_of(rank)},
                {matrix_of(query), matrix_of(query_slope), matrix_of(settings),
                 matrix_of(trunk), span_of(trunk_bias), matrix_of(prefix),
                 matrix_of(prefix_slope), matrix_of(prefix_kept),
                 {span_of(inner), static_cast<Index>(inner.shape(1) * inner.shape(2))},
                 matrix_of(inner_bias), span_of(outer), span_of(outer_at),
                 matrix_of(outer_bias)}};
    }

    void check_cells() const {
        const std::size_t d = order.size(), n_cells = low.size();
        require(d > 0 && offset.size() == d + 1 && are_offsets(span_of(offset), n_cells), "offset");
        require_shape(slope_at, {d}, "slope_at");
        require_shape(high, {n_cells}, "high");
        require_shape(count, {n_cells}, "count");
        require_shape(step, {d}, "step");
        require_shape(scale, {d}, "scale");
        require_shape(rank, {d}, "rank");
        require(lie_within(order.data(), d, 0, static_cast<Index>(d) - 1), "order");
        for (std::size_t k = 0; k < d; ++k) {
            require(rank.data()[order.data()[k]] == static_cast<Index>(k), "rank");
        }
        for (std::size_t j = 0; j < d; ++j) {
            const Index size = offset.data()[j + 1] - offset.data()[j], slope = slope_at.data()[j];
            require(size > 0, "offset");
            require(slope == -1 || (slope >= 0 && slope + size <= static_cast<Index>(prefix_slope.shape(0))), "slope_at");
        }
    }

    void check_net() const {
        const std::size_t d = order.size(), n_cells = low.size(), hidden = prefix.shape(1), head = inner_bias.shape(1);
        require(hidden > 0 && head > 0, "prefix, inner_bias");
        require_shape(query, {n_cells, hidden}, "query");
        require_shape(query_slope, {prefix_slope.shape(0), hidden}, "query_slope");
        require_shape(settings, {settings.shape(0), hidden}, "settings");
        require_shape(trunk, {hidden, hidden}, "trunk");
        require_shape(trunk_bias, {hidden}, "trunk_bias");
        require_shape(prefix, {n_cells, hidden}, "prefix");
        require_shape(prefix_slope, {prefix_slope.shape(0), hidden}, "prefix_slope");
        require_shape(prefix_kept, {d, hidden}, "prefix_kept");
        require_shape(inner, {d, hidden, head}, "inner");
        require_shape(inner_bias, {d, head}, "inner_bias");
        require(outer_at.size() == d + 1 && are_offsets(span_of(outer_at), outer.size()), "outer_at");
        require(outer_bias.shape(0) == d && outer_bias.shape(1) % BLOCK == 0, "outer_bias");
        for (std::size_t j = 0; j < d; ++j) {
            const Index entries = outer_at.data()[j + 1] - outer_at.data()[j], size = static_cast<Index>(head);
            const Index width = entries / size;
            require(width * size == entries && width % BLOCK == 0, "outer_at");
            require(offset.data()[j + 1] - offset.data()[j] < width, "outer_at");
            require(width <= static_cast<Index>(outer_bias.shape(1)), "outer_bias");
        }
    }
};

struct QueriesOwner {
    Array<const double, 2> values;
    Array<const float, 2> settings;
    Array<const bool, 2> stuck;
    Array<const Index, 2> own;
    Array<const float, 2> where;
    Array<const bool, 2> alone, exact;
    const DensityOwner* density;  // what it was checked for
    Queries view{};

    void check() {
        const std::size_t n = values.shape(0), d = density->order.size();
        require_shape(values, {n, d}, "values");
        require_shape(settings, {n, density->settings.shape(0)}, "settings");
        require_shape(stuck, {n, d}, "stuck");
        require_shape(own, {n, d}, "own");
        require_shape(where, {n, d}, "where");
        require_shape(alone, {n, d}, "alone");
        require_shape(exact, {n, d}, "exact");
        require_cells(own, 0, static_cast<Index>(n));
        view = {matrix_of(values), matrix_of(settings), matrix_of(stuck),
                matrix_of(own),     matrix_of(where),    matrix_of(alone),
                matrix_of(exact)};
    }

    // Check that every cell of some rows is one of its feature's.
    void require_cells(const Array<const Index, 2>& cell, Index low, Index high) const {
        const Cells& cells = density->view.cells;
        for (Index i = low; i < high; ++i) {
            for (Index j = 0; j < cells.n_features(); ++j) {
                const Index at = matrix_of(cell)(i, j);
                require(0 <= at && at < cells.size(j), "cell");
            }
        }
    }
};

struct RulesOwner {
    Array<const double, 2> least, most;
    Array<const bool, 2> may_miss;
    Array<const Index, 1> first, last;
    Array<const bool, 1> touched;
    Array<const double, 1> ranks;
    Array<const Index, 1> start, sort, op;
    Array<const double, 2> coefficients;
    Array<const double, 1> constant;
    Array<const Index, 1> feature;
    Array<const bool, 2> levels;
    Array<const bool, 1> if_missing;
    Array<const bool, 2> touches;
    Rules view{};

    void check(const QueriesOwner& queries, std::span<const bool> level) {
        const std::size_t n = queries.values.shape(0), d = queries.values.shape(1), literals = sort.size();
        require(start.size() >= 1 && are_offsets(span_of(start), literals), "start");
        const std::size_t clauses = start.size() - 1;
        require_shape(least, {n, d}, "least");
        require_shape(most, {n, d}, "most");
        require_shape(may_miss, {n, d}, "may_miss");
        require_shape(first, {n}, "first");
        require_shape(last, {n}, "last");
        require(lie_within(first.data(), n, 0, static_cast<Index>(clauses)), "first");
        require(lie_within(last.data(), n, 0, static_cast<Index>(clauses)), "last");
        require_shape(touched, {d}, "touched");
        require_shape(ranks, {d}, "ranks");
        require_shape(op, {literals}, "op");
        require_shape(coefficients, {literals, d}, "coefficients");
        require_shape(constant, {literals}, "constant");
        require_shape(feature, {literals}, "feature");
        require_shape(levels, {literals, levels.shape(1)}, "levels");
        require_shape(if_missing, {literals}, "if_missing");
        require_shape(touches, {clauses, d}, "touches");
        require(lie_within(feature.data(), literals, -1, static_cast<Index>(d) - 1), "feature");
        check_levels(queries, level);
        view = {matrix_of(least), matrix_of(most), matrix_of(may_miss),
                span_of(first), span_of(last), span_of(touched), span_of(ranks), span_of(start), span_of(sort),
                span_of(op), matrix_of(coefficients), span_of(constant), span_of(feature),
                matrix_of(levels), span_of(if_missing), matrix_of(touches)};
    }

    // Codes are indices: check that every one that a literal on levels may meet has an entry.
    void check_levels(const QueriesOwner& queries, std::span<const bool> level) const {
        const Cells& cells = queries.density->view.cells;
        const auto n_levels = static_cast<Index>(levels.shape(1));
        for (std::size_t literal = 0; literal < sort.size(); ++literal) {
            const Index k = feature.data()[literal];
            const auto kind = static_cast<Sort>(sort.data()[literal]);
            require(kind == Sort::LINEAR || kind == Sort::OPAQUE || k >= 0, "feature");
            if (kind != Sort::LEVELS) {
                continue;
            }
            require(level[k] && cells.size(k) <= n_levels, "levels");
            for (std::size_t i = 0; i < queries.values.shape(0); ++i) {
                const double code = queries.view.values(static_cast<Index>(i), k);
                require(0.0 <= code && code < static_cast<double>(n_levels), "values");
            }
            for (Index at = cells.offset[k]; at < cells.offset[k + 1]; ++at) {
                require(0.0 <= cells.low[at] && cells.low[at] < static_cast<double>(n_levels), "low");
            }
        }
    }
};

struct LimitsOwner {
    Array<const double, 2> low, high;
    Array<const bool, 2> open, may_keep;
    Array<const Index, 2> needed, reserved;
    Array<const double, 2> price;
    Array<const double, 1> points;
    Array<const Index, 1> point_at;
    Array<const bool, 1> pointed;
    Array<const double, 1> banned;
    Array<const Index, 1> banned_at;
    Array<const bool, 1> level;
    Array<const double, 1> fixed, unit;
    Index most_changes;
    double most_cost;
    std::optional<RulesOwner> rules;
    const QueriesOwner* queries;  // what it was checked for
    Limits view{};

    void check() {
        const std::size_t n = queries->values.shape(0), d = queries->values.shape(1);
        require_shape(low, {n, d}, "low");
        require_shape(high, {n, d}, "high");
        require_shape(open, {n, queries->density->low.size()}, "open");
        require_shape(may_keep, {n, d}, "may_keep");
        require_shape(needed, {n, d}, "needed");
        require_shape(reserved, {n, d}, "reserved");
        require_shape(price, {n, d}, "price");
        require(point_at.size() == d + 1 && are_offsets(span_of(point_at), points.size()), "point_at");
        require(banned_at.size() == d + 1 && are_offsets(span_of(banned_at), banned.size()), "banned_at");
        require_shape(pointed, {d}, "pointed");
        require_shape(level, {d}, "level");
        require_shape(fixed, {d}, "fixed");
        require_shape(unit, {d}, "unit");
        view.bounds = {matrix_of(low), matrix_of(high), matrix_of(open),
                       matrix_of(may_keep), matrix_of(needed),
                       matrix_of(reserved), matrix_of(price), span_of(points),
                       span_of(point_at), span_of(pointed), span_of(banned), span_of(banned_at), span_of(level),
                       span_of(fixed), span_of(unit), most_changes, most_cost};
        if (rules) {
            rules->check(*queries, span_of(level));
            view.rules = rules->view;
        }
    }
};

void draw_slice(const DensityOwner& density, const QueriesOwner& queries, const LimitsOwner* limits,
                const Array<const std::uint64_t, 1>& keys, const Array<const std::uint64_t, 1>& first, Index low,
                Index high, const Array<double, 3>& out, const Array<double, 2>& log_density) {
    const std::size_t n = queries.values.shape(0), n_draws = out.shape(1);
    require(queries.density == &density, "queries");
    require(limits == nullptr || limits->queries == &queries, "limits");
    require_shape(keys, {n}, "keys");
    require_shape(first, {n}, "first");
    require_shape(out, {n, n_draws, density.order.size()}, "out");
    require_shape(log_density, {n, n_draws}, "log_density");
    require(n_draws > 0, "out");
    require_slice(low, high, n);
    const nb::gil_scoped_release released;
    draw(density.view, queries.view, limits == nullptr ? nullptr : &limits->view, span_of(keys), span_of(first), low,
         high, static_cast<Index>(n_draws), span_of(out), span_of(log_density));
}

void score_slice(const DensityOwner& density, const QueriesOwner& queries, const Array<const Index, 1>& of,
                 const Array<const Index, 2>& cell, const Array<const float, 2>& where,
                 const Array<const bool, 2>& kept, Index low, Index high, const Array<double, 1>& out) {
    const std::size_t n = of.size(), d = density.order.size();
    require(queries.density == &density, "queries");
    require_shape(cell, {n, d}, "cell");
    require_shape(where, {n, d}, "where");
    require_shape(kept, {n, d}, "kept");
    require_shape(out, {n}, "out");
    require_slice(low, high, n);
    require(lie_within(of.data() + low, static_cast<std::size_t>(high - low), 0,
                       static_cast<Index>(queries.values.shape(0)) - 1),
            "of");
    queries.require_cells(cell, low, high);
    const Answers answers{span_of(of), matrix_of(cell), matrix_of(where),
                          matrix_of(kept)};
    const nb::gil_scoped_release released;
    score(density.view, queries.view, answers, low, high, span_of(out));
}

void locate_rows(const Array<const Index, 1>& offset, const Array<const double, 1>& low,
                 const Array<const double, 1>& high, const Array<const double, 2>& values,
                 const Array<Index, 2>& cell, const Array<double, 2>& where) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require(offset.size() == d + 1 && are_offsets(span_of(offset), low.size()), "offset");
    require_shape(high, {low.size()}, "high");
    require_shape(cell, {n, d}, "cell");
    require_shape(where, {n, d}, "where");
    const nb::gil_scoped_release released;
    locate(span_of(offset), span_of(low), span_of(high), matrix_of(values), matrix_of(cell),
           matrix_of(where));
}

}  // namespace

void bind_density(nb::module_& m) {
    m.attr("BLOCK") = BLOCK;
    nb::class_<DensityOwner>(m, "Density", "The default density: its cells and weights.")
        .def(
            "__init__",
            [](DensityOwner* self, Array<const Index, 1> offset, Array<const Index, 1> slope_at,
               Array<const double, 1> low, Array<const double, 1> high, Array<const Index, 1> count,
               Array<const double, 1> step, Array<const double, 1> scale, Array<const Index, 1> order,
               Array<const Index, 1> rank, Array<const float, 2> query, Array<const float, 2> query_slope,
               Array<const float, 2> settings, Array<const float, 2> trunk, Array<const float, 1> trunk_bias,
               Array<const float, 2> prefix, Array<const float, 2> prefix_slope, Array<const float, 2> prefix_kept,
               Array<const float, 3> inner, Array<const float, 2> inner_bias, Array<const float, 1> outer,
               Array<const Index, 1> outer_at, Array<const float, 2> outer_bias) {
                DensityOwner made{offset, slope_at,    low,      high,  count,      step,   scale,        order,
                                  rank,   query,       query_slope, settings, trunk, trunk_bias, prefix, prefix_slope,
                                  prefix_kept, inner, inner_bias, outer, outer_at, outer_bias};
                made.check();
                new (self) DensityOwner(made);
            },
            nb::kw_only(), "offset"_a, "slope_at"_a, "low"_a, "high"_a, "count"_a, "step"_a, "scale"_a, "order"_a,
            "rank"_a, "query"_a, "query_slope"_a, "settings"_a, "trunk"_a, "trunk_bias"_a, "prefix"_a,
            "prefix_slope"_a, "prefix_kept"_a, "inner"_a, "inner_bias"_a, "outer"_a, "outer_at"_a, "outer_bias"_a)
        .def("draw", &draw_slice, "queries"_a, "limits"_a.none(), nb::kw_only(), "keys"_a, "first"_a, "low"_a,
             "high"_a, "out"_a.noconvert(), "log_density"_a.noconvert(),
             "Fill in draws of the queries from `low` to `high`, and their log densities.")
        .def("score", &score_slice, "queries"_a, nb::kw_only(), "of"_a, "cell"_a, "where"_a, "kept"_a, "low"_a,
             "high"_a, "out"_a.noconvert(), "Fill in the log probability of the states of rows `low` to `high`.");
    nb::class_<QueriesOwner>(m, "Queries", "Queries of a density, which they are checked against.")
        .def(
            "__init__",
            [](QueriesOwner* self, const DensityOwner* density, Array<const double, 2> values,
               Array<const float, 2> settings, Array<const bool, 2> stuck, Array<const Index, 2> own,
               Array<const float, 2> where, Array<const bool, 2> alone, Array<const bool, 2> exact) {
                QueriesOwner made{values, settings, stuck, own, where, alone, exact, density};
                made.check();
                new (self) QueriesOwner(made);
            },
            nb::keep_alive<1, 2>(), "density"_a, nb::kw_only(), "values"_a, "settings"_a, "stuck"_a, "own"_a,
            "where"_a, "alone"_a, "exact"_a);
    nb::class_<RulesOwner>(m, "Rules", "The clauses of rules, and what each feature of a draw may end as.")
        .def(
            "__init__",
            [](RulesOwner* self, Array<const double, 2> least, Array<const double, 2> most,
               Array<const bool, 2> may_miss, Array<const Index, 1> first, Array<const Index, 1> last,
               Array<const bool, 1> touched, Array<const double, 1> ranks, Array<const Index, 1> start,
               Array<const Index, 1> sort, Array<const Index, 1> op, Array<const double, 2> coefficients,
               Array<const double, 1> constant, Array<const Index, 1> feature, Array<const bool, 2> levels,
               Array<const bool, 1> if_missing, Array<const bool, 2> touches) {
                new (self) RulesOwner{least, most, may_miss,     first,    last,    touched, ranks,      start,
                                      sort,  op,   coefficients, constant, feature, levels,  if_missing, touches};
            },
            nb::kw_only(), "least"_a, "most"_a, "may_miss"_a, "first"_a, "last"_a, "touched"_a, "ranks"_a, "start"_a,
            "sort"_a, "op"_a, "coefficients"_a, "constant"_a, "feature"_a, "levels"_a, "if_missing"_a, "touches"_a);
    nb::class_<LimitsOwner>(m, "Limits", "What draws of some queries may be, by cells.")
        .def(
            "__init__",
            [](LimitsOwner* self, const QueriesOwner* queries, const RulesOwner* rules, Array<const double, 2> low,
               Array<const double, 2> high, Array<const bool, 2> open, Array<const bool, 2> may_keep,
               Array<const Index, 2> needed, Array<const Index, 2> reserved, Array<const double, 2> price,
               Array<const double, 1> points, Array<const Index, 1> point_at, Array<const bool, 1> pointed,
               Array<const double, 1> banned, Array<const Index, 1> banned_at, Array<const bool, 1> level,
               Array<const double, 1> fixed, Array<const double, 1> unit, Index most_changes, double most_cost) {
                LimitsOwner made{low,      high,   open,      may_keep, needed, reserved, price,        points,
                                 point_at, pointed, banned,   banned_at, level, fixed,    unit,         most_changes,
                                 most_cost, rules == nullptr ? std::nullopt : std::optional(*rules), queries};
                made.check();
                new (self) LimitsOwner(made);
            },
            nb::keep_alive<1, 2>(), "queries"_a, "rules"_a.none(), nb::kw_only(), "low"_a, "high"_a, "open"_a,
            "may_keep"_a, "needed"_a, "reserved"_a, "price"_a, "points"_a, "point_at"_a, "pointed"_a, "banned"_a,
            "banned_at"_a, "level"_a, "fixed"_a, "unit"_a, "most_changes"_a, "most_cost"_a);
    m.def("locate", &locate_rows, nb::kw_only(), "offset"_a, "low"_a, "high"_a, "values"_a, "cell"_a.noconvert(),
          "where"_a.noconvert(), "Fill in the cell of every value, and where in it the value lies.");
}

}  // namespace dicoflex
