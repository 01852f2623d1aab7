"""The gallery: each example is a script that writes one picture beside itself."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def examples(folder: Path) -> list[Path]:
    """The scripts, in the order of their names."""
    return sorted(folder.glob("*.py"))


def run_example(script: Path, picture: Path) -> None:
    """Run a script as a person would: ``python SCRIPT PICTURE``."""
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, str(script), str(picture)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stdout}{done.stderr}")


def page(folder: Path, execute: bool) -> tuple[str, dict[str, bytes]]:
    """The examples as Markdown, and their pictures by name; without pictures if none is to run."""
    parts, pictures = [], {}
    for script in examples(folder):
        code = script.read_text()
        title, _, prose = (ast.get_docstring(ast.parse(code)) or "").partition("\n")
        parts.append(f"## {title.rstrip('.')}\n\n{prose.strip()}\n")
        if execute:
            name = f"{script.stem}.png"
            with tempfile.TemporaryDirectory() as directory:
                run_example(script, Path(directory) / name)
                pictures[name] = (Path(directory) / name).read_bytes()
            parts.append(f"![{title.rstrip('.')}](gallery/{name})\n")
        body = code.split('"""', 2)[2].strip()
        indented = "\n".join(f"    {line}" if line else "" for line in body.splitlines())
        parts.append(
            f'??? example "docs/gallery/{script.name}"\n\n    ```python\n{indented}\n    ```\n'
        )
    return "\n".join(parts), pictures
