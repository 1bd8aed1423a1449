#include "bind_programs.hpp"

#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {

void ProgramsOwner::check(std::size_t n_features) {
    const std::size_t n = op.size();
    require(are_offsets(span_of(at), n), "at");
    require_shape(was, {n}, "was");
    require_shape(feature, {n}, "feature");
    require_shape(start, {n}, "start");
    require_shape(constant, {n}, "constant");
    view = {span_of(at), span_of(op), span_of(was), span_of(feature), span_of(start), span_of(constant), span_of(table)};
    require(are_sound(view, n_features), "op");
}

void ConsequencesOwner::check(std::size_t n_features) {
    programs.check(n_features);
    const std::size_t n = programs.view.size();
    require_shape(feature, {n}, "feature");
    require_shape(stored, {n}, "stored");
    require_shape(may_miss, {n}, "may_miss");
    require(lie_within(feature.data(), n, 0, static_cast<std::int64_t>(n_features) - 1), "feature");
    require(lie_within(stored.data(), n, WHOLE, DOUBLE), "stored");
    view = {programs.view, span_of(feature), span_of(stored), span_of(may_miss)};
}

namespace {

// Rows of values, checked to be as wide as what reads them.
struct Rows {
    Array<const double, 2> values;

    std::span<const double> operator[](std::size_t i) const {
        return {values.data() + i * values.shape(1), values.shape(1)};
    }
};

void hold(const ProgramsOwner& programs, const Array<const double, 2>& values, const Array<const double, 2>& query,
          const Array<bool, 2>& out) {
    const std::size_t n = values.shape(0), n_programs = programs.view.size();
    require_shape(query, {n, values.shape(1)}, "query");
    require_shape(out, {n, n_programs}, "out");
    require(are_sound(programs.view, values.shape(1)), "values");
    const Rows rows{values}, queries{query};
    const nb::gil_scoped_release released;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n_programs; ++k) {
            out.data()[i * n_programs + k] = run(programs.view, k, rows[i], queries[i]) != 0.0;
        }
    }
}

void settle(const ConsequencesOwner& consequences, const Array<double, 2>& values, const Array<const double, 2>& query,
            const Array<bool, 1>& settled) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require_shape(query, {n, d}, "query");
    require_shape(settled, {n}, "settled");
    require(are_sound(consequences.view.programs, d), "values");
    require(lie_within(consequences.feature.data(), consequences.feature.size(), 0, static_cast<std::int64_t>(d) - 1),
            "values");
    const Rows queries{query};
    const nb::gil_scoped_release released;
    for (std::size_t i = 0; i < n; ++i) {
        settled.data()[i] = follow_on(consequences.view, {values.data() + i * d, d}, queries[i]);
    }
}

}  // namespace

void bind_programs(nb::module_& m) {
    m.attr("STACK") = STACK;
    nb::class_<ProgramsOwner>(m, "Programs", "Programs of a stack machine that reads rows of so many features.")
        .def(
            "__init__",
            [](ProgramsOwner* self, Array<const std::int64_t, 1> at, Array<const std::int64_t, 1> op,
               Array<const bool, 1> was, Array<const std::int64_t, 1> feature, Array<const std::int64_t, 1> start,
               Array<const double, 1> constant, Array<const double, 1> table, std::size_t n_features) {
                ProgramsOwner made{at, op, was, feature, start, constant, table};
                made.check(n_features);
                new (self) ProgramsOwner(made);
            },
            "at"_a, "op"_a, "was"_a, "feature"_a, "start"_a, "constant"_a, "table"_a, nb::kw_only(), "n_features"_a);
    nb::class_<ConsequencesOwner>(m, "Consequences", "Programs, and the features that they set.")
        .def(
            "__init__",
            [](ConsequencesOwner* self, const ProgramsOwner& programs, Array<const std::int64_t, 1> feature,
               Array<const std::int64_t, 1> stored, Array<const bool, 1> may_miss, std::size_t n_features) {
                ConsequencesOwner made{programs, feature, stored, may_miss};
                made.check(n_features);
                new (self) ConsequencesOwner(made);
            },
            "programs"_a, "feature"_a, "stored"_a, "may_miss"_a, nb::kw_only(), "n_features"_a);
    m.def("hold", &hold, "programs"_a, nb::kw_only(), "values"_a, "query"_a, "out"_a.noconvert(),
          "Fill in which conditions hold on each row.");
    m.def("settle", &settle, "consequences"_a, nb::kw_only(), "values"_a.noconvert(), "query"_a,
          "settled"_a.noconvert(), "Let features of rows follow, in place, and fill in which rows are settled.");
}

}  // namespace dicoflex
