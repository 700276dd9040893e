"""What the stores and the engine cost, as ratios within one run. `make bench` writes the page.

Each sample is a process of its own, which reports its own CPU time. Samples of the variants that
are compared alternate, so that what else the machine does meets all of them.
"""
