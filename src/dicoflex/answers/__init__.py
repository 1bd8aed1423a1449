"""From rows and a request to counterfactuals."""
