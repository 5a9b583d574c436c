"""Captures what a program draws, out of band: into a folder that the server empties after the run.

matplotlib: every figure that is shown or still open at the end. Pillow: every image that is shown. What draws web pages is
in llm_sandbox_pages.py. Nothing here may break the program or print anything; what could not be captured becomes a sentence
in the notes.
"""
import atexit
import contextlib
import functools
import itertools
import json
import logging
import math
import os
import shutil
import sys
import threading
import time
import warnings
import weakref
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location

ARTIFACTS = "/tmp/.llm-sandbox/artifacts"  # kArtifactFolder; name order is drawing order, hidden names are unfinished
NOTES = "/tmp/.llm-sandbox/notes"  # one sentence a line
PREPARED = ("/opt/llm-sandbox/packages/.prepared", "/opt/llm-sandbox/prepared")  # by prepare.py
WORKSPACE = os.path.realpath("/sandbox") + "/"  # image files in it are collected by the server

DPI = 100
MAX_PIXELS = 40_000_000
MAX_IMAGES = 50
MAX_NOTES = 20
MAX_NOTE = 400  # characters
MAX_REMARKS = 3  # of matplotlib about one figure
MAX_FRAMES = 1000  # of an animation, on the way to its last one
MAX_FRAME_SECONDS = 5
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".svg", ".gif", ".webp")
INTERACTIVE_BACKENDS = frozenset(
    "gtk3 gtk4 gtk3agg gtk3cairo gtk4agg gtk4cairo macosx nbagg notebook qt4agg qt4cairo qt5agg qt5cairo qtagg qtcairo"
    " tkagg tkcairo webagg wx wxagg wxcairo".split())


# --- Taking part in imports -------------------------------------------------------------------------------------------

def find_spec(ours, name, path, target):
    """For `ours`, the finder in sitecustomize.py: the spec of a module that draws, so made that we see it loaded; else
    None."""
    if name in WATCHED:
        return _watched(ours, name, path, target, WATCHED[name])
    if name.startswith(("plotly.", "altair.", "bokeh.")):
        return _watched(ours, name, path, target, _page_maker_loaded)
    if name == "matplotlib.font_manager":
        _bring_font_cache(sys.modules["matplotlib"])
        return None
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


def _hide(wrapper, original):
    """In the traceback of an error the wrapper is a line of the original, not one of a file unknown to the reader."""
    code = original.__code__
    wrapper.__code__ = wrapper.__code__.replace(
        co_name=code.co_name, co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    return functools.wraps(original)(wrapper)


def _page_maker_loaded(module):
    _pages().loaded(module)


@functools.lru_cache(maxsize=None)
def _pages():
    spec = spec_from_file_location("llm_sandbox_pages", os.path.dirname(__file__) + "/llm_sandbox_pages.py")
    pages = module_from_spec(spec)  # stays out of sys.modules
    spec.loader.exec_module(pages)
    pages.publish, pages.note, pages.hide, pages.WORKSPACE = _publish, _note, _hide, WORKSPACE
    return pages


# --- matplotlib -------------------------------------------------------------------------------------------------------

_process = os.getpid()
_kept = weakref.WeakKeyDictionary()  # figure -> the file that the program saved it to, or None if we captured it
_savefig = None  # matplotlib's own
_animations = []  # weak references to those that are not at their last frame


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
    figure_class.savefig = _hide(wrapper, original)


def _saved(figure, result, args, kwargs):
    with contextlib.suppress(Exception):
        _remember_file(figure, args[0] if args else kwargs["fname"], kwargs.get("format"))
    return result


def _animation_loaded(module):
    create, save = module.Animation.__init__, module.Animation.save
    created = lambda self, *args, **kwargs: _animation_created(self, create(self, *args, **kwargs))
    saved = lambda self, *args, **kwargs: _animation_saved(self, save(self, *args, **kwargs), args, kwargs)
    module.Animation.__init__ = _hide(created, create)
    module.Animation.save = _hide(saved, save)


def _animation_created(animation, result):
    _animations.append(weakref.ref(animation))
    return result


def _animation_saved(animation, result, args, kwargs):
    with contextlib.suppress(Exception):
        _animations.remove(weakref.ref(animation))
        _remember_file(animation._fig, args[0] if args else kwargs["filename"], None)
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
        if _is_kept(figure):
            return
        for animation in _take_animations(figure):
            _go_to_last_frame(animation, title)
        if _is_empty(figure):
            return
        with _notes_instead_of_output(title):
            _publish("figure-%d" % manager.num, lambda path: _draw(figure, path, title))
        _kept[figure] = None
        figure.stale = False
    except Exception as error:
        _note("%s could not be captured: %s: %s" % (title, type(error).__name__, error))


def _take_animations(figure):
    """Those of the figure that would run if it were shown in a window. Without one they stay at their first frame."""
    references = [reference for reference in _animations if getattr(reference(), "_fig", None) is figure]
    for reference in references:
        _animations.remove(reference)
    return [reference() for reference in references]


def _go_to_last_frame(animation, title):
    animation._draw_was_started = True  # or it remarks that it went undrawn
    give_up = time.monotonic() + MAX_FRAME_SECONDS
    try:
        animation._init_draw()
        for number, frame in enumerate(animation.new_saved_frame_seq(), 1):
            animation._draw_frame(frame)
            if number >= MAX_FRAMES or time.monotonic() > give_up:
                _note("%s is an animation of which frame %d was drawn; the last one was too far." % (title, number))
                return
    except Exception as error:
        _note("%s is an animation that failed: %s: %s" % (title, type(error).__name__, error))


def _bring_font_cache(matplotlib):
    """Looking at all fonts of the system takes matplotlib a tenth of a second and more, once for each home folder; in a
    sandbox that is once for each program."""
    folder = matplotlib.get_cachedir()
    for prepared in PREPARED:
        for name in _fresh_font_caches(prepared):
            if not os.path.exists(os.path.join(folder, name)):
                unfinished = os.path.join(folder, "%s.%d" % (name, os.getpid()))
                shutil.copyfile(os.path.join(prepared, name), unfinished)
                os.replace(unfinished, os.path.join(folder, name))


def _fresh_font_caches(prepared):
    """The names of those that are still true: no font folder has changed since."""
    try:
        with open(os.path.join(prepared, "font-folders.json"), encoding="utf-8") as file:
            folders = json.load(file)
        fresh = all(_modified(folder) == modified for folder, modified in folders.items())
        return [name for name in os.listdir(prepared) if fresh and name.startswith("fontlist-")]
    except OSError:
        return []


def _modified(folder):
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return None


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


WATCHED = {"matplotlib.pyplot": _pyplot_loaded, "matplotlib.animation": _animation_loaded,
           "PIL.ImageShow": _image_show_loaded}


# --- Out of band ------------------------------------------------------------------------------------------------------

_lock = threading.RLock()
_images = 0
_notes = 0


def _publish(label, write, suffix=".png"):
    """Lets `write` make a file and gives it the next free number. All or nothing, even if we are killed in between."""
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
                    os.link(hidden, "%s/%06d-%s%s" % (ARTIFACTS, _images, label, suffix))
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
