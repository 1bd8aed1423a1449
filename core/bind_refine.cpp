#include <nanobind/stl/shared_ptr.h>

#include "bind_programs.hpp"
#include "bind_values.hpp"
#include "bindings.hpp"
#include "refine.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

template <typename Number>
using Vector = Array<const Number, 1>;
template <typename Number>
using Table = Array<const Number, 2>;

// Rows are handed over as tables of five columns; the core reads them as records.
static_assert(sizeof(Wanted) == 5 * sizeof(double));

Judges make_judges(std::shared_ptr<Surrogate> surrogate, std::shared_ptr<MarkedPairs> avoided,
                   std::shared_ptr<RowDensity> density, std::shared_ptr<Dependencies> dependencies,
                   const Vector<bool>& follower, const Vector<double>& scale, const Vector<double>& gaps,
                   const Vector<double>& step, const Vector<double>& digits, const Vector<std::int64_t>& stop_at,
                   const Vector<double>& stop, const Vector<double>& typical) {
    const std::size_t d = density->size();
    require(reads_within(*surrogate, d), "surrogate");
    const std::vector<std::int64_t> codes = codes_of(density->bins);
    require(surrogate->places() == nullptr || surrogate->places()->codes == codes, "surrogate");
    require(codes_of(avoided->bins) == codes, "avoided");
    require(avoided->bins.n_features() == d, "avoided");
    require(dependencies->n_features == static_cast<std::int64_t>(d), "dependencies");
    require_shape(follower, {d}, "follower");
    require_shape(scale, {d}, "scale");
    require_shape(gaps, {d}, "gaps");
    require_shape(step, {d}, "step");
    require_shape(digits, {d}, "digits");
    require_shape(stop_at, {d + 1}, "stop_at");
    require(are_offsets(span_of(stop_at), stop.size()), "stop_at");
    require_shape(typical, {density->bins.n_cells()}, "typical");
    for (std::size_t j = 0; j < d; ++j) {
        const auto is_code = [n = static_cast<double>(codes[j])](double code) { return 0.0 <= code && code < n; };
        const double* own = typical.data() + density->bins.offset[j];
        require(codes[j] == 0 || is_code(gaps.data()[j]), "gaps");
        require(codes[j] == 0 || std::all_of(own, own + codes[j], is_code), "typical");
    }
    for (std::size_t i = 0; i < dependencies->size(); ++i) {
        const std::int64_t n = codes[static_cast<std::size_t>(dependencies->follows[i])];
        require(n == 0 || dependencies->kind[i] == LOOKUP, "dependencies");
        for (std::int64_t s = dependencies->table_at[i]; n > 0 && s < dependencies->table_at[i + 1]; ++s) {
            const double code = dependencies->value[static_cast<std::size_t>(s)];
            require(0.0 <= code && code < static_cast<double>(n), "dependencies");
        }
    }
    return {std::move(surrogate), std::move(avoided), std::move(density), std::move(dependencies), codes,
            copied_as<std::uint8_t>(follower), copied(scale), copied(gaps), copied(step), copied(digits),
            copied(stop_at), copied(stop), copied(typical)};
}

// Limits as Python hands them over, for one call: their arrays, kept alive and checked, and the core's view of them.
struct BoundsOwner {
    Table<bool> frozen;
    Table<double> low, high;
    Table<bool> states, may_keep;
    Vector<std::int64_t> offset;
    Vector<bool> has_points;
    Vector<std::int64_t> point_at;
    Vector<double> point;
    Vector<std::int64_t> banned_at;
    Vector<double> banned, fixed, unit;
    std::int64_t most_changes;
    double most_cost;
    Vector<bool> uncounted, follows;
    ProgramsOwner rules;
    ConsequencesOwner consequences;
    Bounds view{};

    void check() {
        const std::size_t n = frozen.shape(0), d = frozen.shape(1), n_states = states.shape(1);
        require_shape(low, {n, d}, "low");
        require_shape(high, {n, d}, "high");
        require_shape(states, {n, n_states}, "states");
        require_shape(may_keep, {n, d}, "may_keep");
        require_shape(offset, {d + 1}, "offset");
        require(are_offsets(span_of(offset), n_states), "offset");
        require_shape(has_points, {d}, "has_points");
        require_shape(point_at, {d + 1}, "point_at");
        require(are_offsets(span_of(point_at), point.size()), "point_at");
        require_shape(banned_at, {d + 1}, "banned_at");
        require(are_offsets(span_of(banned_at), banned.size()), "banned_at");
        require_shape(fixed, {d}, "fixed");
        require_shape(unit, {d}, "unit");
        require_shape(uncounted, {d}, "uncounted");
        require_shape(follows, {d}, "follows");
        rules.check(d);
        consequences.check(d);
        view = {n, d, n_states, frozen.data(), low.data(), high.data(), states.data(), may_keep.data(), offset.data(),
                has_points.data(), span_of(point_at), span_of(point), span_of(banned_at), span_of(banned),
                fixed.data(), unit.data(), most_changes, most_cost, uncounted.data(), follows.data(), rules.view,
                consequences.view};
    }
};

// Rows and what they must be, checked against judges and limits.
Rows rows_of(const Judges& judges, const Bounds& bounds, const Array<double, 2>& rows, const Table<double>& query,
             const Vector<std::int64_t>& which, const Table<double>& wanted, const Array<bool, 1>& stands,
             const Array<double, 2>& scores, std::int64_t low, std::int64_t high) {
    const std::size_t n = rows.shape(0), d = judges.n_features(), n_queries = query.shape(0);
    require(bounds.n_features == d && bounds.n_queries == n_queries, "bounds");
    require_shape(rows, {n, d}, "rows");
    require_shape(query, {n_queries, d}, "query");
    require_shape(which, {n}, "which");
    require_shape(wanted, {n_queries, 5}, "wanted");
    require_shape(stands, {n}, "stands");
    require_shape(scores, {n, 4}, "scores");
    require_slice(low, high, n);
    require(lie_within(which.data(), n, 0, static_cast<std::int64_t>(n_queries) - 1), "which");
    for (std::size_t j = 0; j < d; ++j) {
        const std::int64_t codes = judges.codes[j];
        require(codes == 0 || bounds.offset[j + 1] - bounds.offset[j] == codes, "offset");
    }
    for (std::size_t i = 0; i < n_queries; ++i) {
        const double target = wanted.data()[5 * i];
        require(0.0 <= target && target < static_cast<double>(judges.surrogate->n_classes), "wanted");
    }
    require_codes(rows, low, high, judges.codes, "rows");
    require_codes(query, 0, static_cast<std::int64_t>(n_queries), judges.codes, "query");
    return {n, d, rows.data(), query.data(), which.data(), reinterpret_cast<const Wanted*>(wanted.data()),
            stands.data(), scores.data()};
}

void refine(const Judges& judges, const BoundsOwner& bounds, const Array<double, 2>& rows, const Table<double>& query,
            const Vector<std::int64_t>& which, const Table<double>& wanted, bool turned, std::int64_t most,
            std::int64_t steps, std::int64_t low, std::int64_t high, const Array<bool, 1>& stands,
            const Array<bool, 1>& kept, const Array<double, 2>& scores) {
    const Rows own = rows_of(judges, bounds.view, rows, query, which, wanted, stands, scores, low, high);
    require_shape(kept, {own.n}, "kept");
    const nb::gil_scoped_release released;
    refine_rows(judges, bounds.view, own, static_cast<std::size_t>(low), static_cast<std::size_t>(high), turned, most,
                steps, kept.data());
}

void judge(const Judges& judges, const BoundsOwner& bounds, const Array<double, 2>& rows, const Table<double>& query,
           const Vector<std::int64_t>& which, const Table<double>& wanted, const Vector<std::int64_t>& feature,
           const Vector<double>& origin, std::int64_t low, std::int64_t high, const Array<bool, 1>& stands,
           const Array<double, 2>& scores) {
    const Rows own = rows_of(judges, bounds.view, rows, query, which, wanted, stands, scores, low, high);
    require_shape(feature, {own.n}, "feature");
    require_shape(origin, {own.n}, "origin");
    for (std::size_t i = 0; i < own.n; ++i) {
        const std::int64_t j = feature.data()[i];
        require(-1 <= j && j < static_cast<std::int64_t>(own.d), "feature");
        require(j < 0 || judges.is_number(static_cast<std::size_t>(j)), "feature");
    }
    const nb::gil_scoped_release released;
    judge_rows(judges, bounds.view, own, static_cast<std::size_t>(low), static_cast<std::size_t>(high), feature.data(),
               origin.data());
}

void mark(const Array<const double, 2>& rows, const Table<double>& query, const Vector<std::int64_t>& which,
          const Vector<bool>& number, const Vector<double>& scale, const Vector<double>& gaps,
          const Array<const bool, 1>& stands, std::int64_t most, const Array<bool, 1>& kept) {
    const std::size_t n = rows.shape(0), d = rows.shape(1);
    require_shape(query, {query.shape(0), d}, "query");
    require_shape(which, {n}, "which");
    require(lie_within(which.data(), n, 0, static_cast<std::int64_t>(query.shape(0)) - 1), "which");
    require_shape(number, {d}, "number");
    require_shape(scale, {d}, "scale");
    require_shape(gaps, {d}, "gaps");
    require_shape(stands, {n}, "stands");
    require_shape(kept, {n}, "kept");
    const std::vector<std::uint8_t> is_number = copied_as<std::uint8_t>(number);
    const nb::gil_scoped_release released;
    mark_foremost({n, d, rows.data(), query.data(), which.data(), stands.data()}, is_number.data(), scale.data(),
                  gaps.data(), most, kept.data());
}

}  // namespace

void bind_refine(nb::module_& m) {
    m.attr("LESS") = static_cast<std::int64_t>(LESS);
    m.attr("FOREMOST") = static_cast<std::int64_t>(FOREMOST);
    m.attr("NEARER") = static_cast<std::int64_t>(NEARER);
    nb::class_<Judges>(m, "Judges", "All that judges a row but the limits.")
        .def(
            "__init__",
            [](Judges* self, std::shared_ptr<Surrogate> surrogate, std::shared_ptr<MarkedPairs> avoided,
               std::shared_ptr<RowDensity> density, std::shared_ptr<Dependencies> dependencies, Vector<bool> follower,
               Vector<double> scale, Vector<double> gaps, Vector<double> step, Vector<double> digits,
               Vector<std::int64_t> stop_at, Vector<double> stop, Vector<double> typical) {
                new (self) Judges(make_judges(std::move(surrogate), std::move(avoided), std::move(density),
                                              std::move(dependencies), follower, scale, gaps, step, digits, stop_at,
                                              stop, typical));
            },
            nb::kw_only(), "surrogate"_a, "avoided"_a, "density"_a, "dependencies"_a, "follower"_a, "scale"_a,
            "gaps"_a, "step"_a, "digits"_a, "stop_at"_a, "stop"_a, "typical"_a);
    nb::class_<BoundsOwner>(m, "Bounds", "What constraints allow the answers of some queries to be.")
        .def(
            "__init__",
            [](BoundsOwner* self, Table<bool> frozen, Table<double> low, Table<double> high, Table<bool> states,
               Table<bool> may_keep, Vector<std::int64_t> offset, Vector<bool> has_points,
               Vector<std::int64_t> point_at, Vector<double> point, Vector<std::int64_t> banned_at,
               Vector<double> banned, Vector<double> fixed, Vector<double> unit, std::int64_t most_changes,
               double most_cost, Vector<bool> uncounted, Vector<bool> follows, const ProgramsOwner& rules,
               const ConsequencesOwner& consequences) {
                BoundsOwner made{frozen,    low,    high,  states, may_keep,     offset,    has_points,
                                 point_at,  point,  banned_at, banned, fixed,    unit,      most_changes,
                                 most_cost, uncounted, follows, rules, consequences};
                made.check();
                new (self) BoundsOwner(made);
            },
            nb::kw_only(), "frozen"_a, "low"_a, "high"_a, "states"_a, "may_keep"_a, "offset"_a, "has_points"_a,
            "point_at"_a, "point"_a, "banned_at"_a, "banned"_a, "fixed"_a, "unit"_a, "most_changes"_a, "most_cost"_a,
            "uncounted"_a, "follows"_a, "rules"_a, "consequences"_a);
    m.def("refine_rows", &refine, "judges"_a, "bounds"_a, nb::kw_only(), "rows"_a.noconvert(), "query"_a, "which"_a,
          "wanted"_a, "turned"_a, "most"_a, "steps"_a, "low"_a, "high"_a, "stands"_a.noconvert(),
          "kept"_a.noconvert(), "scores"_a.noconvert(),
          "Refine rows low to high in place: LESS, FOREMOST and NEARER, as `steps` has them.");
    m.def("judge_rows", &judge, "judges"_a, "bounds"_a, nb::kw_only(), "rows"_a.noconvert(), "query"_a, "which"_a,
          "wanted"_a, "feature"_a, "origin"_a, "low"_a, "high"_a, "stands"_a.noconvert(), "scores"_a.noconvert(),
          "Mark which of the rows low to high stand as they are.");
    m.def("mark_foremost", &mark, nb::kw_only(), "rows"_a, "query"_a, "which"_a, "number"_a, "scale"_a, "gaps"_a,
          "stands"_a, "most"_a, "kept"_a.noconvert(),
          "Mark at most so many rows per query that stand: the nearest of each way, then each way's next.");
}

}  // namespace dicoflex
