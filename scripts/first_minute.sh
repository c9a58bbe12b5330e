#!/usr/bin/env bash
# What a newcomer waits for: clones this checkout's commit into a new folder and times each stage there, from nothing
# built. Packages of the system, Python's and npm's are brought before the clock starts.
#   scripts/first_minute.sh [demo] [test] [ci]     which stages [default: demo test]
set -euo pipefail
cd "$(dirname "$0")/.."
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(demo test)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git clone --quiet --no-local . "$folder/suimon"
# Links that were measured lie beside the project, where there are any.
[ ! -d ../shared ] || ln -s "$(realpath ../shared)" "$folder/shared"
cd "$folder/suimon"
unset CARGO_TARGET_DIR MAKEFLAGS MAKELEVEL
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

timed() { # what it is, command
    local what=$1 begun ended
    shift
    begun=$(date +%s%N)
    if ! "$@" > "$folder/log" 2>&1 < /dev/null; then
        tail -50 "$folder/log" >&2
        echo "first_minute: $what: failed" >&2
        exit 1
    fi
    ended=$(date +%s%N)
    printf '%-44s %7.1f s\n' "$what" "$(((ended - begun) / 100000000))e-1"
}

printf 'commit %s, %s cores, %s, %s\n' "$(git rev-parse --short=9 HEAD)" "$(nproc)" \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" "$(rustc --version)"
for stage in "${stages[@]}"; do
    case $stage in
        demo)
            scripts/setup.sh demo > "$folder/log" 2>&1
            timed "make demo, from nothing" make demo
            timed "make demo, built" make demo
            ;;
        test)
            scripts/setup.sh checks > "$folder/log" 2>&1
            rm -rf target
            timed "make test, from an empty target folder" make test
            timed "make test, built" make test
            ;;
        ci)
            rm -rf target .venv
            timed ".ci/run, from nothing" bash .ci/run
            ;;
        *)
            echo "first_minute: no stage $stage; accepted: demo, test, ci" >&2
            exit 2
            ;;
    esac
done
