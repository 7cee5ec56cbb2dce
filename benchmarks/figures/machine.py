"""What results depend on: the machine, and the versions of what is on it."""

import os
import platform
import re
import subprocess

PACKAGES = {"g++": "g++", "LLVM": "llvm-19", "oneDNN": "libdnnl-dev", "Abseil": "libabsl-dev"}
PEERS = ("torch", "jax", "mlx")
VECTORS = ("avx2", "avx512f", "avx512_bf16", "amx_tile")
# As benchmarks/Peer.cpp finds it.
PEERS_PYTHON = os.path.expanduser("~/.cache/fl-peers/bin/python")


def output_of(*command):
    """What a command prints; empty if it fails or is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def debian_version(package):
    return output_of("dpkg-query", "--show", "--showformat=${Version}", package)


def peer_versions():
    script = f"from importlib.metadata import version\nfor p in {PEERS}: print(p, version(p))"
    debian = debian_version("python3-torch")
    found = output_of(PEERS_PYTHON, "-c", script).splitlines()
    return found + ([f"Debian's torch {debian}"] if debian else [])


def processor():
    text = open("/proc/cpuinfo").read()
    model = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    flags = re.search(r"^flags\s*:(.*)", text, re.MULTILINE)
    present = [name for name in VECTORS if flags and name in flags[1].split()]
    core = r"^physical id\s*: (\d+)\n(?:.+\n)*?core id\s*: (\d+)"
    cores = set(re.findall(core, text, re.MULTILINE))
    name = model[1] if model else platform.machine()
    return {
        "processor": f"{name} ({', '.join(present)})" if present else name,
        "cores, threads": f"{len(cores) or '?'}, {len(os.sched_getaffinity(0))}",
    }


def memory():
    kilobytes = int(re.search(r"MemTotal: +(\d+)", open("/proc/meminfo").read())[1])
    return f"{kilobytes / 2**20:.1f} GiB"


def describe():
    """By what is described; what is not there is left out."""
    versions = [f"{name} {debian_version(package)}" for name, package in PACKAGES.items()]
    facts = {
        **processor(),
        "memory": memory(),
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "compiler and libraries": ", ".join(versions),
        "peers": ", ".join(peer_versions()),
    }
    return {key: value for key, value in facts.items() if value}


def commit(root):
    """Of the sources; results and their page do not count as changes."""
    git = ("git", "-C", str(root))
    changed = output_of(*git, "status", "--porcelain", "--", ".", ":!benchmarks/results", ":!docs")
    return output_of(*git, "rev-parse", "--short", "HEAD") + (" with changes" if changed else "")
