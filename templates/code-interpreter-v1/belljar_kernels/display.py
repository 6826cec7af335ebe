"""What the Python kernel shows beside text and pictures: tables and charts as data, lists and dictionaries as JSON.

Loaded into IPython as an extension. Libraries are looked for among those that the code has imported already: whoever does not use them does not pay.
"""

import datetime
import json
import math
import sys

from IPython.core.formatters import BaseFormatter, JSONFormatter
from traitlets import ObjectName, Unicode

DATA = "application/vnd.belljar.data+json"
CHART = "application/vnd.belljar.chart+json"
# A larger table is for a file.
MOST_CELLS = 1_000_000


def plain(value):
    """A value as JSON has it; what it has no word for, as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (datetime.date, datetime.time)):
        # A moment that is none has no form.
        return None if value != value else value.isoformat()
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    pandas = sys.modules.get("pandas")
    if pandas is not None and (value is pandas.NaT or value is pandas.NA):
        return None
    return str(value)


class DataFormatter(BaseFormatter):
    format_type = Unicode(DATA)
    print_method = ObjectName("_repr_data_")
    _return_type = (dict,)

    def __call__(self, obj):
        pandas = sys.modules.get("pandas")
        frame = getattr(pandas, "DataFrame", None)
        if frame is None or not isinstance(obj, frame) or obj.size > MOST_CELLS:
            return None
        return {str(name): plain(obj.iloc[:, number].tolist()) for number, name in enumerate(obj.columns)}


class ChartFormatter(BaseFormatter):
    format_type = Unicode(CHART)
    print_method = ObjectName("_repr_chart_")
    _return_type = (dict,)

    def __call__(self, obj):
        figure = getattr(sys.modules.get("matplotlib.figure"), "Figure", None)
        if figure is None or not isinstance(obj, figure):
            return None
        from .charts import chart_of

        try:
            return chart_of(obj)
        except Exception:
            # The picture is there all the same.
            return None


class StructureFormatter(JSONFormatter):
    def __call__(self, obj):
        if type(obj) not in (list, dict):
            return super().__call__(obj)
        try:
            return json.loads(json.dumps(obj, default=self.only_numbers)), {"expanded": True}
        except (TypeError, ValueError, RecursionError):
            return None

    @staticmethod
    def only_numbers(value):
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError


def show_saved_pictures() -> None:
    """A picture that is saved to a file is shown as well: code written for a screen rarely does both."""
    try:
        from PIL import Image
    except ImportError:
        return
    from IPython.display import display

    save = Image.Image.save

    def save_and_show(image, fp, format=None, **options):
        save(image, fp, format, **options)
        if isinstance(fp, str):
            display(image)

    Image.Image.save = save_and_show


def load_ipython_extension(shell) -> None:
    formatters = shell.display_formatter.formatters
    for formatter in (DataFormatter, ChartFormatter):
        formatters[formatter.format_type.default_value] = formatter(parent=shell.display_formatter)
    formatters["application/json"] = StructureFormatter(parent=shell.display_formatter)
    show_saved_pictures()
