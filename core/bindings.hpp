// What each file of doors adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace dicoflex {

void bind_allowed_rows(nanobind::module_& m);
void bind_density(nanobind::module_& m);
void bind_draws(nanobind::module_& m);
void bind_flow(nanobind::module_& m);
void bind_choose(nanobind::module_& m);
void bind_coherence(nanobind::module_& m);
void bind_neighbours(nanobind::module_& m);
void bind_numeric(nanobind::module_& m);
void bind_programs(nanobind::module_& m);
void bind_random(nanobind::module_& m);
void bind_refine(nanobind::module_& m);
void bind_surrogate(nanobind::module_& m);

}  // namespace dicoflex
