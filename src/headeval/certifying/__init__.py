"""Thresholds that keep a promise: what can be certified, which one is taken, and what the head claims of it."""
