"""Draws efficiency over workers: simulation --csv 1 | plot.py FILE.svg"""
import collections
import csv
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "scaling", "svg.fonttype": "none"})
import matplotlib.pyplot as plt  # noqa: E402

curves = collections.defaultdict(list)
for row in csv.DictReader(sys.stdin, delimiter=";"):
    curves[row["workload"]].append((int(row["workers"]), float(row["relative"]) / int(row["workers"])))
figure, axes = plt.subplots(figsize=(7, 4))
for name, points in curves.items():
    workers, efficiency = zip(*points)
    axes.plot(workers, efficiency, marker="o", markersize=3, label=name)
axes.set_xscale("log", base=2)
ticks = sorted({n for points in curves.values() for n, _ in points})
axes.set_xticks(ticks, [str(n) for n in ticks])
axes.set_ylim(0, 1.05)
axes.set_xlabel("workers")
axes.set_ylabel("throughput / (workers * throughput of one)")
axes.grid(alpha=0.3)
axes.legend(fontsize=7, loc="lower left")
figure.savefig(sys.argv[1], bbox_inches="tight", metadata={"Date": None})
