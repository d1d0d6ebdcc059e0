#!/bin/sh
# Install clew, or bring an installed one up to date, from this checkout. It says what it will do and asks before it changes
# anything; running it again changes nothing that you changed.
#
#   sudo deploy/install.sh [--prefix /opt/clew] [--yes | --dry-run]     for the machine: a user `clew`, a systemd service
#   deploy/install.sh --user [--prefix ~/.local/lib/clew] [--yes | --dry-run]     for yourself alone, without root
#
# Debian, Ubuntu, Fedora, Arch and their kin: a missing Python is installed from the distribution's packages. Elsewhere bring
# Python 3.11 or later; PYTHON=/path/to/python3 picks one. It neither starts nor restarts anything. --dry-run prints what would
# be done, as any user; --yes does not ask. deploy/uninstall.sh takes it all away again.
set -eu
umask 022

user=no
dry_run=no
yes=no
prefix=

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

run() {
    if [ "$dry_run" = yes ]; then echo "+ $*"; else "$@"; fi
}

# write FILE OWNER MODE: standard input becomes the file. OWNER is "" for whoever runs this.
write() {
    if [ "$dry_run" = yes ]; then
        cat >/dev/null
        echo "+ write $1 (${2:-yours}, $3)"
        return
    fi
    cat >"$1.new"
    [ -z "$2" ] || chown "$2" "$1.new"
    chmod "$3" "$1.new"
    mv "$1.new" "$1"
}

# The service runs as another user with /home and /root out of sight, so an interpreter that lives there cannot be used by it.
usable() {
    "$1" -c '
import os, sys
home = os.path.realpath(sys.executable).startswith(("/home/", "/root/")) and sys.argv[1] == "no"
sys.exit(home or sys.version_info < (3, 11))' "$user" 2>/dev/null
}

pick_python() {
    # shellcheck disable=SC2086  # a list of names
    for candidate in ${PYTHON:-python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.14}; do
        if usable "$candidate" && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# How this distribution installs a Python that can make virtual environments; nothing where that is not known.
packages() {
    if command -v apt-get >/dev/null; then
        echo "apt-get install --yes --no-install-recommends python3 python3-venv"
    elif command -v dnf >/dev/null; then
        echo "dnf install --assumeyes python3"
    elif command -v pacman >/dev/null; then
        echo "pacman -S --needed --noconfirm python"
    fi
}

ask() {
    [ "$dry_run" = no ] && [ "$yes" = no ] || return 0
    [ -t 0 ] || fail "nobody is here to be asked: run it in a terminal, or with --yes"
    printf 'Go on? [y/N] '
    read -r answer || answer=
    case $answer in
        y | Y | yes | Yes) ;;
        *) echo "Nothing was changed."; exit 1 ;;
    esac
}

while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -ge 2 ] || fail "--prefix needs a folder"; prefix=$2; shift ;;
        --user) user=yes ;;
        --yes) yes=yes ;;
        --dry-run) dry_run=yes ;;
        -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) fail "unknown argument: $1 (try --help)" ;;
    esac
    shift
done

if [ "$user" = yes ]; then
    : "${HOME:?install.sh: HOME is not set}"
    prefix=${prefix:-$HOME/.local/lib/clew}
    config=${XDG_CONFIG_HOME:-$HOME/.config}/clew/clew.yaml
    units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
    link=$HOME/.local/bin/clew
    data=$HOME/.local/share/clew
    systemctl="systemctl --user"
else
    prefix=${prefix:-/opt/clew}
    config=/etc/clew/clew.yaml
    units=/etc/systemd/system
    link=/usr/local/bin/clew
    data=/var/lib/clew
    backups=/var/backups/clew
    systemctl=systemctl
fi
case $prefix in
    /*[!A-Za-z0-9._/-]* | [!/]* | /) fail "--prefix needs an absolute path of plain characters, not: $prefix" ;;
esac

checkout=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
for needed in pyproject.toml config.example.yaml deploy/requirements.lock deploy/clew.service deploy/clew-user.service; do
    [ -f "$checkout/$needed" ] || fail "$checkout/$needed is missing: run this from a full checkout of clew"
done
if [ "$user" = no ] && [ "$dry_run" = no ] && [ "$(id -u)" != 0 ]; then
    fail "run it as root (sudo $0), with --user for yourself alone, or with --dry-run"
fi

python=$(pick_python || true)
install_python=
if [ -z "$python" ]; then
    where=$([ "$user" = yes ] || echo " outside /home and /root")
    [ -z "${PYTHON:-}" ] || fail "no Python 3.11 or later that can make a virtual environment$where: $PYTHON"
    [ "$user" = no ] && install_python=$(packages)
    [ -n "$install_python" ] || fail "no Python 3.11 or later that can make a virtual environment$where (on Debian: apt-get install python3-venv)"
    python=/usr/bin/python3
fi

# What will be done, in words -----------------------------------------------------------------------------------------
say() { echo "  - $*"; }
echo "This installs clew from $checkout:"
[ -z "$install_python" ] || say "Python, by: $install_python"
if [ "$user" = no ] && ! id clew >/dev/null 2>&1; then say "a system user clew, who cannot log in"; fi
say "$prefix: a virtual environment with clew and its locked dependencies, fetched by pip"
say "$link, which points to it"
if [ -e "$config" ]; then say "$config is there already and stays as it is"; else say "$config, with every key and its default"; fi
if [ "$user" = yes ]; then
    say "$units/clew.service, a service of your own; what clew stores goes to $data"
else
    say "$units: clew.service, and clew-backup.service with its timer; what clew stores goes to $data"
    say "$backups, for the backups, should you enable the timer"
fi
echo "Nothing is started."
ask

# Doing it ------------------------------------------------------------------------------------------------------------
if [ -n "$install_python" ]; then
    # shellcheck disable=SC2086  # a command and its arguments
    run $install_python
    [ "$dry_run" = yes ] || python=$(pick_python) || fail "the Python of this distribution is older than 3.11, or cannot make a virtual environment"
fi

owner=
if [ "$user" = no ]; then
    owner=root:root
    if ! id clew >/dev/null 2>&1; then
        nologin=$(command -v nologin || echo /usr/sbin/nologin)
        run useradd --system --user-group --home-dir "$data" --no-create-home --shell "$nologin" clew
    fi
fi

if ! "$prefix/bin/python" -m pip --version >/dev/null 2>&1; then
    run mkdir -p "$(dirname "$prefix")"
    run "$python" -m venv --clear "$prefix"
fi
pip() {
    run "$prefix/bin/python" -m pip --quiet --disable-pip-version-check --no-input "$@"
}
pip install --require-hashes -r "$checkout/deploy/requirements.lock"
pip install --no-deps --no-build-isolation --force-reinstall "$checkout"
run mkdir -p "$(dirname "$link")" "$units"
run ln -sfn "$prefix/bin/clew" "$link"

if [ "$user" = no ]; then
    run install -d -m 0750 -o root -g clew "$(dirname "$config")"
    run install -d -m 0700 -o clew -g clew "$backups"
else
    run install -d -m 0700 "$(dirname "$config")"
fi
if [ -e "$config" ]; then
    echo "$config is there already: kept as it is"
elif [ "$user" = no ]; then
    # Named outright, so that commands of the clew user find the running daemon, which knows it from systemd.
    sed "s|^data_dir:.*|data_dir: $data|" "$checkout/config.example.yaml" | write "$config" root:clew 0640
else
    write "$config" "" 0600 <"$checkout/config.example.yaml"
fi
unit() {
    sed "s|^ExecStart=[^ ]*/bin/clew |ExecStart=$prefix/bin/clew |" "$checkout/deploy/$1" | write "$units/$2" "$owner" 0644
}
if [ "$user" = yes ]; then
    unit clew-user.service clew.service
else
    unit clew.service clew.service
    unit clew-backup.service clew-backup.service
    unit clew-backup.timer clew-backup.timer
fi
if [ -d /run/systemd/system ]; then
    # shellcheck disable=SC2086  # a command and its argument
    run $systemctl daemon-reload
fi

as=$([ "$user" = yes ] || echo "sudo -u clew ")
cat <<END

clew is installed in $prefix. Next:
  1. edit $config, and check it:   ${as}clew config check --config $config
  2. start it, now and at every boot:   $systemctl enable --now clew
     (after an update:                  $systemctl restart clew)
END
if [ "$user" = yes ]; then
    cat <<END
     (to run while you are logged out:  loginctl enable-linger)
  3. see how it does:                   clew doctor; journalctl --user -u clew -f
  4. talk to it:                        clew chat
END
    case ":$PATH:" in *":$HOME/.local/bin:"*) ;; *) echo "$HOME/.local/bin is not in your PATH: call clew as $link" ;; esac
else
    cat <<END
     and its nightly backup:            $systemctl enable --now clew-backup.timer
  3. see how it does:                   sudo -u clew clew doctor; journalctl -u clew -f
  4. talk to it:                        sudo -u clew clew chat
END
fi
