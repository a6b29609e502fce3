#!/usr/bin/env bash
# Runs tests with Debian's Bazel, offline, using the packages of $VENV (default: .venv).
# Usage: tools/bazel/test.sh [target...]
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v bazel >/dev/null && [ "$(id -u)" = 0 ]; then
  install="timeout 300 apt-get install -y --no-install-recommends bazel-bootstrap"
  { $install || { timeout 100 apt-get update && $install; }; } >/dev/null 2>&1 || true
fi
if ! command -v bazel >/dev/null; then
  echo "SKIPPED: there is no bazel here, and Debian's bazel-bootstrap cannot be installed."
  exit 0
fi

if [ $# = 0 ]; then
  set -- //:tests/unit/tokenization/test_tokenizer //:tests/unit/data/test_lane_schedule
fi
environment=(--test_env=PATH="$PWD/${VENV:-.venv}/bin:/usr/bin:/bin")
for name in TF_USE_LEGACY_KERAS TF_ENABLE_ONEDNN_OPTS TF_CPP_MIN_LOG_LEVEL; do
  environment+=(--test_env="$name")
done
bazel --batch test --spawn_strategy=local --test_output=errors --nobuild_runfile_links \
  --symlink_prefix=/ "${environment[@]}" "$@"
