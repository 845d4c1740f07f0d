"""Hand-written programs, one folder each: read as data, never imported. `tasks/program.py` loads them."""
