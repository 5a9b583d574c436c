"""Captures what plotly, bokeh and altair show: as a page that needs nothing else and, where the library can draw one by
itself, as an image. llm_sandbox_plots.py loads it and sets publish, note, hide and WORKSPACE."""
import contextlib
import importlib.util
import os

# A page that holds its library's JavaScript is of 1 to 5 MB, and the answer to a call is bounded.
MAX_BYTES_OF_WHOLE_PAGES = 9 << 20

_bytes = 0
_is_linked_told = False
_captured = set()  # hashes of figures: one that is written to a file and shown as well is one page
_cannot_draw = set()  # labels


def loaded(module):
    _LOADED.get(module.__name__, _altair_loaded)(module)


# --- plotly -----------------------------------------------------------------------------------------------------------

def _renderers_loaded(module):
    original = module.show

    def show(fig, renderer=None, validate=True, **kwargs):
        figure = module.validate_coerce_fig_to_dict(fig, validate)
        if renderer:
            module.renderers._validate_coerce_renderers(renderer)
        _capture_plotly(figure, kwargs)

    module.show = hide(show, original)


def _html_loaded(module):
    original = module.write_html

    def write_html(fig, file, *args, **kwargs):
        result = original(fig, file, *args, **kwargs)
        with contextlib.suppress(Exception):
            if os.path.realpath(os.fspath(file)).startswith(WORKSPACE):
                _capture_plotly(fig, {"config": kwargs.get("config")})
        return result

    module.write_html = hide(write_html, original)


def _offline_loaded(module):
    if importlib.util.find_spec("IPython") is not None:
        return

    def iplot(figure_or_data, show_link=False, link_text="", validate=True, image=None, filename="", image_width=None,
              image_height=None, config=None, **kwargs):
        from plotly import io, tools
        figure = tools.return_figure_from_figure_or_data(figure_or_data, validate)
        io.show(figure, validate=False, **({"config": config} if config else {}))

    def init_notebook_mode(connected=False):
        """There is no notebook, and nothing has to be set up for iplot()."""

    module.iplot = hide(iplot, module.iplot)
    module.init_notebook_mode = hide(init_notebook_mode, module.init_notebook_mode)


def _capture_plotly(figure, options):
    from plotly import io
    size = {name: options[name] for name in ("width", "height") if options.get(name)}
    if size:
        figure = {**figure, "layout": {**figure.get("layout", {}), **size}}

    def page(library):
        return io.to_html(figure, config=options.get("config"), include_plotlyjs=library, validate=False)

    def draw(path):
        io.write_image(figure, path, format="png", validate=False)

    _capture("plotly", page, True, "cdn", draw if importlib.util.find_spec("kaleido") else None,
             lambda: io.to_json(figure, validate=False))


# --- bokeh ------------------------------------------------------------------------------------------------------------

def _showing_loaded(module):
    original = module._show_with_state

    def _show_with_state(obj, state, browser, new, notebook_handle=False):
        from bokeh.embed import file_html
        from bokeh.resources import CDN, INLINE
        title = (state.file and state.file.title) or "Bokeh plot"
        _capture("bokeh", lambda resources: file_html(obj, resources, title), INLINE, CDN)
        if state.file:
            module.save(obj, state=state)

    module._show_with_state = hide(_show_with_state, original)


# --- altair -----------------------------------------------------------------------------------------------------------

def _altair_loaded(module):
    original = module.TopLevelMixin.show

    def show(self, *args, **kwargs):
        alone = importlib.util.find_spec("vl_convert") is not None
        _capture("altair", lambda inline: self.to_html(inline=inline) if inline else self.to_html(), alone, False,
                 (lambda path: self.save(path, format="png")) if alone else None)

    module.TopLevelMixin.show = hide(show, original)


_LOADED = {"plotly.io._renderers": _renderers_loaded, "plotly.io._html": _html_loaded,
           "plotly.offline.offline": _offline_loaded, "bokeh.io.showing": _showing_loaded}


# --- Out of band ------------------------------------------------------------------------------------------------------

def _capture(label, page, whole, linked, draw=None, content=None):
    """`page` makes the text with `whole` for one that holds its library, with `linked` for one that loads it. `draw` makes
    an image file, `content` what tells a figure from others."""
    try:
        if content is not None and _is_captured(content()):
            return
        text = page(whole if _has_room() else linked)
        if draw is not None and label not in _cannot_draw:
            _publish_image(label, draw)
        publish(label, lambda path: _write(path, text), ".html")
    except Exception as error:
        note("A plot of %s could not be captured: %s: %s" % (label, type(error).__name__, error))


def _is_captured(content):
    known = hash(content) in _captured
    _captured.add(hash(content))
    return known


def _has_room():
    global _is_linked_told
    if _bytes < MAX_BYTES_OF_WHOLE_PAGES:
        return True
    if not _is_linked_told:
        note("Only the first pages of plots hold their JavaScript; the others load it from the network.")
    _is_linked_told = True
    return False


def _publish_image(label, draw):
    try:
        publish(label, draw)
    except Exception as error:
        _cannot_draw.add(label)
        note("Plots of %s could not be drawn as images: %s: %s" % (label, type(error).__name__, error))


def _write(path, text):
    global _bytes
    _bytes += len(text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
