#include <nanobind/nanobind.h>

#include <algorithm>

#include "arrays.hpp"
#include "bindings.hpp"
#include "neighbours.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

// The rows of a pool; keeps the arrays alive that the core reads.
struct LeavesOwner {
    Array<const std::int64_t, 1> first;
    Array<const std::int32_t, 2> positions;
    Array<const std::int32_t, 1> last;
    Array<const std::int16_t, 3> keys;
    Array<const float, 3> near;
    Array<const std::int32_t, 2> codes;
    Array<const double, 2> numbers;
    Array<const std::uint32_t, 2> levels;
    Array<const float, 2> low, high;
    Array<const double, 1> values;
    Array<const std::int64_t, 2> edges;
    Leaves view{};

    void check() {
        const std::size_t n = positions.shape(0), leaf = LEAF;
        const std::size_t n_codes = codes.shape(1), n_numbers = numbers.shape(1);
        require(first.shape(0) >= 1, "first");
        const std::size_t n_classes = first.shape(0) - 1;
        require_shape(positions, {n, leaf}, "positions");
        require_shape(last, {n}, "last");
        require_shape(keys, {n, n_codes + n_numbers, leaf}, "keys");
        require_shape(near, {n, n_numbers, leaf}, "near");
        require_shape(codes, {n * leaf, n_codes}, "codes");
        require_shape(numbers, {n * leaf, n_numbers}, "numbers");
        require_shape(levels, {n_codes, n}, "levels");
        require_shape(low, {n_numbers, n}, "low");
        require_shape(high, {n_numbers, n}, "high");
        require_shape(edges, {n_classes, n_numbers + 1}, "edges");
        require(lie_within(first.data(), first.size(), 0, static_cast<std::int64_t>(n)), "first");
        require(std::is_sorted(first.data(), first.data() + first.size()), "first");
        require(lie_within(edges.data(), edges.size(), 0, static_cast<std::int64_t>(values.size())), "edges");
        for (std::size_t label = 0; label < n_classes; ++label) {
            const std::int64_t* own = edges.data() + label * (n_numbers + 1);
            require(std::is_sorted(own, own + n_numbers + 1), "edges");
        }
        view = {first.data(),  positions.data(), last.data(), keys.data(), near.data(),   codes.data(), numbers.data(),
                levels.data(), low.data(),       high.data(), values.data(), edges.data(), static_cast<int>(n_classes),
                static_cast<int>(n), static_cast<int>(n_codes), static_cast<int>(n_numbers)};
    }
};

void search_slice(const LeavesOwner& leaves, const Array<const std::int32_t, 2>& codes,
            const Array<const double, 2>& numbers, const Array<const std::int16_t, 2>& keys,
            const Array<const std::int64_t, 1>& target, const Array<const std::int64_t, 1>& stop,
            const Array<const double, 1>& p, const Array<const double, 2>& code_weight,
            const Array<const double, 2>& number_weight, std::int64_t low, std::int64_t high,
            const Array<std::int64_t, 2>& positions, const Array<double, 2>& distances) {
    const std::size_t n = target.shape(0), k = positions.shape(1);
    const auto n_codes = static_cast<std::size_t>(leaves.view.n_codes);
    const auto n_numbers = static_cast<std::size_t>(leaves.view.n_numbers);
    require_shape(codes, {n, n_codes}, "codes");
    require_shape(numbers, {n, n_numbers}, "numbers");
    require_shape(keys, {n, n_codes + n_numbers}, "keys");
    require_shape(stop, {n}, "stop");
    require_shape(p, {n}, "p");
    require_shape(code_weight, {n, n_codes}, "code_weight");
    require_shape(number_weight, {n, n_numbers}, "number_weight");
    require_shape(positions, {n, k}, "positions");
    require_shape(distances, {n, k}, "distances");
    require(k >= 1 && 0 <= low && low <= high && high <= static_cast<std::int64_t>(n), "low, high");
    require(lie_within(target.data() + low, static_cast<std::size_t>(high - low), 0, leaves.view.n_classes - 1),
            "target");
    const Anchors anchors = {codes.data(), numbers.data(), keys.data(),        target.data(),
                                       stop.data(),  p.data(),       code_weight.data(), number_weight.data()};
    const nb::gil_scoped_release released;
    search(leaves.view, anchors, low, high, static_cast<int>(k), positions.data(), distances.data());
}

void sort_rows(const Array<std::int64_t, 1>& order, const Array<bool, 1>& begins,
                const Array<const double, 2>& columns, std::int64_t n_codes) {
    const auto n_rows = static_cast<std::int64_t>(columns.shape(1));
    require(columns.shape(0) >= 1, "columns");
    require_shape(begins, {order.shape(0)}, "begins");
    require(lie_within(order.data(), order.size(), 0, n_rows - 1), "order");
    const nb::gil_scoped_release released;
    sort_alike(order.data(), begins.data(), static_cast<std::int64_t>(order.size()), columns.data(), n_rows,
                         static_cast<std::int64_t>(columns.shape(0)), n_codes);
}

}  // namespace

void bind_neighbours(nb::module_& m) {
    m.attr("LEAF") = LEAF;
    nb::class_<LeavesOwner>(m, "Leaves", "A pool's rows as the search reads them.")
        .def(
            "__init__",
            [](LeavesOwner* self, Array<const std::int64_t, 1> first, Array<const std::int32_t, 2> positions,
               Array<const std::int32_t, 1> last, Array<const std::int16_t, 3> keys, Array<const float, 3> near,
               Array<const std::int32_t, 2> codes, Array<const double, 2> numbers, Array<const std::uint32_t, 2> levels,
               Array<const float, 2> low, Array<const float, 2> high, Array<const double, 1> values,
               Array<const std::int64_t, 2> edges) {
                LeavesOwner made{first, positions, last, keys, near, codes, numbers, levels, low, high, values, edges};
                made.check();
                new (self) LeavesOwner(made);
            },
            nb::kw_only(), "first"_a, "positions"_a, "last"_a, "keys"_a, "near"_a, "codes"_a, "numbers"_a, "levels"_a,
            "low"_a, "high"_a, "values"_a, "edges"_a);
    m.def("search", &search_slice, "leaves"_a, nb::kw_only(), "codes"_a, "numbers"_a, "keys"_a, "target"_a, "stop"_a, "p"_a,
          "code_weight"_a, "number_weight"_a, "low"_a, "high"_a, "positions"_a.noconvert(), "distances"_a.noconvert(),
          "Fill in the positions and distances of what the anchors from `low` to `high` find.");
    m.def("sort_alike", &sort_rows, "order"_a.noconvert(), "begins"_a.noconvert(), "columns"_a, "n_codes"_a,
          "Order rows so that those of a leaf are alike, and mark where leaves begin.");
}

}  // namespace dicoflex
