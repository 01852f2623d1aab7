"""What a fitted topic model found: one HTML page to look at, and exports to other tools."""

from tempering.report.data import ReportData, collect
from tempering.report.exports import pyldavis_arguments, to_arviz
from tempering.report.page import render, write_report

__all__ = [
    "ReportData",
    "collect",
    "pyldavis_arguments",
    "render",
    "to_arviz",
    "write_report",
]
