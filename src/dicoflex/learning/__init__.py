"""From rows to a model."""
