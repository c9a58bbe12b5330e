"""The checks of the documentation find what they are there to find."""

from __future__ import annotations

from pathlib import Path

import check_examples
import check_site
import check_walk
import pytest
import rehearse
from check_text import ROOT

PAGE = """\
# A page

Write `my.csv`:

```csv
time,rate
```

```sh
# untested: needs root
tcpdump
ls

ls -l
true # untested: too slow
```

```text
shown
```

Prose.

```text
not shown by a command
```
"""


def page(folder: Path) -> list[check_examples.Block]:
    path = folder / "page.md"
    path.write_text(PAGE)
    return list(check_examples.blocks(path))


def test_blocks_know_their_line_and_what_stands_before_them(tmp_path: Path) -> None:
    found = page(tmp_path)
    assert [(block.language, block.line, block.follows) for block in found] == [
        ("csv", 6, False),
        ("sh", 10, True),
        ("text", 19, True),
        ("text", 25, False),
    ]
    assert check_examples.NAMED.search(found[0].before)
    assert found[0].text == "time,rate\n"


def test_untested_exempts_up_to_the_next_empty_line_or_its_own_command(tmp_path: Path) -> None:
    block = page(tmp_path)[1]
    block.page = ROOT / "page.md"
    outcome = check_examples.Outcome()
    assert check_examples.tested(block, outcome).splitlines() == ["", "", "", "", "ls -l", ""]
    assert outcome.untested == ["page.md:10: needs root", "page.md:15: too slow"]


@pytest.mark.parametrize(
    ("target", "loaded", "why"),
    [
        ("other.html", False, None),
        ("other.html#here", False, None),
        ("#here", False, "no element #here in this page"),
        ("other.html#there", False, "no element #there in other.html"),
        ("none.html", False, "no page none.html"),
        ("https://example.org/x", False, None),
        ("https://no host/x", False, "no address: https://no host/x"),
        ("https://example.org/x.js", True, "fetched from elsewhere: https://example.org/x.js"),
        ("//example.org/x.js", True, "fetched from elsewhere: //example.org/x.js"),
        ("data:image/png;base64,AA==", True, None),
    ],
)
def test_a_link_is_wrong_where_it_leads_nowhere(tmp_path: Path, target: str, loaded: bool, why: str | None) -> None:
    (tmp_path / "page.html").write_text("<p id='top'></p>")
    (tmp_path / "other.html").write_text("<p id='here'></p>")
    assert check_site.wrong(tmp_path / "page.html", target, loaded) == why


def test_a_rehearsed_command_has_the_options_of_its_help(tmp_path: Path) -> None:
    command = tmp_path / "suimon"
    command.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "load) printf 'Options:\\n      --from <FILE>\\n  -h, --help\\n' ;;\n"
        "line) printf 'Commands:\\n  load  Load\\n\\nArguments:\\n  [HOST]\\n\\nOptions:\\n      --save <FILE>\\n' ;;\n"
        "*) printf 'Commands:\\n  load  Load\\n\\nOptions:\\n' ;;\n"
        "esac\n"
    )
    command.chmod(0o755)
    assert rehearse.unknown([str(command)], ["load", "--from", "x", "--", "--else"]) is None
    assert rehearse.unknown([str(command)], ["load", "--fro=x"]) == "load has no option --fro"
    assert rehearse.unknown([str(command)], ["unload"]) == " has no command 'unload'; it has load"
    assert rehearse.unknown([str(command), "line"], ["host.example", "--save", "x"]) is None
    assert rehearse.unknown([str(command), "line"], ["host.example", "--sav"]) == "line has no option --sav"


LIST = "use all;\n\n[\n    (a, 1),\n    (b, 2),\n]\n    (c, 3),\n"


def test_a_line_joins_those_that_begin_like_it() -> None:
    joined = check_walk.inserted(LIST, "    (new, 4),\n", "new")
    assert joined.splitlines()[3:6] == ["    (a, 1),", "    (b, 2),", "    (new, 4),"]
    assert joined.replace("    (new, 4),\n", "") == LIST
    with pytest.raises(SystemExit, match="no line begins like 'mod new;'"):
        check_walk.inserted(LIST, "mod new;", "new")


def test_blocks_of_a_walk_go_where_the_line_before_them_says(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/list.rs").write_text(LIST)

    def block(before: str, text: str) -> check_examples.Block:
        return check_examples.Block(tmp_path / "page.md", 1, "rust", text, False, before)

    page = [
        block("First `new.rs` in `src`:", "struct New;\n"),
        block("At the end of `src/list.rs`:", "    (new, 4),\n"),
        block("Tests at the foot of `new.rs` in `src`:", "mod tests;\n"),
    ]
    changed = check_walk.changes(page, "new", tmp_path)
    assert changed["src/new.rs"] == "struct New;\n\nmod tests;\n"
    assert "(b, 2),\n    (new, 4),\n]" in changed["src/list.rs"]
    with pytest.raises(SystemExit, match="the line before does not say where this goes"):
        check_walk.changes([block("Now this.", "mod x;\n")], "new", tmp_path)
