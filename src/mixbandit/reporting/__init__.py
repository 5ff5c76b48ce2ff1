"""Reports: one page about a certificate, to be sent to others."""

from mixbandit.reporting.page import FIRST, report, reported

__all__ = ["FIRST", "report", "reported"]
