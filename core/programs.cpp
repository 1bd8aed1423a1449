#include "programs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dicoflex {
namespace {

constexpr double NOTHING = std::numeric_limits<double>::quiet_NaN();
// A number of 16 bits has eleven digits.
constexpr double HALF_DIGITS = 2048.0;

// Two values made one.
double joined(std::int64_t op, double a, double b) {
    if (op == AND) {
        return a * b;
    }
    if (op == OR) {
        return std::max(a, b);
    }
    if (std::isnan(a) || std::isnan(b)) {
        return op >= BELOW ? 0.0 : NOTHING;
    }
    switch (op) {
        case ADD: return a + b;
        case SUBTRACT: return a - b;
        case MULTIPLY: return a * b;
        case DIVIDE: return b == 0.0 ? NOTHING : a / b;
        case LEAST: return std::min(a, b);
        case MOST: return std::max(a, b);
        case BELOW: return a < b;
        case AT_MOST: return a <= b;
        case EQUAL: return a == b;
        default: return a != b;
    }
}

// A number as a column of its type holds it.
double held(double value, std::int64_t stored) {
    if (stored == WHOLE) {
        return std::nearbyint(value);
    }
    if (stored == SINGLE) {
        return static_cast<double>(static_cast<float>(value));
    }
    if (stored == HALF && value != 0.0 && std::isfinite(value)) {
        const double unit = std::ldexp(1.0 / HALF_DIGITS, std::ilogb(value) + 1);
        return std::nearbyint(value / unit) * unit;
    }
    return value;
}

// How many values an operation takes from the stack; it puts one there.
std::int64_t taken(std::int64_t op) {
    if (op <= LOOKED_UP || op == DIFFER) {
        return 0;
    }
    return op == CHOOSE ? 3 : op == NOT || op == ABSENT ? 1 : 2;
}

}  // namespace

bool are_sound(const Programs& programs, std::size_t n_features) {
    for (std::size_t k = 0; k < programs.size(); ++k) {
        std::int64_t held = 0;
        for (auto i = static_cast<std::size_t>(programs.at[k]); i < static_cast<std::size_t>(programs.at[k + 1]); ++i) {
            const std::int64_t op = programs.op[i], feature = programs.feature[i], start = programs.start[i];
            if (op < CONSTANT || op > CHOOSE || held < taken(op)) {
                return false;
            }
            if (feature < 0 || feature >= static_cast<std::int64_t>(n_features) || start < 0 ||
                start > static_cast<std::int64_t>(programs.table.size())) {
                return false;
            }
            held += 1 - taken(op);
            if (held > static_cast<std::int64_t>(STACK)) {
                return false;
            }
        }
        if (held != 1) {
            return false;
        }
    }
    return true;
}

double run(const Programs& programs, std::size_t k, std::span<const double> row, std::span<const double> query) {
    double stack[STACK];
    std::size_t top = 0;  // how many values there are
    // What lies outside a table is nothing: codes come with rows, which no program can vouch for.
    const auto looked_up = [&programs](std::int64_t start, double code) {
        const double at = static_cast<double>(start) + code;
        return at >= 0.0 && at < static_cast<double>(programs.table.size())
                   ? programs.table[static_cast<std::size_t>(at)]
                   : NOTHING;
    };
    const auto end = static_cast<std::size_t>(programs.at[k + 1]);
    for (auto i = static_cast<std::size_t>(programs.at[k]); i < end; ++i) {
        const std::int64_t op = programs.op[i];
        const auto j = static_cast<std::size_t>(programs.feature[i]);
        if (op <= LOOKED_UP) {
            double x = programs.constant[i];
            if (op != CONSTANT) {
                x = programs.was[i] ? query[j] : row[j];
            }
            if (op == RANK && x >= programs.constant[i]) {
                x = NOTHING;
            }
            stack[top++] = op == LOOKED_UP ? looked_up(programs.start[i], x) : x;
        } else if (op == DIFFER) {
            const double a = row[j], b = query[j];
            stack[top++] = a == b || (std::isnan(a) && std::isnan(b)) ? 0.0 : 1.0;
        } else if (op == NOT) {
            stack[top - 1] = 1.0 - stack[top - 1];
        } else if (op == ABSENT) {
            stack[top - 1] = std::isnan(stack[top - 1]) ? 1.0 : 0.0;
        } else if (op == CHOOSE) {
            top -= 2;
            stack[top - 1] = stack[top - 1] != 0.0 ? stack[top] : stack[top + 1];
        } else {
            --top;
            const double a = stack[top - 1], b = stack[top];
            stack[top - 1] = op == PAIRED ? looked_up(programs.start[i], a + b) : joined(op, a, b);
        }
    }
    return stack[0];
}

bool follow_on(const Consequences& consequences, std::span<double> row, std::span<const double> query) {
    bool settled = true;
    for (std::size_t k = 0; k < consequences.feature.size(); ++k) {
        const auto j = static_cast<std::size_t>(consequences.feature[k]);
        const double made = held(run(consequences.programs, k, row, query), consequences.stored[k]);
        if (std::isfinite(made) || (std::isnan(made) && consequences.may_miss[k])) {
            row[j] = made;
        } else {
            row[j] = query[j];
            settled = false;
        }
    }
    return settled;
}

}  // namespace dicoflex
