#include "refine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apart.hpp"

namespace dicoflex {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity(), NOTHING = std::numeric_limits<double>::quiet_NaN();
constexpr double SLACK = 1e-9;
// How often a number's way to the query is halved, and how often all changes are brought nearer.
constexpr int HALVINGS = 8, ROUNDS = 4;
// How often an unlikely row is mended, how many changes are tried for that, and how much likelier each has to make it.
constexpr int MENDS = 6, TRIES = 4;
constexpr double LEAST_GAIN = 0.25;

using Row = std::span<double>;
using Query = std::span<const double>;

// Whether a sorted stretch of values holds one, up to rounding.
bool is_listed(double value, std::span<const double> values, std::int64_t first, std::int64_t last) {
    if (first == last) {
        return false;
    }
    const auto low = static_cast<std::size_t>(first), high = static_cast<std::size_t>(last);
    const std::size_t at = place_of(value, values, low, high);
    const double slack = SLACK * std::max(1.0, std::abs(value));
    return (at < high && std::abs(values[at] - value) <= slack) ||
           (at > low && std::abs(values[at - 1] - value) <= slack);
}

// Whether query `at` may have x in place of q as its feature j.
bool may_change(const Bounds& bounds, std::size_t at, std::size_t j, double x, bool number) {
    const std::size_t cell = at * bounds.n_features + j;
    if (bounds.frozen[cell]) {
        return false;
    }
    const std::int64_t first = bounds.offset[j], last = bounds.offset[j + 1];
    const bool* states = bounds.states + at * bounds.n_states + first;
    if (!number) {
        return states[code_of(x)];
    }
    if (std::isnan(x)) {
        return last > first && states[0];
    }
    return bounds.low[cell] <= x && x <= bounds.high[cell] &&
           (!bounds.has_points[j] || is_listed(x, bounds.point, bounds.point_at[j], bounds.point_at[j + 1])) &&
           !is_listed(x, bounds.banned, bounds.banned_at[j], bounds.banned_at[j + 1]);
}

// Whether query `at` may have `row` as an answer; features that follow are taken to do so.
bool is_allowed(const Judges& judges, const Bounds& bounds, std::size_t at, Query row, Query query) {
    std::int64_t changes = 0;
    double cost = 0.0;
    for (std::size_t j = 0; j < row.size(); ++j) {
        const double x = row[j], q = query[j];
        if (!differ(x, q)) {
            if (!bounds.may_keep[at * bounds.n_features + j]) {
                return false;
            }
            continue;
        }
        if (!may_change(bounds, at, j, x, judges.is_number(j))) {
            return false;
        }
        if (!bounds.uncounted[j]) {
            ++changes;
            cost += bounds.fixed[j] + bounds.unit[j] * (std::isnan(x - q) ? 1.0 : std::abs(x - q));
        }
    }
    if (changes == 0 || changes > bounds.most_changes || cost > bounds.most_cost + SLACK) {
        return false;
    }
    for (std::size_t k = 0; k < bounds.rules.size(); ++k) {
        if (run(bounds.rules, k, row, query) == 0.0) {
            return false;
        }
    }
    return true;
}

// A row on the desk: its cells for both judges, and what they say of it.
struct Looked {
    std::vector<std::int32_t> pair, cell;
    CellBits bits;  // of the pairs
    Factors factors;

    explicit Looked(const Judges& judges)
        : pair(judges.n_features()), cell(judges.n_features()), factors(*judges.density) {}
};

// The work on one row after the other. A row is judged by what it changes: all that its query tells is worked out once.
struct Desk {
    const Judges& judges;
    const Bounds& bounds;

    std::size_t at = 0;  // the query that lies on the desk, once `loaded`
    bool loaded = false;
    Query query;
    Row row;
    Wanted want{};  // what the row must be in the end

    std::vector<std::int32_t> pair_query, cell_query;
    Factors factors_query;
    Looked now, trial_looked;
    bool coherent = false;  // whether the row is known to have no pair that is avoided
    double probability = 0.0, density = 0.0, weakest = 0.0;

    std::vector<double> trial, kept;
    std::vector<std::size_t> order;  // the features in the order in which their changes are tried
    std::vector<double> rank, alone;  // alone: how sure the surrogate was without a change, when that order was made
    std::vector<std::uint8_t> skipped;
    std::int64_t moves = 0, undone = 0;  // how often the row moved, how often a change was undone
    std::int64_t alone_since = 0;        // after how many moves `alone` held
    std::vector<std::int64_t> tried;     // the number of moves when undoing a feature's change was last tried in vain
    SurrogateWork work;
    DensityRoom room;

    Desk(const Judges& judges, const Bounds& bounds);

    std::size_t size() const { return row.size(); }
    bool is_chosen(std::size_t j) const { return !judges.follower[j] && !bounds.follows[j]; }
    bool is_changed(std::size_t j) const { return differ(row[j], query[j]); }
    bool may_keep(std::size_t j) const { return bounds.may_keep[at * bounds.n_features + j]; }

    void lay_out(const Rows& rows, std::size_t i);
    double sure_of(Query values);
    void find_cells();
    void locate();
    bool weigh(double floor, double weak);
    void settle();
    void begin();

    bool follow_all(Row values);
    bool edit(std::size_t j, double value);
    bool is_trial_coherent();
    bool attempt(const Wanted& wanted, double sure);
    bool try_setting(std::size_t j, double value, const Wanted& wanted, double sure);

    double without(std::size_t j) const { return alone_since == moves ? alone[j] : NOTHING; }
    void undo(const Wanted& wanted);
    double snapped(std::size_t j, double value, double origin) const;
    void approach(std::size_t j, const Wanted& wanted);
    void step_back(std::size_t j, const Wanted& wanted);
    void lessen(std::size_t j, const Wanted& wanted);
    bool untangle();
    std::pair<double, double> likelier(std::size_t k);
    bool mend_once(const Wanted& trying);
    bool mend();
    void take_turns();
    void approach_all(const Wanted& wanted);
    void weaken(const Wanted& wanted);
    void make_less(const Wanted& wanted, bool turned);
    void bring_nearer(const Wanted& wanted);

    void keep() { std::copy(row.begin(), row.end(), kept.begin()); }
    void put_back() { std::copy(kept.begin(), kept.end(), row.begin()); }
    bool fell_below();
    bool stands();
    bool is_fit();
    bool less_at_once(bool turned);
    bool nearer_at_once();
    bool lessened(bool turned);
    bool neared(bool roomy);
    void tell(double* scores);
};

// A wish without floors: densities are not worked out.
Wanted without_floors(Wanted want) {
    want.log_density = want.weakest = -INF;
    return want;
}

Desk::Desk(const Judges& judges, const Bounds& bounds)
    : judges(judges),
      bounds(bounds),
      pair_query(judges.n_features()),
      cell_query(judges.n_features()),
      factors_query(*judges.density),
      now(judges),
      trial_looked(judges),
      trial(judges.n_features()),
      kept(judges.n_features()),
      order(judges.n_features()),
      rank(judges.n_features()),
      alone(judges.n_features()),
      skipped(judges.n_features()),
      tried(judges.n_features()),
      work(*judges.surrogate, judges.n_features()),
      room(*judges.density) {}

// Put row i on the desk, and its query, if another lies there.
void Desk::lay_out(const Rows& rows, std::size_t i) {
    const auto which = static_cast<std::size_t>(rows.which[i]);
    row = {rows.values + i * rows.d, rows.d};
    if (loaded && at == which) {
        return;
    }
    loaded = true;
    at = which;
    query = {rows.queries + at * rows.d, rows.d};
    want = rows.wanted[at];
    for (std::size_t j = 0; j < query.size(); ++j) {
        pair_query[j] = cell_of(judges.avoided->bins, j, query[j]);
        cell_query[j] = cell_of(judges.density->bins, j, query[j]);
    }
    edited(*judges.density, cell_query, 0, -INF, -INF, factors_query, factors_query, room);
}

// The probability that the surrogate gives the target.
double Desk::sure_of(Query values) {
    return probabilities_of(*judges.surrogate, values, work)[static_cast<std::size_t>(want.target)];
}

// The cells of the row.
void Desk::find_cells() {
    for (std::size_t j = 0; j < size(); ++j) {
        const bool changed = is_changed(j);
        now.pair[j] = changed ? cell_of(judges.avoided->bins, j, row[j]) : pair_query[j];
        now.cell[j] = changed ? cell_of(judges.density->bins, j, row[j]) : cell_query[j];
    }
    set_bits(*judges.avoided, now.pair, pair_query, now.bits);
    coherent = is_coherent(*judges.avoided, now.pair, pair_query, now.bits);
}

// The cells of the row, and what the surrogate says of it.
void Desk::locate() {
    find_cells();
    probability = sure_of(row);
}

// The log density and the weakest factor of the row's cells; whether neither lies below its floor.
//
// Where one does, the work is cut short, and what the desk holds of them is worth nothing.
bool Desk::weigh(double floor, double weak) {
    const RowDensity& rows = *judges.density;
    std::size_t first = size();
    for (std::size_t j = 0; j < size(); ++j) {
        if (now.cell[j] != cell_query[j]) {
            first = std::min(first, static_cast<std::size_t>(rows.rank[j]));
        }
    }
    for (std::size_t k = 0; k < first; ++k) {
        now.factors.factor[k] = factors_query.factor[k];
        if (now.factors.factor[k] < weak) {
            return false;
        }
    }
    std::copy_n(factors_query.heard.begin(), first * rows.n_hidden, now.factors.heard.begin());
    density = 0.0;
    if (first < size()) {
        density = edited(rows, now.cell, first, floor, weak, factors_query, now.factors, room);
    } else {
        for (const double factor : now.factors.factor) {
            density += factor;
        }
    }
    weakest = *std::min_element(now.factors.factor.begin(), now.factors.factor.end());
    return density >= floor;
}

// Work out all that is known of the row.
void Desk::settle() {
    locate();
    weigh(-INF, -INF);
}

void Desk::begin() {
    moves = undone = alone_since = 0;
    std::fill(tried.begin(), tried.end(), -1);
    settle();
}

// -- trials ----------------------------------------------------------------------------------------------------------

// Let what depends on other features follow; whether all has a value then.
bool Desk::follow_all(Row values) {
    const bool depends = judges.dependencies->size() > 0;
    bool fine = !depends || follow(*judges.dependencies, values, query);
    if (!bounds.consequences.feature.empty()) {
        fine = follow_on(bounds.consequences, values, query);
        // What follows by wish may settle what depends on it in the table.
        fine = (!depends || follow(*judges.dependencies, values, query)) && fine;
    }
    return fine;
}

// The trial: the row with feature j set and what depends on it following; whether it is one.
bool Desk::edit(std::size_t j, double value) {
    std::copy(row.begin(), row.end(), trial.begin());
    trial[j] = value;
    return follow_all(trial);
}

// Whether the trial has no pair that is avoided; where the row has none, only what differs from it is looked at.
bool Desk::is_trial_coherent() {
    const MarkedPairs& pairs = *judges.avoided;
    const auto flip = [](std::vector<std::uint64_t>& bits, std::size_t cell) {
        bits[cell / 64] ^= std::uint64_t{1} << (cell % 64);
    };
    const auto& own = now.pair;
    const auto& other = trial_looked.pair;
    CellBits& bits = trial_looked.bits;
    bits = now.bits;
    for (std::size_t j = 0; j < size(); ++j) {
        if (own[j] == other[j]) {
            continue;
        }
        flip(bits.all, pairs.cell(j, own[j]));
        flip(bits.all, pairs.cell(j, other[j]));
        if (own[j] != pair_query[j]) {
            flip(bits.changed, pairs.cell(j, own[j]));
        }
        if (other[j] != pair_query[j]) {
            flip(bits.changed, pairs.cell(j, other[j]));
        }
    }
    if (!coherent) {
        return is_coherent(pairs, other, pair_query, bits);
    }
    for (std::size_t j = 0; j < size(); ++j) {
        if (own[j] == other[j]) {
            continue;
        }
        const auto& set = other[j] != pair_query[j] ? bits.all : bits.changed;
        if (is_marked(pairs, pairs.cell(j, other[j]), set)) {
            return false;
        }
    }
    return true;
}

// Take the trial in place of the row if it stands.
//
// Without floors the densities are not worked out, and those on the desk hold no longer. sure: the trial's probability
// where that is known already, else NaN.
bool Desk::attempt(const Wanted& wanted, double sure) {
    if (!is_allowed(judges, bounds, at, trial, query)) {
        return false;
    }
    const RowDensity& rows = *judges.density;
    std::size_t lowest = size();
    for (std::size_t j = 0; j < size(); ++j) {
        trial_looked.pair[j] = now.pair[j];
        trial_looked.cell[j] = now.cell[j];
        if (differ(row[j], trial[j])) {
            trial_looked.pair[j] = cell_of(judges.avoided->bins, j, trial[j]);
            trial_looked.cell[j] = cell_of(rows.bins, j, trial[j]);
            if (trial_looked.cell[j] != now.cell[j]) {
                lowest = std::min(lowest, static_cast<std::size_t>(rows.rank[j]));
            }
        }
    }
    if (!is_trial_coherent()) {
        return false;
    }
    const double chance = std::isnan(sure) ? sure_of(trial) : sure;
    if (chance < wanted.probability) {
        return false;
    }
    const bool floored = wanted.log_density > -INF || wanted.weakest > -INF;
    if (floored && lowest < size()) {
        Factors &old = now.factors, &made = trial_looked.factors;
        if (std::any_of(old.factor.begin(), old.factor.begin() + static_cast<std::ptrdiff_t>(lowest),
                        [&wanted](double factor) { return factor < wanted.weakest; })) {
            return false;
        }
        const double made_density = edited(rows, trial_looked.cell, lowest, wanted.log_density, wanted.weakest, old,
                                           made, room);
        if (made_density < wanted.log_density) {
            return false;
        }
        std::copy(made.factor.begin() + static_cast<std::ptrdiff_t>(lowest), made.factor.end(),
                  old.factor.begin() + static_cast<std::ptrdiff_t>(lowest));
        const auto from = static_cast<std::ptrdiff_t>(lowest * rows.n_hidden);
        std::copy(made.heard.begin() + from, made.heard.end(), old.heard.begin() + from);
        density = made_density;
        weakest = *std::min_element(old.factor.begin(), old.factor.end());
    } else if (floored && (density < wanted.log_density || weakest < wanted.weakest)) {
        return false;
    }
    std::copy(trial.begin(), trial.end(), row.begin());
    std::swap(now.pair, trial_looked.pair);
    std::swap(now.cell, trial_looked.cell);
    std::swap(now.bits, trial_looked.bits);
    rest_on(*judges.surrogate, row, work);
    coherent = true;
    probability = chance;
    ++moves;
    return true;
}

// Set feature j in the row if the row stands so; whether it was.
bool Desk::try_setting(std::size_t j, double value, const Wanted& wanted, double sure) {
    return edit(j, value) && attempt(wanted, sure);
}

// -- moves -----------------------------------------------------------------------------------------------------------

// Undo what can be, in the desk's order, until nothing can; what failed is tried again once the row moved.
void Desk::undo(const Wanted& wanted) {
    bool again = true;
    while (again) {
        again = false;
        for (const std::size_t j : order) {
            if (!is_chosen(j) || !may_keep(j) || !is_changed(j)) {
                continue;
            }
            const double sure = without(j);
            if (tried[j] == moves || sure < wanted.probability) {
                continue;
            }
            if (try_setting(j, query[j], wanted, sure)) {
                ++undone;
                again = true;
            } else {
                tried[j] = moves;
            }
        }
    }
}

// The value nearest to `value` at which feature j may stop: one that is listed, one that rows share, or one that is a
// number of steps from `origin`.
double Desk::snapped(std::size_t j, double value, double origin) const {
    const bool listed = bounds.has_points[j];
    const auto first = static_cast<std::size_t>(listed ? bounds.point_at[j] : judges.stop_at[j]);
    const auto last = static_cast<std::size_t>(listed ? bounds.point_at[j + 1] : judges.stop_at[j + 1]);
    const std::span<const double> values = listed ? bounds.point : std::span<const double>(judges.stop);
    if (last == first) {
        if (judges.step[j] > 0.0) {
            value = origin + std::nearbyint((value - origin) / judges.step[j]) * judges.step[j];
        }
        return std::nearbyint(value * judges.digits[j]) / judges.digits[j];
    }
    std::size_t place = place_of(value, values, first, last);
    if (place == last || (place > first && value - values[place - 1] < values[place] - value)) {
        --place;
    }
    return values[place];
}

// Move number j towards the query by bisection.
void Desk::approach(std::size_t j, const Wanted& wanted) {
    double near = query[j];
    for (int halving = 0; halving < HALVINGS; ++halving) {
        const double far = row[j], value = snapped(j, 0.5 * (near + far), far);
        if (!(std::min(near, far) < value && value < std::max(near, far))) {
            break;
        }
        if (!try_setting(j, value, wanted, NOTHING)) {
            near = value;
        }
    }
}

// Set ordered level j to the one nearest to the query's, on either side, with which the row stands.
void Desk::step_back(std::size_t j, const Wanted& wanted) {
    const std::int64_t own = code_of(query[j]), far = code_of(row[j]), side = far > own ? 1 : -1;
    const std::int64_t gap = far > own ? far - own : own - far;
    for (std::int64_t apart = 1; apart < gap; ++apart) {
        for (const std::int64_t level : {own + side * apart, own - side * apart}) {
            if (level < 0 || static_cast<double>(level) > judges.gaps[j]) {
                continue;
            }
            if (try_setting(j, static_cast<double>(level), wanted, NOTHING)) {
                return;
            }
        }
    }
}

// Bring what feature j has nearer to what the query has: a number, or a level of those that have an order.
void Desk::lessen(std::size_t j, const Wanted& wanted) {
    if (!is_chosen(j) || !is_changed(j)) {
        return;
    }
    if (judges.is_number(j)) {
        if (!std::isnan(row[j]) && !std::isnan(query[j])) {
            approach(j, wanted);
        }
    } else if (row[j] <= judges.gaps[j] && query[j] <= judges.gaps[j]) {
        // The code after the last level is that of a missing one, which is near to none.
        step_back(j, wanted);
    }
}

// Undo the changes that stand in unseen pairs, the one in most of them first.
bool Desk::untangle() {
    if (coherent) {
        return true;
    }
    const MarkedPairs& pairs = *judges.avoided;
    for (std::size_t turn = 0; turn < size() && !coherent; ++turn) {
        std::size_t worst = size(), most = 0;
        for (std::size_t j = 0; j < size(); ++j) {
            if (now.pair[j] == pair_query[j] || !is_chosen(j)) {
                continue;
            }
            const std::size_t n = count_marked(pairs, pairs.cell(j, now.pair[j]), now.bits.all);
            if (n > most) {
                worst = j;
                most = n;
            }
        }
        if (worst == size()) {
            break;
        }
        if (!edit(worst, query[worst])) {
            return false;
        }
        std::copy(trial.begin(), trial.end(), row.begin());
        find_cells();
    }
    if (coherent) {
        settle();
    }
    return coherent;
}

// What the density would rather have at place k, given what is before it: the value, and how much rather.
std::pair<double, double> Desk::likelier(std::size_t k) {
    const RowDensity& rows = *judges.density;
    const auto j = static_cast<std::size_t>(rows.order[k]);
    factor_of(rows, k, 0, now.factors.heard.data() + k * rows.n_hidden, room);
    const auto end = room.logits.begin() + rows.bins.size_of(j);
    const auto top = std::max_element(room.logits.begin(), end);
    const auto lack = static_cast<double>(*top - room.logits[static_cast<std::size_t>(now.cell[j])]);
    const auto best = static_cast<std::int32_t>(top - room.logits.begin());
    return {cell_query[j] == best ? query[j] : judges.typical[static_cast<std::size_t>(rows.bins.offset[j] + best)],
            lack};
}

// Move one unlikely value to where the others have it; whether that made the row likelier.
bool Desk::mend_once(const Wanted& trying) {
    std::fill(skipped.begin(), skipped.end(), std::uint8_t{0});
    for (int turn = 0; turn < TRIES; ++turn) {
        std::size_t worst = size();
        double most = 0.5, best = NOTHING;
        for (std::size_t k = 0; k < size(); ++k) {
            const auto j = static_cast<std::size_t>(judges.density->order[k]);
            if (skipped[k] || !is_chosen(j) || now.factors.factor[k] > -1.0) {
                continue;
            }
            const auto [value, lack] = likelier(k);
            if (lack > most) {
                worst = k;
                most = lack;
                best = value;
            }
        }
        if (worst == size()) {
            return false;
        }
        skipped[worst] = 1;
        const auto j = static_cast<std::size_t>(judges.density->order[worst]);
        if (std::isnan(best) && differ(best, query[j])) {
            continue;
        }
        if (try_setting(j, best, trying, NOTHING)) {
            return true;
        }
    }
    return false;
}

// Make a row stand that does not: undo what is incoherent, move what is unlikely to where the others have it.
bool Desk::mend() {
    if (!untangle() || probability < want.probability) {
        return false;
    }
    Wanted trying = want;
    trying.weakest = -INF;
    const auto likely = [this] { return density >= want.log_density && weakest >= want.weakest; };
    for (int turn = 0; turn < MENDS; ++turn) {
        if (likely()) {
            return is_allowed(judges, bounds, at, row, query);
        }
        trying.log_density = density + LEAST_GAIN;
        if (!mend_once(trying)) {
            return false;
        }
    }
    return likely();
}

// Settle the order in which changes are tried: those that bring the least sureness first.
void Desk::take_turns() {
    alone_since = moves;
    rest_on(*judges.surrogate, row, work);
    for (std::size_t j = 0; j < size(); ++j) {
        double own = INF;
        if (is_changed(j) && is_chosen(j)) {
            edit(j, query[j]);
            alone[j] = sure_of(trial);
            own = -alone[j];
        }
        std::size_t place = j;
        while (place > 0 && rank[place - 1] > own) {
            rank[place] = rank[place - 1];
            order[place] = order[place - 1];
            --place;
        }
        rank[place] = own;
        order[place] = j;
    }
}

// Bring values nearer and undo what can be then, as long as something is undone.
void Desk::approach_all(const Wanted& wanted) {
    for (int turn = 0; turn < ROUNDS; ++turn) {
        const std::int64_t before = undone;
        for (const std::size_t j : order) {
            lessen(j, wanted);
        }
        undo(wanted);
        if (undone == before) {
            break;
        }
    }
}

// Undo or lessen the strongest changes first, so that the others are needed: what else would do.
void Desk::weaken(const Wanted& wanted) {
    for (std::size_t k = size(); k-- > 0;) {
        const std::size_t j = order[k];
        if (!is_chosen(j) || !is_changed(j)) {
            continue;
        }
        const double sure = without(j);
        if (may_keep(j) && !(sure < wanted.probability) && try_setting(j, query[j], wanted, sure)) {
            continue;
        }
        lessen(j, wanted);
    }
}

// Undo what is not needed; `turned`, from the strongest change on.
void Desk::make_less(const Wanted& wanted, bool turned) {
    take_turns();
    if (turned) {
        weaken(wanted);
    }
    undo(wanted);
}

// Bring values nearer, and undo what can be then.
void Desk::bring_nearer(const Wanted& wanted) {
    take_turns();
    approach_all(wanted);
}

// -- rows ------------------------------------------------------------------------------------------------------------

// Whether the row lies below the floor now: then it is put back to what it was.
bool Desk::fell_below() {
    if (density >= want.log_density) {
        return false;
    }
    put_back();
    begin();
    return true;
}

// Whether a row stands, or does once it is mended.
bool Desk::stands() {
    const bool fine = follow_all(row);
    begin();
    const bool stood = fine && probability >= want.probability && density >= want.log_density &&
                       weakest >= want.weakest && is_allowed(judges, bounds, at, row, query) && coherent;
    return stood || (fine && mend());
}

// Look at a row, whose query lies on the desk; whether it stands but for the floors, which are not looked at.
bool Desk::is_fit() {
    moves = undone = alone_since = 0;
    std::fill(tried.begin(), tried.end(), -1);
    locate();
    return probability >= want.probability && is_allowed(judges, bounds, at, row, query) && coherent;
}

// Undo what a row does not need, and look at the floors afterwards; whether it stands, else it is as it was.
bool Desk::less_at_once(bool turned) {
    keep();
    if (follow_all(row) && is_fit()) {
        make_less(without_floors(want), turned);
        if (weigh(want.log_density, want.weakest)) {
            return true;
        }
    }
    put_back();
    return false;
}

// Bring a row nearer, and look at the floors afterwards; whether it stands, else it is as it was.
bool Desk::nearer_at_once() {
    keep();
    if (is_fit()) {
        bring_nearer(without_floors(want));
        if (weigh(want.log_density, want.weakest)) {
            return true;
        }
    }
    put_back();
    return false;
}

// Undo what a row that stands does not need; whether it has room.
bool Desk::lessened(bool turned) {
    keep();
    Wanted trying = want;
    trying.log_density = want.lower;
    make_less(trying, turned);
    if (!fell_below()) {
        return true;
    }
    make_less(want, turned);
    return false;
}

// Bring a row that stands as near as it stands; whether it has room still.
bool Desk::neared(bool roomy) {
    begin();
    keep();
    Wanted trying = want;
    if (roomy) {
        trying.log_density = want.lower;
    }
    bring_nearer(trying);
    if (fell_below()) {
        bring_nearer(want);
        return false;
    }
    return roomy;
}

// Write down what is known of the row.
void Desk::tell(double* scores) {
    if (want.log_density == -INF && want.weakest == -INF) {
        weigh(-INF, -INF);  // without floors nobody has asked for its density yet
    }
    scores[0] = probability;
    scores[1] = density;
    scores[2] = weakest;
}

void undo_rows(Desk& desk, const Rows& rows, std::size_t low, std::size_t high, bool turned) {
    for (std::size_t i = low; i < high; ++i) {
        double* scores = rows.scores + 4 * i;
        desk.lay_out(rows, i);
        bool roomy = rows.stands[i] = desk.less_at_once(turned);
        if (!rows.stands[i] && desk.stands()) {
            rows.stands[i] = true;
            roomy = desk.lessened(turned);
        }
        if (rows.stands[i]) {
            scores[3] = roomy ? 1.0 : 0.0;
            desk.tell(scores);
        }
    }
}

void approach_rows(Desk& desk, const Rows& rows, std::size_t low, std::size_t high, const bool* kept) {
    for (std::size_t i = low; i < high; ++i) {
        if (!kept[i]) {
            continue;
        }
        double* scores = rows.scores + 4 * i;
        desk.lay_out(rows, i);
        if (!desk.nearer_at_once()) {
            scores[3] = desk.neared(scores[3] > 0.0) ? 1.0 : 0.0;
        }
        desk.tell(scores);
    }
}

}  // namespace

void refine_rows(const Judges& judges, const Bounds& bounds, const Rows& rows, std::size_t low, std::size_t high,
                 bool turned, std::int64_t most, std::int64_t steps, bool* kept) {
    Desk desk(judges, bounds);
    if (steps & LESS) {
        undo_rows(desk, rows, low, high, turned);
    }
    if (steps & FOREMOST) {
        const Candidates all{rows.n, rows.d, rows.values, rows.queries, rows.which, rows.stands};
        mark_foremost(all, judges.density->bins.number.data(), judges.scale.data(), judges.gaps.data(), most, kept);
    }
    if (steps & NEARER) {
        approach_rows(desk, rows, low, high, kept);
    }
}

void judge_rows(const Judges& judges, const Bounds& bounds, const Rows& rows, std::size_t low, std::size_t high,
                const std::int64_t* feature, const double* origin) {
    Desk desk(judges, bounds);
    for (std::size_t i = low; i < high; ++i) {
        desk.lay_out(rows, i);
        if (feature[i] >= 0) {
            const auto j = static_cast<std::size_t>(feature[i]);
            desk.row[j] = desk.snapped(j, desk.row[j], origin[i]);
        }
        if (!desk.follow_all(desk.row) || !is_allowed(judges, bounds, desk.at, desk.row, desk.query)) {
            continue;
        }
        desk.locate();
        const bool fit = desk.probability >= desk.want.probability && desk.coherent;
        rows.stands[i] = fit && desk.weigh(desk.want.log_density, desk.want.weakest);
        double* scores = rows.scores + 4 * i;
        scores[0] = desk.probability;
        scores[1] = desk.density;
        scores[2] = desk.weakest;
    }
}

// -- which rows to go on with ----------------------------------------------------------------------------------------

namespace {

// Farther than this a number is no farther.
constexpr double MOST_APART = 10.0;

// The rows of one query that stand: where they are, what they change, and how far they are.
struct Found {
    std::vector<std::size_t> at, way;
    std::vector<double> apart;
    std::vector<std::uint8_t> changed;  // [rows][d]
    std::vector<std::int64_t> rank;     // the place of each row among those of its way; -1 if an earlier row equals it
};

void look(const Candidates& rows, std::size_t i, const std::uint8_t* number, const double* scale, const double* gaps,
          Found& found) {
    const double *row = rows.values + i * rows.d,
                 *query = rows.queries + static_cast<std::size_t>(rows.which[i]) * rows.d;
    double total = 0.0;
    for (std::size_t j = 0; j < rows.d; ++j) {
        const bool changed = differ(row[j], query[j]);
        found.changed.push_back(changed);
        if (changed) {
            total += std::min(move(row[j], query[j], number[j], scale[j], gaps[j]), MOST_APART);
        }
    }
    found.at.push_back(i);
    found.apart.push_back(total);
}

void rank_ways(const Candidates& rows, Found& found) {
    const std::size_t n = found.at.size(), d = rows.d;
    found.way.resize(n);
    found.rank.assign(n, 0);
    const auto same = [&](std::size_t i, std::size_t other) {
        const auto* flags = found.changed.data();
        return std::equal(flags + i * d, flags + (i + 1) * d, flags + other * d);
    };
    const auto equal = [&](std::size_t i, std::size_t other) {
        const double *one = rows.values + found.at[i] * d, *two = rows.values + found.at[other] * d;
        return std::equal(one, one + d, two, [](double a, double b) { return !differ(a, b); });
    };
    for (std::size_t i = 0; i < n; ++i) {
        found.way[i] = i;
        for (std::size_t other = 0; other < i; ++other) {
            if (found.way[other] == other && same(i, other)) {
                found.way[i] = other;
                break;
            }
        }
        const auto alike = [&](std::size_t other) { return found.way[other] == found.way[i] && found.rank[other] >= 0; };
        for (std::size_t other = 0; other < i && found.rank[i] >= 0; ++other) {
            if (alike(other) && found.apart[other] == found.apart[i] && equal(i, other)) {
                found.rank[i] = -1;
            }
        }
        for (std::size_t other = 0; other < (found.rank[i] >= 0 ? i : 0); ++other) {
            if (alike(other)) {
                ++found.rank[found.apart[other] <= found.apart[i] ? i : other];
            }
        }
    }
}

// How many rows come before row i: those of a lower rank, then the nearer ones.
std::int64_t place_of(std::size_t i, const Found& found) {
    std::int64_t before = 0;
    for (std::size_t other = 0; other < found.at.size(); ++other) {
        if (found.rank[other] < 0 || found.rank[other] > found.rank[i]) {
            continue;
        }
        const bool nearer =
            found.apart[other] < found.apart[i] || (found.apart[other] == found.apart[i] && other < i);
        before += found.rank[other] < found.rank[i] || nearer;
    }
    return before;
}

}  // namespace

void mark_foremost(const Candidates& rows, const std::uint8_t* number, const double* scale, const double* gaps,
                   std::int64_t most, bool* kept) {
    for (std::size_t first = 0, last = 0; first < rows.n; first = last) {
        Found found;
        for (last = first; last < rows.n && rows.which[last] == rows.which[first]; ++last) {
            if (rows.stands[last]) {
                look(rows, last, number, scale, gaps, found);
            }
        }
        rank_ways(rows, found);
        for (std::size_t i = 0; i < found.at.size(); ++i) {
            kept[found.at[i]] = found.rank[i] >= 0 && place_of(i, found) < most;
        }
    }
}

}  // namespace dicoflex
