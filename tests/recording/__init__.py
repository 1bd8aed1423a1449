"""A recording of what the library computes, to compare later versions with: see `record`."""
