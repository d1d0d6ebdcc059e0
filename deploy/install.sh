#!/bin/sh
# Install clew, or bring an installed one up to date, from this checkout. Running it again changes nothing that you changed.
#
#   sudo deploy/install.sh [--prefix /opt/clew] [--dry-run]
#
# It makes a user `clew`, a virtual environment at the prefix with the locked dependencies, /etc/clew/clew.yaml if there is
# none, and the systemd unit. It neither starts nor restarts anything. --dry-run prints what would be done, as any user.
# PYTHON=/path/to/python3 picks the interpreter (3.11 or later).
set -eu
umask 022

prefix=/opt/clew
config=/etc/clew/clew.yaml
state=/var/lib/clew
unit=/etc/systemd/system/clew.service
dry_run=no

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

run() {
    if [ "$dry_run" = yes ]; then echo "+ $*"; else "$@"; fi
}

# write FILE OWNER MODE: standard input becomes the file.
write() {
    if [ "$dry_run" = yes ]; then
        cat >/dev/null
        echo "+ write $1 ($2, $3)"
        return
    fi
    cat >"$1.new"
    chown "$2" "$1.new"
    chmod "$3" "$1.new"
    mv "$1.new" "$1"
}

# The service runs as another user with /home and /root out of sight, so an interpreter that lives there cannot be used.
usable() {
    "$1" -c '
import os, sys
home = os.path.realpath(sys.executable).startswith(("/home/", "/root/"))
sys.exit(home or sys.version_info < (3, 11))' 2>/dev/null
}

pick_python() {
    # shellcheck disable=SC2086  # a list of names
    for candidate in ${PYTHON:-python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.14}; do
        if usable "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -ge 2 ] || fail "--prefix needs a folder"; prefix=$2; shift ;;
        --dry-run) dry_run=yes ;;
        -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) fail "unknown argument: $1 (try --help)" ;;
    esac
    shift
done
case $prefix in
    /*[!A-Za-z0-9._/-]* | [!/]* | "") fail "--prefix needs an absolute path of plain characters, not: $prefix" ;;
esac

checkout=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
for needed in pyproject.toml config.example.yaml deploy/requirements.lock deploy/clew.service; do
    [ -f "$checkout/$needed" ] || fail "$checkout/$needed is missing: run this from a full checkout of clew"
done
[ "$dry_run" = yes ] || [ "$(id -u)" = 0 ] || fail "run it as root (sudo $0), or with --dry-run"
python=$(pick_python) || fail "no Python 3.11 or later outside /home and /root (apt-get install python3 python3-venv)"
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python cannot make a virtual environment (apt-get install python3-venv)"

if ! id clew >/dev/null 2>&1; then
    nologin=$(command -v nologin || echo /usr/sbin/nologin)
    run useradd --system --user-group --home-dir "$state" --no-create-home --shell "$nologin" clew
fi

if ! "$prefix/bin/python" -m pip --version >/dev/null 2>&1; then
    run "$python" -m venv --clear "$prefix"
fi
pip() {
    run "$prefix/bin/python" -m pip --quiet --disable-pip-version-check --no-input "$@"
}
pip install --require-hashes -r "$checkout/deploy/requirements.lock"
pip install --no-deps --no-build-isolation --force-reinstall "$checkout"

run install -d -m 0750 -o root -g clew "$(dirname "$config")"
if [ -e "$config" ]; then
    echo "$config is there already: kept as it is"
else
    # Named outright, so that commands of the clew user find the running daemon, which knows it from systemd.
    sed "s|^data_dir:.*|data_dir: $state|" "$checkout/config.example.yaml" | write "$config" root:clew 0640
fi
sed "s|^ExecStart=/opt/clew/|ExecStart=$prefix/|" "$checkout/deploy/clew.service" | write "$unit" root:root 0644
if [ -d /run/systemd/system ]; then
    run systemctl daemon-reload
fi

cat <<END

clew is installed in $prefix. Next:
  1. edit $config, and check it:   sudo -u clew $prefix/bin/clew config check --config $config
  2. start it, now and at every boot:   systemctl enable --now clew
     (after an update:                  systemctl restart clew)
  3. see how it does:                   systemctl status clew; journalctl -u clew -f
  4. talk to it:                        sudo -u clew $prefix/bin/clew chat
END
