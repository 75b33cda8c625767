"""`python -m edgespec` is the command `edgespec`."""

from edgespec.cli import main

main()
