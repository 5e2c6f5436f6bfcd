/*
 * Google's Java client, unchanged, against the server that BIGTABLE_EMULATOR_HOST names, or EDUBBA_TLS_HOST with the authority's certificate in
 * EDUBBA_TLS_CA and a bearer token in EDUBBA_TOKEN. Prints 'PASS step' or 'FAIL step: why'.
 *
 * The steps are those of node.mjs, go/main.go and python.py.
 */
import com.google.api.gax.core.FixedCredentialsProvider;
import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.InvalidArgumentException;
import com.google.api.gax.rpc.NotFoundException;
import com.google.auth.oauth2.AccessToken;
import com.google.auth.oauth2.OAuth2Credentials;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.admin.v2.models.GCRules;
import com.google.cloud.bigtable.admin.v2.models.ModifyColumnFamiliesRequest;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.BulkMutation;
import com.google.cloud.bigtable.data.v2.models.ConditionalRowMutation;
import com.google.cloud.bigtable.data.v2.models.Filters;
import com.google.cloud.bigtable.data.v2.models.KeyOffset;
import com.google.cloud.bigtable.data.v2.models.Mutation;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.Range.ByteStringRange;
import com.google.cloud.bigtable.data.v2.models.ReadModifyWriteRow;
import com.google.cloud.bigtable.data.v2.models.Row;
import com.google.cloud.bigtable.data.v2.models.RowCell;
import com.google.cloud.bigtable.data.v2.models.RowMutation;
import com.google.cloud.bigtable.data.v2.models.RowMutationEntry;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.cloud.bigtable.data.v2.stub.metrics.NoopMetricsProvider;
import com.google.protobuf.ByteString;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

public final class Scenario {
  private static final Map<String, String> ENVIRONMENT = System.getenv();
  private static final String NAME = "java-" + ProcessHandle.current().pid();
  private static final TableId TABLE = TableId.of(NAME);
  private static boolean failed = false;
  private static BigtableDataClient data;
  private static BigtableTableAdminClient admin;

  interface Body {
    void run() throws Exception;
  }

  private static void step(String what, Body body) {
    try {
      body.run();
      System.out.println("PASS " + what);
    } catch (Throwable error) {
      failed = true;
      String text = String.valueOf(error).replaceAll("\\s+", " ");
      System.out.println("FAIL " + what + ": " + text.substring(0, Math.min(400, text.length())));
    }
  }

  private static void same(Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", not " + want);
  }

  private static String key(int i) {
    return String.format("row%03d", i);
  }

  private static String show(Row row) {
    StringBuilder text = new StringBuilder(row.getKey().toStringUtf8());
    String before = " ";
    for (RowCell cell : row.getCells()) {
      text.append(before).append(cell.getFamily()).append(':').append(cell.getQualifier().toStringUtf8()).append('=').append(cell.getValue().toStringUtf8());
      for (String label : cell.getLabels()) text.append(label);
      before = ",";
    }
    return text.toString();
  }

  private static List<String> read(Query query) {
    List<String> rows = new ArrayList<>();
    for (Row row : data.readRows(query)) rows.add(show(row));
    return rows;
  }

  private static List<String> keys(Query query) {
    List<String> rows = new ArrayList<>();
    for (Row row : data.readRows(query)) rows.add(row.getKey().toStringUtf8());
    return rows;
  }

  private static void write(String row, String family, String qualifier, long timestamp, String value) {
    data.mutateRow(RowMutation.create(TABLE, row).setCell(family, qualifier, timestamp, value));
  }

  private static void tables() {
    step("create a table with families and GC rules", () -> {
      admin.createTable(CreateTableRequest.of(NAME).addFamily("a", GCRules.GCRULES.maxVersions(2)).addFamily("b").addFamily("extra").addSplit(ByteString.copyFromUtf8("row050")));
      same(admin.listTables().contains(NAME), true);
      same(admin.getTable(NAME).getColumnFamilies().size(), 3);
    });
    step("add, change and delete families", () -> {
      admin.modifyFamilies(ModifyColumnFamiliesRequest.of(NAME)
          .addFamily("c", GCRules.GCRULES.union().rule(GCRules.GCRULES.maxAge(1, TimeUnit.HOURS)).rule(GCRules.GCRULES.maxVersions(3)))
          .updateFamily("b", GCRules.GCRULES.maxVersions(5))
          .dropFamily("extra"));
      List<String> names = new ArrayList<>();
      admin.getTable(NAME).getColumnFamilies().forEach((family) -> names.add(family.getId()));
      names.sort(null);
      same(names, Arrays.asList("a", "b", "c"));
    });
  }

  private static void writes() {
    step("a single write reads back", () -> {
      data.mutateRow(RowMutation.create(TABLE, "single").setCell("a", "q", 1000, "first").setCell("a", "", 1000, "empty qualifier"));
      same(read(Query.create(TABLE).rowKey("single")), List.of("single a:=empty qualifier,a:q=first"));
    });
    step("versions and GC by number", () -> {
      for (int n = 1; n <= 3; n++) write("versions", "a", "q", n * 1000L, "v" + n);
      same(read(Query.create(TABLE).rowKey("versions")), List.of("versions a:q=v3,a:q=v2"));
    });
    step("a batch of 100 rows", () -> {
      BulkMutation bulk = BulkMutation.create(TABLE);
      for (int i = 0; i < 100; i++) bulk.add(RowMutationEntry.create(key(i)).setCell("a", "q", 1000, "value" + i).setCell("b", "q", 1000, "other"));
      data.bulkMutateRows(bulk);
      same(keys(Query.create(TABLE).prefix("row")).size(), 100);
    });
    step("a write to an unknown family is refused", () -> {
      try {
        write("single", "none", "q", 1000, "x");
      } catch (ApiException error) {
        same(error instanceof NotFoundException || error instanceof InvalidArgumentException, true);
        return;
      }
      throw new AssertionError("it was taken");
    });
  }

  private static void reads() {
    step("read by key, keys, range, prefix and limit", () -> {
      same(read(Query.create(TABLE).rowKey(key(7))), List.of("row007 a:q=value7,b:q=other"));
      same(keys(Query.create(TABLE).rowKey(key(3)).rowKey(key(1)).rowKey("none")), List.of(key(1), key(3)));
      same(keys(Query.create(TABLE).range(key(10), key(13))), List.of(key(10), key(11), key(12)));
      same(keys(Query.create(TABLE).range(ByteStringRange.unbounded().startOpen(key(97)).endClosed(key(99)))), List.of(key(98), key(99)));
      same(keys(Query.create(TABLE).prefix("row00").limit(3)), List.of(key(0), key(1), key(2)));
    });
    step("read in reverse", () -> same(keys(Query.create(TABLE).prefix("row").reversed(true).limit(3)), List.of(key(99), key(98), key(97))));
    step("a row that is not there", () -> same(data.readRow(TABLE, "nothing"), null));
    step("filters: chain, interleave, condition, strip, label", () -> {
      Filters.Filter ones = Filters.FILTERS.chain().filter(Filters.FILTERS.family().exactMatch("a")).filter(Filters.FILTERS.value().exactMatch("value1"));
      same(read(Query.create(TABLE).prefix("row").filter(ones)), List.of("row001 a:q=value1"));
      Filters.Filter both = Filters.FILTERS.interleave().filter(Filters.FILTERS.family().exactMatch("a")).filter(Filters.FILTERS.family().exactMatch("a"));
      same(read(Query.create(TABLE).rowKey(key(1)).filter(both)), List.of("row001 a:q=value1,a:q=value1"));
      Filters.Filter either = Filters.FILTERS.condition(Filters.FILTERS.value().exactMatch("value1")).then(Filters.FILTERS.family().exactMatch("a")).otherwise(Filters.FILTERS.family().exactMatch("b"));
      same(read(Query.create(TABLE).range(key(1), key(3)).filter(either)), List.of("row001 a:q=value1", "row002 b:q=other"));
      Filters.Filter stripped = Filters.FILTERS.chain().filter(Filters.FILTERS.family().exactMatch("a")).filter(Filters.FILTERS.value().strip()).filter(Filters.FILTERS.label("mark"));
      same(read(Query.create(TABLE).rowKey(key(1)).filter(stripped)), List.of("row001 a:q=mark"));
    });
    step("sample row keys", () -> {
      long before = 0;
      List<KeyOffset> samples = data.sampleRowKeys(TABLE);
      for (KeyOffset sample : samples) {
        same(sample.getOffsetBytes() >= before, true);
        before = sample.getOffsetBytes();
      }
      same(samples.isEmpty(), false);
    });
  }

  private static void transactions() {
    step("increment and append", () -> {
      data.readModifyWriteRow(ReadModifyWriteRow.create(TABLE, "counter").increment("b", "count", Long.MAX_VALUE - 5));
      Row row = data.readModifyWriteRow(ReadModifyWriteRow.create(TABLE, "counter").increment("b", "count", 4).append("a", "log", "one"));
      same(row.getCells("b", "count").get(0).getValue().asReadOnlyByteBuffer().getLong(), Long.MAX_VALUE - 1);
      row = data.readModifyWriteRow(ReadModifyWriteRow.create(TABLE, "counter").append("a", "log", ",two"));
      same(row.getCells("a", "log").get(0).getValue().toStringUtf8(), "one,two");
    });
    step("check and mutate", () -> {
      write("checked", "a", "q", 1000, "yes");
      Mutation matched = Mutation.create().setCell("b", "answer", 1000, "matched");
      Mutation not = Mutation.create().setCell("b", "answer", 1000, "not");
      same(data.checkAndMutateRow(ConditionalRowMutation.create(TABLE, "checked").condition(Filters.FILTERS.value().exactMatch("yes")).then(matched).otherwise(not)), true);
      same(data.checkAndMutateRow(ConditionalRowMutation.create(TABLE, "checked").condition(Filters.FILTERS.value().exactMatch("no")).then(matched).otherwise(not)), false);
      same(read(Query.create(TABLE).rowKey("checked")), List.of("checked a:q=yes,b:answer=not"));
    });
    step("deletions: cells, family, row", () -> {
      data.mutateRow(RowMutation.create(TABLE, "deleted").setCell("a", "one", 1000, "1").setCell("a", "two", 1000, "2").setCell("b", "x", 1000, "3"));
      data.mutateRow(RowMutation.create(TABLE, "deleted").deleteCells("a", "one"));
      same(read(Query.create(TABLE).rowKey("deleted")), List.of("deleted a:two=2,b:x=3"));
      data.mutateRow(RowMutation.create(TABLE, "deleted").deleteFamily("b"));
      same(read(Query.create(TABLE).rowKey("deleted")), List.of("deleted a:two=2"));
      data.mutateRow(RowMutation.create(TABLE, "deleted").deleteRow());
      same(data.readRow(TABLE, "deleted"), null);
    });
    step("a row of 20 MiB in cells of 5 MiB", () -> {
      byte[] value = new byte[5 << 20];
      for (int i = 0; i < value.length; i++) value[i] = (byte) (i * 31 >> 3);
      for (int i = 0; i < 4; i++) data.mutateRow(RowMutation.create(TABLE, "big").setCell("b", ByteString.copyFromUtf8("cell" + i), 1000, ByteString.copyFrom(value)));
      Row row = data.readRow(TABLE, "big");
      same(row.getCells().size(), 4);
      for (RowCell cell : row.getCells()) same(Arrays.equals(cell.getValue().toByteArray(), value), true);
    });
  }

  private static void ends() {
    step("drop a prefix", () -> {
      admin.dropRowRange(NAME, "row09");
      same(keys(Query.create(TABLE).prefix("row")).size(), 90);
    });
    step("delete all rows, then the table", () -> {
      admin.dropAllRows(NAME);
      same(keys(Query.create(TABLE)).size(), 0);
      admin.deleteTable(NAME);
      same(admin.exists(NAME), false);
    });
  }

  /** Makes the authority of EDUBBA_TLS_CA the one that this process trusts. */
  private static void trust() throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    try (FileInputStream pem = new FileInputStream(ENVIRONMENT.get("EDUBBA_TLS_CA"))) {
      store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(pem));
    }
    File file = File.createTempFile("edubba", ".p12");
    file.deleteOnExit();
    try (FileOutputStream out = new FileOutputStream(file)) {
      store.store(out, "authority".toCharArray());
    }
    System.setProperty("javax.net.ssl.trustStore", file.getPath());
    System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
    System.setProperty("javax.net.ssl.trustStorePassword", "authority");
  }

  private static void connect() throws Exception {
    String secure = ENVIRONMENT.get("EDUBBA_TLS_HOST");
    if (secure == null) {
      int port = Integer.parseInt(ENVIRONMENT.get("BIGTABLE_EMULATOR_HOST").replaceAll(".*:", ""));
      data = BigtableDataClient.create(BigtableDataSettings.newBuilderForEmulator(port).setProjectId("java-scenario").setInstanceId("scenario").build());
      admin = BigtableTableAdminClient.create(BigtableTableAdminSettings.newBuilderForEmulator(port).setProjectId("java-scenario").setInstanceId("scenario").build());
      return;
    }
    trust();
    FixedCredentialsProvider token = FixedCredentialsProvider.create(OAuth2Credentials.create(new AccessToken(ENVIRONMENT.get("EDUBBA_TOKEN"), null)));
    BigtableDataSettings.Builder settings = BigtableDataSettings.newBuilder().setProjectId("java-scenario").setInstanceId("scenario").setCredentialsProvider(token);
    settings.setMetricsProvider(NoopMetricsProvider.INSTANCE);
    settings.stubSettings().setEndpoint(secure);
    data = BigtableDataClient.create(settings.build());
    BigtableTableAdminSettings.Builder managing = BigtableTableAdminSettings.newBuilder().setProjectId("java-scenario").setInstanceId("scenario").setCredentialsProvider(token);
    managing.stubSettings().setEndpoint(secure);
    admin = BigtableTableAdminClient.create(managing.build());
  }

  public static void main(String[] arguments) throws Exception {
    connect();
    tables();
    writes();
    reads();
    transactions();
    ends();
    data.close();
    admin.close();
    System.exit(failed ? 1 : 0);
  }
}
