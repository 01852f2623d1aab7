"""Odd inputs for all that the package offers, as data: `python tests/odd_inputs.py` tries them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """One odd input: how it is called, what to do, and words of which an error must name one."""

    name: str
    call: Callable[[], Any]
    told: tuple[str, ...]
