#include "arrays.hpp"
#include "bindings.hpp"
#include "flow.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

// A flow's weights; keeps the arrays alive that the core reads.
struct FlowOwner {
    Array<const Index, 2> sequence;
    Array<const Index, 3> ready;
    Array<const double, 3> context;
    Array<const double, 2> context_bias;
    Array<const double, 3> first;
    Array<const double, 4> hidden;
    Array<const double, 3> hidden_bias;
    Array<const double, 4> out;
    Array<const double, 3> out_bias;
    Flow view{};

    void check() {
        const std::size_t n = ready.shape(0), layers = ready.shape(1), units = ready.shape(2);
        const std::size_t steps = sequence.shape(1), n_context = context.shape(1);
        require(layers > 0, "ready");
        require_shape(sequence, {n, steps}, "sequence");
        require(lie_within(sequence.data(), sequence.size(), 0, static_cast<Index>(steps) - 1), "sequence");
        require_shape(context, {n, n_context, units}, "context");
        require_shape(context_bias, {n, units}, "context_bias");
        require_shape(first, {n, steps, units}, "first");
        require_shape(hidden, {n, layers - 1, units, units}, "hidden");
        require_shape(hidden_bias, {n, layers - 1, units}, "hidden_bias");
        require_shape(out, {n, units, 2, steps}, "out");
        require_shape(out_bias, {n, 2, steps}, "out_bias");
        view = {static_cast<Index>(n), static_cast<Index>(layers), static_cast<Index>(units), static_cast<Index>(steps),
                static_cast<Index>(n_context), span_of(sequence), span_of(ready), span_of(context),
                span_of(context_bias), span_of(first), span_of(hidden), span_of(hidden_bias), span_of(out),
                span_of(out_bias)};
    }
};

void condition_slice(const FlowOwner& flow, const Array<const float, 2>& contexts, Index low, Index high,
                     const Array<double, 3>& hidden) {
    const std::size_t n = contexts.shape(0);
    require_shape(contexts, {n, flow.context.shape(1)}, "contexts");
    require_shape(hidden, {n, flow.ready.shape(0), flow.ready.shape(2)}, "hidden");
    require_slice(low, high, n);
    const nb::gil_scoped_release released;
    condition(flow.view, matrix_of(contexts), low, high, span_of(hidden));
}

void pass_slice(const FlowOwner& flow, const Array<const double, 3>& hidden, Index draws, bool inverse, Index low,
                Index high, const Array<double, 2>& points, const Array<double, 1>& log_det) {
    const std::size_t n = points.shape(0);
    require(draws > 0 && n <= hidden.shape(0) * static_cast<std::size_t>(draws), "draws");
    require_shape(hidden, {hidden.shape(0), flow.ready.shape(0), flow.ready.shape(2)}, "hidden");
    require_shape(points, {n, flow.sequence.shape(1)}, "points");
    require_shape(log_det, {n}, "log_det");
    require_slice(low, high, n);
    const nb::gil_scoped_release released;
    pass(flow.view, span_of(hidden), draws, inverse, low, high, matrix_of(points), span_of(log_det));
}

}  // namespace

void bind_flow(nb::module_& m) {
    nb::class_<FlowOwner>(m, "Flow", "A flow's weights in the order in which its inverse needs them.")
        .def(
            "__init__",
            [](FlowOwner* self, Array<const Index, 2> sequence, Array<const Index, 3> ready,
               Array<const double, 3> context, Array<const double, 2> context_bias, Array<const double, 3> first,
               Array<const double, 4> hidden, Array<const double, 3> hidden_bias, Array<const double, 4> out,
               Array<const double, 3> out_bias) {
                FlowOwner made{sequence, ready, context, context_bias, first, hidden, hidden_bias, out, out_bias};
                made.check();
                new (self) FlowOwner(made);
            },
            "sequence"_a, "ready"_a, "context"_a, "context_bias"_a, "first"_a, "hidden"_a, "hidden_bias"_a, "out"_a,
            "out_bias"_a)
        .def("condition", &condition_slice, "contexts"_a, nb::kw_only(), "low"_a, "high"_a, "hidden"_a.noconvert(),
             "Fill in what contexts `low` to `high` add to the first hidden layer of every transform.")
        .def("pass_points", &pass_slice, "hidden"_a, nb::kw_only(), "draws"_a, "inverse"_a, "low"_a, "high"_a,
             "points"_a.noconvert(), "log_det"_a.noconvert(), "Take points `low` to `high` through the flow or back.");
}

}  // namespace dicoflex
