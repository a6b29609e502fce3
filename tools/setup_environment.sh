#!/usr/bin/env bash
# Creates a virtual environment with the exact packages of requirements.lock and this checkout.
# usage: tools/setup_environment.sh VENV
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

is_3_11() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1; }

if ! is_3_11 "$venv/bin/python"; then
  python=
  for candidate in python3.11 python3 python; do
    if is_3_11 "$candidate"; then python=$candidate; break; fi
  done
  if [ -z "$python" ]; then
    found=$(python3 --version 2>/dev/null || echo "no python3")
    echo "This project needs Python 3.11; found: $found." \
      "Install it (with apt, pyenv or uv, for instance) so that python3.11 is on the PATH." >&2
    exit 1
  fi
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "$python cannot make virtual environments; install its venv package" \
      "(on Debian and Ubuntu: apt-get install python3.11-venv)." >&2
    exit 1
  fi
  echo "Creating $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
fi

echo "Installing the packages of requirements.lock (about five minutes the first time)"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --progress-bar off --no-compile --require-hashes -r requirements.lock
"${pip[@]}" install --no-deps --no-build-isolation -e .

# Importing TensorFlow takes 5 seconds if compiled, else 20 to 30. Failures are ignored: a few
# packages contain templates that are not valid Python.
echo "Compiling the packages"
"$venv/bin/python" -m compileall -qq -j 0 "$venv/lib/python3.11/site-packages" >/dev/null || true
