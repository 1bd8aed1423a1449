// For tests of their accuracy: the core's functions applied to every number.
#include "arrays.hpp"
#include "bindings.hpp"
#include "numeric.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

template <double (*Function)(double)>
void apply(const Array<const double, 1>& x, const Array<double, 1>& out) {
    require(x.shape(0) == out.shape(0), "x, out");
    std::transform(x.data(), x.data() + x.size(), out.data(), Function);
}

}  // namespace

void bind_numeric(nb::module_& m) {
    m.def("exp", &apply<exp>, "x"_a, "out"_a.noconvert(), "The exponential of every number.");
    m.def("tanh", &apply<tanh>, "x"_a, "out"_a.noconvert(), "The hyperbolic tangent of every number.");
    m.def("log", &apply<log>, "x"_a, "out"_a.noconvert(), "The natural logarithm of every number.");
}

}  // namespace dicoflex
