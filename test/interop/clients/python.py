"""Google's Python client, unchanged, against the server that BIGTABLE_EMULATOR_HOST names. Prints 'PASS step' or 'FAIL step: why'.

    BIGTABLE_EMULATOR_HOST=… python python.py [BIG_ROW_MIB]

Or over TLS: EDUBBA_TLS_HOST=… GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=FILE EDUBBA_TOKEN=… in place of BIGTABLE_EMULATOR_HOST.

The steps are those of node.mjs and go/main.go. Rows go through the data client of today, tables through the one that manages them.
"""

import datetime
import hashlib
import os
import struct
import sys
import warnings

warnings.filterwarnings("ignore")

from google.api_core import exceptions  # noqa: E402
from google.api_core.client_options import ClientOptions  # noqa: E402
from google.cloud import bigtable  # noqa: E402
from google.oauth2.credentials import Credentials  # noqa: E402
from google.cloud.bigtable import column_family as gc  # noqa: E402
from google.cloud.bigtable.data import (  # noqa: E402
    BigtableDataClient,
    DeleteAllFromFamily,
    DeleteAllFromRow,
    DeleteRangeFromColumn,
    ReadRowsQuery,
    RowMutationEntry,
    RowRange,
    SetCell,
    exceptions as data_exceptions,
    row_filters as f,
)
from google.cloud.bigtable.data.read_modify_write_rules import AppendValueRule, IncrementRule  # noqa: E402

BIG_ROW_MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 100
BIG_CELL_MIB = 5
NAME = f"python-{os.getpid()}"
failed = 0


def step(what, body):
    global failed
    try:
        body()
        print("PASS", what, flush=True)
    except Exception as error:  # every kind of failure is the step's
        failed += 1
        text = " ".join(f"{type(error).__name__} {error}".split())
        print(f"FAIL {what}: {text[:400]}", flush=True)


def same(got, want):
    assert got == want, f"got {str(got)[:300]}, not {str(want)[:300]}"


def refused(kind, body):
    try:
        body()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


secure = os.environ.get("EDUBBA_TLS_HOST")
over = {}
if secure is not None:
    over = {"credentials": Credentials(token=os.environ["EDUBBA_TOKEN"]), "client_options": ClientOptions(api_endpoint=secure)}
admin_over = {**over, "admin_client_options": over["client_options"]} if over else {}
project = bigtable.Client(project="python-scenario", admin=True, **admin_over)
admin = project.instance("scenario")
managed = admin.table(NAME)
client = BigtableDataClient(project="python-scenario", **over)
table = client.get_table("scenario", NAME)


def show(row):
    cells = ",".join(f"{c.family}:{c.qualifier.decode()}={c.value.decode('latin1')}{''.join(c.labels)}" for c in row)
    return f"{row.row_key.decode('latin1')} {cells}"


def read(**query):
    return [show(row) for row in table.read_rows(ReadRowsQuery(**query))]


def keys(**query):
    return [row.row_key.decode("latin1") for row in table.read_rows(ReadRowsQuery(**query))]


def cells(*texts, micros=1000):
    made = []
    for text in texts:
        column, value = text.split("=", 1)
        family, qualifier = column.split(":", 1)
        made.append(SetCell(family, qualifier, value.encode(), timestamp_micros=micros))
    return made


def create():
    managed.create(initial_split_keys=[b"row050"], column_families={"a": gc.MaxVersionsGCRule(2), "b": None, "extra": None})
    assert NAME in [t.table_id for t in admin.list_tables()]
    same(sorted(managed.list_column_families()), ["a", "b", "extra"])


def change_families():
    hour = gc.MaxAgeGCRule(datetime.timedelta(hours=1))
    managed.column_family("c", gc.GCRuleUnion([hour, gc.MaxVersionsGCRule(3)])).create()
    managed.column_family("b", gc.GCRuleIntersection([hour, gc.MaxVersionsGCRule(5)])).update()
    managed.column_family("extra").delete()
    got = managed.list_column_families()
    same(sorted(got), ["a", "b", "c"])
    same(got["b"].gc_rule, gc.GCRuleIntersection([hour, gc.MaxVersionsGCRule(5)]))
    same(got["c"].gc_rule, gc.GCRuleUnion([hour, gc.MaxVersionsGCRule(3)]))


def single_write():
    table.mutate_row("single", cells("a:q=first", "a:=empty qualifier"))
    same(show(table.read_row("single")), "single a:=empty qualifier,a:q=first")


def versions():
    for n in (1, 2, 3):
        table.mutate_row("versions", cells(f"a:q=v{n}", micros=n * 1000))
    same(read(row_keys=["versions"], row_filter=f.CellsColumnLimitFilter(1)), ["versions a:q=v3"])


def batch():
    table.bulk_mutate_rows([RowMutationEntry(f"row{i:03}", cells(f"a:q=value{i}", f"b:n={i}")) for i in range(100)])
    same(len(keys(row_ranges=[RowRange("row", "rox")])), 100)


def partial_batch():
    good, bad = RowMutationEntry("good", cells("a:q=x")), RowMutationEntry("bad", cells("nofamily:q=x"))
    refused(data_exceptions.MutationsExceptionGroup, lambda: table.bulk_mutate_rows([good, bad]))
    same(keys(row_keys=["bad", "good"]), ["good"])


def every_byte():
    every = bytes(range(256))
    table.mutate_row(b"bytes\x00\xff", [SetCell("a", every, every, timestamp_micros=1000)])
    row = table.read_row(b"bytes\x00\xff")
    same((row[0].qualifier, row[0].value), (every, every))


def ranges():
    same(keys(row_ranges=[RowRange("row010", "row012")]), ["row010", "row011"])
    same(keys(row_ranges=[RowRange("row010", "row012", start_is_inclusive=False, end_is_inclusive=True)]), ["row011", "row012"])
    same(len(keys(row_ranges=[RowRange("row09", "row0:")])), 10)
    same(keys(row_ranges=[RowRange("row")], limit=3), ["row000", "row001", "row002"])
    same(keys(row_keys=["row005", "nothing", "row003"]), ["row003", "row005"])


def missing():
    same(table.read_row("nothing"), None)
    same(table.row_exists("nothing"), False)
    same(table.row_exists("single"), True)


def filtered(row_filter, *want):
    same(read(row_keys=["row001", "row002"], row_filter=row_filter), list(want))


def simple_filters():
    filtered(f.FamilyNameRegexFilter("a"), "row001 a:q=value1", "row002 a:q=value2")
    filtered(f.ColumnQualifierRegexFilter("n"), "row001 b:n=1", "row002 b:n=2")
    filtered(f.ValueRegexFilter("value[1]"), "row001 a:q=value1")
    filtered(f.RowKeyRegexFilter(".*1"), "row001 a:q=value1,b:n=1")
    filtered(f.ColumnRangeFilter("a", "p", "r"), "row001 a:q=value1", "row002 a:q=value2")
    filtered(f.BlockAllFilter(True))


def range_filters():
    at = lambda ms: datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)  # noqa: E731
    filtered(f.TimestampRangeFilter(at(2), at(3)))
    filtered(f.TimestampRangeFilter(at(1), at(2)), "row001 a:q=value1,b:n=1", "row002 a:q=value2,b:n=2")
    filtered(f.ValueRangeFilter(b"value1", b"value2", inclusive_end=False), "row001 a:q=value1")
    filtered(f.CellsRowLimitFilter(1), "row001 a:q=value1", "row002 a:q=value2")
    filtered(f.CellsRowOffsetFilter(1), "row001 b:n=1", "row002 b:n=2")


def composed_filters():
    one, family_a = f.ValueRegexFilter("value1"), f.FamilyNameRegexFilter("a")
    filtered(f.RowFilterChain([family_a, one]), "row001 a:q=value1")
    filtered(f.RowFilterUnion([one, f.ValueRegexFilter("2")]), "row001 a:q=value1", "row002 b:n=2")
    filtered(f.ConditionalRowFilter(one, family_a, f.FamilyNameRegexFilter("b")), "row001 a:q=value1", "row002 b:n=2")
    filtered(f.RowFilterChain([family_a, f.StripValueTransformerFilter(True)]), "row001 a:q=", "row002 a:q=")
    filtered(f.RowFilterChain([one, f.ApplyLabelFilter("mark")]), "row001 a:q=value1mark")


def increment_and_append():
    for by in (5, -2):
        table.read_modify_write_row("counter", IncrementRule("b", "count", by))
    for word in ("one", ",two"):
        row = table.read_modify_write_row("counter", AppendValueRule("a", "log", word))
    same(row[0].value, b"one,two")
    same(table.read_row("counter", row_filter=f.FamilyNameRegexFilter("b"))[0].value, struct.pack(">q", 3))


def int64_counters():
    for i, n in enumerate([2**63 - 1, 1 - 2**63, 2**53 + 1, 2**53 - 1, -(2**53) - 1]):
        row = table.read_modify_write_row("int64", IncrementRule("b", f"n{i}", n))
        same(struct.unpack(">q", row[0].value)[0], n)


def check_and_mutate():
    table.mutate_row("checked", cells("a:q=yes"))
    for value in ("yes", "nothing"):
        matched = table.check_and_mutate_row(
            "checked", f.ValueRegexFilter(value), true_case_mutations=cells("b:answer=matched"), false_case_mutations=cells("b:answer=not")
        )
        same(matched, value == "yes")
    same(show(table.read_row("checked")), "checked a:q=yes,b:answer=not")


def deletions():
    table.mutate_row("deleted", cells("a:one=1", "a:two=2", "a:three=3", "b:x=4"))
    for mutation, want in [
        (DeleteRangeFromColumn("a", b"one"), ["deleted a:three=3,a:two=2,b:x=4"]),
        (DeleteRangeFromColumn("a", b"two", 1000, 2000), ["deleted a:three=3,b:x=4"]),
        (DeleteAllFromFamily("b"), ["deleted a:three=3"]),
        (DeleteAllFromRow(), []),
    ]:
        table.mutate_row("deleted", mutation)
        same(read(row_keys=["deleted"]), want)
    table.mutate_row("deleted", cells("a:one=back"))
    same(read(row_keys=["deleted"]), ["deleted a:one=back"])


def sample_keys():
    offsets = [offset for _, offset in table.sample_row_keys()]
    same(offsets, sorted(offsets))


def drop_prefix():
    managed.drop_by_prefix("row09")
    same(len(keys(row_ranges=[RowRange("row", "rox")])), 90)


def wide_rows():
    kib = b"k" * 1024
    wide = [RowMutationEntry(f"wide{i:03}", [SetCell("b", f"c{c:02}", kib, timestamp_micros=1000) for c in range(15)]) for i in range(200)]
    table.bulk_mutate_rows(wide)
    table.mutate_row("wide200", [SetCell("b", f"c{c}", kib * 1024, timestamp_micros=1000) for c in range(3)])
    sizes = [len(cell.value) for row in table.read_rows(ReadRowsQuery(row_ranges=[RowRange("wide", "widf")])) for cell in row]
    same((len(sizes), sum(sizes)), (200 * 15 + 3, (200 * 15 + 3 * 1024) * 1024))


def big_row():
    digests = []
    for i in range(BIG_ROW_MIB // BIG_CELL_MIB):
        seed = hashlib.sha256(str(i).encode()).digest()
        value = b"".join(hashlib.sha256(seed + struct.pack(">I", n)).digest() for n in range((BIG_CELL_MIB << 20) // 32))
        digests.append(hashlib.sha256(value).hexdigest())
        table.mutate_row("big", SetCell("b", f"cell{i:03}", value, timestamp_micros=1000))
    row = table.read_row("big", operation_timeout=120, attempt_timeout=120)
    same([hashlib.sha256(cell.value).hexdigest() for cell in row], digests)


def instances():
    same(admin.exists(), True)
    admin.reload()
    same(admin.display_name, "scenario")
    found, failed = project.list_instances()
    same(("scenario" in [each.instance_id for each in found], failed), (True, []))
    clusters, _ = admin.list_clusters()
    same([each.state.name for each in clusters], ["READY"])
    same({name: state.replication_state.name for name, state in managed.get_cluster_states().items()}, {clusters[0].cluster_id: "READY"})


def end():
    managed.truncate(timeout=60)
    same(keys(), [])
    managed.delete()
    assert NAME not in [t.table_id for t in admin.list_tables()]


step("create a table with families and GC rules", create)
step("the instance and its cluster are there", instances)
step("a table that exists is refused", lambda: refused(exceptions.AlreadyExists, managed.create))
step("add, change and delete families", change_families)
step("a single write reads back", single_write)
step("versions and GC by number", versions)
step("a batch of 100 rows", batch)
step("a batch tells which entries failed", partial_batch)
step("bytes of every value", every_byte)
step("ranges, prefixes and limits", ranges)
step("a missing row is not found", missing)
step("filters: family, column, value, row", simple_filters)
step("filters: time and value ranges, cell limits", range_filters)
step("filters: chain, interleave, condition, strip, label", composed_filters)
step("increment and append", increment_and_append)
step("counters over all of int64", int64_counters)
step("check and mutate", check_and_mutate)
step("deletions: cells, column, family, row", deletions)
step("rows of many cells, and one of 3 MiB", wide_rows)
step(f"a row of {BIG_ROW_MIB} MiB in cells of {BIG_CELL_MIB} MiB", big_row)
step("sample row keys", sample_keys)
step("drop a prefix", drop_prefix)
step("delete all rows, then the table", end)
client.close()
sys.exit(1 if failed else 0)
