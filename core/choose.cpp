#include "choose.hpp"

#include <algorithm>
#include <limits>

#include "apart.hpp"

namespace dicoflex {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
// Rows of one way that are no further apart, in shares of ranges, are the same advice: taken when all else is.
constexpr double SAME = 0.02, LAST = 10.0;
// Taken from the score of a way that was taken already: more than tells clear candidates of other ways apart.
constexpr double AGAIN = 2.0;
// Among the first answers, a way that holds all of another and some more counts as if it had been taken so often.
constexpr double NESTED = 2.0;
constexpr std::size_t FIRST = 5;

// What speaks for each candidate, from 1 for the nearest to 0 for the farthest, less what speaks against it.
std::vector<double> merit_of(const Merits& merits, std::size_t n) {
    std::vector<double> merit(n);
    const double *distance = merits.distance, *likely = merits.likely;
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t nearer = 0;
        for (std::size_t k = 0; k < n; ++k) {
            const bool before = likely[k] > likely[i] || (likely[k] == likely[i] && k < i);
            nearer += distance[k] < distance[i] || (distance[k] == distance[i] && before);
        }
        const auto others = static_cast<double>(std::max<std::size_t>(n - 1, 1));
        merit[i] = (1.0 - merits.handicap[i]) - static_cast<double>(nearer) / others;
    }
    return merit;
}

// Whether one way changes all that another does.
bool holds(const std::uint8_t* one, const std::uint8_t* other, std::size_t d) {
    return std::equal(one, one + d, other, [](std::uint8_t a, std::uint8_t b) { return a || !b; });
}

}  // namespace

std::size_t number_ways(const std::uint8_t* changed, std::size_t n, std::size_t d, std::int64_t* ways) {
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t* own = changed + i * d;
        const auto found = std::find_if(first.begin(), first.end(),
                                        [=](std::size_t other) { return std::equal(own, own + d, changed + other * d); });
        ways[i] = found - first.begin();
        if (found == first.end()) {
            first.push_back(i);
        }
    }
    return first.size();
}

void find_changes(const double* values, const double* query, std::size_t n, std::size_t d,
                  std::vector<std::uint8_t>& changed) {
    changed.resize(n * d);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            changed[i * d + j] = differ(values[i * d + j], query[j]);
        }
    }
}

std::vector<std::size_t> choose(const Choice& choice, const Merits& merits, std::size_t n, double diversity) {
    const std::size_t n_rows = choice.n, d = choice.d;
    const std::vector<double> merit = merit_of(merits, n_rows);
    std::vector<std::int64_t> way(n_rows);
    std::vector<std::size_t> used(number_ways(choice.changed, n_rows, d, way.data()));
    const auto times = [&](std::size_t i) -> std::size_t& { return used[static_cast<std::size_t>(way[i])]; };
    std::vector<double> nearest(n_rows, INF);
    std::vector<std::uint8_t> nested(n_rows);
    std::vector<std::size_t> chosen;
    while (chosen.size() < std::min(n, n_rows)) {
        std::size_t best = n_rows;
        double best_score = -INF;
        for (std::size_t i = 0; i < n_rows; ++i) {
            if (nearest[i] <= 0.0) {
                continue;
            }
            const double again = nested[i] && chosen.size() < FIRST ? NESTED : 0.0;
            double score = merit[i] - diversity * (static_cast<double>(times(i)) + again);
            if (times(i) > 0) {
                score -= diversity > 0.0 ? AGAIN : 0.0;
                score += 0.2 * diversity * std::min(nearest[i], 1.0);
                score -= nearest[i] < SAME ? LAST : 0.0;
            }
            if (score > best_score) {
                best = i;
                best_score = score;
            }
        }
        if (best == n_rows) {
            break;
        }
        chosen.push_back(best);
        ++times(best);
        for (std::size_t i = 0; i < n_rows; ++i) {
            const std::uint8_t *own = choice.changed + i * d, *other = choice.changed + best * d;
            if (way[i] == way[best]) {
                const double far = apart(choice.values + i * d, choice.values + best * d, choice.ranges, d);
                nearest[i] = std::min(nearest[i], far);
            } else if (!nested[i]) {
                nested[i] = holds(own, other, d) || holds(other, own, d);
            }
        }
    }
    return chosen;
}

std::vector<std::size_t> choose_spread(const Choice& choice, std::span<const double> merit, double scale,
                                       std::size_t n, double diversity) {
    const std::size_t n_rows = choice.n, d = choice.d;
    std::vector<double> nearest(n_rows, 1.0);
    std::vector<std::size_t> chosen;
    while (chosen.size() < std::min(n, n_rows)) {
        std::size_t best = n_rows;
        double best_score = -INF;
        for (std::size_t i = 0; i < n_rows; ++i) {
            const double far = chosen.empty() ? 0.0 : nearest[i];
            const double score = (1.0 - diversity) * merit[i] + diversity * far;
            if (nearest[i] > 0.0 && score > best_score) {
                best = i;
                best_score = score;
            }
        }
        if (best == n_rows) {
            break;
        }
        chosen.push_back(best);
        for (std::size_t i = 0; i < n_rows; ++i) {
            const double far = apart(choice.values + best * d, choice.values + i * d, choice.ranges, d);
            nearest[i] = std::min(nearest[i], far / static_cast<double>(d) / scale);
        }
    }
    return chosen;
}

double widest(const Choice& choice) {
    double found = 0.0;
    for (std::size_t i = 0; i < choice.n; ++i) {
        for (std::size_t k = 0; k < i; ++k) {
            found = std::max(
                found, apart(choice.values + i * choice.d, choice.values + k * choice.d, choice.ranges, choice.d));
        }
    }
    return found / static_cast<double>(choice.d);
}

}  // namespace dicoflex
