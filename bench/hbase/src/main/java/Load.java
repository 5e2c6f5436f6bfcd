/*
 * btbench for HBase: the same workloads through HBase's own client, and the same JSON lines. Options as btbench's, each with a value:
 *
 *   -addr HOST:PORT (ZooKeeper's) -rows N -value BYTES -conns N -streams N -secs N -load-secs N -workloads a,b -batch N -scan-rows N
 *   -pid SERVER -datadir FOLDER -rest SECONDS -warm SECONDS
 *
 * A connection is HBase's Connection with a socket of its own, a stream a thread that waits for its answers. -warm: before anything is measured each workload
 * runs that long on another table, so that the virtual machines on both sides have compiled what they run; btbench has no such thing.
 */
import com.google.gson.Gson;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

public final class Load {
  private static final TableName MEASURED = TableName.valueOf("btbench");
  private static final TableName WARM = TableName.valueOf("warm");
  private static final int WARM_ROWS = 10_000;
  private static final int CALL_TIMEOUT_MS = 30_000;
  private static final String ALL = "batchwrite,seqwrite,randwrite,seqread,randread,scan,limitscan,multiget,rmw,cam,fscan,scanstream,verify";
  private static final List<String> WHOLE_TABLE = List.of("scanstream", "verify");

  private final Map<String, String> options = new LinkedHashMap<>();
  private final List<Connection> connections = new ArrayList<>();
  private final ServerProcess server;
  private final ServerProcess self = new ServerProcess("self");
  private TableName table;
  private Worker.Sizes sizes;

  private Load(String[] args) {
    for (int i = 0; i + 1 < args.length; i += 2) options.put(args[i], args[i + 1]);
    server = new ServerProcess(text("-pid", ""));
  }

  private String text(String name, String fallback) {
    return options.getOrDefault(name, fallback);
  }

  private double number(String name, double fallback) {
    return options.containsKey(name) ? Double.parseDouble(options.get(name)) : fallback;
  }

  public static void main(String[] args) throws Exception {
    boolean failed = new Load(args).run();
    System.exit(failed ? 2 : 0);
  }

  private boolean run() throws IOException, InterruptedException {
    for (int i = 0; i < number("-conns", 2); i++) connections.add(ConnectionFactory.createConnection(clientSettings()));
    String[] workloads = text("-workloads", ALL).split(",");
    if (number("-warm", 0) > 0) warm(workloads);
    useTable(MEASURED, (int) number("-rows", 100_000));
    boolean failed = false;
    for (String workload : workloads) {
      Measured measured = measure(workload, workload.equals("batchwrite") ? number("-load-secs", 120) : number("-secs", 5));
      System.out.println(new Gson().toJson(measured.line(workload)));
      failed |= measured.failed();
      if (workload.equals("batchwrite") && measured.rows < sizes.rows) {
        System.err.println("batchwrite loaded " + measured.rows + " of " + sizes.rows + " rows; the workloads after it use those");
        if (measured.rows == 0) throw new IllegalStateException("nothing was loaded");
        sizes = sizesOf((int) measured.rows);
      }
    }
    return failed;
  }

  private Configuration clientSettings() {
    String[] address = text("-addr", "localhost:2181").split(":");
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", address[0]);
    conf.set("hbase.zookeeper.property.clientPort", address[1]);
    conf.setInt("hbase.client.operation.timeout", CALL_TIMEOUT_MS); // in place of 20 minutes of retries
    return conf;
  }

  private Worker.Sizes sizesOf(int rows) {
    return new Worker.Sizes(rows, (int) number("-value", 1000), (int) number("-batch", 100), (int) number("-scan-rows", 1000));
  }

  /** Makes the table, empty. One version a column, as btbench's rule for garbage has it; everything else is HBase's default. */
  private void useTable(TableName name, int rows) throws IOException {
    table = name;
    sizes = sizesOf(rows);
    try (Admin admin = connections.get(0).getAdmin()) {
      drop(admin, name);
      admin.createTable(TableDescriptorBuilder.newBuilder(name)
        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Worker.FAMILY).setMaxVersions(1).build()).build());
    }
  }

  private static void drop(Admin admin, TableName name) throws IOException {
    if (!admin.tableExists(name)) return;
    admin.disableTable(name);
    admin.deleteTable(name);
  }

  private void warm(String[] workloads) throws IOException, InterruptedException {
    useTable(WARM, WARM_ROWS);
    run("batchwrite", number("-load-secs", 120)); // what the others read
    for (String workload : workloads) {
      long start = System.nanoTime();
      for (double left = number("-warm", 0); left > 0; left = number("-warm", 0) - secondsSince(start)) run(workload, left);
    }
    try (Admin admin = connections.get(0).getAdmin()) {
      drop(admin, WARM);
    }
    server.atRest(number("-rest", 0));
  }

  private static double secondsSince(long nanos) {
    return (System.nanoTime() - nanos) / 1e9;
  }

  private Measured measure(String workload, double mostSeconds) throws IOException, InterruptedException {
    ServerProcess.Sample before = server.sample();
    double selfBefore = self.sample().cpuSeconds;
    Measured measured = run(workload, mostSeconds);
    measured.before = before;
    measured.clientCpuSeconds = self.sample().cpuSeconds - selfBefore;
    measured.after = server.atRest(number("-rest", 0));
    measured.dataBytes = ServerProcess.sizeOf(text("-datadir", ""));
    return measured;
  }

  private Measured run(String workload, double mostSeconds) throws InterruptedException {
    if (WHOLE_TABLE.contains(workload)) return readAll(workload);
    if (Worker.call(workload) == null) throw new IllegalArgumentException("no workload '" + workload + "'");
    return callAll(workload, mostSeconds);
  }

  /** The workload on all threads until its time is over or its work is done. */
  private Measured callAll(String workload, double mostSeconds) throws InterruptedException {
    Measured measured = new Measured();
    int workers = connections.size() * (int) number("-streams", 16);
    AtomicInteger nextBatch = new AtomicInteger();
    List<Calls> all = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    long start = System.nanoTime();
    long deadline = start + (long) (mostSeconds * 1e9);
    for (int i = 0; i < workers; i++) {
      int id = i;
      Calls calls = new Calls(measured);
      all.add(calls);
      threads.add(new Thread(() -> {
        try (Table mine = connections.get(id % connections.size()).getTable(table)) {
          calls.runUntil(deadline, Worker.call(workload), new Worker(id, workers, mine, sizes, nextBatch, workload.hashCode()));
        } catch (IOException error) {
          measured.addFailure(error, 1);
        }
      }));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    measured.seconds = secondsSince(start);
    measured.latencies = all.stream().flatMapToLong(calls -> Arrays.stream(calls.latencies, 0, calls.count)).sorted().toArray();
    measured.rows = all.stream().mapToLong(calls -> calls.rows).sum();
    return measured;
  }

  /** One scan of the whole table: 'scanstream' looks at the order and the number of rows alone, 'verify' at every value. */
  private Measured readAll(String workload) {
    Measured measured = new Measured();
    long start = System.nanoTime();
    try (Table mine = connections.get(0).getTable(table); ResultScanner results = mine.getScanner(new Scan())) {
      Worker reader = new Worker(0, 1, mine, sizes, new AtomicInteger(), 0);
      byte[] last = {};
      for (Result result = results.next(); result != null; result = results.next()) {
        if (Bytes.compareTo(result.getRow(), last) <= 0) throw new Worker.Mismatch("rows out of order");
        last = result.getRow();
        measured.rows++;
        if (workload.equals("verify")) checkValue(reader, result, measured);
      }
    } catch (IOException error) {
      measured.addFailure(error, 1);
    }
    if (measured.rows != sizes.rows) measured.addFailure(new Worker.Mismatch("another number of rows than written"), Math.abs(sizes.rows - measured.rows));
    measured.seconds = secondsSince(start);
    measured.latencies = new long[] {(long) (measured.seconds * 1e9)};
    return measured;
  }

  private static void checkValue(Worker reader, Result result, Measured measured) {
    try {
      reader.check(result);
    } catch (Worker.Mismatch error) {
      measured.addFailure(error, 1);
    }
  }
}
