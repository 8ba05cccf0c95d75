#!/usr/bin/env python3
"""Compares the man pages and the sample configuration with what the program says of itself."""

import glob
import json
import re
import subprocess
import sys


def findings(top):
    """docs/gpudirect.md's table against the codes and severities that the source gives."""
    given = {}
    for path in glob.glob(f"{top}/tuner/gpudirect/*.cpp"):
        if path.endswith("_json.cpp"):
            continue
        source = open(path, encoding="utf-8").read()
        for match in re.finditer(r'\{\s*"([a-z][a-z0-9-]+)",([^"]*?(?:[Ss]everity)[^"]*?)(?:"|fmt::)', source):
            letters = {name[0] for name in re.findall(r"Severity::(\w+)", match[2])}
            given.setdefault(match[1], set()).update(letters or {"E", "W"})  # a variable: either
    table = {}
    for line in open(f"{top}/docs/gpudirect.md", encoding="utf-8"):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and re.fullmatch(r"`[a-z-]+`", cells[0]):
            table[cells[0].strip("`")] = cells[1:]
    wrong = [] if len(given) > 20 else ["no finding codes were found in the source"]
    for code in sorted(given.keys() | table.keys()):
        if code not in table or code not in given:
            wrong.append(f"{code} is in {'docs/gpudirect.md' if code in table else 'the source'} only")
        elif set(table[code][0].split(", ")) != given[code]:
            wrong.append(f"docs/gpudirect.md: {code} is {table[code][0]}, in the source {sorted(given[code])}")
        elif not all(table[code]):
            wrong.append(f"docs/gpudirect.md: {code} lacks a meaning or a remedy")
    return wrong


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

    wrong += findings(top)

    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
