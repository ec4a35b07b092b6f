"""The optimum of the head's loss, and its out-of-fold check."""
