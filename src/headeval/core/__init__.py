"""The mathematics: numpy arrays in, arrays or one frozen record out; no input or output, no hidden state."""
