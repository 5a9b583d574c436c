"""C++ programs with Debian packages."""

import os
import shutil
import subprocess
import unittest

import support

HEADERS_ONLY = """#include <tl/expected.hpp>
#include <iostream>

int main() {
    tl::expected<int, const char*> value = 42;
    std::cout << *value << "\\n";
}
"""
SHARED = """#include <gsl/gsl_sf_bessel.h>
#include <cstdio>

int main() { std::printf("%.4f\\n", gsl_sf_bessel_J0(5.0)); }
"""
OPTIONS_NEEDED = """#include <Eigen/Dense>
#include <iostream>

int main() { std::cout << Eigen::Matrix2d::Identity().trace() << "\\n"; }
"""


class NamesOfPackages(support.PackageTest):
    language = "cpp"

    @classmethod
    def setUpClass(cls):
        if shutil.which("g++") is None and shutil.which("clang++") is None:
            raise unittest.SkipTest("skipped: g++")
        super().setUpClass()

    def test_what_is_no_name_is_refused(self):
        for name in ("-o=Dir=/tmp", "--allow-downgrades", "./x.deb", "/tmp/x.deb", "libfmt-dev/sid", "libfmt-dev:i386",
                     "libfmt-dev-", "^libfmt", "libfmt*", "LibFmt", "a", "x;id", "libfmt-dev=", "libfmt-dev=$(id)", " "):
            with self.subTest(name):
                self.assertNotRun("invalid_argument", "", self.run_program("int main() {}", flags=("--library=" + name,)))

    def test_a_machine_without_apt_says_so(self):
        folder = support.open_folder()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        compiler = os.path.realpath(shutil.which("g++") or shutil.which("clang++"))
        if os.path.exists(os.path.join(os.path.dirname(compiler), "apt-get")):
            self.skipTest("skipped: a compiler that does not stand beside apt-get")
        self.assertNotRun("install_failed", "apt-get",
                          self.run_program("int main() {}", "libfmt-dev", PATH=os.path.dirname(compiler)))


class RealRegistry(support.PackageTest):
    language = "cpp"

    @classmethod
    def setUpClass(cls):
        if shutil.which("g++") is None and shutil.which("clang++") is None:
            raise unittest.SkipTest("skipped: g++")
        super().setUpClass()
        lists = os.path.join(cls.folder, "lists")
        os.makedirs(os.path.join(lists, "partial"))
        support.require_registry("apt-get", "-o", "Dir::State::lists=" + lists, "-o", "APT::Update::Error-Mode=any", "update")

    def test_headers_alone(self):
        self.assertPrints("42\n", self.run_program(HEADERS_ONLY, "libexpected-dev"))

    def test_a_shared_library(self):
        self.assertPrints("-0.1776\n", self.run_program(SHARED, "libgsl-dev"))

    def test_a_package_that_the_machine_has_is_linked_in_the_same_way(self):
        code = '#include <fmt/core.h>\n\nint main() { fmt::print("{}\\n", 42); }\n'
        self.assertPrints("42\n", self.run_program(code, "libfmt-dev"))

    def test_options_that_a_package_asks_for(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("skipped: pkg-config")
        self.assertPrints("2\n", self.run_program(OPTIONS_NEEDED, "libeigen3-dev"))

    def test_a_version(self):
        policy = subprocess.run(["apt-cache", "policy", "libexpected-dev"], capture_output=True, text=True).stdout
        version = next((line.split()[1] for line in policy.splitlines() if "Candidate:" in line), None)
        if version is None:
            self.skipTest("skipped: package lists of the machine")
        self.assertPrints("42\n", self.run_program(HEADERS_ONLY, "libexpected-dev=" + version))
        self.assertNotRun("install_failed", "0.0.0", self.run_program(HEADERS_ONLY, "libexpected-dev=0.0.0"))

    def test_a_set_is_installed_once(self):
        first = self.run_program(SHARED, "libgsl-dev")
        second = self.run_program(SHARED, "libgsl-dev", SANDBOX_NETWORK_MODE="none")
        self.assertPrints("-0.1776\n", first)
        self.assertPrints("-0.1776\n", second)

    def test_names_that_are_not_there(self):
        for name in ("llm-sandbox-no-such-dev", "libfm..dev"):
            with self.subTest(name):
                self.assertNotRun("install_failed", "Unable to locate package " + name, self.run_program(SHARED, name))


if __name__ == "__main__":
    support.main()
