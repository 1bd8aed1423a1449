"""The experiments: a module each, which says what is measured, measures it, and tells what came of it."""
