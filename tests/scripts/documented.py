#!/usr/bin/env python3
"""Compares the man pages and the sample configuration with what the program says of itself."""

import json
import re
import subprocess
import sys


def main(program, top):
    options = json.loads(subprocess.check_output([program, "options", "--json"], text=True))
    text = {name: open(f"{top}/{name}", encoding="utf-8").read().replace("\\-", "-") for name in (
        "docs/man/rdma-tune.1", "docs/man/rdma-tune.conf.5", "docs/man/spank-rdma-tune.8",
        "conf/rdma-tune.conf")}
    wrong = []

    def need(name, word):
        if not re.search(r"(?<![\w-])" + re.escape(word) + r"(?![\w-])", text[name]):
            wrong.append(f"{name} does not name {word}")

    for option in options:
        if option["flag"] or option["plugstack"]:
            need("docs/man/spank-rdma-tune.8", option["key"])
        if option["file"]:
            need("docs/man/rdma-tune.conf.5", option["key"])
        if option["variable"]:
            need("docs/man/rdma-tune.1", option["variable"])

    samples = re.findall(r"^#([a-z_]+) =(.*)$", text["conf/rdma-tune.conf"], re.M)
    shown = {key: value.strip() for key, value in samples}
    in_file = {option["key"]: option["default"] for option in options if option["file"]}
    if len(shown) != len(samples):
        wrong.append("conf/rdma-tune.conf shows a key twice")
    for key in sorted(shown.keys() | in_file.keys()):
        if shown.get(key) != in_file.get(key):
            wrong.append(f"conf/rdma-tune.conf has {key} = {shown.get(key)}, the program {in_file.get(key)}")

    usage = subprocess.check_output([program, "--help"], text=True)
    commands = re.findall(r"^  ([a-z]+) ", usage[usage.index("Subcommands:"):], re.M)
    if not commands:
        wrong.append("the program's --help lists no subcommand")
    for command in commands:
        need("docs/man/rdma-tune.1", command)

    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
