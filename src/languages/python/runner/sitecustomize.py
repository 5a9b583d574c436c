# Gets in before the user's program (by PYTHONPATH), so that plots can be captured, and leaves no trace but itself as a
# finder on sys.meta_path. Compiled anew at each start: short, and imports nothing that the interpreter has not already.
import os
import sys

plots = None
drawing = {"matplotlib.pyplot", "matplotlib.animation", "matplotlib.font_manager", "PIL.ImageShow",
           "plotly.io._renderers", "plotly.io._html", "plotly.offline.offline", "bokeh.io.showing",
           "altair.vegalite.v4.api", "altair.vegalite.v5.api", "altair.vegalite.v6.api"}
this = sys.modules.pop(__name__)


def find_spec(name, path=None, target=None):
    """Lets llm_sandbox_plots.py, loaded only then, take part in the import of what draws."""
    global plots
    if name not in drawing and not name.startswith("matplotlib.backends."):
        return None
    try:
        if plots is None:
            from importlib.util import module_from_spec, spec_from_file_location
            spec = spec_from_file_location("llm_sandbox_plots", folder + "/llm_sandbox_plots.py")
            plots = module_from_spec(spec)  # stays out of sys.modules
            spec.loader.exec_module(plots)
        return plots.find_spec(this, name, path, target)
    except Exception:
        return None


folder = os.path.dirname(__file__)
sys.path.remove(folder)
sys.path_importer_cache.pop(folder, None)
os.environ.pop("PYTHONPATH", None)
sys.meta_path.insert(0, this)
# The sitecustomize that this one shadows. Where there is none its ImportError goes on to site.py, which expects it.
import sitecustomize
