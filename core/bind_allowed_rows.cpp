#include "allowed_rows.hpp"
#include "arrays.hpp"
#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

void mark_rows(const Array<const double, 2>& values, const Array<const double, 2>& query,
               const Array<const Index, 1>& which, const Array<const double, 2>& low,
               const Array<const double, 2>& high, const Array<const bool, 2>& states,
               const Array<const bool, 2>& may_keep, const Array<const Index, 1>& offset,
               const Array<const bool, 1>& is_level, const Array<const bool, 1>& uncounted, Index most_changes,
               const Array<bool, 1>& broken) {
    const std::size_t n = values.shape(0), d = values.shape(1), n_limits = low.shape(0);
    require_shape(query, {n, d}, "query");
    require_shape(which, {n}, "which");
    require(lie_within(which.data(), n, 0, static_cast<Index>(n_limits) - 1), "which");
    require_shape(low, {n_limits, d}, "low");
    require_shape(high, {n_limits, d}, "high");
    require(offset.size() == d + 1 && are_offsets(span_of(offset), states.shape(1)), "offset");
    require_shape(states, {n_limits, states.shape(1)}, "states");
    require_shape(may_keep, {n_limits, d}, "may_keep");
    require_shape(is_level, {d}, "is_level");
    require_shape(uncounted, {d}, "uncounted");
    require_shape(broken, {n}, "broken");
    const Allowance allowance{matrix_of(low),      matrix_of(high),    matrix_of(states), matrix_of(may_keep),
                              span_of(offset),     span_of(is_level),  span_of(uncounted), most_changes};
    const nb::gil_scoped_release released;
    mark_broken(allowance, matrix_of(values), matrix_of(query), span_of(which), span_of(broken));
}

Index fill_batch(const Array<Index, 1>& turn, const Array<const double, 1>& value, const Array<const Index, 1>& at,
                 const Array<const bool, 1>& keeps, Index most_changes, const Array<double, 2>& rows) {
    const std::size_t d = rows.shape(1);
    require_shape(turn, {d + 1}, "turn");
    require(at.size() == d + 1 && are_offsets(span_of(at), value.size()), "at");
    require_shape(keeps, {d}, "keeps");
    for (std::size_t j = 0; j < d; ++j) {
        require(lie_within(turn.data() + j, 1, 0, at.data()[j + 1] - at.data()[j] - 1) || turn.data()[d] != 0, "turn");
    }
    const nb::gil_scoped_release released;
    return fill_rows({span_of(value), span_of(at), span_of(keeps), most_changes}, span_of(turn), matrix_of(rows));
}

}  // namespace

void bind_allowed_rows(nb::module_& m) {
    m.def("mark_broken", &mark_rows, nb::kw_only(), "values"_a, "query"_a, "which"_a, "low"_a, "high"_a, "states"_a,
          "may_keep"_a, "offset"_a, "is_level"_a, "uncounted"_a, "most_changes"_a, "broken"_a.noconvert(),
          "Mark rows with a value that is kept or changed where it may not be, or with too many changes.");
    m.def("fill_rows", &fill_batch, nb::kw_only(), "turn"_a.noconvert(), "value"_a, "at"_a, "keeps"_a,
          "most_changes"_a, "rows"_a.noconvert(), "Write rows that limits allow; how many were written.");
}

}  // namespace dicoflex
