"""Started as `python -I install.py FOLDER NAME...`: makes FOLDER a virtual environment that sees what this Python has, and
installs the named packages into it with pip.

What is there already and fits is not installed again. Nothing of the user's settings for pip stays behind.
"""
import os
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
    make_environment(folder)
    python = os.path.join(folder, "bin", "python")
    pip = pip_for(python)
    if not pip:
        sys.exit(NO_PIP % sys.executable)
    scratch = os.path.join(folder, ".install")  # on disk: /tmp is memory, and downloads can be large
    os.mkdir(scratch)
    environment = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    environment.update(PIP_USER="0", TMPDIR=scratch)
    try:
        with settings_of_base(folder):
            status = subprocess.run([python, *pip, "install", *OPTIONS, "--", *names], env=environment).returncode
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(status)


def make_environment(folder):
    venv.EnvBuilder(system_site_packages=True, symlinks=True).create(folder)
    if sys.prefix == sys.base_prefix:
        return
    # The base is an environment itself: the new one is made from that one's base and would not see its packages.
    inherited = dict.fromkeys(sysconfig.get_path(scheme) for scheme in ("purelib", "platlib"))
    site = os.path.join(folder, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    with open(os.path.join(site, "base-environment.pth"), "w", encoding="utf-8") as file:
        file.writelines("import site; site.addsitedir(%r)\n" % path for path in inherited)


def pip_for(python):
    """The arguments that start pip in the new environment: the base's, else the one that the standard library brings."""
    if subprocess.run([python, "-c", "import pip"], stderr=subprocess.DEVNULL).returncode == 0:
        return ["-m", "pip"]
    wheel = bundled_wheel()
    return wheel and [os.path.join(wheel, "pip")]


def bundled_wheel():
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), "/usr/share/python-wheels",
               os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled")]
    wheels = [os.path.join(folder, name) for folder in folders if folder and os.path.isdir(folder)
              for name in sorted(os.listdir(folder)) if name.startswith("pip-") and name.endswith(".whl")]
    return wheels[0] if wheels else None


class settings_of_base:
    """While entered, the pip.conf of the base environment is the new one's. It may hold a password: it does not stay."""

    def __init__(self, folder):
        self.source = os.path.join(sys.prefix, "pip.conf")
        self.copy = os.path.join(folder, "pip.conf")

    def __enter__(self):
        if os.path.isfile(self.source):
            shutil.copyfile(self.source, self.copy)

    def __exit__(self, *_):
        if os.path.exists(self.copy):
            os.unlink(self.copy)


main(sys.argv[1], sys.argv[2:])
