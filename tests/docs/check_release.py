"""Try the built wheel as a stranger would: in an empty environment, from an empty folder.

    python tests/docs/check_release.py {lowest,newest} PYTHON [--tests PATH ...]

"lowest" takes the oldest versions of the direct dependencies that the metadata allow, "newest" the
newest of all. Then the README's Python runs, `tempering demo`, a folder of text becomes a report,
and the core of the tests passes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST_WHEEL = 1_000_000
EXTRAS = ("plot", "data")
UV = str(Path(sys.executable).parent / "uv")
#: What the tests need and the package does not.
TEST_TOOLS = ("pytest", "hypothesis", "pandas")
CORE = ["families", "temperature", "models", "inference", "estimators", "corpus", "cli", "storage"]


def main() -> None:
    options = _parse_options()
    wheel = next((ROOT / "dist").glob("*.whl"))
    check_wheel(wheel)
    with tempfile.TemporaryDirectory() as folder:
        python = make_environment(Path(folder), wheel, options.versions, options.python)
        try_as_a_stranger(python, Path(folder))
        run([*installer(python), *TEST_TOOLS, *pins(wheel, options.versions)])
        run(
            [
                python,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-m",
                "not slow",
                *options.tests,
            ]
        )
    print(f"{wheel.name} works with the {options.versions} versions on {options.python}.")


def check_wheel(wheel: Path) -> None:
    """Small, of one version, and the package alone."""
    assert wheel.stat().st_size < LARGEST_WHEEL, f"{wheel} has {wheel.stat().st_size:,} bytes."
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.split("/")[0] for name in archive.namelist()}
    strangers = [name for name in roots if not name.startswith("tempering")]
    assert not strangers, f"{wheel} holds {strangers}."
    source = (ROOT / "src" / "tempering" / "__init__.py").read_text()
    version = re.search(r'^__version__ = "(.*)"$', source, re.MULTILINE)
    assert version is not None
    assert f"-{version[1]}-" in wheel.name, f"{wheel.name} is not of version {version[1]}."


def make_environment(folder: Path, wheel: Path, versions: str, python: str) -> str:
    """An environment with the wheel and two of its extras."""
    run([UV, "venv", "--quiet", "--python", python, str(folder / "venv")])
    own = str(folder / "venv" / "bin" / "python")
    run([*installer(own), f"{wheel}[{','.join(EXTRAS)}]", *pins(wheel, versions)])
    run([UV, "pip", "list", "--python", own])
    return own


def pins(wheel: Path, versions: str) -> list[str]:
    """What is not to be newer than the wheel asks for."""
    floors = lowest_versions(wheel) if versions == "lowest" else {}
    return [f"{name}=={floor}" for name, floor in floors.items()]


def installer(python: str) -> list[str]:
    """The command to install packages for this interpreter."""
    return [UV, "pip", "install", "--quiet", "--python", python]


def lowest_versions(wheel: Path) -> dict[str, str]:
    """Each dependency, and the oldest version that the metadata allow."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = archive.read(name).decode()
    floors = {}
    for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE):
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        bound = re.fullmatch(r"([\w-]+)>=([\w.]+)", requirement.strip())
        if bound and (extra is None or extra[1] in EXTRAS):
            floors[bound[1]] = bound[2]
    assert "numpy" in floors, f"{wheel} names no oldest version of numpy."
    return floors


def try_as_a_stranger(python: str, folder: Path) -> None:
    """The README's lines, the demo, and a folder of text to a report."""
    home = folder / "home"
    (home / "texts").mkdir(parents=True)
    readme = (ROOT / "README.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        run([python, "-c", block], cwd=home)
    for number, word in enumerate(["sun sea sand wave", "snow ice frost wind"] * 20):
        (home / "texts" / f"{number}.txt").write_text(f"{word} {word.split()[number % 4]}")
    command = str(Path(python).parent / "tempering")
    run([command, "demo"], cwd=home)
    run([command, "fit", "texts", "--topics", "2", "--out", "model"], cwd=home)
    run([command, "report", "model", "texts", "--out", "report.html"], cwd=home)
    assert (home / "report.html").stat().st_size > 10_000


def run(command: list[str], cwd: Path = ROOT) -> None:
    """Run a command, and end here if it fails."""
    print("$", " ".join(part if len(part) < 100 else "..." for part in command), flush=True)
    # Not the sources of this clone, wherever they are set to be found.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=cwd, check=True, env=environment)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Try the built wheel in an empty environment.")
    parser.add_argument("versions", choices=["lowest", "newest"])
    parser.add_argument("python", help="the interpreter, by path or version")
    parser.add_argument("--tests", nargs="*", default=[f"tests/{room}" for room in CORE])
    return parser.parse_args()


if __name__ == "__main__":
    main()
