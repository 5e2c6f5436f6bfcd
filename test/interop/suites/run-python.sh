#!/usr/bin/env bash
# The Python client's system tests (google-cloud-bigtable, from its source package: tests/system) against HOST:PORT.
# BT_MODE=emulator (default): as upstream runs them with BIGTABLE_EMULATOR_HOST.
# Left out: test_table_mutate_rows_retries_timeout, which replaces the call to the server by a mock.
# BT_MODE=full: the tests' own skips for an emulator are lifted (SQL, authorized views, splits, retries of bad requests, admin).
. "$(dirname "$0")/common.sh"
need python3; reach
V="${BT_PY_VERSION:-2.50.2}"; MODE="${BT_MODE:-emulator}"; LIMIT="${BT_LIMIT:-400}"
VENV="$BT_CACHE/py-venv"; D="$BT_CACHE/py-$MODE/google_cloud_bigtable-$V"
bash "$HERE/python-venv.sh" >/dev/null || exit 2
if [ ! -f "$D/.ready" ]; then
  mkdir -p "$BT_CACHE/py-$MODE"
  "$VENV/bin/pip" -q download --no-deps --no-binary :all: --no-build-isolation "google-cloud-bigtable==$V" -d "$BT_CACHE/py-$MODE" >/dev/null 2>&1 || "$VENV/bin/pip" -q download --no-deps --no-binary :all: "google-cloud-bigtable==$V" -d "$BT_CACHE/py-$MODE" || exit 2
  tar xzf "$BT_CACHE/py-$MODE"/google_cloud_bigtable-"$V".tar.gz -C "$BT_CACHE/py-$MODE" || exit 2
  rm -rf "$D/google" # the installed package is the one under test
  if [ "$MODE" = full ]; then
    find "$D/tests/system" -name '*.py' | xargs sed -i -E -e 's/os\.(environ\.get|getenv)\(BIGTABLE_EMULATOR\)( is not None)?/os.environ.get("BT_PRETEND_EMULATOR")/g'
    # sweeping up old instances asks Google for credentials
    sed -i -E 's/^( +)clear_stale_instances\(.*\)$/\1pass/' "$D/tests/system/data/__init__.py"
  fi
  : > "$D/.ready"
fi
export BIGTABLE_EMULATOR_HOST="$TARGET" GOOGLE_CLOUD_PROJECT="p-$RUN_ID" GCLOUD_PROJECT="p-$RUN_ID"
cat > "$D/bt_report.py" <<'P'
import os
f = open(os.environ["BT_OUT"], "a", buffering=1)
seen = {}
def name(n): return n.replace("tests/system/", "").replace(" ", "_").replace("\n", "_")
def pytest_collection_finish(session):
    for i in session.items: f.write("TODO " + name(i.nodeid) + "\n")
def pytest_runtest_logreport(report):
    n = name(report.nodeid)
    if report.failed: s = "FAIL"
    elif report.skipped and seen.get(n) != "FAIL": s = "SKIP"
    elif report.when == "call" and n not in seen: s = "PASS"
    else: return
    seen[n] = s
    f.write(s + " " + n + "\n")
def pytest_collectreport(report):
    if report.failed: f.write("FAIL collect:" + name(report.nodeid) + "\n")
    elif report.skipped: f.write("SKIP collect:" + name(report.nodeid) + "\n")
P
export BT_OUT="$BT_CACHE/python-$MODE.txt"; : > "$BT_OUT"
DIRS="tests/system/data tests/system/v2_client tests/system/admin_overlay"; DROP=""
if [ "$MODE" = full ]; then # the admin overlay asks for Google credentials in this mode, so it is left out
  # so are the client's own telemetry tests (test_metrics_*), which look for Google's response trailers and permissions
  DIRS="tests/system/v2_client tests/system/data"; DROP="--ignore-glob=*test_metrics_*"
  # the authorized-view half of the data tests is apart (BT_MODE=full BT_ONLY=authorized_view): without views on the server it does not end in time
  BT_ONLY="${BT_ONLY:-not authorized_view and not test_metric_existence}"
  export BIGTABLE_TEST_INSTANCE="i-$RUN_ID"
fi
DIRS="${BT_DIRS:-$DIRS}"
: > "$BT_CACHE/python-$MODE.log"
for d in $DIRS; do
  ( cd "$D" && PYTHONPATH="$D" timeout "$LIMIT" "$VENV/bin/python" -m pytest -q -p bt_report -p no:cacheprovider --tb=native --timeout 60 $DROP --deselect tests/system/v2_client/test_data_api.py::test_table_mutate_rows_retries_timeout ${BT_ONLY:+-k "$BT_ONLY"} "$d" ) >> "$BT_CACHE/python-$MODE.log" 2>&1
  rc=$?
  case $rc in 0|1|5) ;; 124) echo "FAIL $d:time-limit" >> "$BT_OUT" ;; *) echo "FAIL $d:pytest-ended-with-$rc" >> "$BT_OUT" ;; esac
done
# a test that was collected and never reported counts as failed, so a run cut short cannot look whole
awk '{n=$2; if ($1=="TODO") { if (!(n in s)) s[n]="TODO" } else s[n]=$1} END{for (n in s) print (s[n]=="TODO" ? "FAIL " n ":not-reached" : s[n] " " n)}' "$BT_OUT" | tally
