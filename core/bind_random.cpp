#include "arrays.hpp"
#include "bindings.hpp"
#include "random.hpp"
#include "row_hash.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

void hash_rows(const Array<const double, 2>& values, std::int64_t low, std::int64_t high,
               const Array<std::uint64_t, 1>& keys) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require_shape(keys, {n}, "keys");
    require_slice(low, high, n);
    const nb::gil_scoped_release released;
    for (auto i = static_cast<std::size_t>(low); i < static_cast<std::size_t>(high); ++i) {
        keys.data()[i] = row_key({values.data() + i * d, d}, keys.data()[i]);
    }
}

void keyed_hashes(const Array<const double, 2>& values, std::uint64_t one, std::uint64_t two, std::int64_t low,
                  std::int64_t high, const Array<std::uint64_t, 1>& hashes) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require_shape(hashes, {n}, "hashes");
    require_slice(low, high, n);
    const SipHash hash(one, two);
    const nb::gil_scoped_release released;
    for (auto i = static_cast<std::size_t>(low); i < static_cast<std::size_t>(high); ++i) {
        hashes.data()[i] = hash.of({values.data() + i * d, d});
    }
}

void fill_uniforms(const Array<const std::uint64_t, 1>& keys, const Array<const std::uint64_t, 1>& first,
                   const Array<double, 2>& out) {
    const std::size_t n = keys.size(), count = out.shape(1);
    require_shape(first, {n}, "first");
    require_shape(out, {n, count}, "out");
    const nb::gil_scoped_release released;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < count; ++k) {
            out.data()[i * count + k] = uniform(keys.data()[i], first.data()[i] + k);
        }
    }
}

}  // namespace

void bind_random(nb::module_& m) {
    m.attr("GOLDEN") = GOLDEN;
    m.def("hash_rows", &hash_rows, "values"_a, nb::kw_only(), "low"_a, "high"_a, "keys"_a.noconvert(),
          "Mix all values of the rows from `low` to `high` into their keys.");
    m.def("uniforms", &fill_uniforms, nb::kw_only(), "keys"_a, "first"_a, "out"_a.noconvert(),
          "Fill in the numbers of each key's stream from `first` on.");
    m.def("keyed_hashes", &keyed_hashes, "values"_a, nb::kw_only(), "one"_a, "two"_a, "low"_a, "high"_a,
          "hashes"_a.noconvert(), "Fill in a hash of each row from `low` to `high` under a key of two words.");
}

}  // namespace dicoflex
