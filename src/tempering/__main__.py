"""``python -m tempering`` is the command ``tempering``."""

from tempering.cli.app import main

main()
