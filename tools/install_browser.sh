#!/usr/bin/env bash
# Installs Chromium and shellcheck, which some tests use, where Debian's packages can be installed.
set -euo pipefail

missing=()
found=$(command -v chromium chromium-browser google-chrome chrome || true)
if [ -z "$found" ]; then missing+=(chromium); fi
if ! command -v shellcheck >/dev/null; then missing+=(shellcheck); fi
if [ ${#missing[@]} = 0 ]; then exit 0; fi

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Please install ${missing[*]}; the tests that use them are skipped until then."
  exit 0
fi
echo "Installing ${missing[*]}"
install=(timeout 300 apt-get install -y --no-install-recommends "${missing[@]}")
"${install[@]}" >/dev/null 2>&1 || { timeout 100 apt-get update >/dev/null; "${install[@]}" >/dev/null; }
