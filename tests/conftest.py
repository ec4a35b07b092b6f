"""Settings of all tests."""

from hypothesis import settings

# No deadline: on a loaded machine the first example of a property takes longer than any that would be sensible.
settings.register_profile("headeval", deadline=None)
settings.load_profile("headeval")
