"""How a batch is shared out.

A batch is cut into shards of a fixed size. Workers solve them, whichever is free. What they send
back is added in pairs, in the order of the shards: so the sum has the same bits for any number of
workers.
"""

import sys

from matplotlib.figure import Figure

figure = Figure(figsize=(8.0, 3.0), layout="constrained")
axis = figure.subplots()
axis.set_axis_off()
axis.set(xlim=(0, 8), ylim=(-0.15, 4.5))
arrow = {"arrowstyle": "-|>", "color": "0.4", "shrinkA": 0, "shrinkB": 0}


def box(x, y, text, color):
    patch = {"boxstyle": "round,pad=0.3", "facecolor": color, "edgecolor": "none"}
    axis.text(x, y, text, ha="center", va="center", bbox=patch, fontsize=10)


heights = [3.6, 2.6, 1.6, 0.6]
titles = {0.7: "batch", 2.3: "shards", 4.1: "workers", 5.9: "added in pairs", 7.3: "one step"}
for x, title in titles.items():
    axis.text(x, 4.3, title, ha="center", fontsize=11, color="0.3")
box(0.7, 2.1, "4,096\ndocuments", "#e6e6e6")
colors = ["#f6d9c6", "#dbe6f3", "#f6d9c6", "#dbe6f3"]
for number, (y, color) in enumerate(zip(heights, colors)):
    axis.annotate("", (1.95, y), (1.2, 2.1), arrowprops=arrow)
    box(2.3, y, f"shard {number + 1}", color)
    axis.annotate("", (3.7, 3.1 if number % 2 == 0 else 1.1), (2.65, y), arrowprops=arrow)
for y, name, color in ((3.1, "worker A", colors[0]), (1.1, "worker B", colors[1])):
    box(4.1, y, name, color)
for y, text in ((3.1, "1 + 2"), (1.1, "3 + 4")):
    for start in (3.1, 1.1):
        axis.annotate("", (5.62, y), (4.5, start), arrowprops=arrow)
    box(5.9, y, text, "#e6e6e6")
    axis.annotate("", (7.02, 2.1), (6.18, y), arrowprops=arrow)
box(7.3, 2.1, "topics", "#e6e6e6")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "shards.png", dpi=110)
