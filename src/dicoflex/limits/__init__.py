"""Constraints for these rows, in arrays."""
