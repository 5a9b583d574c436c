"""Go programs with modules: from a proxy that the test makes itself, and from the registry."""

import os
import pathlib
import shutil
import unittest
import zipfile

import support

BASE = "example.test/llm/base"
USER = "example.test/llm/user"


def go_is_here():
    return shutil.which("go") is not None or os.path.exists("/usr/local/go/bin/go")


def publish(proxy, module, version, files, requires=""):
    """A module as the protocol of module proxies wants it."""
    folder = pathlib.Path(proxy, module, "@v")
    folder.mkdir(parents=True, exist_ok=True)
    description = f"module {module}\n\ngo 1.19\n{requires}"
    (folder / f"{version}.mod").write_text(description)
    (folder / f"{version}.info").write_text('{"Version": "%s", "Time": "2024-01-01T00:00:00Z"}' % version)
    with open(folder / "list", "a") as versions:
        versions.write(version + "\n")
    with zipfile.ZipFile(folder / f"{version}.zip", "w") as archive:
        for name, text in {"go.mod": description, **files}.items():
            archive.writestr(f"{module}@{version}/{name}", text)


def program(body, *imports):
    quoted = "".join(f'\t"{one}"\n' for one in imports)
    return f"package main\n\nimport (\n{quoted})\n\nfunc main() {{\n{body}\n}}\n"


class LocalProxy(support.PackageTest):
    language = "go"

    @classmethod
    def setUpClass(cls):
        if not go_is_here():
            raise unittest.SkipTest("skipped: go")
        super().setUpClass()
        proxy = os.path.join(cls.folder, "proxy")
        for version in ("v1.0.0", "v1.5.0"):
            publish(proxy, BASE, version, {
                "base.go": f'package base\n\nconst Version = "{version}"\n',
                "deep/below/below.go": 'package below\n\nfunc Name() string { return "below" }\n',
                "cmd/tool/main.go": "package main\n\nfunc main() {}\n",
                "broken/broken.go": "package broken\n\nfunc f() { undefined() }\n",
            })
        publish(proxy, USER, "v1.0.0", {
            "user.go": f'package user\n\nimport "{BASE}"\n\nconst Name = "user of " + base.Version\n',
        }, f"\nrequire {BASE} v1.0.0\n")
        cls.server = support.FileServer(proxy)
        cls.enterClassContext(cls.server) if hasattr(cls, "enterClassContext") else cls.server.__enter__()
        if not hasattr(cls, "enterClassContext"):
            cls.addClassCleanup(cls.server.__exit__)
        cls.environment = {**os.environ, "GOPROXY": cls.server.url, "GOSUMDB": "off", "GOFLAGS": ""}

    def test_the_newest_version(self):
        self.assertPrints("v1.5.0\n", self.run_program(program("fmt.Println(base.Version)", "fmt", BASE), BASE))

    def test_a_version(self):
        answer = self.run_program(program("fmt.Println(base.Version)", "fmt", BASE), BASE + "@v1.0.0")
        self.assertPrints("v1.0.0\n", answer)

    def test_a_package_below_a_module_with_one_that_does_not_compile(self):
        code = program("fmt.Println(below.Name())", "fmt", BASE + "/deep/below")
        self.assertPrints("below\n", self.run_program(code, BASE))

    def test_what_a_module_needs_comes_with_it(self):
        self.assertPrints("user of v1.0.0\n", self.run_program(program("fmt.Println(user.Name)", "fmt", USER), USER))

    def test_a_set_is_installed_once_and_the_program_exits_as_it_says(self):
        code = program("os.Exit(len(base.Version))", "os", BASE)
        first = self.run_program(code, BASE)
        asked = len(self.server.requests)
        second = self.run_program(code, BASE)
        self.assertEqual((first["exit_code"], second["exit_code"], second["stderr"]), (6, 6, ""), (first, second))
        self.assertEqual(len(self.server.requests), asked)

    def test_another_module_than_the_one_named_is_told(self):
        answer = self.run_program(program("fmt.Println(user.Name)", "fmt", USER), BASE)
        self.assertNotRun("compile_failed", f"name the module of {USER}", answer)

    def test_a_name_that_is_not_there(self):
        code = program("fmt.Println()", "fmt")
        self.assertNotRun("install_failed", "404", self.run_program(code, "example.test/llm/missing"))
        self.assertNotRun("install_failed", "v9.0.0", self.run_program(code, BASE + "@v9.0.0"))

    def test_what_is_no_name_is_refused_and_asks_nobody(self):
        asked = len(self.server.requests)
        for name in ("-u", "-mod=mod", "./base", "../base", "/tmp/base", self.server.url + "/" + BASE, BASE + "@", "base",
                     BASE + "/...", BASE + "@v1;id", "file:///tmp/x", "example.test/../x", " ", "example.test/a b"):
            with self.subTest(name):
                self.assertNotRun("invalid_argument", "", self.run_program("package main", flags=("--library=" + name,)))
        self.assertEqual(len(self.server.requests), asked)

    def test_the_users_settings_file(self):
        home = support.open_folder()
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        os.makedirs(os.path.join(home, ".config/go"))
        pathlib.Path(home, ".config/go/env").write_text(f"GOPROXY={self.server.url}\nGOSUMDB=off\n")
        unset = {name: value for name, value in self.environment.items() if name not in ("GOPROXY", "GOSUMDB", "GOFLAGS")}
        self.environment = {**unset, "HOME": home}
        self.assertPrints("v1.0.0\n", self.run_program(program("fmt.Println(base.Version)", "fmt", BASE), BASE + "@v1.0.0"))


class RealRegistry(support.PackageTest):
    language = "go"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        go = shutil.which("go") or "/usr/local/go/bin/go"
        support.require_registry(go, "list", "-m", "github.com/google/uuid@v1.6.0")

    def test_modules(self):
        code = program('fmt.Println(uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), language.English)', "fmt",
                       "github.com/google/uuid", "golang.org/x/text/language")
        self.assertPrints("6ba7b810-9dad-11d1-80b4-00c04fd430c8 en\n",
                          self.run_program(code, "github.com/google/uuid", "golang.org/x/text@v0.14.0"))

    def test_a_name_that_is_not_there(self):
        answer = self.run_program("package main\n\nfunc main() {}\n", "github.com/google/llm-sandbox-no-such-module")
        self.assertNotRun("install_failed", "llm-sandbox-no-such-module", answer)


if __name__ == "__main__":
    support.main()
