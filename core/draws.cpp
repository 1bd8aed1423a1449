#include "draws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "random.hpp"

namespace dicoflex {
namespace {

// What a row's log density counts for at least.
constexpr double LEAST_DENSITY = -1e9;

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Set apart the rows below the quantile of their query's densities, interpolated as `np.quantile` does.
void mark_unlikely(const Judged& draws, std::span<std::int8_t> verdict) {
    if (draws.unlikely <= 0.0) {
        std::fill(verdict.begin(), verdict.end(), GOOD);
        return;
    }
    const double at = draws.unlikely * static_cast<double>(draws.each - 1);
    const auto below = static_cast<Index>(at);
    const double part = at - static_cast<double>(below);
    std::vector<double> own(draws.each), ordered(draws.each);
    for (Index first = 0; first < static_cast<Index>(draws.log_density.size()); first += draws.each) {
        // What follows by wish may be what the density never has.
        for (Index t = 0; t < draws.each; ++t) {
            own[t] = std::max(LEAST_DENSITY, draws.log_density[first + t]);
        }
        ordered = own;
        std::sort(ordered.begin(), ordered.end());
        const double low = ordered[below], high = ordered[std::min(below + 1, draws.each - 1)];
        const double floor = part < 0.5 ? low + (high - low) * part : high - (high - low) * (1.0 - part);
        for (Index t = 0; t < draws.each; ++t) {
            verdict[first + t] = own[t] >= floor ? GOOD : UNLIKELY;
        }
    }
}

}  // namespace

void finish(const Storage& storage, Matrix<const double> query, Matrix<const bool> frozen,
            Matrix<const double> values, Index each, Index low, Index high, Matrix<double> rows,
            std::span<bool> moved) {
    for (Index i = low; i < high; ++i) {
        for (Index at = i * each; at < (i + 1) * each; ++at) {
            moved[at] = false;
            for (Index j = 0; j < query.columns; ++j) {
                const double x = values(at, j), q = query(i, j);
                if (frozen(i, j) || is_same(x, q)) {
                    rows(at, j) = q;
                    continue;
                }
                const double inside = std::isnan(x) ? x : std::min(std::max(x, storage.least[j]), storage.greatest[j]);
                rows(at, j) = storage.whole[j] ? std::nearbyint(inside) : inside;
                moved[at] = moved[at] || !is_same(rows(at, j), q);
            }
        }
    }
}

void judge(const Judged& draws, std::span<double> probability, std::span<std::int8_t> verdict) {
    mark_unlikely(draws, verdict);
    const std::size_t n = draws.key.size();
    const auto repeated = std::make_unique<bool[]>(n);
    mark_seen(draws.key, draws.query, {repeated.get(), n});
    for (std::size_t i = 0; i < n; ++i) {
        probability[i] = std::numeric_limits<double>::quiet_NaN();
        if (!draws.said.entries.empty()) {
            const auto said = draws.said[static_cast<Index>(i)];
            const double own = said[draws.target[draws.query[i]]];
            probability[i] = own;
            // Where less than a half will do, another class could be the likelier.
            const bool lower = std::any_of(said.begin(), said.end(), [own](double other) { return own < other; });
            if (lower || own < draws.least[draws.query[i]]) {
                verdict[i] = DOUBTFUL;
            }
        }
        if (!draws.fine[i]) {
            verdict[i] = REFUSED;
        }
        if (repeated[i]) {
            verdict[i] = std::max<std::int8_t>(verdict[i], REPEAT);
        }
    }
}

void mark_seen(std::span<const std::uint64_t> key, std::span<const Index> query, std::span<bool> seen) {
    std::size_t size = 4;
    while (size < 2 * key.size()) {
        size *= 2;
    }
    // A table with open addressing.
    std::vector<std::uint64_t> table(size);
    std::vector<char> taken(size);
    for (std::size_t i = 0; i < key.size(); ++i) {
        // Rows of one query have one number taken from their keys, so equal ones stay equal; those of two differ.
        const std::uint64_t own = key[i] - static_cast<std::uint64_t>(query[i]) * GOLDEN;
        std::size_t at = (own ^ (own >> 32)) & (size - 1);
        while (taken[at] && table[at] != own) {
            at = (at + 1) & (size - 1);
        }
        seen[i] = taken[at];
        table[at] = own;
        taken[at] = true;
    }
}

Index first_rows(std::span<const Index> query, std::span<const std::int8_t> verdict, std::int8_t worst, Index n_queries, Index n,
                 bool exact, std::span<Index> places) {
    const auto turn = [&](std::size_t i) { return query[i] * VERDICTS + static_cast<Index>(verdict[i]); };
    std::vector<Index> start(n_queries * VERDICTS + 1, 0);
    for (std::size_t i = 0; i < query.size(); ++i) {
        start[turn(i) + 1] += verdict[i] <= worst;
    }
    for (std::size_t k = 1; k < start.size(); ++k) {
        start[k] += start[k - 1];
    }
    std::vector<Index> order(start.back()), put(start);
    for (std::size_t i = 0; i < query.size(); ++i) {
        if (verdict[i] <= worst) {
            order[put[turn(i)]++] = static_cast<Index>(i);
        }
    }
    Index filled = 0;
    for (Index q = 0; q < n_queries; ++q) {
        const Index first = start[q * VERDICTS], own = start[(q + 1) * VERDICTS] - first;
        const Index wanted = exact && own > 0 ? n : std::min(n, own);
        for (Index t = 0; t < wanted; ++t) {
            places[filled++] = order[first + t % own];
        }
    }
    return filled;
}

}  // namespace dicoflex
