"""What a table is: its features, its frames as arrays, the rows to learn from."""
