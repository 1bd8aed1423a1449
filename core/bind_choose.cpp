#include "apart.hpp"
#include "bind_values.hpp"
#include "bindings.hpp"
#include "choose.hpp"
#include "numeric.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dicoflex {
namespace {

template <typename Number>
using Vector = Array<const Number, 1>;
using Table = Array<const double, 2>;

// A change counts at least so much, however small it is.
constexpr double LEAST_MOVE = 1e-9;

void number(const Array<const bool, 2>& changed, const Array<std::int64_t, 1>& ways) {
    const std::size_t n = changed.shape(0), d = changed.shape(1);
    require_shape(ways, {n}, "ways");
    number_ways(copied_as<std::uint8_t>(changed).data(), n, d, ways.data());
}

void require_edges(const Vector<std::int64_t>& edges, const Table& values, const Table& query) {
    require(are_offsets(span_of(edges), values.shape(0)), "edges");
    require_shape(query, {edges.size() - 1, values.shape(1)}, "query");
}

void count(const Table& values, const Table& query, const Vector<std::int64_t>& edges,
           const Array<std::int64_t, 1>& counts) {
    const std::size_t d = values.shape(1);
    require_edges(edges, values, query);
    require_shape(counts, {edges.size() - 1}, "counts");
    const nb::gil_scoped_release released;
    std::vector<std::uint8_t> changed;
    std::vector<std::int64_t> ways(values.shape(0));
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const auto first = static_cast<std::size_t>(edges.data()[i]), last = static_cast<std::size_t>(edges.data()[i + 1]);
        find_changes(values.data() + first * d, query.data() + i * d, last - first, d, changed);
        counts.data()[i] = static_cast<std::int64_t>(number_ways(changed.data(), last - first, d, ways.data()));
    }
}

void require_merits(std::size_t n, const Vector<double>& distance, const Vector<double>& likely,
                    const Vector<double>& handicap) {
    require_shape(distance, {n}, "distance");
    require_shape(likely, {n}, "likely");
    require_shape(handicap, {n}, "handicap");
}

std::size_t choose_one(const Table& values, const Array<const bool, 2>& changed, const Vector<double>& distance,
                       const Vector<double>& likely, const Vector<double>& handicap, const Vector<double>& ranges,
                       double diversity, const Array<std::int64_t, 1>& chosen) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require_shape(changed, {n, d}, "changed");
    require_shape(ranges, {d}, "ranges");
    require_merits(n, distance, likely, handicap);
    const std::vector<std::uint8_t> flags = copied_as<std::uint8_t>(changed);
    const nb::gil_scoped_release released;
    const auto found = choose({n, d, values.data(), flags.data(), ranges.data()},
                              {distance.data(), likely.data(), handicap.data()}, chosen.size(), diversity);
    std::copy(found.begin(), found.end(), chosen.data());
    return found.size();
}

// Choose for one query after the other; how many were chosen in all.
std::size_t choose_each(const Table& values, const Table& query, const Vector<std::int64_t>& edges,
                        const Vector<double>& distance, const Vector<double>& likely, const Vector<double>& handicap,
                        const Vector<double>& ranges, std::size_t n, double diversity,
                        const Array<std::int64_t, 1>& chosen, const Array<std::int64_t, 1>& ways) {
    const std::size_t d = values.shape(1);
    require_edges(edges, values, query);
    require_shape(ranges, {d}, "ranges");
    require_merits(values.shape(0), distance, likely, handicap);
    require_shape(ways, {chosen.size()}, "ways");
    const nb::gil_scoped_release released;
    std::vector<std::uint8_t> changed, taken;
    std::size_t done = 0;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        const auto first = static_cast<std::size_t>(edges.data()[i]), last = static_cast<std::size_t>(edges.data()[i + 1]);
        const double* mine = values.data() + first * d;
        find_changes(mine, query.data() + i * d, last - first, d, changed);
        const auto found =
            choose({last - first, d, mine, changed.data(), ranges.data()},
                   {distance.data() + first, likely.data() + first, handicap.data() + first}, n, diversity);
        require(done + found.size() <= chosen.size(), "chosen");
        taken.clear();
        for (const std::size_t at : found) {
            const auto* own = changed.data() + at * d;
            taken.insert(taken.end(), own, own + d);
            chosen.data()[done + taken.size() / d - 1] = static_cast<std::int64_t>(first + at);
        }
        number_ways(taken.data(), found.size(), d, ways.data() + done);
        done += found.size();
    }
    return done;
}

void add_distances(const Table& values, const Table& own, const Vector<double>& spread, const Vector<double>& gaps,
                   const Vector<bool>& counted, double p, const Array<double, 1>& out) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require_shape(own, {n, d}, "own");
    require_shape(spread, {d}, "spread");
    require_shape(gaps, {d}, "gaps");
    require_shape(counted, {d}, "counted");
    require_shape(out, {n}, "out");
    const nb::gil_scoped_release released;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            const double a = values.data()[i * d + j], b = own.data()[i * d + j], scale = spread.data()[j];
            if (counted.data()[j] && differ(a, b)) {
                const double far = move(a, b, std::isfinite(scale), scale, gaps.data()[j]);
                out.data()[i] += power(std::max(far, LEAST_MOVE), p);
            }
        }
    }
}

void gower(const Table& a, const Table& b, const Vector<double>& ranges, const Array<double, 2>& out) {
    const std::size_t d = a.shape(1);
    require_shape(b, {b.shape(0), d}, "b");
    require_shape(ranges, {d}, "ranges");
    require_shape(out, {a.shape(0), b.shape(0)}, "out");
    const nb::gil_scoped_release released;
    for (std::size_t i = 0; i < a.shape(0); ++i) {
        for (std::size_t k = 0; k < b.shape(0); ++k) {
            out.data()[i * b.shape(0) + k] =
                apart(a.data() + i * d, b.data() + k * d, ranges.data(), d) / static_cast<double>(d);
        }
    }
}

// most_compared: of so many rows the widest distance is the scale of all.
std::size_t select(const Table& values, const Vector<double>& merit, const Vector<double>& ranges, double diversity,
                   std::size_t most_compared, const Array<std::int64_t, 1>& chosen) {
    const std::size_t n = values.shape(0), d = values.shape(1);
    require_shape(merit, {n}, "merit");
    require_shape(ranges, {d}, "ranges");
    require(d >= 1, "values");
    const nb::gil_scoped_release released;
    const double scale = widest({std::min(n, most_compared), d, values.data(), nullptr, ranges.data()});
    const auto found = choose_spread({n, d, values.data(), nullptr, ranges.data()}, span_of(merit),
                                     scale > 0.0 ? scale : 1.0, chosen.size(), diversity);
    std::copy(found.begin(), found.end(), chosen.data());
    return found.size();
}

}  // namespace

void bind_choose(nb::module_& m) {
    m.def("number_ways", &number, "changed"_a, "ways"_a.noconvert(), "Number rows by what they change.");
    m.def("count_ways", &count, nb::kw_only(), "values"_a, "query"_a, "edges"_a, "counts"_a.noconvert(),
          "Count the ways of each query's rows.");
    m.def("choose", &choose_one, nb::kw_only(), "values"_a, "changed"_a, "distance"_a, "likely"_a, "handicap"_a,
          "ranges"_a, "diversity"_a, "chosen"_a.noconvert(), "Fill in the positions of those chosen; how many there are.");
    m.def("choose_each", &choose_each, nb::kw_only(), "values"_a, "query"_a, "edges"_a, "distance"_a, "likely"_a,
          "handicap"_a, "ranges"_a, "n"_a, "diversity"_a, "chosen"_a.noconvert(), "ways"_a.noconvert(),
          "Fill in the positions of those chosen for each query, and their ways; how many there are.");
    m.def("add_distances", &add_distances, nb::kw_only(), "values"_a, "own"_a, "spread"_a, "gaps"_a, "counted"_a,
          "p"_a, "out"_a.noconvert(), "Add how far rows are from their queries.");
    m.def("gower", &gower, nb::kw_only(), "a"_a, "b"_a, "ranges"_a, "out"_a.noconvert(),
          "Fill in the mean difference per feature of all pairs of rows.");
    m.def("select", &select, nb::kw_only(), "values"_a, "merit"_a, "ranges"_a, "diversity"_a, "most_compared"_a,
          "chosen"_a.noconvert(), "Fill in the positions of rows that are good and unlike each other; how many.");
}

}  // namespace dicoflex
