"""The documentation as a site: `make docs` builds it from the Markdown that lies about the project.

The source folder is the project's; the navigation is what docs/README.md and the other indexes list. Sphinx with
MyST, since it reads Markdown as a forge does, takes the Python package's reference from its docstrings, needs nothing
from the network while it is read, and is kept by many.

`SUIMON_RUSTDOC` names the folder of `cargo doc`; with it the site has those pages too, and links to Rust files lead
there. Notebooks are run while the site is built; `-D nb_execution_mode=off` leaves them as they are.
"""

import ast
import os
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
RUSTDOC = Path(os.environ["SUIMON_RUSTDOC"]) if "SUIMON_RUSTDOC" in os.environ else None

project = "Suimon"
copyright = "the Suimon contributors, Apache-2.0"
html_title = "Suimon"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/**", "papers/*/README.md", "traces/README.md"]
exclude_patterns = ["**/.*", ".*", "target", "suimon-out", "crates", "fuzz", "**/node_modules", "**/__pycache__"]

# Headings have the anchors that a forge gives them.
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 60
nb_merge_streams = True

autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
# In docstrings `name` is a name.
default_role = "code"

html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_permalinks_icon = "#"
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# Pages whose lists are the navigation, with the depth of the headings that name its parts.
INDEXES = ["docs/README", "docs/algorithms/README"]
# The link that a list's item or a table's row begins with.
ENTRY = re.compile(r"^(?:[-*]|\d+\.|\|)\s+\[([^\]]+)\]\(([^)#:\s]+?\.(?:md|ipynb))\)")


def navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Makes tables of contents of an index's lists: a part for each heading, hidden behind the lists themselves."""
    if name not in INDEXES:
        return
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in source[0].splitlines():
        if heading := re.match(r"##\s+(.*)", line):
            parts.append((heading[1], []))
        elif entry := ENTRY.match(line):
            page = (ROOT / name).parent.joinpath(entry[2]).resolve().relative_to(ROOT).with_suffix("")
            parts[-1][1].append(f"{entry[1].replace('`', '')} </{page}>")
    for caption, entries in parts:
        if entries:
            options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
            source[0] += "\n".join(["\n```{toctree}", *options, "", *entries, "```\n"])


def drawn(path: str) -> str | None:
    """Where the site has what rustdoc drew of a source file of a crate."""
    parts = re.fullmatch(r"crates/([\w-]+)/src/(.+)\.rs", path)
    if RUSTDOC is None or parts is None:
        return None
    crate = "suimon" if parts[1] == "cli" else f"suimon_{parts[1].replace('-', '_')}"
    module = re.sub(r"/?\b(mod|lib|main)$", "", parts[2])
    pages = [f"{crate}/{module}/index.html".replace("//", "/"), f"src/{crate}/{parts[2]}.rs.html"]
    return next((f"rust/{page}" for page in pages if (RUSTDOC / page).is_file()), None)


def adapted(app: Sphinx, name: str, source: list[str]) -> None:
    """Leads links to Rust files to what rustdoc made of them; CSV has no colours."""

    def replaced(link: re.Match[str]) -> str:
        target = (ROOT / name).parent.joinpath(link[2]).resolve()
        page = drawn(str(target.relative_to(ROOT))) if target.is_relative_to(ROOT) else None
        text = re.sub("`([^`]*)`", r"<code>\1</code>", escape(link[1], quote=False))
        return f'<a href="{"../" * name.count("/")}{page}">{text}</a>' if page else link[0]

    source[0] = re.sub(r"\[([^\]]+)\]\(([^)#:\s]+\.rs)\)", replaced, source[0]).replace("```csv\n", "```text\n")


def native() -> dict[str, str]:
    """Docstrings of the package's native half, whose readable form is its stub."""
    found = {}
    for part in ast.parse((ROOT / "python/suimon/_suimon.pyi").read_text()).body:
        for member in part.body if isinstance(part, ast.ClassDef) else []:
            if isinstance(member, ast.FunctionDef) and isinstance(part, ast.ClassDef):
                found[f"{part.name}.{member.name}"] = ast.get_docstring(member) or ""
    return found


def stubs(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Tells of native members what the stub does."""
    if not any(lines):
        lines[:] = native().get(name.removeprefix("suimon.").removeprefix("_suimon."), "").splitlines()


def front(app: Sphinx, exception: Exception | None) -> None:
    """What a browser opens first leads to the first page."""
    if exception is None and app.builder.format == "html":
        page = app.builder.get_target_uri(root_doc)
        text = f'<!doctype html><title>{project}</title><meta http-equiv="refresh" content="0; url={page}">'
        (Path(app.outdir) / "index.html").write_text(f'{text}<a href="{page}">{project}</a>\n')
        if RUSTDOC is not None:
            shutil.copytree(RUSTDOC, Path(app.outdir) / "rust", dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", navigation)
    app.connect("source-read", adapted)
    app.connect("autodoc-process-docstring", stubs)
    app.connect("build-finished", front)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
