// The module that Python imports. Arrays are checked at its doors; behind them nothing is checked again.
#include <nanobind/nanobind.h>

#include "bindings.hpp"

NB_MODULE(_core, m) {
    m.doc() = "The compiled core: what runs per row.";
    // What other libraries still refer to when Python ends is no fault of the bindings.
    nanobind::set_leak_warnings(false);
    dicoflex::bind_allowed_rows(m);
    dicoflex::bind_density(m);
    dicoflex::bind_draws(m);
    dicoflex::bind_flow(m);
    dicoflex::bind_choose(m);
    dicoflex::bind_coherence(m);
    dicoflex::bind_neighbours(m);
    dicoflex::bind_numeric(m);
    dicoflex::bind_programs(m);
    dicoflex::bind_random(m);
    dicoflex::bind_surrogate(m);
    dicoflex::bind_refine(m);
}
