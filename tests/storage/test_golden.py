"""Models of each format that was ever released can be read, and predict what they did."""

import json

import numpy as np
import pytest

import tempering
from golden_models import GOLDEN, data, predictions
from tempering.estimators.saving import ESTIMATORS, FORMAT

FOLDERS = sorted(path for path in GOLDEN.glob("format-*/*") if path.is_dir())


def test_every_class_stands_in_the_current_format():
    current = {path.name for path in FOLDERS if path.parent.name == f"format-{FORMAT}"}
    assert current == set(ESTIMATORS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_golden_models_predict_what_they_did(folder):
    expected = json.loads((folder / "expected.json").read_text())
    model = tempering.load(folder)
    assert len(model.history_) == expected.pop("history_length")
    assert model.random_state == 0
    assert model.n_components == 2
    if folder.name == "LatentDirichletAllocation":
        assert model.vocabulary_.tolist() == ["one", "zwei", "trois", "четыре"]
    found = predictions(model, data(folder.name))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        # Other machines round otherwise.
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-6)
