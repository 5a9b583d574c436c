"""Run once on the host by each Python that could serve, with `-I -B -c` and the runner's
files as a JSON object: says in one line of JSON what it is.

Must also be understood by a Python too old to be taken, so that it can say its age.
"""
import json
import os
import sys
import sysconfig


def places():
    """Every folder that this interpreter may load something from."""
    base_prefix = getattr(sys, "base_prefix", sys.prefix)
    base_exec_prefix = getattr(sys, "base_exec_prefix", sys.exec_prefix)
    folders = [sys.prefix, sys.exec_prefix, base_prefix, base_exec_prefix]
    folders += [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return sorted(set(folder for folder in folders if folder))


def libraries(roots):
    """ "name version" of each distribution that a program in a sandbox can import."""
    try:
        from importlib import metadata
    except ImportError:
        return []
    found = {}
    for distribution in metadata.distributions():
        name, version = distribution.metadata["Name"], distribution.version
        if name and version and name.lower() not in found and is_reachable(distribution, roots):
            found[name.lower()] = name + " " + version
    return [found[name] for name in sorted(found)]


def is_reachable(distribution, roots):
    """Not one that a .pth file or an editable install brings in from outside."""
    location = os.path.realpath(str(distribution.locate_file("")))
    if not any(location.startswith(root + os.sep) for root in roots):
        return False
    return '"editable": true' not in (distribution.read_text("direct_url.json") or "")


def compiled(sources):
    """The runner's files as this interpreter would compile them, in hex: a sandbox is too short-lived to cache them."""
    try:
        from importlib import _bootstrap_external, util
        files = {}
        for name, source in sources.items():
            data = source.encode()
            code = compile(data, name, "exec", dont_inherit=True)
            unchecked = _bootstrap_external._code_to_hash_pyc(code, util.source_hash(data), False)
            files[util.cache_from_source(name)] = bytes(unchecked).hex()
        return files
    except Exception:
        return {}


def main():
    paths = places()
    roots = ["/usr"] + [os.path.realpath(path) for path in paths]
    print(json.dumps({
        "executable": sys.executable,
        "version": ".".join(str(part) for part in sys.version_info[:3]),
        "paths": paths,
        "libraries": libraries(roots),
        # A virtual environment is found by the name under which its interpreter is started.
        "files": compiled(json.loads(sys.argv[1])),
        "virtual": sys.prefix != getattr(sys, "base_prefix", sys.prefix),
    }))


main()
