"""What the tests of packages share: the real program with a cache of its own, a server for a local index, and whether a
registry answers.

A class of tests is one test of ctest (CMakeLists.txt), run as `python3 FILE CLASS`: each file ends with `support.main()`.
"""

import functools
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

SERVER = os.environ["LLM_SANDBOX_SERVER"]
PATIENCE = 400  # seconds for one run, which may install for 300
NO_REGISTRY = "skipped: no registry"
SKIPPED = 77  # SKIP_RETURN_CODE in CMakeLists.txt


def open_folder():
    """A new folder that any user can reach: a server that root runs gives its sandboxes to other users."""
    folder = tempfile.mkdtemp(prefix="llm-sandbox-test-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    return folder


class PackageTest(unittest.TestCase):
    """Runs programs with packages. The cache is the class's own and empty at its start."""

    language = None  # of the programs; each class says
    environment = dict(os.environ)  # the server's: the user's own settings, unless a class has a registry of its own

    @classmethod
    def setUpClass(cls):
        cls.folder = open_folder()
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cache = os.path.join(cls.folder, "cache")
        os.mkdir(cls.cache, 0o755)

    def run_program(self, code, *libraries, flags=(), **environment):
        """The parsed answer of `run --json`: exit_code, stdout, stderr and, where they say something, reason, notes…"""
        arguments = [argument for library in libraries for argument in ("--library", library)]
        done = subprocess.run(
            [SERVER, "run", "--language", self.language, *arguments, *flags, "--json", "-"], input=code.encode(),
            capture_output=True, timeout=PATIENCE,
            env={**self.environment, "LLM_SANDBOX_CACHE_DIR": self.cache, **environment})
        try:
            return json.loads(done.stdout)
        except ValueError:
            self.fail(f"no answer, exit code {done.returncode}: {done.stderr.decode(errors='replace')}")

    def assertPrints(self, expected, answer):
        """The program ran to its end and printed this."""
        self.assertEqual((answer["exit_code"], answer["stdout"], answer.get("reason")), (0, expected, None), answer)

    def assertNotRun(self, reason, part, answer):
        """It did not run, for this reason; `part` stands in what is said about it."""
        self.assertEqual((answer.get("reason"), answer["stdout"]), (reason, ""), answer)
        self.assertIn(part, json.dumps(answer, ensure_ascii=False))


def registry_answers(*command, environment=None):
    """Whether the package manager itself gets an answer from the registry that the user has set: a command that asks it
    for something that it has."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=120, env=environment).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def require_registry(*command, environment=None):
    """For setUpClass: skips the class unless `registry_answers`."""
    if not registry_answers(*command, environment=environment):
        raise unittest.SkipTest(NO_REGISTRY)


class FileServer:
    """Serves a folder on loopback while it is entered; `requests` are the paths asked for. `tls` is a pair of files, the
    certificate and its key."""

    CONNECTIONS = 32  # at a time

    def __init__(self, folder, tls=None):
        self.requests = []
        handler = functools.partial(self._handler(), directory=folder)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                      do_handshake_on_connect=False)  # but by the one who reads
            self._server.handle_error = lambda *_: None  # a client may well refuse the certificate

    def _handler(self):
        requests = self.requests
        free = threading.BoundedSemaphore(self.CONNECTIONS)

        class Handler(http.server.SimpleHTTPRequestHandler):
            timeout = 60

            def handle(self):
                with free:
                    super().handle()

            def send_head(self):
                requests.append(self.path)
                return super().send_head()

            def log_message(self, *_):
                pass

        return Handler

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def main():
    """As unittest.main(), but with an exit status of its own where everything was skipped."""
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped and result.testsRun <= len(result.skipped) else 0)
