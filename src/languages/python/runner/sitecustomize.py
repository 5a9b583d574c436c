# Gets in before the user's program (by PYTHONPATH), so that plots can be captured, and leaves no trace but a finder on
# sys.meta_path. Compiled anew at each start: keep it short, import nothing that a bare interpreter has not imported.
import os
import sys


class PlotFinder:
    """Lets llm_sandbox_plots.py, loaded only then, take part in the import of what draws."""

    plots = None

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "matplotlib.pyplot" and name != "PIL.ImageShow" and not name.startswith("matplotlib.backends."):
            return None
        try:
            if cls.plots is None:
                from importlib.util import module_from_spec, spec_from_file_location
                spec = spec_from_file_location("llm_sandbox_plots", cls.folder + "/llm_sandbox_plots.py")
                cls.plots = module_from_spec(spec)  # stays out of sys.modules
                spec.loader.exec_module(cls.plots)
            return cls.plots.find_spec(cls, name, path, target)
        except Exception:
            return None


def install():
    PlotFinder.folder = folder = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    sys.path_importer_cache.pop(folder, None)
    os.environ.pop("PYTHONPATH", None)
    sys.meta_path.insert(0, PlotFinder)
    # The sitecustomize that this one shadows. Where there is none its ImportError goes on to site.py, which expects it,
    # and this module is forgotten as well.
    del sys.modules[__name__]
    import sitecustomize


install()
