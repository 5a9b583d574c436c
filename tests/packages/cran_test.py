"""R programs with packages: from a repository that the test makes itself, and from CRAN."""

import os
import pathlib
import shutil
import subprocess
import unittest

import support

DESCRIPTION = """Package: {name}
Version: {version}
Title: For Tests
Description: For tests.
Author: Nobody
Maintainer: Nobody <nobody@example.org>
License: GPL-2
{more}
"""
EXTENSION = """#include <Rinternals.h>
SEXP llm_answer(void) { return Rf_ScalarInteger(42); }
"""


def can_compile():
    return shutil.which("cc") is not None and shutil.which("make") is not None


def build(folder, repository, name, version, files, more=""):
    source = pathlib.Path(folder, name)
    for file, text in {**files, "DESCRIPTION": DESCRIPTION.format(name=name, version=version, more=more)}.items():
        path = source / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["R", "CMD", "build", "--no-manual", "--no-build-vignettes", str(source)], cwd=repository,
                   check=True, stdout=subprocess.DEVNULL)


class LocalRepository(support.PackageTest):
    language = "r"

    @classmethod
    def setUpClass(cls):
        if shutil.which("R") is None:
            raise unittest.SkipTest("skipped: R")
        super().setUpClass()
        root = os.path.join(cls.folder, "cran")
        repository = os.path.join(root, "src", "contrib")
        os.makedirs(repository)
        build(cls.folder, repository, "llmBase", "1.5.0",
              {"NAMESPACE": "export(version)\n", "R/base.R": "version <- function() '1.5.0'\n"})
        build(cls.folder, repository, "llm.user", "2.0",
              {"NAMESPACE": "export(hello)\nimportFrom(llmBase, version)\n",
               "R/user.R": "hello <- function() paste('user of', version())\n"}, "Imports: llmBase (>= 1.0)")
        build(cls.folder, repository, "llmOrphan", "1.0",
              {"NAMESPACE": "import(llmNowhere)\n", "R/a.R": "f <- function() 1\n"}, "Imports: llmNowhere")
        build(cls.folder, repository, "llmBroken", "1.0", {"NAMESPACE": "", "R/a.R": "stop('broken at home')\n"})
        build(cls.folder, repository, "llmNative", "1.0",
              {"NAMESPACE": "useDynLib(llmNative)\nexport(answer)\n", "src/native.c": EXTENSION,
               "R/native.R": "answer <- function() .Call('llm_answer', PACKAGE = 'llmNative')\n"})
        subprocess.run(["Rscript", "-e", "invisible(tools::write_PACKAGES('.', type = 'source'))"], cwd=repository,
                       check=True)
        server = support.FileServer(root)
        server.__enter__()
        cls.addClassCleanup(server.__exit__, None, None, None)
        cls.url, cls.requests = server.url, server.requests
        cls.home = os.path.join(cls.folder, "home")
        os.makedirs(cls.home)
        cls.environment = {**os.environ, "HOME": cls.home, "R_REPO": cls.url}

    def test_a_package_and_what_it_depends_on(self):
        self.assertPrints("user of 1.5.0", self.run_program("library(llm.user); cat(hello())", "llm.user"))

    def test_several_at_once(self):
        code = "cat(llm.user::hello(), llmBase::version())"
        self.assertPrints("user of 1.5.0 1.5.0", self.run_program(code, "llmBase", "llm.user"))

    def test_a_compiled_package(self):
        if not can_compile():
            self.skipTest("skipped: make")
        self.assertPrints("42", self.run_program("cat(llmNative::answer())", "llmNative"))

    def test_the_repository_of_the_users_profile(self):
        home = os.path.join(self.folder, "other-home")
        os.makedirs(home)
        pathlib.Path(home, ".Rprofile").write_text(
            f"options(repos = c(CRAN = '{self.url}'))\nSys.setenv(http_proxy = 'http://127.0.0.1:1')\n"
            "stop('only at a desk')\n")
        self.addCleanup(shutil.rmtree, os.path.join(self.folder, "other-cache"), ignore_errors=True)
        answer = self.run_program("cat(llmBase::version())", "llmBase", HOME=home, R_REPO="",
                                  LLM_SANDBOX_CACHE_DIR=os.path.join(self.folder, "other-cache"))
        self.assertPrints("1.5.0", answer)

    def test_packages_that_the_user_has_installed_are_there(self):
        folder = subprocess.run(["Rscript", "-e", "cat(Sys.getenv('R_LIBS_USER'))"], capture_output=True, check=True,
                                env=self.environment).stdout.decode()
        os.makedirs(folder)
        self.addCleanup(shutil.rmtree, folder)
        subprocess.run(["R", "CMD", "INSTALL", "-l", folder, os.path.join(self.folder, "llmBase")], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertPrints("1.5.0", self.run_program("cat(llmBase::version())"))

    def test_what_comes_with_r_is_there(self):
        self.assertPrints("2", self.run_program("cat(stats::median(1:3))", "stats"))

    def test_the_second_time_nothing_is_fetched(self):
        code = "cat(llmBase::version())"
        self.run_program(code, "llmBase")
        before = len(self.requests)
        self.assertPrints("1.5.0", self.run_program(code, "llmBase"))
        self.assertEqual(len(self.requests), before)

    def test_a_failure_is_told_in_the_words_of_r(self):
        for name, part in (("llmNothing", "‘llmNothing’ is not available"), ("llmOrphan", "llmNowhere"),
                           ("llmBroken", "broken at home")):
            with self.subTest(name):
                self.assertNotRun("install_failed", part, self.run_program("cat(1)", name))

    def test_options_and_places_are_no_names(self):
        for name in ("--no-lock", "-e", "http://127.0.0.1/a.tar.gz", "../llmBase", "/tmp/a", "llmBase; id",
                     "llmBase@1.0", "1llm", ".llm", "llm_base", "user/repository", "", " "):
            with self.subTest(name):
                self.assertNotRun("invalid_argument", "", self.run_program("cat(1)", name))


class Registry(support.PackageTest):
    language = "r"

    @classmethod
    def setUpClass(cls):
        if shutil.which("Rscript") is None:
            raise unittest.SkipTest("skipped: R")
        support.require_registry(
            "Rscript", "-e",
            "if (identical(getOption('repos')[['CRAN']], '@CRAN@')) chooseCRANmirror(ind = 1, graphics = FALSE)\n"
            "quit(status = nrow(available.packages()) == 0)")
        super().setUpClass()

    def test_a_package(self):
        code = "cat(is.function(praise::praise))"
        self.assertPrints("TRUE", self.run_program(code, "praise"))


if __name__ == "__main__":
    support.main()
