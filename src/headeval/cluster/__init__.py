"""Rows on the workers of a Dask cluster: read there, kept there, summed there."""
