// Refinement: each candidate is made minimal, and brought as near to its query as the judges allow.
//
// A row *stands* if the limits allow it, no pair of its values is avoided (that its query has not), the surrogate gives
// its target the probability asked for, and its log density and weakest factor are not below the floors. A candidate
// that does not stand is first mended. Then changes are undone, one by one, while the row stands without them; then each
// changed number, and each level of those that have an order, moves towards the query.
//
// What keeps a change from being undone may be the floor of the log density alone, and by little: then a person would
// call the change needless. So a row is made less down to a lower floor first, and kept if it ends above the floor all
// the same: it has *room*. If it ends between the two, it is made less anew, down to the floor.
//
// Nearer to its query a row is usually likelier too, and to ask for its density takes longer than all else. So a row is
// first made less, or brought nearer, without a look at the floors, and kept if it ends above them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "coherence.hpp"
#include "programs.hpp"
#include "surrogate.hpp"

namespace dicoflex {

// A model's judges: all that judges a row but the limits.
struct Judges {
    std::shared_ptr<const Surrogate> surrogate;
    std::shared_ptr<const MarkedPairs> avoided;
    std::shared_ptr<const RowDensity> density;
    std::shared_ptr<const Dependencies> dependencies;
    std::vector<std::int64_t> codes;      // [d]: how many codes a feature has, 0 of numbers
    std::vector<std::uint8_t> follower;   // [d]: what depends on other features of the table
    std::vector<double> scale;            // [d]: a number's standard deviation
    std::vector<double> gaps;             // [d]: steps between the first and the last level; 0 of what is not ordered
    std::vector<double> step;             // [d]: how far a number's values are apart, 0 where that can't be told
    std::vector<double> digits;           // [d]: ten to the power of a number's decimals
    std::vector<std::int64_t> stop_at;    // [d + 1]
    std::vector<double> stop, typical;    // where numbers stop; a value for each of the density's cells

    std::size_t n_features() const { return follower.size(); }
    bool is_number(std::size_t j) const { return density->bins.number[j]; }
};

// What constraints allow; the first five have an entry per query.
struct Bounds {
    std::size_t n_queries, n_features, n_states;
    const bool* frozen;                 // [n][d]
    const double *low, *high;           // [n][d]: between which a changed number lies
    const bool* states;                 // [n][states]: codes a changed level may have; whether a number may go missing
    const bool* may_keep;               // [n][d]
    const std::int64_t* offset;         // [d + 1]
    const bool* has_points;             // [d]: whether a changed number may take listed values alone
    std::span<const std::int64_t> point_at;
    std::span<const double> point;
    std::span<const std::int64_t> banned_at;
    std::span<const double> banned;
    const double *fixed, *unit;         // [d]: what a change costs, and a unit of it
    std::int64_t most_changes;
    double most_cost;
    const bool* uncounted;              // [d]: what counts neither as a change nor as cost
    const bool* follows;                // [d]: what refinement does not choose, as it follows from others
    Programs rules;
    Consequences consequences;
};

// What a row must be: its class, the surrogate's probability of it, the two floors, and the lower log density.
struct Wanted {
    double target, probability, log_density, weakest, lower;
};

// Rows to refine or to judge, of the queries `which`.
struct Rows {
    std::size_t n, d;
    double* values;             // [n][d]
    const double* queries;      // [queries][d]
    const std::int64_t* which;  // [n]
    const Wanted* wanted;       // [queries]
    bool* stands;               // [n]
    double* scores;             // [n][4]: probability, log density, weakest factor, and whether a row has room
};

enum Steps : std::int64_t { LESS = 1, FOREMOST = 2, NEARER = 4 };

// Refine rows low to high in place: each of the `steps` that is asked for, in turn.
//
// LESS: made to stand where that is possible (`stands`), and what they don't need undone. FOREMOST: at most `most` of
// each query's marked in `kept`, of all rows. NEARER: those brought as near to their queries as they stand. turned:
// whether the strongest changes are undone first.
void refine_rows(const Judges& judges, const Bounds& bounds, const Rows& rows, std::size_t low, std::size_t high,
                 bool turned, std::int64_t most, std::int64_t steps, bool* kept);

// Mark which of the rows low to high are what refinement would leave as they are; nothing is mended.
//
// Where a row has a `feature` (else -1), that number is first set to where it may stop, counted from `origin`; what
// depends on others follows.
void judge_rows(const Judges& judges, const Bounds& bounds, const Rows& rows, std::size_t low, std::size_t high,
                const std::int64_t* feature, const double* origin);

// Rows of which the foremost are wanted; those of one query stand together.
struct Candidates {
    std::size_t n, d;
    const double *values, *queries;  // [n][d], [queries][d]
    const std::int64_t* which;       // [n]
    const bool* stands;              // [n]
};

// Mark at most `most` rows per query that stand: the nearest of each way, then each way's next, no row twice.
//
// number, scale, gaps: [d], as `move` takes them.
void mark_foremost(const Candidates& rows, const std::uint8_t* number, const double* scale, const double* gaps,
                   std::int64_t most, bool* kept);

}  // namespace dicoflex
