"""Ruby programs with gems: from a repository that the test makes itself, and from the registry."""

import os
import pathlib
import shutil
import subprocess
import unittest

import support

SPECIFICATION = """Gem::Specification.new do |s|
  s.name = "{name}"; s.version = "{version}"; s.summary = s.name; s.authors = ["nobody"]
  s.files = Dir["**/*.rb", "ext/*"]
  {more}
end
"""
EXTENSION = """#include <ruby.h>
static VALUE answer(VALUE self) { return INT2FIX(42); }
void Init_llm_native(void) { rb_define_singleton_method(rb_define_module("LlmNative"), "answer", answer, 0); }
"""


def ruby_is_here():
    return shutil.which("ruby") is not None and shutil.which("gem") is not None


def can_compile():
    header = subprocess.run(["ruby", "-rrbconfig", "-e", "print RbConfig::CONFIG['rubyhdrdir']"], capture_output=True)
    return os.path.exists(os.path.join(header.stdout.decode(), "ruby.h")) and shutil.which("make") is not None


def build(folder, repository, name, version, files, more=""):
    source = pathlib.Path(folder, f"{name}-{version}")
    for file, text in {**files, f"{name}.gemspec": SPECIFICATION.format(name=name, version=version, more=more)}.items():
        path = source / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    package = os.path.join(repository, "gems", f"{name}-{version}.gem")
    subprocess.run(["gem", "build", "--silent", f"{name}.gemspec", "--output", package], cwd=source, check=True)


class LocalRepository(support.PackageTest):
    language = "ruby"

    @classmethod
    def setUpClass(cls):
        if not ruby_is_here():
            raise unittest.SkipTest("skipped: ruby")
        super().setUpClass()
        repository = cls.repository = os.path.join(cls.folder, "repository")
        os.makedirs(os.path.join(repository, "gems"))
        for version in ("1.0.0", "1.5.0"):
            build(cls.folder, repository, "llm_base", version,
                  {"lib/llm_base.rb": f"module LlmBase; VERSION = '{version}'; end\n"})
        for name in ("llm_user", "llm_above"):  # one after llm_base in the alphabet, one before
            build(cls.folder, repository, name, "2.0.0",
                  {f"lib/{name}.rb": "require 'llm_base'\nNAME = \"user of #{LlmBase::VERSION}\"\n"},
                  "s.add_dependency 'llm_base', '>= 1.0'")
        build(cls.folder, repository, "llm_orphan", "1.0.0", {"lib/llm_orphan.rb": ""},
              "s.add_dependency 'llm_nowhere'")
        build(cls.folder, repository, "llm_native", "1.0.0",
              {"ext/extconf.rb": "require 'mkmf'\ncreate_makefile('llm_native')\n", "ext/llm_native.c": EXTENSION},
              "s.extensions = ['ext/extconf.rb']")
        subprocess.run(["gem", "generate_index", "--silent"], cwd=repository, check=True)
        server = support.FileServer(repository)
        server.__enter__()
        cls.addClassCleanup(server.__exit__, None, None, None)
        cls.requests = server.requests
        home = os.path.join(cls.folder, "home")
        os.makedirs(home)
        pathlib.Path(home, ".gemrc").write_text(f":sources:\n- {server.url}/\nhttp_proxy: http://127.0.0.1:1\n")
        cls.environment = {**os.environ, "HOME": home}

    def test_a_gem_and_what_it_depends_on(self):
        code = "require 'llm_user'\nputs NAME"
        self.assertPrints("user of 1.5.0\n", self.run_program(code, "llm_user"))

    def test_a_version(self):
        code = "require 'llm_base'\nputs LlmBase::VERSION"
        self.assertPrints("1.0.0\n", self.run_program(code, "llm_base:1.0.0"))
        self.assertPrints("1.5.0\n", self.run_program(code, "llm_base"))

    def test_a_version_holds_for_what_depends_on_it_as_well(self):
        for name in ("llm_user", "llm_above"):
            code = f"require '{name}'\nputs NAME"
            self.assertPrints("user of 1.0.0\n", self.run_program(code, "llm_base:1.0.0", name))

    def test_a_native_extension(self):
        if not can_compile():
            self.skipTest("skipped: ruby-dev")
        self.assertPrints("42\n", self.run_program("require 'llm_native'\nputs LlmNative.answer", "llm_native"))

    def test_the_gems_of_the_system_are_there_as_well(self):
        code = "puts Gem::Specification.map(&:name).include?('llm_base'), Gem.path.size > 1"
        self.assertPrints("true\ntrue\n", self.run_program(code, "llm_base"))

    def test_gems_that_the_user_has_installed_are_there(self):
        folder = subprocess.run(["ruby", "-e", "print Gem.user_dir"], capture_output=True, check=True,
                                env=self.environment).stdout.decode()
        subprocess.run(["gem", "install", "--local", "--silent", "--no-document", "--install-dir", folder, "llm_user"],
                       cwd=os.path.join(self.repository, "gems"), check=True)
        self.addCleanup(shutil.rmtree, folder)
        self.assertPrints("user of 1.5.0\n", self.run_program("require 'llm_user'\nputs NAME"))

    def test_the_second_time_nothing_is_fetched(self):
        code = "require 'llm_base'\nputs LlmBase::VERSION"
        self.run_program(code, "llm_base:1.5.0")
        before = len(self.requests)
        self.assertPrints("1.5.0\n", self.run_program(code, "llm_base:1.5.0"))
        self.assertEqual(len(self.requests), before)

    def test_what_does_not_exist_is_told_in_the_words_of_gem(self):
        self.assertNotRun("install_failed", "llm_nothing", self.run_program("puts 1", "llm_nothing"))
        self.assertNotRun("install_failed", "llm_base", self.run_program("puts 1", "llm_base:9.9"))
        self.assertNotRun("install_failed", "llm_nowhere", self.run_program("puts 1", "llm_orphan"))

    def test_options_and_places_are_no_names(self):
        for name in ("--source", "-v", "http://127.0.0.1/a.gem", "../llm_base", "/tmp/a.gem", "llm_base; id",
                     "llm_base:--pre", "llm_base:>= 1", "git+https://x/y", "", " "):
            with self.subTest(name):
                self.assertNotRun("invalid_argument", "", self.run_program("puts 1", name))


class Registry(support.PackageTest):
    language = "ruby"

    @classmethod
    def setUpClass(cls):
        if not ruby_is_here():
            raise unittest.SkipTest("skipped: ruby")
        support.require_registry("gem", "specification", "--remote", "rake", "version")
        super().setUpClass()

    def test_a_gem_with_what_it_depends_on(self):
        code = "require 'paint'\nputs Paint::VERSION.is_a?(String)"
        self.assertPrints("true\n", self.run_program(code, "paint"))


if __name__ == "__main__":
    support.main()
