#!/usr/bin/env bash
# Makes the environment with Google's Python client and pytest where it is missing; prints the path of its interpreter.
set -u
V="${BT_PY_VERSION:-2.50.2}"
VENV="${BT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bt-conformance}/py-venv"
if [ ! -x "$VENV/bin/pytest" ]; then
  { python3 -m venv "$VENV" && "$VENV/bin/pip" -q install "google-cloud-bigtable==$V" 'pytest<8' 'pytest-asyncio==0.21.2' pytest-timeout mock google-cloud-testutils; } >&2 || exit 2
fi
echo "$VENV/bin/python"
