#!/bin/sh
# Take away what deploy/install.sh put there. It says what it will do and asks before it changes anything. Your config and
# all that clew stored stay, unless you say --purge.
#
#   sudo deploy/uninstall.sh [--prefix /opt/clew] [--purge] [--yes | --dry-run]
#   deploy/uninstall.sh --user [--prefix ~/.local/lib/clew] [--purge] [--yes | --dry-run]
set -eu

user=no
dry_run=no
yes=no
purge=no
prefix=

fail() {
    echo "uninstall.sh: $*" >&2
    exit 1
}

run() {
    if [ "$dry_run" = yes ]; then echo "+ $*"; else "$@"; fi
}

while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -ge 2 ] || fail "--prefix needs a folder"; prefix=$2; shift ;;
        --user) user=yes ;;
        --yes) yes=yes ;;
        --purge) purge=yes ;;
        --dry-run) dry_run=yes ;;
        -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) fail "unknown argument: $1 (try --help)" ;;
    esac
    shift
done

if [ "$user" = yes ]; then
    : "${HOME:?uninstall.sh: HOME is not set}"
    prefix=${prefix:-$HOME/.local/lib/clew}
    units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
    link=$HOME/.local/bin/clew
    kept="${XDG_CONFIG_HOME:-$HOME/.config}/clew $HOME/.local/share/clew"
    systemctl="systemctl --user"
else
    prefix=${prefix:-/opt/clew}
    units=/etc/systemd/system
    link=/usr/local/bin/clew
    kept="/etc/clew /var/lib/clew /var/backups/clew"
    systemctl=systemctl
fi
case $prefix in
    /*[!A-Za-z0-9._/-]* | [!/]* | /) fail "--prefix needs an absolute path of plain characters, not: $prefix" ;;
esac
# Only what is a virtual environment with clew in it is taken away, whatever --prefix says.
if [ -e "$prefix" ] && { [ ! -f "$prefix/pyvenv.cfg" ] || [ ! -e "$prefix/bin/clew" ]; }; then
    fail "$prefix is no virtual environment with clew in it: nothing was changed"
fi
if [ "$user" = no ] && [ "$dry_run" = no ] && [ "$(id -u)" != 0 ]; then
    fail "run it as root (sudo $0), with --user for an installation of your own, or with --dry-run"
fi

echo "This stops clew and takes away:"
echo "  - $prefix"
echo "  - $link"
echo "  - the units in $units"
if [ "$purge" = yes ]; then
    echo "  - FOR GOOD, the config, every conversation and the backups: $kept"
    [ "$user" = yes ] || echo "  - the user clew"
else
    echo "It leaves your config and all that was stored: $kept"
fi
if [ "$dry_run" = no ] && [ "$yes" = no ]; then
    [ -t 0 ] || fail "nobody is here to be asked: run it in a terminal, or with --yes"
    wanted=y
    [ "$purge" = no ] || wanted=purge
    printf 'Go on? Type %s: ' "$wanted"
    read -r answer || answer=
    [ "$answer" = "$wanted" ] || { echo "Nothing was changed."; exit 1; }
fi

if [ -d /run/systemd/system ]; then
    for unit in clew-backup.timer clew-backup.service clew.service; do
        # shellcheck disable=SC2086  # a command and its argument
        [ ! -e "$units/$unit" ] || run $systemctl disable --now "$unit"
    done
fi
for unit in clew-backup.timer clew-backup.service clew.service; do
    run rm -f "$units/$unit"
done
[ ! -L "$link" ] || run rm -f "$link"
run rm -rf "$prefix"
if [ "$purge" = yes ]; then
    if [ "$user" = yes ]; then
        run rm -rf "${XDG_CONFIG_HOME:-$HOME/.config}/clew" "$HOME/.local/share/clew"
    else
        run rm -rf /etc/clew /var/lib/clew /var/backups/clew
        if id clew >/dev/null 2>&1; then run userdel clew; fi
    fi
fi
if [ -d /run/systemd/system ]; then
    # shellcheck disable=SC2086  # a command and its argument
    run $systemctl daemon-reload
fi
echo "clew is gone."
