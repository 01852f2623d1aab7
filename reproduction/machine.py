"""Which machine an experiment ran on."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

#: ARM tells its designs by numbers.
ARM_PARTS = {
    "0xd07": "Cortex-A57",
    "0xd08": "Cortex-A72",
    "0xd0c": "Neoverse N1",
    "0xd40": "Neoverse V1",
    "0xd49": "Neoverse N2",
    "0xd4f": "Neoverse V2",
}


@cache
def describe_machine() -> str:
    """Processor, cores that may be used, system and versions, in one line."""
    import numpy

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{cores} cores of {processor()} ({platform.machine()}), {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {numpy.__version__}"
    )


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor, as far as the system tells it."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        return platform.processor() or "an unnamed processor"
    facts = dict(re.findall(r"^(.+?)\s*: (.*)$", text, re.MULTILINE))
    if "model name" in facts:
        return facts["model name"]
    part = facts.get("CPU part", "")
    return ARM_PARTS.get(part, f"processor of part {part}" if part else "an unnamed processor")
