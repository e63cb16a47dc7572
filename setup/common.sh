# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used by the scripts that source it
# Sourced by the scripts beside it: where things go, and how they speak.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=${STATE:-$root/.cliffwatch}
mkdir -p "$state"
state=$(cd "$state" && pwd)
venv=$state/venv
stamps=$state/stamps
mkdir -p "$stamps"

say() { printf 'setup: %s\n' "$*" >&2; }

die() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# In CI nothing may be unavailable: what is missing fails the build instead of narrowing it.
in_ci() { [[ ${CI:-} == true || ${CI:-} == 1 ]]; }

# without WHAT CONSEQUENCE: name what is missing and go on, or fail in CI.
without() {
    in_ci && die "$1 is missing, and CI does nothing without it"
    say "without $1: $2"
}

# at_least HAVE WANT: compare dotted versions.
at_least() { [[ $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }

# A stamp holds a hash of everything that its step depends on, so that the step is executed again when any of it
# changed and takes no time when nothing did.
digest_of() { cat "$@" | sha256sum | cut -d ' ' -f 1; }
is_done() { [[ -f $stamps/$1 && $(<"$stamps/$1") == "$2" ]]; }
mark_done() { printf '%s\n' "$2" >"$stamps/$1"; }

# The Rust that the workspace asks for, on PATH. Debian's cargo-web serves where there is none.
rust_wanted() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1; }
rust_usable() {
    local have
    have=$(cargo --version 2>/dev/null | cut -d ' ' -f 2) || return 1
    [[ -n $have ]] && at_least "$have" "$(rust_wanted)"
}

# A program that goes to other machines names no path of this one: not of the checkout, and not of Cargo's.
rust_flags() {
    echo "${RUSTFLAGS:-} --remap-path-prefix=$root=/cliffwatch --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
}

# What is fetched or compiled and is the same for every checkout lies outside of them, under a hash of its inputs.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cliffwatch
mkdir -p "$cache"
# prune PATTERN: remove what was not used for 30 days.
prune() { find "$cache" -mindepth 1 -maxdepth 1 -name "$1" -mtime +30 -exec rm -rf {} +; }

# alone_in_cache NAME COMMAND...: with no other checkout at the same part of the cache.
alone_in_cache() {
    local name=$1
    shift
    (
        flock --nonblock 9 || { say "waiting for another checkout, which is at $cache/$name"; flock 9; }
        # What it leaves running does not hold the lock.
        "$@" 9>&-
    ) 9>"$cache/$name.lock"
}

# A network that is away is no failed test: the exit status says so, and a file, since make exits with 2 whatever failed.
readonly COULD_NOT_FETCH=75
could_not_fetch() {
    say "could not fetch $1"
    touch "$state/could-not-fetch"
}
# fetching WHAT COMMAND...: try three times; the status of the last try is lost, its output is not.
fetching() {
    local what=$1 pause
    shift
    for pause in 5 20; do
        if "$@"; then return 0; fi
        say "$what could not be fetched; once more in $pause s"
        sleep "$pause"
    done
    if "$@"; then return 0; fi
    could_not_fetch "$what"
    return "$COULD_NOT_FETCH"
}

# Crates of the registry are compiled once for all checkouts with one Cargo.lock, compiler and profile; a checkout's own
# crates go beside them. The state directory's target leads there.
share_cargo_target() {
    local target
    target=$cache/cargo-$({ cargo --version && cat "$root/Cargo.lock" && sed -n '/^\[profile/,$p' "$root/Cargo.toml"; } | sha256sum | cut -c 1-16)
    mkdir -p "$target"
    touch "$target"
    prune 'cargo-*'
    if [[ $(readlink "$state/target" || true) != "$target" ]]; then
        rm -rf "$state/target"
        ln -s "$target" "$state/target"
    fi
    export CARGO_TARGET_DIR=$target
}
