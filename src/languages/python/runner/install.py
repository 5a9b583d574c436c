"""Started as `python -I install.py FOLDER NAME...`: makes FOLDER a virtual environment that sees what this Python has, and
installs the named packages into it with pip.

What is there already and fits is not installed again. Nothing of the user's settings for pip stays behind.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv

OPTIONS = ["--no-input", "--no-cache-dir", "--progress-bar", "off", "--disable-pip-version-check",
           "--no-warn-script-location"]
# Of the user's settings those that say where packages go, which we do.
NOT_OURS = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_SRC", "PIP_LOG",
            "PIP_REPORT", "PIP_REQUIREMENT", "PIP_EDITABLE", "PIP_CACHE_DIR", "PYTHONPATH")
NO_PIP = "%s has no pip, which installs packages. On Debian and Ubuntu this brings it: sudo apt-get install python3-pip"


def main(folder, names):
    environment = Environment(folder)
    try:
        status = environment.install(names)
    finally:
        environment.clean()
    if status == 0:
        environment.share_namespaces()
        environment.prepare()
    sys.exit(status)


class Environment:
    def __init__(self, folder):
        self.folder = folder
        self.python = os.path.join(folder, "bin", "python")
        self.site = os.path.join(folder, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        self.scratch = os.path.join(folder, ".install")  # on disk: /tmp is memory, and downloads can be large
        self.configuration = os.path.join(folder, "pip.conf")
        venv.EnvBuilder(system_site_packages=True, symlinks=True).create(folder)
        os.mkdir(self.scratch)
        if sys.prefix != sys.base_prefix:
            self._inherit()
        self.pip = self._find_pip()

    def _inherit(self):
        """Our Python is an environment itself: the new one is made from that one's base and would not see its packages."""
        inherited = dict.fromkeys(sysconfig.get_path(scheme) for scheme in ("purelib", "platlib"))
        with open(os.path.join(self.site, "base-environment.pth"), "w", encoding="utf-8") as file:
            file.writelines("import site; site.addsitedir(%r)\n" % path for path in inherited)
        if os.path.isfile(os.path.join(sys.prefix, "pip.conf")):
            shutil.copyfile(os.path.join(sys.prefix, "pip.conf"), self.configuration)

    def _find_pip(self):
        """The arguments that start the base's pip in the new environment, else the one that the standard library brings."""
        if subprocess.run([self.python, "-c", "import pip"], stderr=subprocess.DEVNULL).returncode == 0:
            return ["-m", "pip"]
        folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), "/usr/share/python-wheels",
                   os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled")]
        for folder in filter(None, folders):
            for wheel in glob.glob(os.path.join(glob.escape(folder), "pip-*.whl")):
                return [os.path.join(wheel, "pip")]
        self.clean()
        sys.exit(NO_PIP % sys.executable)

    def clean(self):
        shutil.rmtree(self.scratch, ignore_errors=True)
        if os.path.exists(self.configuration):
            os.unlink(self.configuration)  # it may hold a password

    def install(self, names):
        """What others of the base are compiled against stays at its version if there is any way; if there is none, these
        others are installed anew as well."""
        fixed = compiled_against()
        if fixed and self._pip(*self._constrained(fixed), *names, quiet=True) == 0:
            return 0
        status = self._pip(*names)
        if status == 0:
            self._install_anew(fixed)
        return status

    def _install_anew(self, fixed):
        from importlib import metadata
        here = {key(one.metadata["Name"]): one.version for one in metadata.distributions(path=[self.site])}
        replaced = {name: here[name] for name in fixed if name in here}
        broken = [name for name in compiled_users(replaced) if name not in here] if replaced else []
        if broken:
            self._pip(*self._constrained(replaced), "--upgrade", *broken, quiet=True)

    def _constrained(self, versions):
        path = os.path.join(self.scratch, "constraints.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines("%s==%s\n" % one for one in versions.items())
        return ["--only-binary=:all:", "--constraint", path]  # without building all older versions on the way

    def _pip(self, *arguments, quiet=False):
        """`quiet`: what goes wrong is nobody's business."""
        settings = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
        settings.update(PIP_USER="0", TMPDIR=self.scratch)
        return subprocess.run([self.python, *self.pip, "install", *OPTIONS, *arguments], env=settings,
                              stderr=subprocess.DEVNULL if quiet else None).returncode

    def share_namespaces(self):
        """A .pth file of the base may make a package of its own parts alone before anything else is looked for (Debian's
        matplotlib does with mpl_toolkits). The same for the new parts comes first."""
        for one in base():
            names = (one.read_text("namespace_packages.txt") or "").split()
            if names and all(os.path.isdir(os.path.join(self.site, name)) for name in names):
                pattern = "%s-%s*-nspkg.pth" % (glob.escape(one.metadata["Name"]), glob.escape(one.version))
                for file in glob.glob(os.path.join(glob.escape(str(one.locate_file(""))), pattern)):
                    shutil.copy(file, self.site)

    def prepare(self):
        """For programs that use the packages, as prepare.py does it for those that use the base alone."""
        if os.path.isdir(os.path.join(self.site, "matplotlib")):
            prepared = os.path.join(self.folder, ".prepared")  # known to llm_sandbox_plots.py
            os.mkdir(prepared)
            script = os.path.join(os.path.dirname(__file__), "prepare.py")
            subprocess.run([self.python, "-I", script, prepared], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compiled_against():
    """Name and version of each package that lets others be compiled against it, as numpy does."""
    return {key(one.metadata["Name"]): one.version for one in base()
            if next(files_of(one, "*.pxd"), None) and re.fullmatch(r"[0-9][0-9A-Za-z.!+]*", one.version)}


def compiled_users(names):
    """By what stands in their libraries: not all say what they need (Debian's matplotlib does not)."""
    modules = [name.replace("-", "_").encode() for name in names]
    return [key(one.metadata["Name"]) for one in base()
            if any(module in content(path) for path in files_of(one, "*.so") for module in modules)]


def content(path):
    with open(path, "rb") as file:
        return file.read()


def base():
    try:
        from importlib import metadata
    except ImportError:
        return []
    return [one for one in metadata.distributions() if one.metadata["Name"] and one.version]


def files_of(distribution, pattern):
    modules = (distribution.read_text("top_level.txt") or key(distribution.metadata["Name"]).replace("-", "_")).split()
    folders = [glob.escape(str(distribution.locate_file(module))) for module in modules]
    return (path for folder in folders for path in glob.iglob(os.path.join(folder, "**", pattern), recursive=True))


def key(name):
    return re.sub(r"[-_.]+", "-", name).lower()


main(sys.argv[1], sys.argv[2:])
