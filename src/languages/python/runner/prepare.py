"""Started as `python -I prepare.py FOLDER`, once for each runtime and each set of packages: fills FOLDER with what programs
would otherwise make anew each time. llm_sandbox_plots.py brings it to them."""
import importlib.util
import json
import os
import sys

FONT_ROOTS = ("/usr/share/fonts", "/usr/local/share/fonts", "/usr/X11R6/lib/X11/fonts/TTF", "/usr/X11/lib/X11/fonts")
HOME_FONTS = ("~/.fonts", "~/.local/share/fonts")


def main(folder):
    if importlib.util.find_spec("matplotlib") is None:
        return
    os.environ["MPLCONFIGDIR"] = folder
    from matplotlib import font_manager
    fonts = [font.fname for font in font_manager.fontManager.ttflist + font_manager.fontManager.afmlist]
    folders = font_folders() | {os.path.dirname(font) for font in fonts}
    with open(os.path.join(folder, "font-folders.json"), "w", encoding="utf-8") as file:
        json.dump({name: modified(name) for name in sorted(folders)}, file)


def font_folders():
    """All those in which a font could be put that the cache then lacks."""
    folders = {os.path.expanduser(name) for name in HOME_FONTS} | set(FONT_ROOTS)
    return folders.union(*({folder for folder, _, _ in os.walk(root)} for root in FONT_ROOTS))


def modified(folder):
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return None


main(sys.argv[1])
