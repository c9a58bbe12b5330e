#!/usr/bin/env bash
# Builds the command of this commit twice, in clones in two folders, and compares the bytes.
#   scripts/check_reproducible.sh [PROFILE]     [default: dist]
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-dist}
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for folder in one a/longer/name; do
    git clone --quiet --no-local . "$work/$folder"
    git -C "$work/$folder" checkout --quiet --detach "$commit"
    (cd "$work/$folder" && unset CARGO_TARGET_DIR && PROFILE=$profile scripts/dist.sh --only-command)
done
if cmp "$work/one/target/$profile/suimon" "$work/a/longer/name/target/$profile/suimon"; then
    sha256sum < "$work/one/target/$profile/suimon"
    echo "check_reproducible: two builds of $(git rev-parse --short=9 HEAD) are the same, with profile $profile: passed"
else
    echo "check_reproducible: two builds differ" >&2
    exit 1
fi
