#include "arrays.hpp"
#include "bindings.hpp"
#include "draws.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

void finish_slice(const Array<const double, 3>& values, const Array<const double, 2>& query,
                  const Array<const bool, 2>& frozen, const Array<const double, 1>& least,
                  const Array<const double, 1>& greatest, const Array<const bool, 1>& whole, Index low, Index high,
                  const Array<double, 2>& rows, const Array<bool, 1>& moved) {
    const std::size_t n = query.shape(0), each = values.shape(1), d = query.shape(1);
    require_shape(values, {n, each, d}, "values");
    require_shape(frozen, {n, d}, "frozen");
    require_shape(least, {d}, "least");
    require_shape(greatest, {d}, "greatest");
    require_shape(whole, {d}, "whole");
    require_shape(rows, {n * each, d}, "rows");
    require_shape(moved, {n * each}, "moved");
    require_slice(low, high, n);
    const nb::gil_scoped_release released;
    finish({span_of(least), span_of(greatest), span_of(whole)}, matrix_of(query), matrix_of(frozen),
           {span_of(values), static_cast<Index>(d)}, static_cast<Index>(each), low, high, matrix_of(rows),
           span_of(moved));
}

void judge_draws(const Array<const double, 1>& log_density, Index each, double unlikely,
                 const Array<const double, 2>& said, const Array<const Index, 1>& target,
                 const Array<const double, 1>& least, const Array<const Index, 1>& query,
                 const Array<const bool, 1>& fine, const Array<const std::uint64_t, 1>& key,
                 const Array<double, 1>& probability, const Array<std::int8_t, 1>& verdict) {
    const std::size_t n = key.size();
    require(each > 0 && n % static_cast<std::size_t>(each) == 0, "each");
    require(0.0 <= unlikely && unlikely <= 1.0, "unlikely");
    require_shape(log_density, {n}, "log_density");
    require(said.size() == 0 || said.shape(0) == n, "said");
    require_shape(least, {target.size()}, "least");
    require_shape(query, {n}, "query");
    require(lie_within(query.data(), n, 0, static_cast<Index>(target.size()) - 1), "query");
    require(said.size() == 0 ||
                lie_within(target.data(), target.size(), 0, static_cast<Index>(said.shape(1)) - 1),
            "target");
    require_shape(fine, {n}, "fine");
    require_shape(probability, {n}, "probability");
    require_shape(verdict, {n}, "verdict");
    const nb::gil_scoped_release released;
    judge({span_of(log_density), each, unlikely, matrix_of(said), span_of(target), span_of(least), span_of(query),
           span_of(fine), span_of(key)},
          span_of(probability), span_of(verdict));
}

void mark_repeats(const Array<const std::uint64_t, 1>& key, const Array<const Index, 1>& query,
                  const Array<bool, 1>& seen) {
    require_shape(query, {key.size()}, "query");
    require_shape(seen, {key.size()}, "seen");
    const nb::gil_scoped_release released;
    mark_seen(span_of(key), span_of(query), span_of(seen));
}

Index choose_first(const Array<const Index, 1>& query, const Array<const std::int8_t, 1>& verdict, std::int8_t worst,
                   Index n_queries, Index n, bool exact, const Array<Index, 1>& places) {
    require_shape(verdict, {query.size()}, "verdict");
    require(n_queries >= 0 && n >= 0, "n_queries, n");
    require_shape(places, {static_cast<std::size_t>(n_queries * n)}, "places");
    require(lie_within(query.data(), query.size(), 0, n_queries - 1), "query");
    require(lie_within(verdict.data(), verdict.size(), GOOD, REFUSED), "verdict");
    const nb::gil_scoped_release released;
    return first_rows(span_of(query), span_of(verdict), worst, n_queries, n, exact, span_of(places));
}

}  // namespace

void bind_draws(nb::module_& m) {
    m.def("finish", &finish_slice, nb::kw_only(), "values"_a, "query"_a, "frozen"_a, "least"_a, "greatest"_a, "whole"_a,
          "low"_a, "high"_a, "rows"_a.noconvert(), "moved"_a.noconvert(),
          "Fill in the rows of the queries from `low` to `high`, and whether each differs from its query.");
    m.def("judge", &judge_draws, nb::kw_only(), "log_density"_a, "each"_a, "unlikely"_a, "said"_a, "target"_a,
          "least"_a, "query"_a, "fine"_a, "key"_a, "probability"_a.noconvert(), "verdict"_a.noconvert(),
          "Fill in what the surrogate gives each row's target, and what is said of the row.");
    m.def("mark_seen", &mark_repeats, nb::kw_only(), "key"_a, "query"_a, "seen"_a.noconvert(),
          "Mark keys of a query that stand further ahead already.");
    m.def("first_rows", &choose_first, nb::kw_only(), "query"_a, "verdict"_a, "worst"_a, "n_queries"_a, "n"_a,
          "exact"_a, "places"_a.noconvert(), "Fill in the places of `n` rows per query in the order of the verdicts.");
}

}  // namespace dicoflex
