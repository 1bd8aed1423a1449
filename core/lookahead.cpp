#include "lookahead.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dicoflex {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
// What a single point of an interval weighs: nothing, unless it is all that is allowed.
constexpr double POINT = 1e-9;

// The points of a feature.
std::span<const double> points_of(const CellBounds& bounds, Index j) {
    return bounds.points.subspan(bounds.point_at[j], bounds.point_at[j + 1] - bounds.point_at[j]);
}

bool is_listed(double value, std::span<const double> points) {
    const auto found = std::lower_bound(points.begin(), points.end(), value);
    return found != points.end() && *found == value;
}

// The share of a stretch that some of a feature's points stand for, each for the mean distance between two.
double density_of(std::span<const double> points, Index number, double width) {
    if (number <= 0) {
        return 0.0;
    }
    const double between = static_cast<double>(std::max<std::size_t>(points.size() - 1, 1));
    const double spacing = (points.back() - points.front()) / between;
    return spacing > 0.0 && width > 0.0 ? std::min(1.0, static_cast<double>(number) * spacing / width) : 1.0;
}

// The part of a cell of a feature whose values are listed.
Part listed_part(const Step& step, Index cell, double a, double b) {
    const CellBounds& bounds = step.limits.bounds;
    const Index at = step.cells.offset[step.j] + cell;
    const auto points = points_of(bounds, step.j);
    const Index first = std::lower_bound(points.begin(), points.end(), a) - points.begin();
    const Index number = std::upper_bound(points.begin(), points.end(), b) - points.begin() - first;
    const bool mine = cell == step.queries.own(step.i, step.j);
    const double q = step.queries.values(step.i, step.j);
    const bool has_own = mine && number > 0 && is_listed(q, points.subspan(first, number));
    const Index besides = number - (has_own ? 1 : 0);
    const double share = step.cells.count[at] == 1
                             ? static_cast<double>(besides)
                             : density_of(points, besides, step.cells.high[at] - step.cells.low[at]);
    return {share, a, b, bounds.point_at[step.j] + first, besides};
}

// Number k of a run's values, counted without the forbidden ones and the query's own.
Index past(const Step& step, double start, Index k, const Part& part, double q, bool own_here) {
    const CellBounds& bounds = step.limits.bounds;
    for (Index t = bounds.banned_at[step.j]; t < bounds.banned_at[step.j + 1]; ++t) {
        const double v = bounds.banned[t];
        if (own_here && q < v) {
            k += k >= step.cells.place(step.j, start, q);
            own_here = false;
        }
        const Index place = step.cells.place(step.j, start, v);
        if (part.low <= v && v <= part.high && step.cells.on_run(step.j, start, place) == v) {
            k += k >= place;
            own_here = own_here && q != v;
        }
    }
    if (own_here) {
        k += k >= step.cells.place(step.j, start, q);
    }
    return k;
}

// -- rules ------------------------------------------------------------------------------------------------------------

// Whether a number will be there, may be missing, or will be.
enum Absence { THERE, MAYBE, GONE };

// Between which values a feature or a sum of them ends, and whether one of them may or will be missing.
struct Span {
    double least, most;
    Absence missing;
};

// What is known of rules when the step's feature is drawn; `locked` if no later feature may change but those that must.
struct Outlook {
    const Step& step;
    const Rules& rules;
    std::span<const double> row;
    bool locked;

    bool is_drawn(Index k) const { return step.cells.rank[k] < step.cells.rank[step.j]; }

    Span span(Index k) const {
        const Index i = step.i;
        const bool drawn = is_drawn(k);
        if (drawn || (locked && step.limits.bounds.may_keep(i, k))) {
            const double value = drawn ? row[k] : step.queries.values(i, k);
            if (std::isnan(value) || value >= rules.ranks[k]) {
                return {0.0, 0.0, GONE};
            }
            return {value, value, THERE};
        }
        if (std::isnan(rules.least(i, k))) {
            return {0.0, 0.0, GONE};
        }
        return {rules.least(i, k), rules.most(i, k), rules.may_miss(i, k) ? MAYBE : THERE};
    }

    // The least and greatest sum of a linear literal without the step's feature.
    Span others(Index literal) const {
        double low = rules.constant[literal], high = low;
        Absence missing = THERE;
        const auto weights = rules.coefficients[literal];
        for (Index k = 0; k < rules.coefficients.columns; ++k) {
            const double weight = weights[k];
            if (weight == 0.0 || k == step.j) {
                continue;
            }
            const Span one = span(k);
            missing = std::max(missing, one.missing);
            low += weight * (weight > 0.0 ? one.least : one.most);
            high += weight * (weight > 0.0 ? one.most : one.least);
        }
        return {low, high, missing};
    }

    // Whether a literal about another feature's levels may come true.
    bool level_possible(Index literal) const {
        const Index i = step.i, k = rules.feature[literal];
        const CellBounds& bounds = step.limits.bounds;
        const bool drawn = is_drawn(k);
        if (drawn || ((locked || step.queries.stuck(i, k)) && bounds.may_keep(i, k))) {
            return rules.levels(literal, static_cast<Index>(drawn ? row[k] : step.queries.values(i, k)));
        }
        for (Index c = 0; c < step.cells.size(k); ++c) {
            const bool here = c == step.queries.own(i, k);
            if (rules.levels(literal, c) && (here ? bounds.may_keep(i, k) : bounds.open(i, step.cells.offset[k] + c))) {
                return true;
            }
        }
        return false;
    }
};

// Whether a sum may compare so with 0.
bool may_hold(Compared op, bool if_missing, const Span& sum) {
    if (sum.missing == GONE || (sum.missing == MAYBE && if_missing)) {
        return if_missing;
    }
    switch (op) {
        case Compared::EQUAL: return sum.least <= SLACK && sum.most >= -SLACK;
        case Compared::UNEQUAL: return !(sum.least == 0.0 && sum.most == 0.0);
        case Compared::BELOW: return sum.least < 0.0;
        default: return sum.least <= SLACK;
    }
}

// Between which values a number times `weight`, plus a sum, compares so with 0.
Ends interval(Compared op, bool if_missing, double weight, const Span& sum) {
    if (sum.missing == GONE) {
        return if_missing ? Ends{-INF, INF} : Ends{INF, -INF};
    }
    if ((sum.missing == MAYBE && if_missing) || op == Compared::UNEQUAL) {
        return {-INF, INF};
    }
    double most = -sum.least / weight;
    const double least = op == Compared::EQUAL ? -sum.most / weight : -INF * weight;
    if (op == Compared::BELOW) {
        // By more than the room for rounding, or what is kept would count as below itself.
        most -= std::copysign(4.0 * SLACK * std::max(1.0, std::abs(most)), weight);
    }
    return {std::min(least, most), std::max(least, most)};
}

// What rules let a feature be: between which values, and whether missing.
struct Room {
    double low = -INF, high = INF;
    bool missing = true;
};

// Rule out the levels that no literal of a clause names, and whose rank is not between the ends.
void fit_levels(const Rules& rules, Index clause, Index j, Ends ends, bool absent, std::span<bool> fits) {
    for (Index code = 0; code < rules.levels.columns; ++code) {
        const auto rank = static_cast<double>(code);
        bool named = rank >= rules.ranks[j] ? absent : ends.low - SLACK <= rank && rank <= ends.high + SLACK;
        for (Index literal = rules.start[clause]; literal < rules.start[clause + 1]; ++literal) {
            named = named || (rules.feature[literal] == j && rules.levels(literal, code));
        }
        fits[code] = fits[code] && named;
    }
}

// What the rules let the step's feature be; for levels, in `fits`, which of them.
//
// A clause that a literal about other features may still make true says nothing of this one.
Room narrow(const Outlook& outlook, std::span<bool> fits) {
    const Rules& rules = outlook.rules;
    const Index i = outlook.step.i, j = outlook.step.j;
    Room room;
    std::fill(fits.begin(), fits.end(), true);
    for (Index c = rules.first[i]; c < rules.last[i]; ++c) {
        if (!rules.touches(c, j)) {
            continue;
        }
        Ends ends{INF, -INF};
        bool absent = false, loose = false;
        for (Index literal = rules.start[c]; literal < rules.start[c + 1] && !loose; ++literal) {
            const auto sort = static_cast<Sort>(rules.sort[literal]);
            const bool if_missing = rules.if_missing[literal], about = rules.feature[literal] == j;
            if (sort == Sort::LINEAR) {
                const auto op = static_cast<Compared>(rules.op[literal]);
                const double weight = rules.coefficients(literal, j);
                const Span sum = outlook.others(literal);
                if (weight != 0.0) {
                    const Ends own = interval(op, if_missing, weight, sum);
                    ends = {std::min(ends.low, own.low), std::max(ends.high, own.high)};
                    absent = absent || if_missing;
                } else {
                    loose = may_hold(op, if_missing, sum);
                }
            } else if (sort == Sort::LEVELS) {
                loose = !about && outlook.level_possible(literal);
            } else if (sort == Sort::MISSING && about) {
                absent = absent || if_missing;
                if (!if_missing) {
                    ends = {-INF, INF};
                }
            } else if (sort == Sort::MISSING) {
                const Absence gone = outlook.span(rules.feature[literal]).missing;
                loose = if_missing ? gone != THERE : gone != GONE;
            } else {
                loose = true;
            }
        }
        if (!loose) {
            room.low = std::max(room.low, ends.low);
            room.high = std::min(room.high, ends.high);
            room.missing = room.missing && absent;
            fit_levels(rules, c, j, ends, absent, fits);
        }
    }
    return room;
}

// Take from the shares of changed states what lies beyond the ends, is missing or does not fit.
void restrict(const Step& step, const Room& room, std::span<const bool> fits, std::span<double> share) {
    const bool level = step.limits.bounds.level[step.j];
    for (Index cell = 0; cell < step.cells.size(step.j); ++cell) {
        if (share[cell + 1] == 0.0) {
            continue;
        }
        const Index at = step.cells.offset[step.j] + cell;
        const double least = step.cells.low[at], most = step.cells.high[at];
        bool gone = most < room.low || least > room.high;
        if (level) {
            gone = !fits[cell];
        } else if (std::isnan(least)) {
            gone = !room.missing;
        }
        if (gone) {
            share[cell + 1] = 0.0;
        } else if (!level && (least < room.low || most > room.high)) {
            share[cell + 1] = part_of(step, cell, {room.low, room.high}).share;
        }
    }
}

}  // namespace

Part part_of(const Step& step, Index cell, Ends ends) {
    const Cells& cells = step.cells;
    const CellBounds& bounds = step.limits.bounds;
    const Index i = step.i, j = step.j, at = cells.offset[j] + cell, count = cells.count[at];
    const double start = cells.low[at], end = cells.high[at];
    if (std::isnan(start)) {
        return {1.0, start, end, 0, 1};
    }
    const double a = std::max(start, ends.low), b = std::min(end, ends.high);
    if (!(a <= b)) {
        return {0.0, a, b, 0, 0};
    }
    const double q = step.queries.values(i, j);
    const bool own_here = cell == step.queries.own(i, j) && step.queries.exact(i, j);
    if (bounds.pointed[j]) {
        return listed_part(step, cell, a, b);
    }
    if (count == 1) {
        return {own_here ? 0.0 : 1.0, a, b, 0, 1};
    }
    if (count == 0) {
        const double width = end - start;
        return {width > 0.0 && b > a ? (b - a) / width : POINT, a, b, 0, 0};
    }
    auto first = static_cast<Index>(std::ceil((a - start) / cells.step[j] - 1e-6));
    auto last = static_cast<Index>(std::floor((b - start) / cells.step[j] + 1e-6));
    // Limits may lie next to a value: only the value itself tells on which side.
    first += cells.on_run(j, start, first) < a;
    last -= cells.on_run(j, start, last) > b;
    const bool own_inside = own_here && a <= q && q <= b;
    Index besides = last - first + 1 - (own_inside ? 1 : 0);
    for (Index t = bounds.banned_at[j]; t < bounds.banned_at[j + 1]; ++t) {
        const double v = bounds.banned[t];
        if (a <= v && v <= b && !(own_inside && v == q)) {
            besides -= cells.on_run(j, start, cells.place(j, start, v)) == v;
        }
    }
    const double share = besides > 0 ? static_cast<double>(besides) / static_cast<double>(count - own_here) : 0.0;
    return {share, a, b, first, besides};
}

double value_of(const Step& step, Index cell, const Part& part, double u) {
    const Cells& cells = step.cells;
    const CellBounds& bounds = step.limits.bounds;
    const Index i = step.i, j = step.j, at = cells.offset[j] + cell, count = cells.count[at];
    const double start = cells.low[at], q = step.queries.values(i, j);
    if (std::isnan(start)) {
        return start;
    }
    const bool mine = cell == step.queries.own(i, j) && part.low <= q && q <= part.high;
    const Index k = part.first + std::min(static_cast<Index>(u * static_cast<double>(part.number)), part.number - 1);
    if (bounds.pointed[j] && !bounds.level[j]) {
        const auto after = bounds.points.subspan(part.first);
        const auto listed = after.first(std::min(after.size(), static_cast<std::size_t>(part.number + 1)));
        return bounds.points[k + (mine && bounds.points[k] >= q && is_listed(q, listed))];
    }
    if (count == 1) {
        return start;
    }
    if (count == 0) {
        return std::min(part.low + u * (part.high - part.low), part.high);
    }
    return cells.on_run(j, start, past(step, start, k, part, q, mine && step.queries.exact(i, j)));
}

bool is_spent(const Step& step, Index used, double spent) {
    const CellBounds& bounds = step.limits.bounds;
    const Index i = step.i, j = step.j;
    const double to_spend = bounds.most_cost - spent - bounds.price(i, j) - bounds.fixed[j];
    return bounds.most_changes - used - bounds.needed(i, j) - bounds.reserved(i, j) < 1 || to_spend < -0.5 * SLACK;
}

bool depends(const Step& step) {
    const CellBounds& bounds = step.limits.bounds;
    const bool ruled = step.limits.rules && step.limits.rules->touched[step.j];
    return ruled || (bounds.unit[step.j] > 0.0 && std::isfinite(bounds.most_cost));
}

void open_shares(const Step& step, std::span<double> share) {
    const CellBounds& bounds = step.limits.bounds;
    const Index i = step.i, j = step.j, own = step.queries.own(i, j), start = step.cells.offset[j];
    share[0] = bounds.may_keep(i, j) ? 1.0 : 0.0;
    for (Index cell = 0; cell < step.cells.size(j); ++cell) {
        if (!bounds.open(i, start + cell) || (cell == own && step.queries.alone(i, j))) {
            share[cell + 1] = 0.0;
        } else {
            share[cell + 1] = bounds.level[j] ? 1.0 : part_of(step, cell, {bounds.low(i, j), bounds.high(i, j)}).share;
        }
    }
}

Ends narrow_shares(const Step& step, std::span<const double> row, Index used, double spent, std::span<bool> fits,
                   std::span<double> share) {
    const CellBounds& bounds = step.limits.bounds;
    const Index i = step.i, j = step.j;
    const double q = step.queries.values(i, j);
    const Index left = bounds.most_changes - used - bounds.needed(i, j);
    const double to_spend = bounds.most_cost - spent - bounds.price(i, j) - bounds.fixed[j];
    Room room{bounds.low(i, j), bounds.high(i, j), true};
    bool stays = bounds.may_keep(i, j);
    std::fill(fits.begin(), fits.end(), true);
    if (step.limits.rules) {
        // What later features may be depends on whether this one's change is the last one.
        const Room kept = narrow({step, *step.limits.rules, row, left <= 0}, fits);
        if (bounds.level[j]) {
            stays = stays && fits[step.queries.own(i, j)];
        } else {
            const double slack = SLACK * std::max(1.0, std::abs(q));
            stays = stays && (std::isnan(q) ? kept.missing : kept.low - slack <= q && q <= kept.high + slack);
        }
        const Room changed = narrow({step, *step.limits.rules, row, left <= 1}, fits);
        room = {std::max(room.low, changed.low), std::min(room.high, changed.high), changed.missing};
    }
    if (bounds.unit[j] > 0.0 && std::isfinite(to_spend)) {
        // With room for rounding, or a value that costs all that is left would be out of reach.
        const double reach = (to_spend + 0.5 * SLACK) / bounds.unit[j];
        room.missing = room.missing && reach >= 1.0 - SLACK;
        if (!std::isnan(q)) {
            room.low = std::max(room.low, q - reach);
            room.high = std::min(room.high, q + reach);
        } else if (reach < 1.0 - SLACK) {
            room.high = -INF;
        }
    }
    restrict(step, room, fits, share);
    share[0] = stays ? 1.0 : 0.0;
    return {room.low, room.high};
}

}  // namespace dicoflex
