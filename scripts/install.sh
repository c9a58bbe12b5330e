#!/usr/bin/env bash
# Installs suimon for all users, or takes it away again.
#   scripts/install.sh target/release/suimon     under $DESTDIR$PREFIX (default: /usr/local)
#   scripts/install.sh --remove                  what the former put there, and the folders that it made
set -euo pipefail
cd "$(dirname "$0")/.."

PREFIX=${PREFIX:-/usr/local}
ROOT=${DESTDIR:-}$PREFIX
# Names of what is installed, one a line, below $ROOT; folders that were not there before end with a slash.
LIST=share/suimon/installed

fail() { echo "install: $*" >&2; exit 3; }

remove() {
    [ -f "$ROOT/$LIST" ] || fail "nothing to remove: no $ROOT/$LIST"
    local names name
    mapfile -t names < "$ROOT/$LIST"
    for ((i = ${#names[@]} - 1; i >= 0; i--)); do
        name=${names[i]}
        case "$name" in
            */) rmdir --ignore-fail-on-non-empty "$ROOT/$name" ;;
            *) rm -f "$ROOT/$name" ;;
        esac
    done
    echo "install: removed ${#names[@]} files and folders from $ROOT"
}

[ "${1:-}" != --remove ] || { remove; exit; }
SUIMON=$(realpath "${1:?usage: scripts/install.sh COMMAND|--remove}")
missing=$("$SUIMON" --version | sed -n 's/.* without //p')
[ -z "$missing" ] || fail "$1 lacks parts ($missing): run \`make build\`, then this again"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
put() { # mode, file, name below the prefix
    install -D -m "$1" "$2" "$stage/$3"
}
put 755 "$SUIMON" bin/suimon
"$SUIMON" files --man "$stage/share/man/man1" --bash "$stage/share/bash-completion/completions" \
    --fish "$stage/share/fish/vendor_completions.d" --zsh "$stage/${ZSH_COMPLETIONS:-share/zsh/site-functions}" \
    --bpf "$stage/lib/suimon/bpf"
for unit in systemd/*.service systemd/*.timer; do
    put 644 "$unit" "lib/systemd/system/$(basename "$unit")"
    sed -i "s#/usr/local/bin/#$PREFIX/bin/#" "$stage/lib/systemd/system/$(basename "$unit")"
done
while IFS= read -r file; do
    put 644 "$file" "share/suimon/$file"
done < <(git ls-files papers scenarios traces 2>/dev/null || find papers scenarios traces -type f)
for file in README.md LIMITATIONS.md CHANGELOG.md LICENSE; do
    put 644 "$file" "share/doc/suimon/$file"
done

# Anything of an installation before this one goes first.
[ ! -f "$ROOT/$LIST" ] || remove >/dev/null
: > "$stage/list"
cd "$stage"
while IFS= read -r folder; do
    [ -d "$ROOT/$folder" ] || echo "$folder/" >> list
done < <(find bin lib share -type d | sort)
{ find bin lib share -type f | sort; echo "$LIST"; } >> list
put 644 list "$LIST"
mkdir -p "$ROOT" 2>/dev/null && [ -w "$ROOT" ] || fail "$ROOT cannot be written; accepted: sudo make install, or PREFIX=\$HOME/.local"
cp -r --no-preserve=ownership bin lib share "$ROOT/"
echo "install: $("$SUIMON" --version) in $ROOT; \`make uninstall\` takes it away"
