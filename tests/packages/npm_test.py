"""JavaScript packages: from a registry that the test makes, and from the real one."""

import base64
import hashlib
import io
import json
import os
import tarfile
import tempfile

import support

PACKAGES = [
    ({"name": "llmsandbox-base", "version": "1.0.0", "bin": {"llmsandbox-say": "say.js"}},
     {"index.js": "exports.value = 1;\n", "say.js": "#!/usr/bin/env node\nconsole.log('said');\n"}),
    ({"name": "llmsandbox-base", "version": "1.5.0", "bin": {"llmsandbox-say": "say.js"}},
     {"index.js": "exports.value = 41;\n", "say.js": "#!/usr/bin/env node\nconsole.log('said');\n"}),
    ({"name": "llmsandbox-made", "version": "2.0.0", "dependencies": {"llmsandbox-base": "^1.0.0"},
      "scripts": {"postinstall": "node build.js"}},
     {"build.js": "require('fs').writeFileSync('built.json', '1');\n",
      "index.js": "exports.value = require('llmsandbox-base').value + require('./built.json');\n"}),
    ({"name": "@llmsandbox/module", "version": "3.0.0", "type": "module", "exports": "./index.js"},
     {"index.js": "export const value = await Promise.resolve(3);\n"}),
]


def make_tarball(manifest, files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps(manifest), **files}.items():
            member = tarfile.TarInfo("package/" + name)
            member.size = len(text)
            member.mode = 0o755 if name == "say.js" else 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


def make_registry(folder, url):
    """One document for each package, which names the tarballs of its versions."""
    documents = {}
    os.makedirs(os.path.join(folder, "tarballs"))
    for manifest, files in PACKAGES:
        name, version = manifest["name"], manifest["version"]
        file = f"{name.replace('/', '-').lstrip('@')}-{version}.tgz"
        content = make_tarball(manifest, files)
        with open(os.path.join(folder, "tarballs", file), "wb") as tarball:
            tarball.write(content)
        document = documents.setdefault(name, {"name": name, "versions": {}, "dist-tags": {}})
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
        document["versions"][version] = {
            **manifest, "hasInstallScript": "scripts" in manifest,
            "dist": {"tarball": f"{url}/tarballs/{file}", "integrity": integrity,
                     "shasum": hashlib.sha1(content).hexdigest()}}
        document["dist-tags"]["latest"] = version
    for name, document in documents.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump(document, file)


class LocalRegistry(support.PackageTest):
    language = "javascript"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        registry = os.path.join(cls.folder, "registry")
        cls.server = support.FileServer(registry).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        make_registry(registry, cls.server.url)
        cls.home = os.path.join(cls.folder, "home")
        os.mkdir(cls.home, 0o755)
        cls.environment = {"PATH": os.environ["PATH"], "HOME": cls.home, "npm_config_registry": cls.server.url}

    def test_a_dependency_and_a_script_that_builds(self):
        self.assertPrints("42\n", self.run_program("console.log(require('llmsandbox-made').value)", "llmsandbox-made"))

    def test_in_es_modules(self):
        self.assertPrints("1 3 1\n", self.run_program(
            "import base from 'llmsandbox-base';\n"
            "import { value } from '@llmsandbox/module';\n"
            "const again = await import('llmsandbox-base');\n"
            "console.log(base.value, value, again.default.value);", "llmsandbox-base@1.0.0", "@llmsandbox/module@^3"))

    def test_commands(self):
        self.assertPrints("said\n\n", self.run_program(
            "console.log(require('child_process').execSync('llmsandbox-say').toString())", "llmsandbox-base"))

    def test_the_second_call_asks_nobody(self):
        program = "console.log(require('llmsandbox-base').value)"
        self.assertPrints("1\n", self.run_program(program, "llmsandbox-base@<1.5"))
        asked = len(self.server.requests)
        self.assertGreater(asked, 0)
        self.assertPrints("1\n", self.run_program(program, "llmsandbox-base@<1.5"))
        self.assertEqual(len(self.server.requests), asked)
        self.assertPrints("41\n", self.run_program(program, "llmsandbox-base@latest"))
        self.assertGreater(len(self.server.requests), asked)

    def test_the_program_has_no_network(self):
        self.assertPrints("ECONNREFUSED\n", self.run_program(
            "require('llmsandbox-base');\n"
            f"require('net').connect({self.server.port}, '127.0.0.1')\n"
            "  .on('connect', () => { console.log('connected'); process.exit(); })\n"
            "  .on('error', (error) => console.log(error.code));", "llmsandbox-base"))

    def test_a_name_that_is_not_there(self):
        answer = self.run_program("console.log('ran')", "llmsandbox-missing")
        self.assertNotRun("install_failed", "E404", answer)
        self.assertNotRun("install_failed", "ETARGET", self.run_program("console.log('ran')", "llmsandbox-base@9"))

    def test_what_is_no_name_is_refused_and_asks_nobody(self):
        asked = len(self.server.requests)
        tarball = self.server.url + "/tarballs/llmsandbox-base-1.0.0.tgz"
        for name in ("-g", "--registry=http://example.org", tarball, "git+ssh://git@example.org/x.git", "user/repository",
                     "github:user/repository", "./llmsandbox-base", "../x", "/tmp/x", "file:x", "a@file:x", "a@" + tarball,
                     "a@npm:llmsandbox-base", "a@..", "a b", " ", "a@", "@a", "@a/", "_a", ".a", "a; touch /tmp/x", "a\n-g"):
            with self.subTest(name):
                self.assertNotRun("invalid_argument", "",
                                  self.run_program("console.log('ran')", flags=("--library=" + name,)))
        self.assertEqual(len(self.server.requests), asked)

    def test_the_users_configuration_file(self):
        home = tempfile.mkdtemp(dir=self.folder)
        with open(os.path.join(home, ".npmrc"), "w") as file:
            file.write(f"registry={self.server.url}\nprefix={home}/elsewhere\ncache={home}/cache\n")
        self.assertPrints("42\n", self.run_program(
            "console.log(require('llmsandbox-made').value)", "llmsandbox-made", HOME=home, npm_config_registry=""))
        self.assertFalse(os.path.exists(os.path.join(home, "elsewhere")))

    def test_the_workspace_is_searched_for_pictures_without_the_packages(self):
        answer = self.run_program(
            "console.log(require('fs').lstatSync('node_modules').isSymbolicLink(), require('fs').readdirSync('.').sort())",
            "llmsandbox-base")
        self.assertPrints("true [ 'main.js', 'node_modules' ]\n", answer)


class RealRegistry(support.PackageTest):
    language = "javascript"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        support.require_registry("npm", "view", "is-odd", "version")

    def test_a_pure_package(self):
        self.assertPrints("[ [ 1, 2 ], [ 3 ] ]\n", self.run_program(
            "console.log(require('lodash').chunk([1, 2, 3], 2))", "lodash@^4"))

    def test_packages_with_dependencies(self):
        self.assertPrints("true true\n", self.run_program(
            "import isOdd from 'is-odd';\nimport express from 'express';\nconsole.log(isOdd(3), typeof express === 'function');",
            "is-odd", "express"))

    def test_a_compiled_package(self):
        self.assertPrints("let a=1;\n\n", self.run_program(
            "console.log(require('esbuild').transformSync('let a: number = 1', { loader: 'ts', minify: true }).code)",
            "esbuild"))

    def test_a_name_that_is_not_there(self):
        self.assertNotRun("install_failed", "E404", self.run_program("console.log('ran')", "llm-sandbox-test-no-such-package"))


class NewerNode(support.PackageTest):
    """Node 24, which takes TypeScript by itself. The registry has it as a package."""

    language = "typescript"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        support.require_registry("npm", "install", "--prefix", cls.folder, "--no-audit", "--no-fund", "--silent",
                                 "--dangerously-allow-all-scripts=true", "node@24")
        folder = os.path.join(cls.folder, "node_modules", "node", "bin")
        cls.environment = {**os.environ, "PATH": folder + ":" + os.environ["PATH"]}

    def test_it_is_the_one_in_use(self):
        self.assertRegex(self.run_program("console.log(process.version as string)")["stdout"], r"^v24\.")

    def test_types_go_and_lines_stay(self):
        answer = self.run_program("interface P { a: number }\n\nconst p: P = { a: 1 };\nthrow new Error('why' + p.a)")
        self.assertEqual(answer["exit_code"], 1)
        self.assertIn("main.ts:4", answer["stderr"])
        self.assertIn("Error: why1", answer["stderr"])

    def test_modules_and_what_is_more_than_types(self):
        self.assertPrints("b 2 3\n", self.run_program(
            "import { basename } from 'node:path';\n"
            "enum Color { Red = 1, Blue }\n"
            "class Box<T> { constructor(public readonly value: T) {} }\n"
            "const box = new Box<number>(await Promise.resolve(3));\n"
            "console.log(basename('/a/b'), Color.Blue, box.value);"))

    def test_javascript_is_as_before(self):
        self.language = "javascript"
        self.assertPrints("true\n", self.run_program("console.log(require.main === module)"))
        self.assertPrints("5\n", self.run_program("console.log(await 5)"))

    def test_with_a_package(self):
        self.assertPrints("true\n", self.run_program(
            "import isOdd from 'is-odd';\nconst odd: boolean = isOdd(3);\nconsole.log(odd)", "is-odd"))


if __name__ == "__main__":
    support.main()
