"""The numbers behind a figure of matplotlib, read off the artists in its axes."""

import datetime
import re

import numpy
from matplotlib import category, dates
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.patches import PathPatch, Wedge

from .boxes import boxes_in

UNIT = re.compile(r"\((.+?)\)|\[(.+?)\]")


def chart_of(figure):
    """A chart, several of them as one, or None for a figure without any data."""
    axes = figure.get_axes()
    if not any(axis.has_data() for axis in axes):
        return None
    if len(axes) == 1:
        return chart_in(axes[0])
    return {"type": "superchart", "title": figure.get_suptitle() or None, "elements": [chart_in(axis) for axis in axes]}


def chart_in(axes):
    lines, patches, collections = list(axes.lines), list(axes.patches), list(axes.collections)
    bars = [container for container in axes.containers if isinstance(container, BarContainer)]
    title = axes.get_title() or None
    if patches and all(isinstance(patch, Wedge) for patch in patches):
        return {"type": "pie", "title": title, "elements": [slice_of(wedge) for wedge in patches]}
    if bars:
        return {"type": "bar", "title": title, **bars_of(axes, bars)}
    boxes = boxes_in(axes) if lines and all(isinstance(patch, PathPatch) for patch in patches) else None
    if boxes is not None:
        elements, upright = boxes
        return {"type": "box_and_whisker", "title": title, **labels(axes, upright), "elements": elements}
    if collections and not lines and not patches and all(isinstance(part, PathCollection) for part in collections):
        elements = [{"label": label_of(part, "Points", number), "points": offsets(part)} for number, part in enumerate(collections)]
        return {"type": "scatter", "title": title, **labels(axes), **scales(axes), "elements": elements}
    if lines and not patches and not any(isinstance(part, PathCollection) for part in collections):
        elements = [{"label": label_of(line, "Line", number), "points": points(line)} for number, line in enumerate(lines)]
        return {"type": "line", "title": title, **labels(axes), **scales(axes), "elements": elements}
    return {"type": "unknown", "title": title, "elements": []}


def label_of(artist, word, number):
    """An artist's own label; those that matplotlib made up begin with an underscore."""
    label = str(artist.get_label())
    return f"{word} {number}" if label.startswith("_") else label


def unit_in(label):
    found = UNIT.search(label or "")
    return (found.group(1) or found.group(2)) if found else None


def labels(axes, upright=True):
    """Labels and units, the axis of the categories as x."""
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    if not upright:
        x, y = y, x
    return {"x_label": x, "y_label": y, "x_unit": unit_in(x), "y_unit": unit_in(y)}


def scales(axes):
    told = {}
    for name, axis, scale in (("x", axes.xaxis, axes.get_xscale()), ("y", axes.yaxis, axes.get_yscale())):
        kind = scale_of(axis, scale)
        ticks = axis.get_ticklocs()
        told[f"{name}_ticks"] = [dates.num2date(tick).isoformat() for tick in ticks] if kind == "datetime" else [float(tick) for tick in ticks]
        told[f"{name}_tick_labels"] = [label.get_text() for label in axis.get_ticklabels()]
        told[f"{name}_scale"] = kind
    return told


def scale_of(axis, scale):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    if isinstance(converter, category.StrCategoryConverter):
        return "categorical"
    if isinstance(converter, (dates.DateConverter, dates._SwitchableDateConverter)):
        return "datetime"
    return scale


def coordinate(value):
    if isinstance(value, (datetime.date, str)):
        return value if isinstance(value, str) else value.isoformat()
    if isinstance(value, numpy.datetime64):
        return str(value.astype("datetime64[s]"))
    value = float(value)
    return value if numpy.isfinite(value) else None


def points(line):
    xs, ys = numpy.atleast_1d(line.get_xdata(orig=True)), numpy.atleast_1d(line.get_ydata(orig=True))
    return [[coordinate(x), coordinate(y)] for x, y in zip(xs, ys)]


def offsets(collection):
    return [[coordinate(x), coordinate(y)] for x, y in collection.get_offsets().filled(numpy.nan)]


def slice_of(wedge):
    angle = abs(float(wedge.theta2) - float(wedge.theta1))
    return {"label": str(wedge.get_label()), "angle": float(f"{angle:.6g}"), "radius": float(wedge.r)}


def bars_of(axes, containers):
    upright = all(container.orientation != "horizontal" for container in containers)
    axis = axes.xaxis if upright else axes.yaxis
    ticks = list(zip(axis.get_ticklocs(), (label.get_text() for label in axis.get_ticklabels())))
    elements = []
    for number, container in enumerate(containers):
        group = label_of(container, "Group", number)
        for bar in container.patches:
            start, length = (bar.get_x(), bar.get_width()) if upright else (bar.get_y(), bar.get_height())
            low, high = sorted((start, start + length))
            # Bars of one category stand side by side around its tick.
            near = [text for place, text in ticks if text and low - abs(length) <= place <= high + abs(length)]
            label = min(((abs(place - (low + high) / 2), text) for place, text in ticks if text in near), default=(0, f"{(low + high) / 2:g}"))[1]
            elements.append({"label": label, "group": group, "value": float(bar.get_height() if upright else bar.get_width())})
    return {**labels(axes, upright), "elements": elements}
