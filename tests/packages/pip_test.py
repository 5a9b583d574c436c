"""Python packages: from an index that the test makes, and from the real one."""

import base64
import hashlib
import io
import os
import sys
import tarfile
import tempfile
import zipfile

import support

BACKEND = '''"""Builds the wheel of the package beside it, with nothing but the standard library."""
import os, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "llmsandbox_made-2.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        wheel.writestr("llmsandbox_made.py", open("llmsandbox_made.py").read())
        info = "llmsandbox_made-2.0.dist-info/"
        wheel.writestr(info + "METADATA", open("PKG-INFO").read())
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
'''


def make_wheel(folder, name, version, files, requires=()):
    """A pure wheel with a whole RECORD, as a build tool makes it."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join(f"{path},sha256={digest(text)},{len(text.encode())}\n" for path, text in files.items())
    with zipfile.ZipFile(os.path.join(folder, f"{module}-{version}-py3-none-any.whl"), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def make_source_distribution(folder):
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: llmsandbox-made\nVersion: 2.0\nRequires-Dist: llmsandbox-base>=1\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND,
        "llmsandbox_made.py": "import llmsandbox_base\nVALUE = llmsandbox_base.VALUE + 1\n",
    }
    with tarfile.open(os.path.join(folder, "llmsandbox-made-2.0.tar.gz"), "w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo("llmsandbox-made-2.0/" + path)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def make_index(folder):
    """A simple repository (PEP 503) with a wheel in two versions and a source distribution that needs it."""
    def project(name):
        path = os.path.join(folder, "simple", name)
        os.makedirs(path)
        return path

    base = project("llmsandbox-base")
    for version, value in (("1.0", 1), ("1.5", 41)):
        make_wheel(base, "llmsandbox-base", version, {
            "llmsandbox_base.py": f"VALUE = {value}\ndef say():\n    print('said by', VALUE)\n",
            "llmsandbox_base.pth": "import sys; sys.llmsandbox_pth = True\n",
            f"llmsandbox_base-{version}.dist-info/entry_points.txt":
                "[console_scripts]\nllmsandbox-say = llmsandbox_base:say\n"})
    make_source_distribution(project("llmsandbox-made"))
    for name in ("llmsandbox-base", "llmsandbox-made"):
        path = os.path.join(folder, "simple", name)
        links = "".join(f'<a href="{file}">{file}</a>\n' for file in sorted(os.listdir(path)))
        with open(os.path.join(path, "index.html"), "w") as page:
            page.write(f"<!DOCTYPE html><html><body>\n{links}</body></html>\n")


class LocalIndex(support.PackageTest):
    language = "python"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        index = os.path.join(cls.folder, "index")
        make_index(index)
        cls.server = support.FileServer(index).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.url = cls.server.url + "/simple/"
        cls.home = os.path.join(cls.folder, "home")
        os.mkdir(cls.home, 0o755)
        cls.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": cls.home, "PIP_INDEX_URL": cls.url}

    def test_what_a_package_brings(self):
        answer = self.run_program(
            "import subprocess, sys, llmsandbox_made\n"
            "print(llmsandbox_made.VALUE, sys.llmsandbox_pth, sys.prefix != sys.base_prefix)\n"
            "subprocess.run(['llmsandbox-say'])\n"
            "subprocess.run(['python3', '-c', 'import llmsandbox_made; print(llmsandbox_made.VALUE)'])",
            "llmsandbox-made")
        self.assertPrints("42 True True\nsaid by 41\n42\n", answer)

    def test_the_second_call_asks_nobody(self):
        program = "import llmsandbox_base; print(llmsandbox_base.VALUE)"
        self.assertPrints("1\n", self.run_program(program, "llmsandbox-base==1.0"))
        asked = len(self.server.requests)
        self.assertGreater(asked, 0)
        self.assertPrints("1\n", self.run_program(program, "llmsandbox-base==1.0"))
        self.assertEqual(len(self.server.requests), asked)
        self.assertPrints("41\n", self.run_program(program, "llmsandbox_base >=1, !=1.0"))
        self.assertGreater(len(self.server.requests), asked)

    def test_the_program_has_no_network(self):
        self.assertPrints("refused\n", self.run_program(
            "import llmsandbox_base, socket\n"
            "try:\n"
            f"    socket.create_connection(('127.0.0.1', {self.server.port}), timeout=10)\n"
            "    print('connected')\n"
            "except OSError:\n"
            "    print('refused')", "llmsandbox-base"))

    def test_the_packages_cannot_be_changed(self):
        self.assertPrints("read-only\n", self.run_program(
            "import llmsandbox_base\n"
            "try:\n"
            "    open(llmsandbox_base.__file__, 'a')\n"
            "except OSError:\n"
            "    print('read-only')", "llmsandbox-base"))

    def test_a_name_that_is_not_there(self):
        answer = self.run_program("print('ran')", "llmsandbox-missing")
        self.assertNotRun("install_failed", "No matching distribution found for llmsandbox-missing", answer)

    def test_what_is_no_name_is_refused_and_asks_nobody(self):
        asked = len(self.server.requests)
        wheel = f"{self.url}llmsandbox-base/llmsandbox_base-1.0-py3-none-any.whl"
        for name in ("-r requirements.txt", "--index-url=http://example.org", "-e .", wheel, f"llmsandbox-base @ {wheel}",
                     "git+https://example.org/x", "./llmsandbox-base", "../x.whl", "/tmp/x.whl", "a; touch /tmp/x",
                     "a b", " ", "a==", "a[", "a[]", "_a", "a\n-r x", "numpy; python_version > '3'"):
            with self.subTest(name):
                self.assertNotRun("invalid_argument", "", self.run_program("print('ran')", flags=("--library=" + name,)))
        self.assertEqual(len(self.server.requests), asked)

    def test_the_users_configuration_file(self):
        home = tempfile.mkdtemp(dir=self.folder)
        os.makedirs(os.path.join(home, ".config", "pip"))
        with open(os.path.join(home, ".config", "pip", "pip.conf"), "w") as file:
            file.write(f"[global]\nindex-url = {self.url}\n")
        self.assertPrints("42\n", self.run_program(
            "import llmsandbox_made; print(llmsandbox_made.VALUE)", "llmsandbox-made", HOME=home, PIP_INDEX_URL=""))

    def test_plots_are_captured_all_the_same(self):
        plots = os.path.join(self.folder, "plots")
        answer = self.run_program(
            "import llmsandbox_base\n"
            "try:\n"
            "    import matplotlib.pyplot as plt\n"
            "    plt.plot([1, 2])\n"
            "    print('drawn')\n"
            "except ImportError:\n"
            "    print('no matplotlib')", "llmsandbox-base", flags=("--plots", plots))
        if answer["stdout"] == "no matplotlib\n":
            self.skipTest("skipped: matplotlib")
        self.assertPrints("drawn\n", answer)
        self.assertEqual(os.listdir(plots), ["1-figure-1.png"])


class RealRegistry(support.PackageTest):
    language = "python"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        support.require_registry(sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir",
                                 "--dest", os.path.join(cls.folder, "asked"), "humanize")

    def test_a_pure_package(self):
        self.assertPrints("1.0 MB\n", self.run_program("import humanize; print(humanize.naturalsize(10**6))", "humanize"))

    def test_a_package_with_dependencies(self):
        self.assertPrints("True\n", self.run_program(
            "import requests, urllib3, idna; print(requests.Request('GET', 'http://a/b').prepare().url == 'http://a/b')",
            "requests[socks]>=2,<3"))

    def test_a_compiled_wheel(self):
        self.assertPrints("b'[1,2]'\n", self.run_program("import orjson; print(orjson.dumps([1, 2]))", "orjson"))

    def test_a_source_distribution(self):
        self.assertPrints("{'<n>': '7'}\n", self.run_program(
            "from docopt import docopt; print(dict(docopt('Usage: x <n>', ['7'])))", "docopt==0.6.2"))

    def test_plotly_comes_back_as_a_page(self):
        plots = os.path.join(self.folder, "plots")
        answer = self.run_program(
            "import plotly.graph_objects as go\n"
            "figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4]))\n"
            "figure.write_html('same.html')\n"
            "figure.show(); figure.show(renderer='browser')\n"
            "go.Figure(go.Bar(y=[5])).show()", "plotly", flags=("--plots", plots))
        self.assertPrints("", answer)
        self.assertEqual(sorted(os.listdir(plots)), ["1-plotly.html", "2-plotly.html"])
        self.assertIsWholePage(os.path.join(plots, "1-plotly.html"))

    def test_altair_and_bokeh_come_back_as_pages(self):
        plots = os.path.join(self.folder, "others")
        answer = self.run_program(
            "import altair\n"
            "altair.Chart(altair.Data(values=[{'a': 1}])).mark_point().encode(x='a:Q').show()\n"
            "from bokeh.plotting import figure, show\n"
            "plot = figure()\n"
            "plot.line([1, 2], [3, 4])\n"
            "show(plot)", "altair", "vl-convert-python", "bokeh", flags=("--plots", plots))
        self.assertPrints("", answer)
        self.assertEqual(sorted(os.listdir(plots)), ["1-altair.png", "2-altair.html", "3-bokeh.html"])
        self.assertIsWholePage(os.path.join(plots, "2-altair.html"))
        self.assertIsWholePage(os.path.join(plots, "3-bokeh.html"))

    def test_what_others_are_compiled_against_stays_as_it_is(self):
        answer = self.run_program(
            "try:\n"
            "    import matplotlib.pyplot\n"
            "except ModuleNotFoundError:\n"
            "    print('no matplotlib')\n"
            "import pandas\n"
            "print(pandas.Series([1, 2]).sum())", "pandas")
        self.assertPrints("3\n", {**answer, "stdout": answer["stdout"].replace("no matplotlib\n", "")})

    def assertIsWholePage(self, path):
        """Its JavaScript is in it."""
        with open(path, encoding="utf-8") as file:
            page = file.read()
        self.assertIn("<html", page[:100])
        self.assertGreater(len(page), 500_000)

    def test_a_name_that_is_not_there(self):
        answer = self.run_program("print('ran')", "llm-sandbox-test-no-such-package")
        self.assertNotRun("install_failed", "No matching distribution found for llm-sandbox-test-no-such-package", answer)


if __name__ == "__main__":
    support.main()
