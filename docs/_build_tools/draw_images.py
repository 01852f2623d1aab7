"""Draw the pictures that the guides open with anew: ``make pictures``.

They are those of the gallery, kept in ``docs/images`` so that the pages show them wherever they are
read. Two are not drawn here: ``own-hmm.png``, which the page itself draws, and ``report.png``, a
picture of a report in a browser.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
from gallery import run_example

DOCS = Path(__file__).parents[1]
PICTURES = {
    "tempered-and-plain.png": "a_tempered_and_plain",
    "clusters.png": "b_clusters",
    "features.png": "c_image_features",
    "topics.png": "d_topics",
    "schedules.png": "g_schedules",
    "states.png": "h_states",
    "loadings.png": "j_loadings",
    "parts.png": "j_parts",
    "regression-lines.png": "j_regression_lines",
    "landscape.gif": "k_landscape",
    "splits.png": "l_splits",
    "temperature-path.png": "m_temperature_path",
    "topic-tree.png": "o_tree",
    "black-box.png": "p_black_box",
    "three-models.png": "q_three_models",
    "default-fit.png": "r_default_fit",
    "from-disk.png": "s_from_disk",
    "gpu.png": "t_gpu",
    "cluster.png": "u_shards",
    "plain-jax.png": "v_plain_jax",
    "search-curve.png": "w_search_curve",
}


def main() -> None:
    for name, script in PICTURES.items():
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            drawn = Path(folder) / name
            run_example(DOCS / "gallery" / f"{script}.py", drawn)
            if drawn.suffix == ".png":
                # A palette is enough for drawings, and takes a third of the room.
                few = Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE)
                few.save(DOCS / "images" / name, optimize=True)
            else:
                (DOCS / "images" / name).write_bytes(drawn.read_bytes())


if __name__ == "__main__":
    main()
