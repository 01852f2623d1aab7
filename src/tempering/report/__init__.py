"""What a fitted topic model found: one HTML page to look at, and exports to other tools."""

from tempering.report.data import collect
from tempering.report.exports import to_arviz
from tempering.report.page import write_report

__all__ = [
    "collect",
    "to_arviz",
    "write_report",
]
