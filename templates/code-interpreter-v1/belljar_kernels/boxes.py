"""Boxes and whiskers, found again among the lines and patches that a box plot is drawn with."""

import numpy


def boxes_in(axes):
    """The boxes and whether they stand upright; None if these axes have no box plot.

    A box is a rectangle, as a patch or as a closed line. Its whiskers are lines of two points that begin in the middle of two opposite sides,
    its median is one across its whole width, its outliers are marks without a line above and below.
    """
    outlines = [patch.get_path().vertices for patch in axes.patches]
    lines = []
    for line in axes.lines:
        path = numpy.column_stack([numpy.atleast_1d(line.get_xdata(orig=False)), numpy.atleast_1d(line.get_ydata(orig=False))]).astype(float)
        if len(path) >= 5 and numpy.allclose(path[0], path[-1]) and line.get_linestyle() != "None":
            outlines.append(path)
        else:
            lines.append((path, line.get_linestyle() == "None"))
    corners = [(outline.min(axis=0), outline.max(axis=0)) for outline in outlines if len(outline) >= 5]
    if not corners:
        return None
    for along in (1, 0):
        boxes = [box_of(low, high, lines, along) for low, high in corners]
        if all(boxes):
            return [named(box, axes, along) for box in boxes], along == 1
    return None


def box_of(low, high, lines, along):
    """One box whose values run along this axis (1: upright); None if its whiskers do not."""
    across = 1 - along
    middle = (low[across] + high[across]) / 2
    width = high[across] - low[across]
    near = lambda a, b: abs(a - b) <= 1e-9 + 1e-6 * max(abs(width), abs(high[along] - low[along]))
    box = {"at": middle, "min": None, "max": None, "median": None, "outliers": []}
    for path, marks_only in lines:
        values, places = path[:, along], path[:, across]
        if marks_only:
            if len(path) and all(near(place, middle) for place in places):
                box["outliers"] += [tidy(value) for value in values]
        elif len(path) == 2 and all(near(place, middle) for place in places):
            if near(values.max(), low[along]) and box["min"] is None:
                box["min"] = tidy(values.min())
            elif near(values.min(), high[along]):
                box["max"] = tidy(values.max())
        elif len(path) == 2 and near(values[0], values[1]) and near(places.min(), low[across]) and near(places.max(), high[across]):
            box["median"] = tidy(values[0])
    if None in (box["min"], box["max"], box["median"]):
        return None
    return {**box, "first_quartile": tidy(low[along]), "third_quartile": tidy(high[along])}


def named(box, axes, along):
    axis = axes.xaxis if along == 1 else axes.yaxis
    ticks = zip(axis.get_ticklocs(), (label.get_text() for label in axis.get_ticklabels()))
    place = box.pop("at")
    label = next((text for tick, text in ticks if abs(tick - place) < 1e-6 and text), f"{place:g}")
    return {"label": label, **box}


def tidy(value):
    """Without the noise of the last bits."""
    return float(f"{float(value):.12g}")
