#!/usr/bin/env python3
"""Stands in for commands of the documentation that need root, a second host or much time, and looks at them instead.

Called by the name of the command that it stands in for (see check_examples.py). Subcommands and options of suimon must
be in its `--help`, targets in the Makefile; of other programs nothing is known here. Each call leaves a line in
`$REHEARSED`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

# What works on the machine's kernel.
KERNEL_COMMANDS = {"bond", "cc", "gateway", "lab", "measure", "queue", "shape", "shell"}
KERNEL_OPTIONS = {"--live", "--kernel", "--lab"}


def unknown(command: list[str], words: list[str]) -> str | None:
    """What the command's help does not have."""
    help_text = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z][\w-]*)  ", help_text.partition("Commands:")[2].partition("Options:")[0], re.M)
    # Some commands have options, or arguments, and subcommands.
    first = words[0] if words else ""
    has_own = "\nArguments:" in help_text and first not in commands or first.startswith("--")
    if commands and not (has_own and first != "--help"):
        if not words or words[0] not in [*commands, "--help"]:
            return f"{' '.join(command[1:])} has no command {' '.join(words[:1])!r}; it has {', '.join(commands)}"
        return None if words[0] == "--help" else unknown([*command, words[0]], words[1:])
    for word in words:
        if word == "--":
            break
        name = word.partition("=")[0]
        if name.startswith("--") and not re.search(rf"^ .*{re.escape(name)}\b(?!-)", help_text, re.M):
            return f"{' '.join(command[1:])} has no option {name}"
    return None


def main() -> int:
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    suimon = os.environ["REHEARSED_SUIMON"]
    if name == "sudo":
        name, words = (words or [""])[0], words[1:]
    subcommand = words[0] if words else ""
    kernel = subcommand in KERNEL_COMMANDS or not KERNEL_OPTIONS.isdisjoint(words)
    if name == "suimon" and not kernel:
        os.execv(suimon, [suimon, *words])
    with Path(os.environ["REHEARSED"]).open("a") as file:
        file.write(f"{name} {' '.join(words)}\n")
    if name == "suimon":
        if why := unknown([suimon, *words[:1]], words[1:]):
            print(f"suimon {why}", file=sys.stderr)
            return 2
    elif name == "make":
        targets = [word for word in words if "=" not in word and not word.startswith("-")]
        text = Path(os.environ["REHEARSED_MAKEFILE"]).read_text()
        for target in targets:
            if not re.search(rf"^{re.escape(target)}:", text, re.M):
                print(f"the Makefile has no target {target}", file=sys.stderr)
                return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
