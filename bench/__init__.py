"""The benchmark of kslate: `make bench`. Standard library only."""
