# shellcheck shell=bash disable=SC2034
# lib.sh: what every script here needs: where things lie, how to tell progress, which PostgreSQL. Sourced, never run.

ROOT=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/kslate
LOGS=$ROOT/target/logs
PGRX_VERSION=$(sed -n 's/^pgrx = .*version = "=\([0-9.]*\)".*/\1/p' "$ROOT/kslate-pg/Cargo.toml")
# cargo-pgrx keeps a configuration; ours lies in target/, so that a developer's own ~/.pgrx stays as it is.
export PGRX_HOME=$ROOT/target/pgrx
export PATH=$CACHE/bin:$PATH:/usr/sbin:/sbin
: "${KSLATE_DATA:=$ROOT/.kslate}" "${KSLATE_LISTEN:=127.0.0.1:8080}"
[[ $KSLATE_DATA == /* ]] || KSLATE_DATA=$PWD/$KSLATE_DATA

step() { printf '==> %s\n' "$*" >&2; }
die() { printf 'kslate: %s\n' "$1" >&2; shift; (($#)) && printf '        %s\n' "$@" >&2; exit 1; }
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# as_root COMMAND…: with sudo where we are not root.
as_root() {
  if ((EUID == 0)); then "$@"; else
    command -v sudo >/dev/null || die "this needs root, and there is no sudo: $*"
    sudo "$@"
  fi
}

# timed LABEL COMMAND…: runs COMMAND with its output in a log, tells every ten seconds how far it is, shows the log's end when it fails.
timed() {
  local label=$1 log begun=$SECONDS ticker status=0; shift
  mkdir -p "$LOGS"
  log=$LOGS/$(tr -cs 'A-Za-z0-9.\n' - <<<"${label:0:60}").log
  step "$label"
  # shellcheck disable=SC2016 # they expand in that shell
  "$BASH" -c 'while sleep 10 >/dev/null 2>&1; do [[ -d /proc/$1 ]] || exit; s=$((s + 10))
    printf "    %d:%02d  %.90s\n" $((s / 60)) $((s % 60)) "$(tail -n 1 "$2" | tr -d "\r\033" | sed "s/^ *//")"; done' - $$ "$log" >&2 8>&- 9>&- &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  { kill "$ticker" && wait "$ticker"; } 2>/dev/null || true
  if ((status)); then
    tail -n 40 "$log" >&2
    die "failed: $label" "the whole log: $log"
  fi
  if ((SECONDS - begun > 2)); then printf '    done in %d:%02d\n' $(((SECONDS - begun) / 60)) $(((SECONDS - begun) % 60)) >&2; fi
}

# one_at_a_time: waits until no other script of this checkout installs or builds; the lock goes with the process.
one_at_a_time() {
  mkdir -p "$ROOT/target"
  exec 8>>"$ROOT/target/scripts.lock"
  if command -v flock >/dev/null && ! flock -n 8; then
    step "waiting for another make that installs or builds"
    flock 8
  fi
}

# The PostgreSQL majors that the extension has a feature for, newest first.
supported_majors() { sed -n 's/^pg\([0-9]*\) = .*/\1/p' "$ROOT/kslate-pg/Cargo.toml" | sort -rn; }

# find_pg_config: prints the pg_config to use, nothing if there is none: PG_CONFIG, else the highest supported one under
# /usr/lib/postgresql, else that of the PATH.
find_pg_config() {
  local major named
  if [[ ${PG_CONFIG-} ]]; then
    named=$(command -v "$PG_CONFIG") || die "PG_CONFIG is $PG_CONFIG, which is no program"
    echo "$(cd "$(dirname "$named")" && pwd)/${named##*/}"
    return
  fi
  for major in $(supported_majors); do
    if [[ -x /usr/lib/postgresql/$major/bin/pg_config ]]; then echo "/usr/lib/postgresql/$major/bin/pg_config"; return; fi
  done
  command -v pg_config || true
}

# pg_major PG_CONFIG: its major version.
pg_major() { "$1" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/'; }

# use_postgres: sets PG_CONFIG, PG_MAJOR, PG_BIN; fails where `make deps` has work to do.
use_postgres() {
  PG_CONFIG=$(find_pg_config)
  [[ $PG_CONFIG ]] || die "no PostgreSQL found" "make deps installs it; PG_CONFIG=/path/to/pg_config names one"
  PG_MAJOR=$(pg_major "$PG_CONFIG") PG_BIN=$("$PG_CONFIG" --bindir)
  [[ -x $PG_BIN/postgres ]] || die "$PG_CONFIG has no server in $PG_BIN" "make deps installs it"
}

# psql on a URL, without anybody's .psqlrc, the first error ends it.
sql() { "$PG_BIN/psql" -XAtq -v ON_ERROR_STOP=1 "$@"; }

# newer_than STAMP PATH…: true where STAMP is missing or a file or folder under a PATH is newer.
newer_than() { local stamp=$1; shift; [[ ! -e $stamp || $(find "$@" -newer "$stamp" -print -quit) ]]; }
