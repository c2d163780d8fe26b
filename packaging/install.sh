#!/bin/sh
# Checks the signature and the checksum of the archive beside this script, and installs the command.
#
#   sh install.sh                            into /usr/local, as root
#   sh install.sh --prefix "$HOME/.local"    into another directory
#   sh install.sh --key RWQ...               checks against this public key of minisign
#   sh install.sh --no-signature             checks the checksum alone
#
# It needs minisign to check the signature, and downloads nothing.
set -eu

# The key of the release. Packages that were built without one are unsigned.
public_key=""
prefix=/usr/local
signature=yes

usage() {
  sed -n '2,9s/^# \{0,1\}//p' "$0"
}
fail() {
  echo "install.sh: $*" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case "$1" in
    --prefix) [ $# -gt 1 ] || fail "--prefix needs a directory"; prefix="$2"; shift ;;
    --key) [ $# -gt 1 ] || fail "--key needs a public key"; public_key="$2"; shift ;;
    --no-signature) signature=no ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

cd "$(dirname "$0")"
case "$(uname -s)/$(uname -m)" in
  Linux/x86_64) machine=x86_64 ;;
  Linux/aarch64) machine=aarch64 ;;
  *) fail "there is no package for $(uname -s) on $(uname -m)" ;;
esac
archive="$(ls ropewalk-*-"$machine"-linux.tar.xz 2>/dev/null)" || fail "no archive for $machine beside this script"
[ "$(echo "$archive" | wc -l)" -eq 1 ] || fail "more than one archive for $machine beside this script"

if [ "$signature" = yes ]; then
  [ -n "$public_key" ] || fail "which key? Give the public key with --key, or --no-signature"
  [ -f SHA256SUMS.minisig ] || fail "SHA256SUMS.minisig is missing: these packages are not signed"
  command -v minisign >/dev/null || fail "minisign is missing (Debian: apt install minisign)"
  minisign -V -q -P "$public_key" -m SHA256SUMS || fail "the signature of SHA256SUMS is not by $public_key"
fi
line="$(grep "  $archive\$" SHA256SUMS)" || fail "SHA256SUMS does not name $archive"
echo "$line" | sha256sum --check --status || fail "the checksum of $archive is wrong"

unpacked="$(mktemp -d)"
trap 'rm -rf "$unpacked"' EXIT
tar -xf "$archive" -C "$unpacked" --strip-components=1
install -d "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
  "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d" "$prefix/share/doc/ropewalk" \
  "$prefix/lib/ropewalk" "$prefix/include/ropewalk/netinet"
install -m 755 "$unpacked/ropewalk" "$prefix/bin/ropewalk"
install -m 644 "$unpacked/libropewalk.so" "$prefix/lib/ropewalk/libropewalk.so"
install -m 644 "$unpacked/include/netinet/sctp.h" "$prefix/include/ropewalk/netinet/sctp.h"
install -m 644 "$unpacked"/man/man1/*.1 "$prefix/share/man/man1"
install -m 644 "$unpacked/completions/ropewalk.bash" "$prefix/share/bash-completion/completions/ropewalk"
install -m 644 "$unpacked/completions/_ropewalk" "$prefix/share/zsh/site-functions/_ropewalk"
install -m 644 "$unpacked/completions/ropewalk.fish" "$prefix/share/fish/vendor_completions.d/ropewalk.fish"
install -m 644 "$unpacked"/LICENSE-* "$prefix/share/doc/ropewalk"
echo "installed $prefix/bin/ropewalk: $("$prefix/bin/ropewalk" --version)"
