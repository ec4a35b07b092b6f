"""A record becomes a rich renderable, JSON, Markdown or HTML; returned, never printed."""
