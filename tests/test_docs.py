"""The code in the documentation runs, and every public name has an example that does."""

import doctest
import importlib
import inspect
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy

import tempering
from gallery import examples, run_example
from run_blocks import run_blocks

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
#: Examples that need no fit. `make test-all` runs the others too, and so does `make docs`.
QUICK_EXAMPLES = {"g_schedules"}
#: Longer than an ordinary test may take: `make test-all` runs them, and so does `make docs`.
SLOW_PAGES = {
    "docs/adaptive.md",
    "docs/blackbox.md",
    # The fit of these two is that of the README.
    "docs/choosing.md",
    "docs/index.md",
    "docs/getting-started.md",
    "docs/jax.md",
    "docs/tutorials/factor-models.md",
    "docs/tutorials/gaussian-mixture.md",
    "docs/tutorials/gpu.md",
    "docs/tutorials/hidden-markov.md",
    "docs/tutorials/millions.md",
    "docs/tutorials/numpyro.md",
    "docs/tutorials/own-blocks.md",
    "docs/tutorials/own-hmm.md",
    "docs/tutorials/own-text.md",
    "docs/workbench.md",
    # The test of the model that it builds runs its blocks.
    "docs/own-model.md",
}


def page_name(page):
    return page.relative_to(ROOT).as_posix()


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page_name(page) in SLOW_PAGES else [])
        for page in PAGES
    ],
    ids=page_name,
)
def test_the_pages_run(page, tmp_path):
    shown = run_blocks(page.read_text(), tmp_path, page.name)
    if page.name == "README.md":
        check_what_the_readme_prints(shown[0].text)
    missing = {block.missing for block in shown}
    missing.discard(None)
    if missing:
        pytest.skip(f"all else runs, but {', '.join(sorted(missing))} is not installed")


def check_what_the_readme_prints(text):
    """The topics on the page are those of the fit: most of their words, as processors differ."""
    readme = (ROOT / "README.md").read_text()
    version, quoted = re.search(r"With SciPy (\S+) this prints\n\n((?:    .*\n)+)", readme).groups()
    if scipy.__version__.startswith(f"{version}."):
        words = quoted.split()
        assert len(words) == len(text.split())
        assert len(set(words) & set(text.split())) > 0.8 * len(set(words)), text


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, marks=[] if script.stem in QUICK_EXAMPLES else [pytest.mark.slow])
        for script in examples(ROOT / "docs" / "gallery")
    ],
    ids=lambda script: script.stem,
)
def test_each_example_of_the_gallery_makes_a_picture(script, tmp_path):
    run_example(script, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_the_own_model_is_short_and_right():
    blocks = python_blocks(ROOT / "docs" / "own-model.md")
    lines = [
        line for line in blocks[0].splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    assert len(lines) < 60
    namespace = {}
    exec("\n".join(blocks[:3]), namespace)
    for name, result in namespace["results"].items():
        means = np.sort(result.posterior.rates[:, 1] / result.posterior.rates[:, 0])
        np.testing.assert_allclose(means, [0.05, 1.0, 20.0], rtol=0.2, err_msg=name)
        assert result.history[-1].temperature == 1.0


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_that_pages_name_are_there(page):
    """Too long to run: but the scripts exist, and know the options that they are given."""
    for script, options in re.findall(
        r"python ((?:benchmarks|docs)/\S+?\.py)([^`\n]*)", page.read_text()
    ):
        if "NAME" in script:
            continue
        code = (ROOT / script).read_text()
        for option in re.findall(r"(?<=\s)--[a-z-]+", options):
            assert f'"{option}"' in code, f"{script} has no {option}"
    for command, options in re.findall(
        r"^(?:    )?tempering ([a-z]+)([^#\n]*)", page.read_text(), re.MULTILINE
    ):
        module = importlib.import_module(f"tempering.cli.{command}")
        help_text = inspect.getsource(module) + inspect.getsource(
            importlib.import_module("tempering.cli.options")
        )
        for option in re.findall(r"(?<=\s)--([a-z-]+)", options):
            assert f"--{option}" in help_text or option.replace("-", "_") in help_text, option


MODULES = [
    module.name
    for module in pkgutil.walk_packages(tempering.__path__, "tempering.")
    if not module.name.endswith("__main__")
]


#: Packages that a room cannot be shown without.
NEEDED = {"tempering.blackbox": "numpyro"}


def room_of(module):
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (room_of(name) in NEEDED)) for name in MODULES],
)
def test_docstring_examples(name):
    if room_of(name) in NEEDED:
        pytest.importorskip(NEEDED[room_of(name)])
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def public_objects():
    """Every function, class and module that an ``__all__`` names, with its full name."""
    packages = [
        "tempering",
        *(
            name
            for name in MODULES
            if name.count(".") == 1 and (name not in NEEDED or find_spec(NEEDED[name]))
        ),
    ]
    for package in map(importlib.import_module, packages):
        for name in getattr(package, "__all__", []):
            value = getattr(package, name)
            if inspect.ismodule(value):
                functions = inspect.getmembers(value, inspect.isfunction)
                own = [
                    (f"{value.__name__}.{called}", function)
                    for called, function in functions
                    if function.__module__ == value.__name__ and not called.startswith("_")
                ]
                yield from own
            elif inspect.isclass(value) or inspect.isfunction(value):
                yield f"{package.__name__}.{name}", value


def test_every_public_name_has_an_example():
    # The inherited docstring of a base class is not one's own.
    without = [
        name
        for name, value in public_objects()
        if not value.__doc__ or not (doctest_of(value) or nobody_makes(value))
    ]
    assert without == []


def nobody_makes(value):
    """Errors, tuples and answers that functions give, and protocols: shown where they come from."""
    told = isinstance(value, type) and issubclass(value, BaseException | tuple)
    answer = (value.__doc__ or "").startswith("The answer of :func:")
    return told or answer or getattr(value, "_is_protocol", False)


def doctest_of(value):
    """The examples of a docstring that are run."""
    parsed = doctest.DocTestParser().get_examples(value.__doc__ or "")
    return [
        example
        for example in parsed
        if "import" not in example.source and not example.options.get(doctest.SKIP)
    ]
