"""Search over optima: ``search(model, data)``, its operators, and what it returns."""

import sys
from types import ModuleType
from typing import Any

from tempering.search.driver import search
from tempering.search.operators import (
    OPERATORS,
    Cross,
    Operator,
    Reheat,
    Restart,
    Swap,
)
from tempering.search.result import SearchResult, Trial
from tempering.search.runs import Candidate
from tempering.search.situation import Situation

__all__ = [
    "OPERATORS",
    "Candidate",
    "Cross",
    "Operator",
    "Reheat",
    "Restart",
    "SearchResult",
    "Situation",
    "Swap",
    "Trial",
    "search",
]


class _Search(ModuleType):
    """A module that can be called: ``tempering.search`` names it as well as the function."""

    def __call__(self, *arguments: Any, **options: Any) -> SearchResult:
        return search(*arguments, **options)


sys.modules[__name__].__class__ = _Search
