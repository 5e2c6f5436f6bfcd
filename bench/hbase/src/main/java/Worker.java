/*
 * One caller of a workload, with the workloads' calls as HBase's own client makes them: btbench's, on the same keys and values, every value compared.
 *
 * A worker is one thread's: HBase's Table is not to be shared.
 */
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.hadoop.hbase.filter.RegexStringComparator;
import org.apache.hadoop.hbase.util.Bytes;

final class Worker {
  static final byte[] FAMILY = Bytes.toBytes("cf");
  static final int DONE = -1;
  private static final byte[] VALUE = Bytes.toBytes("v");
  private static final byte[] COUNTER = Bytes.toBytes("n");
  private static final byte[] FLAG = Bytes.toBytes("c");
  /** One for all writes, so that an overwrite replaces the cell (btbench's 1 s in microseconds). */
  private static final long STAMP_MS = 1000;
  private static final long GOLDEN = 0x9e3779b97f4a7c15L;

  /** One call: the rows it did, or DONE where nothing is left to do. */
  interface Call {
    int run(Worker worker) throws IOException;
  }

  /** What an answer says is not what was written. */
  static final class Mismatch extends IOException {
    Mismatch(String what) {
      super("mismatch: " + what);
    }
  }

  private static final Map<String, Call> CALLS = Map.ofEntries(
    Map.entry("seqwrite", worker -> worker.pos >= worker.high ? DONE : worker.write(worker.next(1))),
    Map.entry("randwrite", worker -> worker.write(worker.anyRow())),
    Map.entry("batchwrite", Worker::writeBatch),
    Map.entry("seqread", worker -> worker.read(worker.next(1))),
    Map.entry("randread", worker -> worker.read(worker.anyRow())),
    Map.entry("scan", worker -> worker.scan(worker.next(worker.sizes.scanRows), false, null)),
    Map.entry("limitscan", worker -> worker.scan(worker.next(worker.sizes.scanRows), true, null)),
    Map.entry("fscan", worker -> worker.scan(worker.next(worker.sizes.scanRows), false, valueFilter())),
    Map.entry("multiget", Worker::readBatch),
    Map.entry("rmw", Worker::increment),
    Map.entry("cam", Worker::checkAndMutate));

  static Call call(String workload) {
    return CALLS.get(workload);
  }

  /** How large things are. */
  static final class Sizes {
    final int rows;
    final int valueBytes;
    final int batchRows;
    final int scanRows;

    Sizes(int rows, int valueBytes, int batchRows, int scanRows) {
      this.rows = rows;
      this.valueBytes = valueBytes;
      this.batchRows = batchRows;
      this.scanRows = scanRows;
    }
  }

  private final Table table;
  private final Sizes sizes;
  private final AtomicInteger nextBatch;
  private final SplittableRandom random;
  private final byte[] want;
  private final Map<Integer, Long> counters = new HashMap<>();
  private final int low;
  private final int high;
  private int pos;

  /** Worker `id` of `of`, whose own rows are that part of the table; `nextBatch` hands out the rows of batchwrite to all workers. */
  Worker(int id, int of, Table table, Sizes sizes, AtomicInteger nextBatch, long seed) {
    this.table = table;
    this.sizes = sizes;
    this.nextBatch = nextBatch;
    this.random = new SplittableRandom(seed + id);
    this.want = new byte[sizes.valueBytes];
    this.low = (int) ((long) sizes.rows * id / of);
    this.high = (int) ((long) sizes.rows * (id + 1) / of);
    this.pos = low;
  }

  static byte[] key(int row) {
    return Bytes.toBytes(String.format("row%09d", row));
  }

  /** Spreads a number over 64 bits (the finalizer of splitmix64). */
  private static long mix(long z) {
    z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
    z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
    return z ^ z >>> 31;
  }

  /** Writes row `row`'s value: a function of the row alone (the bytes that btbench writes), so that a reader can check it. */
  static void fill(byte[] value, int row) {
    final int block = 100;
    for (int from = 0; from < value.length; from += block) {
      long x = mix(mix(row + 1L) + from);
      ByteBuffer part = ByteBuffer.wrap(value, from, Math.min(block, value.length - from)).order(ByteOrder.LITTLE_ENDIAN);
      while (part.hasRemaining()) {
        x += GOLDEN;
        long z = mix(x);
        if (part.remaining() >= Long.BYTES) part.putLong(z);
        else for (; part.hasRemaining(); z >>>= 8) part.put((byte) z);
      }
    }
  }

  /** Walks the worker's own rows, again from their start after their end. */
  private int next(int step) {
    if (pos >= high) pos = low;
    int row = pos;
    pos += step;
    return row;
  }

  private int anyRow() {
    return random.nextInt(sizes.rows);
  }

  private Put put(int row) {
    byte[] value = new byte[sizes.valueBytes];
    fill(value, row);
    return new Put(key(row)).addColumn(FAMILY, VALUE, STAMP_MS, value);
  }

  private int write(int row) throws IOException {
    table.put(put(row));
    return 1;
  }

  private int writeBatch() throws IOException {
    int from = nextBatch.getAndAdd(sizes.batchRows);
    if (from >= sizes.rows) return DONE;
    List<Put> puts = new ArrayList<>(sizes.batchRows);
    for (int row = from; row < Math.min(from + sizes.batchRows, sizes.rows); row++) puts.add(put(row));
    table.put(puts);
    return puts.size();
  }

  /** Compares the row's value; gives its number. */
  int check(Result result) throws Mismatch {
    int row = Integer.parseInt(Bytes.toString(result.getRow()).substring("row".length()));
    Cell cell = result.getColumnLatestCell(FAMILY, VALUE);
    if (cell == null) throw new Mismatch("row without a value");
    fill(want, row);
    if (!CellUtil.matchingValue(cell, want)) throw new Mismatch("value is not the one written");
    return row;
  }

  private int read(int row) throws IOException {
    Result result = table.get(new Get(key(row)));
    if (result.isEmpty()) throw new Mismatch("row missing");
    if (check(result) != row) throw new Mismatch("another row came");
    return 1;
  }

  private int readBatch() throws IOException {
    Set<Integer> rows = new LinkedHashSet<>();
    while (rows.size() < Math.min(sizes.batchRows, sizes.rows)) rows.add(anyRow());
    List<Get> gets = new ArrayList<>(rows.size());
    for (int row : rows) gets.add(new Get(key(row)));
    for (Result result : table.get(gets)) {
      if (result.isEmpty()) throw new Mismatch("row missing");
      if (!rows.remove(check(result))) throw new Mismatch("row not asked for, or twice");
    }
    if (!rows.isEmpty()) throw new Mismatch("rows missing");
    return gets.size();
  }

  /** Reads the rows from `from` on: those of a range with an end, or the first of a range without one. */
  private int scan(int from, boolean byLimit, Filter filter) throws IOException {
    int expected = Math.min(sizes.scanRows, sizes.rows - from);
    Scan scan = new Scan().withStartRow(key(from)).setFilter(filter);
    if (byLimit) scan.setLimit(expected);
    else scan.withStopRow(key(from + expected));
    int rows = 0;
    try (ResultScanner results = table.getScanner(scan)) {
      for (Result result = results.next(); result != null; result = results.next()) {
        if (check(result) != from + rows) throw new Mismatch("scan out of order or with a gap");
        rows++;
      }
    }
    if (rows != expected) throw new Mismatch("scan of " + expected + " rows gave " + rows);
    return rows;
  }

  /** btbench's chain(column regex, latest 1): the latest version alone is what HBase gives unless asked for more. */
  private static Filter valueFilter() {
    return new QualifierFilter(CompareOperator.EQUAL, new RegexStringComparator("^v$"));
  }

  private int increment() throws IOException {
    int row = low + random.nextInt(Math.max(1, high - low));
    long now = table.incrementColumnValue(key(row), FAMILY, COUNTER, 1);
    Long last = counters.put(row, now);
    if (last != null && now != last + 1) throw new Mismatch("increment is not last + 1");
    return 1;
  }

  private int checkAndMutate() throws IOException {
    byte[] key = key(anyRow());
    Put put = new Put(key).addColumn(FAMILY, FLAG, STAMP_MS, Bytes.toBytes("yes"));
    if (!table.checkAndMutate(CheckAndMutate.newBuilder(key).ifMatches(valueFilter()).build(put)).isSuccess()) throw new Mismatch("predicate did not match");
    return 1;
  }
}
