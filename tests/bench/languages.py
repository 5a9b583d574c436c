"""Hello world in each language: a call of the server against the bare toolchain doing the same, round by round."""

import contextlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from stdio_client import server_path, text_of  # noqa: E402

HELLO = "Hello, World!"


@dataclass(frozen=True)
class Toolchain:
    """What a person would type: commands with RUNTIME (the executable that the server uses), BIN (its folder), FILE."""

    file: str
    code: str
    commands: tuple


TOOLCHAINS = {
    "python": Toolchain("main.py", f'print("{HELLO}")\n', (["RUNTIME", "FILE"],)),
    "javascript": Toolchain("main.js", f'console.log("{HELLO}");\n', (["RUNTIME", "FILE"],)),
    "java": Toolchain(
        "Main.java",
        f'public class Main {{ public static void main(String[] args) {{ System.out.println("{HELLO}"); }} }}\n',
        (["BIN/javac", "-d", ".", "FILE"], ["BIN/java", "-cp", ".", "Main"])),
    "cpp": Toolchain(
        "main.cpp", f'#include <iostream>\nint main() {{ std::cout << "{HELLO}\\n"; }}\n',
        (["RUNTIME", "-std=c++20", "-o", "program", "FILE"], ["./program"])),
    "go": Toolchain(
        "main.go", f'package main\n\nimport "fmt"\n\nfunc main() {{ fmt.Println("{HELLO}") }}\n',
        (["RUNTIME", "build", "-o", "program", "FILE"], ["./program"])),
    "ruby": Toolchain("main.rb", f'puts "{HELLO}"\n', (["RUNTIME", "FILE"],)),
    "r": Toolchain("main.R", f'cat("{HELLO}\\n")\n', (["RUNTIME", "FILE"],)),
}


def runtimes():
    """{language: executable} of those that the server has found."""
    listing = subprocess.run([server_path(), "languages"], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listing.splitlines())
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[0] in TOOLCHAINS and row[2].startswith("/")}


class BareToolchain:
    """Runs the commands in a folder that stays: compilers find their caches (go's) filled after the first round."""

    def __init__(self, toolchain, runtime, folder):
        self._folder = folder
        file = os.path.join(folder, toolchain.file)
        with open(file, "w") as source:
            source.write(toolchain.code)
        words = {"RUNTIME": runtime, "FILE": file}
        self._commands = [
            [words.get(word, word.replace("BIN/", os.path.dirname(runtime) + "/")) for word in command]
            for command in toolchain.commands
        ]
        self._environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder}

    def run(self):
        # Over a program that is up to date, `go build` would neither compile nor link.
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self._folder, "program"))
        for command in self._commands:
            output = subprocess.run(command, cwd=self._folder, env=self._environment, check=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
        if output.decode().strip() != HELLO:
            sys.exit(f"{self._commands[-1]} printed {output!r}")


def call_server(client, language, code):
    answer = text_of(client.call_tool("execute_code", {"code": code, "language": language}, timeout=600))
    if answer["stdout"].strip() != HELLO:
        sys.exit(f"The server answered {answer}")


def measure(client, rounds, elapsed_ms):
    """{language: {"bare": [ms, …], "server": [ms, …]}}; one round before these prepares the language."""
    results = {}
    for language, runtime in runtimes().items():
        toolchain = TOOLCHAINS[language]
        with tempfile.TemporaryDirectory() as folder:
            bare = BareToolchain(toolchain, runtime, folder)
            times = {"bare": [], "server": []}
            for number in range(-1, rounds):
                for name, action in (("bare", bare.run),
                                     ("server", lambda: call_server(client, language, toolchain.code))):
                    time_ms = elapsed_ms(action)
                    if number >= 0:
                        times[name].append(time_ms)
            results[language] = times
    return results
