#!/bin/bash
# Installs the Debian packages that a group of targets needs.
#   scripts/deps.sh [--check] GROUP...   groups are the first column of scripts/packages.txt
# --check installs nothing: exit 0 when all are there, 1 with the missing ones on standard output.
# Nothing is fetched or changed when nothing is missing.
set -euo pipefail
list=$(dirname "$(readlink -f "$0")")/packages.txt

check_only=0
if [ "${1:-}" = --check ]; then check_only=1; shift; fi
if [ $# -eq 0 ]; then sed -n '2,5p' "$0" >&2; exit 2; fi

if ! command -v dpkg-query >/dev/null; then
  echo "rdma-tune: no dpkg here, so packages are not looked after; $list names what Debian 12 calls them" >&2
  exit 0
fi

wanted=()
for group in "$@"; do
  mapfile -t of_group < <(awk -v g="$group" '$1 == g {print $2}' "$list")
  if [ ${#of_group[@]} -eq 0 ]; then echo "rdma-tune: no package group \"$group\" in $list" >&2; exit 2; fi
  wanted+=("${of_group[@]}")
done

installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null |
  awk '$2 == "installed" {print $1}' || true)
missing=()
for package in "${wanted[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ $check_only = 1 ]; then printf '%s\n' "${missing[@]}"; exit 1; fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo)
  elif command -v sudo >/dev/null && [ -t 0 ]; then
    as_root=(sudo)
  else
    echo "rdma-tune: these packages are missing, and only root can install them:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
fi
echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null; }

# Old or absent lists are the usual reason for a failure, so fetch them only when they are needed.
# apt-cache answers "none" as the candidate of a package that no list names.
have_lists() { ! LC_ALL=C apt-cache policy "${missing[@]}" 2>/dev/null | grep -q 'Candidate: (none)' &&
  [ "$(LC_ALL=C apt-cache policy "${missing[@]}" 2>/dev/null | grep -c 'Candidate:')" -eq ${#missing[@]} ]; }
install() { apt_get install -y --no-install-recommends "${missing[@]}"; }
if ! have_lists; then apt_get update; fi
install || { echo "once more, with fresh package lists"; apt_get update && install; }
