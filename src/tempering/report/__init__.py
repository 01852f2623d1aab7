"""What a fitted topic model found: one HTML page to look at, and what pyLDAvis takes."""

from tempering.report.data import ReportData, collect
from tempering.report.exports import pyldavis_arguments, to_pyldavis
from tempering.report.page import render, write_report

__all__ = [
    "ReportData",
    "collect",
    "pyldavis_arguments",
    "render",
    "to_pyldavis",
    "write_report",
]
