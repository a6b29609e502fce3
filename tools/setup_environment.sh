#!/usr/bin/env bash
# Creates a virtual environment with the exact packages of requirements.lock and this checkout.
# usage: tools/setup_environment.sh VENV [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=${2:-}

is_supported() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}
refuse() {
  echo "This project needs Python 3.11, 3.12 or 3.13; found: $("$1" --version 2>/dev/null ||
    echo "no $1"). $2" >&2
  exit 1
}

if [ -n "$python" ] && ! is_supported "$python"; then
  refuse "$python" "Give another as PYTHON=."
fi
if ! is_supported "$venv/bin/python"; then
  for candidate in ${python:-python3.11 python3.12 python3.13 python3 python}; do
    if is_supported "$candidate"; then python=$candidate; break; fi
  done
  if [ -z "$python" ]; then
    refuse python3 "Install one (with apt, pyenv or uv, for instance), or name it with PYTHON=."
  fi
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "$python cannot make virtual environments; install its venv package" \
      "(on Debian and Ubuntu: apt-get install python3-venv)." >&2
    exit 1
  fi
  echo "Creating $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
fi

echo "Installing the packages of requirements.lock (a minute or two the first time)"
# The lock is complete, so nothing is left to resolve. With dependencies, pip would look at releases
# newer than the lock for packages with extras, and refuse them for want of a hash.
locked=(--no-deps --require-hashes -r)
sed -n '/^uv==/,/[^\\]$/p' requirements.lock >"$venv/uv.lock"
"$venv/bin/python" -m pip --disable-pip-version-check --quiet install --progress-bar off \
  "${locked[@]}" "$venv/uv.lock"
tools/install_packages.sh "$venv" "$venv" "${locked[@]}" requirements.lock
tools/install_packages.sh "$venv" "$venv" --no-deps --no-build-isolation -e .

# What is imported first is compiled: TensorFlow takes 20 to 30 seconds then, and 5 from there on.
unset PYTHONDONTWRITEBYTECODE
echo "Importing TensorFlow for the first time"
TF_CPP_MIN_LOG_LEVEL=3 "$venv/bin/python" -c 'import tensorflow, keras, tensorflow_text'
