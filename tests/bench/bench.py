#!/usr/bin/env python3
"""How long a call takes, side by side with what it is made of, in one run.

The rounds alternate between the bare interpreter, bubblewrap alone and the server, so that what else the machine does
weighs on all three alike. The interpreter is the one that the server uses.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import languages  # noqa: E402
import process_facts as facts  # noqa: E402
from stdio_client import ServerFailed, StdioClient, server_path, text_of  # noqa: E402

PROGRAM = "print(1)"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def elapsed_ms(action):
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1000


def run_program(argv):
    """Runs a program to its end and checks its output; posix_spawn and one pipe, to measure it and not subprocess."""
    read_end, write_end = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write_end, 1)]
    pid = os.posix_spawn(argv[0], argv, ENVIRONMENT, file_actions=actions)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        output = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status != 0 or output != b"1\n":
        sys.exit(f"{argv[0]} ended with status {status} and printed {output!r}")


def call_server(client):
    answer = text_of(client.run_python(PROGRAM))
    if answer["stdout"] != "1\n":
        sys.exit(f"The server answered {answer}")


def bubblewrap_argv(bwrap, interpreter):
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    places = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    return [bwrap, *options, *places, interpreter, "-c", PROGRAM]


def measure_calls(rounds, warm_up):
    with StdioClient([server_path(), "serve"]) as client:
        client.initialize()
        interpreter = text_of(client.run_python("import sys; print(sys.executable, end='')"))["stdout"]
        actions = {"bare interpreter": lambda: run_program([interpreter, "-c", PROGRAM])}
        if bwrap := shutil.which("bwrap"):
            actions["bubblewrap alone"] = lambda: run_program(bubblewrap_argv(bwrap, interpreter))
        actions["call of the server"] = lambda: call_server(client)
        times = {name: [] for name in actions}
        for number in range(-warm_up, rounds):
            for name, action in actions.items():
                time_ms = elapsed_ms(action)
                if number >= 0:
                    times[name].append(time_ms)
    bare = statistics.median(times["bare interpreter"])
    return interpreter, {
        name: {
            "median_ms": round(statistics.median(values), 2),
            "p99_ms": round(percentile(values, 99), 2),
            "ratio": round(statistics.median(values) / bare, 2),
        }
        for name, values in times.items()
    }


def percentile(values, percent):
    """The smallest value that at least so many percent of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def measure_languages(rounds):
    with StdioClient([server_path(), "serve"]) as client:
        client.initialize()
        measured = languages.measure(client, rounds, elapsed_ms)
    rows = {}
    for language, times in measured.items():
        bare, server = statistics.median(times["bare"]), statistics.median(times["server"])
        rows[language] = {"bare_ms": round(bare, 1), "median_ms": round(server, 1),
                          "p99_ms": round(percentile(times["server"], 99), 1), "ratio": round(server / bare, 2)}
    return rows


def measure_start(rounds):
    """From starting the process to having the answer to `initialize`."""

    def start():
        nonlocal client
        client = StdioClient([server_path(), "serve"])
        client.initialize()

    times, client = [], None
    for _ in range(rounds):
        times.append(elapsed_ms(start))
        client.close()
    return {"median_ms": round(statistics.median(times), 2), "p99_ms": round(percentile(times, 99), 2)}


def measure_memory():
    with StdioClient([server_path(), "serve"]) as client:
        client.initialize()
        before = facts.memory_kb(client.process.pid)
        call_server(client)
        after = facts.memory_kb(client.process.pid)
    return {
        f"{when} {name.upper()}": round(values[name] / 1024, 1)
        for when, values in (("after initialize", before), ("after the first call", after))
        for name in values
    }


def table(results):
    lines = [f"{PROGRAM} with {results['interpreter']}, {results['rounds']} rounds", ""]
    lines.append(f"{'':22}{'median':>11}{'p99':>11}{'ratio':>8}")
    for name, row in results["calls"].items():
        lines.append(f"{name:22}{row['median_ms']:8.2f} ms{row['p99_ms']:8.2f} ms{row['ratio']:7.2f}x")
    start = results["start"]
    lines.append(f"{'start to initialize':22}{start['median_ms']:8.2f} ms{start['p99_ms']:8.2f} ms")
    lines += ["", f"hello world, {results['language_rounds']} rounds: the bare toolchain against a call of the server", ""]
    lines.append(f"{'':12}{'bare':>11}{'median':>11}{'p99':>11}{'ratio':>8}")
    for name, row in results["languages"].items():
        lines.append(f"{name:12}{row['bare_ms']:8.1f} ms{row['median_ms']:8.1f} ms{row['p99_ms']:8.1f} ms"
                     f"{row['ratio']:7.2f}x")
    lines.append("")
    lines += [f"memory {name:26}{value:6.1f} MiB" for name, value in results["memory_mib"].items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=100, help="measured rounds (default 100)")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds before these (default 10)")
    parser.add_argument("--starts", type=int, default=20, help="measured starts of the server (default 20)")
    parser.add_argument("--language-rounds", type=int, default=20,
                        help="measured rounds of hello world in each language (default 20)")
    arguments = parser.parse_args()
    if arguments.language_rounds < 1 or arguments.rounds < 1 or arguments.starts < 1:
        parser.error("at least one round and one start are needed")

    interpreter, calls = measure_calls(arguments.rounds, arguments.warm_up)
    results = {
        "interpreter": interpreter,
        "rounds": arguments.rounds,
        "calls": calls,
        "language_rounds": arguments.language_rounds,
        "languages": measure_languages(arguments.language_rounds),
        "start": measure_start(arguments.starts),
        "memory_mib": measure_memory(),
    }
    print(json.dumps(results, indent=2) if arguments.json else table(results))


if __name__ == "__main__":
    try:
        main()
    except (ServerFailed, OSError) as failure:
        sys.exit(f"The benchmark failed: {failure}.")
