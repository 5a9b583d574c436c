"""Captures what a program draws, out of band: into a folder that the server empties after the run.

matplotlib: every figure that is shown or still open at the end. Pillow: every image that is shown. Nothing here may break
the program or print anything; what could not be captured becomes a sentence in the notes.
"""
import atexit
import contextlib
import functools
import itertools
import logging
import math
import os
import sys
import threading
import warnings
import weakref
from importlib.machinery import ModuleSpec

ARTIFACTS = "/tmp/.llm-sandbox/artifacts"  # kArtifactFolder; name order is drawing order, hidden names are unfinished
NOTES = "/tmp/.llm-sandbox/notes"  # one sentence a line
WORKSPACE = os.path.realpath("/sandbox") + "/"  # image files in it are collected by the server

DPI = 100
MAX_PIXELS = 40_000_000
MAX_IMAGES = 100
MAX_NOTES = 20
MAX_NOTE = 400  # characters
MAX_REMARKS = 3  # of matplotlib about one figure
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".svg", ".gif", ".webp")
INTERACTIVE_BACKENDS = frozenset(
    "gtk3 gtk4 gtk3agg gtk3cairo gtk4agg gtk4cairo macosx nbagg notebook qt4agg qt4cairo qt5agg qt5cairo qtagg qtcairo"
    " tkagg tkcairo webagg wx wxagg wxcairo".split())


# --- Taking part in imports -------------------------------------------------------------------------------------------

def find_spec(ours, name, path, target):
    """For `ours`, the finder in sitecustomize.py: the spec of a module that draws, so made that we see it loaded; else
    None."""
    if name == "matplotlib.pyplot":
        return _watched(ours, name, path, target, _pyplot_loaded)
    if name == "PIL.ImageShow":
        return _watched(ours, name, path, target, _image_show_loaded)
    backend = name.rpartition("backend_")[2]
    if backend in INTERACTIVE_BACKENDS and _called_from("switch_backend"):
        return ModuleSpec(name, AggInstead)
    return None


def _watched(ours, name, path, target, when_loaded):
    specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not ours)
    spec = next((spec for spec in specs if spec is not None), None)
    if spec is not None:
        _call_when_loaded(spec.loader, when_loaded)
    return spec


def _call_when_loaded(loader, when_loaded):
    load = loader.exec_module

    def exec_module(module):
        del loader.exec_module  # the class's own again
        load(module)
        with contextlib.suppress(Exception):
            when_loaded(module)

    # An import that fails is reported without the frames of importlib. Under its name ours is left out, too.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    loader.exec_module = exec_module


class AggInstead:
    """Loads a backend that would need a display as what draws in memory."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        from matplotlib.backends import backend_agg
        vars(module).update((name, value) for name, value in vars(backend_agg).items() if not name.startswith("__"))


def _called_from(function):
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


# --- matplotlib -------------------------------------------------------------------------------------------------------

_process = os.getpid()
_kept = weakref.WeakKeyDictionary()  # figure -> the file that the program saved it to, or None if we captured it
_savefig = None  # matplotlib's own


def _pyplot_loaded(pyplot):
    if _savefig is None:
        _wrap_savefig(pyplot.Figure)
        from matplotlib.backend_bases import FigureManagerBase
        FigureManagerBase.show = lambda manager: _capture(manager)  # Figure.show() comes here
        atexit.register(_capture_open_figures)
    pyplot.show = _wrap_show(pyplot)


def _wrap_show(pyplot):
    @functools.wraps(pyplot.show)
    def show(*args, **kwargs):
        block = kwargs.get("block", args[0] if args else None)
        shows_a_frame = sys._getframe(1).f_code is getattr(pyplot.pause, "__code__", None)
        managers = _open_figures(pyplot)
        for manager in managers:
            if not (shows_a_frame and manager.canvas.figure in _kept):  # of an animation the first and last frame do
                _capture(manager)
        if block is None:
            block = not pyplot.isinteractive()
        if block:  # the windows are closed by the time that it returns
            for manager in managers:
                pyplot.close(manager.canvas.figure)

    return show


def _wrap_savefig(figure_class):
    global _savefig
    original = _savefig = figure_class.savefig
    wrapper = lambda self, *args, **kwargs: _saved(self, original(self, *args, **kwargs), args, kwargs)
    # In the traceback of an error in savefig this is a line of matplotlib, not one of a file unknown to the reader.
    code = original.__code__
    wrapper.__code__ = wrapper.__code__.replace(
        co_name="savefig", co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    figure_class.savefig = functools.wraps(original)(wrapper)


def _saved(figure, result, args, kwargs):
    with contextlib.suppress(Exception):
        _remember_file(figure, args[0] if args else kwargs["fname"], kwargs.get("format"))
    return result


def _remember_file(figure, target, image_format):
    path = os.fspath(target)
    if not os.path.splitext(path)[1] and image_format is None:
        path += "." + figure.canvas.get_default_filetype()
    path = os.path.realpath(path)
    if path.startswith(WORKSPACE) and path.lower().endswith(IMAGE_SUFFIXES):
        _kept[figure] = _stamp(path)
        figure.stale = False


def _stamp(path):
    status = os.stat(path)
    return path, status.st_mtime_ns, status.st_size


def _is_kept(figure):
    """Whether an image of the figure as it is now will reach the caller already."""
    if figure.stale or figure not in _kept:
        return False
    stamp = _kept[figure]
    try:
        return stamp is None or stamp == _stamp(stamp[0])
    except OSError:
        return False


def _open_figures(pyplot):
    managers = pyplot._pylab_helpers.Gcf.get_all_fig_managers()
    return sorted(managers, key=lambda manager: manager.num)


def _capture_open_figures():
    if os.getpid() != _process:  # a forked child has inherited its parent's figures
        return
    with contextlib.suppress(Exception):
        for manager in _open_figures(sys.modules["matplotlib.pyplot"]):
            _capture(manager)


def _capture(manager):
    title = "Figure %d" % manager.num
    try:
        figure = manager.canvas.figure
        if _is_empty(figure) or _is_kept(figure):
            return
        with _notes_instead_of_output(title):
            _publish("figure-%d" % manager.num, lambda path: _draw(figure, path, title))
        _kept[figure] = None
        figure.stale = False
    except Exception as error:
        _note("%s could not be captured: %s: %s" % (title, type(error).__name__, error))


def _is_empty(figure):
    return all(child is figure.patch for child in figure.get_children())


def _draw(figure, path, title):
    width, height = figure.get_size_inches()
    dpi = DPI
    if width * height * DPI ** 2 > MAX_PIXELS:
        dpi = math.sqrt(MAX_PIXELS / (width * height))
        _note("%s is very large (%g x %g inches) and was drawn at %.0f dpi." % (title, width, height, dpi))

    def get_tightbbox(*args, **kwargs):  # text at a wrong place can make the tight box as large as memory
        box = type(figure).get_tightbbox(figure, *args, **kwargs)
        if box.width * box.height * dpi ** 2 <= 1.25 * MAX_PIXELS:
            return box
        _note("%s has something drawn far outside of it, which was cut off." % title)
        return figure.bbox_inches

    figure.get_tightbbox = get_tightbbox
    try:
        _savefig(figure, path, format="png", dpi=dpi, bbox_inches="tight")
    finally:
        del figure.get_tightbbox


# --- Pillow -----------------------------------------------------------------------------------------------------------

def _image_show_loaded(image_show):
    image_show._viewers.insert(0, ImageViewer())


class ImageViewer:
    """First among Pillow's viewers, for Image.show()."""

    def show(self, image, **options):
        try:
            _publish("image", functools.partial(_save_image, image))
        except Exception as error:
            _note("An image could not be captured: %s: %s" % (type(error).__name__, error))
        return True


def _save_image(image, path):
    from PIL import Image
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = image.convert(Image.getmodebase(image.mode))
    if image.width * image.height > MAX_PIXELS:
        _note("An image of %d x %d pixels was made smaller." % image.size)
        image = image.copy()
        scale = math.sqrt(MAX_PIXELS / (image.width * image.height))
        image.thumbnail((max(1, int(image.width * scale)), max(1, int(image.height * scale))))
    image.save(path, format="PNG")


# --- Out of band ------------------------------------------------------------------------------------------------------

_lock = threading.RLock()
_images = 0
_notes = 0


def _publish(label, write):
    """Lets `write` make a PNG file and gives it the next free number. All or nothing, even if we are killed in between."""
    global _images
    with _lock:
        if _images >= MAX_IMAGES:
            if _images == MAX_IMAGES:
                _note("Only the first %d images were captured." % MAX_IMAGES)
                _images += 1
            return
        os.makedirs(ARTIFACTS, exist_ok=True)
        hidden = "%s/.%d-%s.part" % (ARTIFACTS, os.getpid(), label)
        try:
            write(hidden)
            for _images in itertools.count(_images + 1):  # a forked child counts on its own
                with contextlib.suppress(FileExistsError):
                    os.link(hidden, "%s/%06d-%s.png" % (ARTIFACTS, _images, label))
                    return
        finally:
            with contextlib.suppress(OSError):
                os.unlink(hidden)


def _note(sentence):
    global _notes
    if _notes >= MAX_NOTES:
        return
    _notes += 1
    with contextlib.suppress(Exception):
        os.makedirs(os.path.dirname(NOTES), exist_ok=True)
        with open(NOTES, "a", encoding="utf-8", errors="replace") as file:
            file.write(" ".join(sentence.split())[:MAX_NOTE] + "\n")


@contextlib.contextmanager
def _notes_instead_of_output(title):
    """What matplotlib has to say while it draws (a missing glyph, a font not found) becomes notes."""
    sentences = {}  # as an ordered set

    def divert(record):
        if record.levelno >= logging.WARNING:
            sentences[record.getMessage()] = None
        return False

    loggers = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)
               if name == "matplotlib" or name.startswith("matplotlib.")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        for logger in loggers:
            logger.addFilter(divert)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeFilter(divert)
    sentences.update((str(warning.message), None) for warning in caught)
    for sentence in itertools.islice(sentences, MAX_REMARKS):
        _note("%s: %s" % (title, sentence))
    if len(sentences) > MAX_REMARKS:
        _note("%s: %d more remarks of this kind." % (title, len(sentences) - MAX_REMARKS))
