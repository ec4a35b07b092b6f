"""The only rooms that touch disk: tables, heads, atomic output."""
