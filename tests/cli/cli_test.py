"""The command line of the real binary, as a person or a script uses it."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import tempfile
import time
import unittest

SERVER = os.environ["LLM_SANDBOX_SERVER"]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}


def run(*arguments, stdin=b"", environment=None, timeout=120):
    return subprocess.run([SERVER, *arguments], input=stdin, capture_output=True, timeout=timeout,
                          env={**ENVIRONMENT, **(environment or {})})


class RunCommand(unittest.TestCase):
    def test_streams_and_exit_code_are_the_programs(self):
        done = run("run", "--code", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"out\n", b"err\n", 7))

    def test_a_file_tells_its_language_by_its_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.js")
            with open(path, "w") as file:
                file.write("console.log(6 * 7)")
            self.assertEqual(run("run", path).stdout, b"42\n")
            for ending, output in ((".mjs", b"7\n"), (".cjs", b""), (".unknown", b"")):
                with open(path + ending, "w") as file:
                    file.write("console.log(await 7)")
                self.assertEqual(run("run", path + ending).stdout, output)

    def test_options_may_stand_before_the_file(self):
        done = run("run", "--library", "no-such-package", "/nonexistent.py")
        self.assertIn(b"/nonexistent.py", done.stderr)

    def test_a_program_from_stdin(self):
        self.assertEqual(run("run", "-", stdin=b"print('piped')").stdout, b"piped\n")

    def test_a_timeout_is_told_and_has_its_exit_code(self):
        done = run("run", "--timeout", "0.5", "--code", "print('before', flush=True)\nimport time; time.sleep(600)")
        self.assertEqual((done.stdout, done.returncode), (b"before\n", 124))
        self.assertIn(b"500 ms", done.stderr)

    def test_what_cannot_be_run_is_told_apart_from_a_program_that_fails(self):
        self.assertEqual(run("run", "/nonexistent/file").returncode, 125)
        self.assertEqual(run("run", "--code", "1", "--language", "cobol").returncode, 125)
        self.assertEqual(run("run", "--code", "1", environment={"BACKEND": "docker"}).returncode, 125)
        self.assertEqual(run("run").returncode, 2)
        self.assertEqual(run("run", "--no-such-option").returncode, 2)
        self.assertEqual(run("run", "--timeout", "-1", "--code", "1").returncode, 2)

    def test_json(self):
        done = run("run", "--json", "--code", "print('x'); raise SystemExit(3)")
        answer = json.loads(done.stdout)
        self.assertEqual(list(answer), ["exit_code", "stderr", "stdout"])
        self.assertEqual((answer["exit_code"], answer["stdout"], done.returncode), (3, "x\n", 3))

    def test_pictures_are_saved_where_one_asks(self):
        png = "bytes.fromhex('89504e470d0a1a0a') + b'rest'"
        with tempfile.TemporaryDirectory() as folder:
            plots = os.path.join(folder, "plots")
            done = run("run", "--plots", plots, "--code", f"open('one.png', 'wb').write({png})")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(os.listdir(plots), ["1-one.png"])

    def test_an_interrupt_ends_the_program(self):
        process = subprocess.Popen([SERVER, "run", "--code", "print('up', flush=True)\nimport time; time.sleep(600)"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=ENVIRONMENT)
        self.assertEqual(process.stdout.readline(), b"up\n")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (128 + signal.SIGINT, b""))

    def test_a_reader_that_goes_away_ends_the_program(self):
        process = subprocess.Popen([SERVER, "run", "--code", "while True: print('y' * 1000)"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env=ENVIRONMENT)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGPIPE)

    def test_output_that_cannot_be_written_is_told(self):
        for arguments in (["--code", "print(1)"], ["--json", "--code", "print(1)"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([SERVER, "run", *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60,
                                      env=ENVIRONMENT)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"No space left", done.stderr)


class UserLanguages(unittest.TestCase):
    """The example of docs/languages.md, and what can be wrong with one's own."""

    EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "config", "examples", "perl.json")

    def test_the_example_adds_a_language(self):
        done = run("run", "--config", self.EXAMPLE, "--language", "pl", "-",
                   stdin=b"use strict; my %n = (a => 1); print join(',', %n), qq(\\n); exit 3")
        self.assertEqual((done.stdout, done.returncode), (b"a,1\n", 3))
        listed = run("languages", "--config", self.EXAMPLE).stdout.decode().splitlines()
        self.assertRegex(listed[-1], r"^perl +5\.\d+\.\d+  /usr/bin/perl$")
        details = run("run", "--config", self.EXAMPLE, "--language", "perl", "--code", "print $]")
        self.assertEqual(details.returncode, 0)

    def test_the_examples_examples_run(self):
        with open(self.EXAMPLE) as file:
            for example in json.load(file)["languages"][0]["examples"]:
                done = run("run", "--config", self.EXAMPLE, "-l", "perl", "-", stdin="\n".join(example["code"]).encode())
                self.assertEqual((done.stdout, done.returncode), (b"Hello, World!\n", 0))

    def test_a_language_is_changed_by_what_its_entry_names(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "config.json")
            with open(os.path.join(folder, "python.json"), "w") as file:
                json.dump({"name": "python", "environment": {"GREETING": "hello"}, "limits": {"processes": 64}}, file)
            with open(config, "w") as file:
                json.dump({"languages": ["python.json"]}, file)
            done = run("run", "--config", config, "--code", "import os; print(os.environ['GREETING'], os.getpid() > 0)")
            self.assertEqual(done.stdout, b"hello True\n")

    def test_what_is_wrong_with_one_is_told_with_its_place(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "config.json")
            for languages, words in (([{"name": "python", "runn": []}], b"runn: unknown field; did you mean run?"),
                                     ([{"title": "No name"}], b"no JSON object with a \"name\""),
                                     (["missing.json"], b"missing.json"),
                                     ([{"name": "x"}], b"title: missing"),
                                     ({}, b"'languages' must be a list")):
                with open(config, "w") as file:
                    json.dump({"languages": languages}, file)
                done = run("run", "--config", config, "--code", "1")
                self.assertEqual(done.returncode, 125)
                self.assertIn(words, done.stderr)


class OtherCommands(unittest.TestCase):
    def test_on_a_terminal_it_shows_help_instead_of_waiting(self):
        terminal, end = pty.openpty()
        done = subprocess.run([SERVER], stdin=end, capture_output=True, timeout=60, env=ENVIRONMENT)
        os.close(terminal)
        os.close(end)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"serve", done.stdout)

    def test_help_names_every_setting_and_version_is_a_version(self):
        text = run("--help").stdout.decode()
        for line in run("--print-config").stdout.decode().splitlines():
            self.assertIn(line.split(" = ")[0], text)
        self.assertRegex(run("--version").stdout.decode(), r"^\d+\.\d+\.\d+\n$")

    def test_languages(self):
        self.assertIn(b"/node", run("languages").stdout)
        self.assertEqual(run("languages", "PY").returncode, 0)
        unknown = run("languages", "cobol")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn(b"python", unknown.stderr)

    def test_doctor_says_what_holds(self):
        done = run("doctor")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"bubblewrap: usable", done.stdout)
        self.assertIn(b"memory limit", done.stdout)
        self.assertNotIn(b"\x1b", done.stdout)

    def test_print_config_tells_origins(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"memory": "1g"}, file)
            file.flush()
            text = run("--config", file.name, "--processes", "64", "--print-config",
                       environment={"SANDBOX_CPUS": "1"}).stdout.decode()
            self.assertIn(f"SANDBOX_MEMORY = 1g  # {file.name}\n", text)
            self.assertIn("LLM_SANDBOX_PROCESSES = 64  # --processes\n", text)
            self.assertIn("SANDBOX_CPUS = 1  # SANDBOX_CPUS\n", text)


class Cache(unittest.TestCase):
    """`cache list` and `cache clear`, on layers as the engine keeps them."""

    HOUR = 3600

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        os.chmod(place.name, 0o755)
        self.folder = os.path.join(place.name, "cache")

    def cache(self, *arguments, environment=None):
        return run("cache", *arguments, "--cache-dir", self.folder, environment=environment)

    def add(self, digit, language, title, hours_ago, kind="packages", size=3 << 19):
        for part in ("layers", "making", "locks"):
            os.makedirs(os.path.join(self.folder, part), mode=0o711, exist_ok=True)
        os.chmod(self.folder, 0o711)
        layer = os.path.join(self.folder, "layers", digit * 64)
        os.makedirs(os.path.join(layer, "content", "deep", "er"))
        os.symlink(self.folder, os.path.join(layer, "content", "link"))
        about = os.path.join(layer, "about.json")
        with open(about, "w") as file:
            json.dump({"kind": kind, "language": language, "title": title, "bytes": size, "files": 3, "made": 0}, file)
        used = time.time() - hours_ago * self.HOUR
        os.utime(about, (used, used))
        return layer

    def use(self, digit):
        lock = open(os.path.join(self.folder, "locks", digit * 64), "w")
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock

    def test_nothing_is_kept_and_nothing_is_made_for_looking(self):
        for command in ("list", "clear"):
            done = self.cache(command)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(b"0 layers", done.stdout)
        self.assertFalse(os.path.exists(self.folder))
        self.assertEqual(json.loads(self.cache("list", "--json").stdout), [])

    def test_list(self):
        self.add("a", "python", "numpy, pandas==2.2", hours_ago=48)
        self.add("b", "ruby", "\x1b[31mRuby\u202e " + "long " * 20, hours_ago=1, kind="prepared")
        self.use("a")
        lines = self.cache("list").stdout.decode().splitlines()
        self.assertEqual(lines[0].split(), ["language", "kind", "title", "size", "last", "used"])
        self.assertRegex(lines[1], r"^ruby      prepared  \?\[31mRuby\? long .*…  1\.5 MiB  \d{4}-\d\d-\d\d \d\d:\d\d$")
        self.assertRegex(lines[2], r"^python    packages  numpy, pandas==2\.2 +1\.5 MiB  in use$")
        self.assertEqual(lines[3:], [f"2 layers, 3 MiB of at most 5 GiB in {self.folder}"])

    def test_list_as_json(self):
        self.add("a", "python", "numpy", hours_ago=48)
        self.add("b", "ruby", "Ruby", hours_ago=1, kind="prepared")
        self.use("b")
        layers = json.loads(self.cache("list", "--json").stdout)
        self.assertEqual([layer["title"] for layer in layers], ["Ruby", "numpy"])
        self.assertEqual(list(layers[0]), ["language", "kind", "title", "bytes", "files", "made", "last_used", "in_use",
                                           "id"])
        self.assertEqual([layer["in_use"] for layer in layers], [True, False])
        self.assertEqual(layers[1]["made"], "1970-01-01T00:00:00Z")
        self.assertEqual([layer["title"] for layer in json.loads(self.cache("list", "PY", "--json").stdout)], ["numpy"])

    def test_clear(self):
        python, ruby = self.add("a", "python", "numpy", hours_ago=2), self.add("b", "ruby", "rake", hours_ago=1)
        lock = self.use("b")
        done = self.cache("clear", "py").stdout.decode()
        self.assertIn("numpy", done)
        self.assertIn("Removed 1 layer, 1.5 MiB", done)
        self.assertEqual([os.path.exists(python), os.path.exists(ruby)], [False, True])
        done = self.cache("clear").stdout.decode()
        self.assertIn("Removed 0 layers", done)
        self.assertIn("Still in use: 1 layer, 1.5 MiB", done)
        lock.close()
        removed = json.loads(self.cache("clear", "--json").stdout)
        self.assertEqual([layer["title"] for layer in removed], ["rake"])
        for part in ("layers", "making", "locks"):
            self.assertEqual(os.listdir(os.path.join(self.folder, part)), [])

    def test_what_cannot_be_done_is_told(self):
        unknown = self.cache("list", "cobol")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn(b"python", unknown.stderr)
        self.assertEqual(run("cache").returncode, 2)
        self.assertEqual(self.cache("list", environment={"LLM_SANDBOX_CACHE_SIZE": "much"}).returncode, 2)
        with open(self.folder, "w"):
            pass
        for command in ("list", "clear"):
            done = self.cache(command)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(self.folder.encode(), done.stderr)
            self.assertIn(b"--cache-dir", done.stderr)


class Scarcity(unittest.TestCase):
    """A server that runs short of something answers every call, with an error if need be, and does not die."""

    CALLS = 12

    def serve(self, *limits):
        lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize",
                  "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                             "clientInfo": {"name": "scarcity", "version": "1"}}}]
        lines += [{"jsonrpc": "2.0", "id": number, "method": "tools/call",
                   "params": {"name": "execute_code", "arguments": {"code": f"print({number})"}}}
                  for number in range(1, self.CALLS + 1)]
        process = subprocess.Popen(["prlimit", *limits, SERVER, "serve"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        process.stdin.flush()
        answers = {}
        while len(answers) < len(lines):
            line = process.stdout.readline()
            if not line:
                self.fail(f"{limits}: the server ended with {process.wait(timeout=30)} after {sorted(answers)}")
            answer = json.loads(line)
            answers[answer["id"]] = answer
        process.stdin.close()
        self.assertEqual(process.wait(timeout=30), 0, limits)
        process.stdout.close()
        return answers

    def test_descriptors(self):
        for number in (32, 48, 64, 80, 100, 128):
            for answer in self.serve(f"--nofile={number}:{number}").values():
                text = json.dumps(answer)
                self.assertNotIn("Permission denied", text)  # as when a child got the wrong descriptor for a program
        outputs = [answer["result"]["structuredContent"]["stdout"]
                   for number, answer in self.serve("--nofile=1024:4096").items() if number > 0]
        self.assertEqual(sorted(outputs), sorted(f"{number}\n" for number in range(1, self.CALLS + 1)))


class Refusals(unittest.TestCase):
    """Nothing ever runs without a sandbox; each refusal says what to do."""

    def refusal(self, environment, *flags):
        done = run("run", *flags, "--code", "print('ran')", environment=environment)
        self.assertEqual(done.returncode, 125, done)
        self.assertNotIn(b"ran\n", done.stdout)
        return done.stderr.decode()

    def test_bwrap_missing(self):
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c",
             'mount --bind /dev/null "$(readlink -f /usr/bin/bwrap)" && exec "$0" run --code "print(1)"', SERVER],
            capture_output=True, timeout=60, env=ENVIRONMENT)
        if b"unshare failed" in done.stderr:
            self.skipTest("skipped: the right to make a mount namespace")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"apt", done.stderr)

    def test_an_empty_name_is_no_name(self):
        self.assertEqual(run("run", "--code", "print('ran')", environment={"BACKEND": " "}).stdout, b"ran\n")

    def test_no_user_namespaces(self):
        done = subprocess.run(
            ["unshare", "--user", "--map-user=1000", "--keep-caps", "sh", "-c",
             'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" run --code "print(1)"', SERVER],
            capture_output=True, timeout=60, env=ENVIRONMENT)
        if b"unshare failed" in done.stderr:
            self.skipTest("skipped: user namespaces")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"user.max_user_namespaces", done.stderr)

    def test_backends_and_settings(self):
        self.assertIn("did you mean", self.refusal({"BACKEND": "bublewrap"}).lower())
        self.assertIn("bubblewrap", self.refusal({"BACKEND": "podman"}))
        self.assertIn("SANDBOX_CPUS must be a positive number", self.refusal({"SANDBOX_CPUS": "many"}))
        self.assertIn("SANDBOX_PRIVILEGED", self.refusal({"SANDBOX_PRIVILEGED": "true"}))
        self.assertIn("SANDBOX_NETWORK_MODE", self.refusal({"SANDBOX_NETWORK_MODE": "bridge"}))
        self.assertIn("SANDBOX_SECURITY_OPT", self.refusal({"SANDBOX_SECURITY_OPT": "seccomp=unconfined"}))
        self.assertIn("LLM_SANDBOX_WORKERS", self.refusal({"LLM_SANDBOX_WORKERS": "0"}))
        self.assertIn("nonexistent.json", self.refusal({}, "--config", "/nonexistent.json"))

    def test_the_hardened_set_of_the_reference_runs(self):
        done = run("run", "--code", "open('/tmp/x', 'w').write('x'); print('ran')", environment={
            "BACKEND": " BubbleWrap ", "SANDBOX_NETWORK_MODE": "none", "SANDBOX_READ_ONLY": "true",
            "SANDBOX_CAP_DROP": "ALL", "SANDBOX_SECURITY_OPT": "no-new-privileges:true", "SANDBOX_MEMORY": "256m"})
        self.assertEqual((done.stdout, done.returncode), (b"ran\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
