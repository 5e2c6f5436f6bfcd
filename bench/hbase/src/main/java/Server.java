/*
 * HBase standalone: ZooKeeper, the master and one region server in this process, as HBase's own `hbase master start` runs them where no cluster is
 * configured. Files in the folder given, free ports of the loopback interface, no pages for browsers; every other setting is HBase's default.
 *
 *   java @jvm.options -cp CLASSPATH Server FOLDER
 *
 * Prints 'HBase VERSION is ready: HOST:PORT' (ZooKeeper's address, by which clients find the rest) when tables can be made, and ends on SIGTERM at once:
 * nobody opens the folder again, so nothing is flushed.
 */
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.util.VersionInfo;
import org.apache.hadoop.hbase.zookeeper.MiniZooKeeperCluster;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

public final class Server {
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]).toAbsolutePath();
    Configuration conf = settings(folder);
    MiniZooKeeperCluster zooKeeper = new MiniZooKeeperCluster(conf);
    int port = zooKeeper.startup(folder.resolve("zookeeper").toFile());
    conf.setInt("hbase.zookeeper.property.clientPort", port);
    DefaultMetricsSystem.setMiniClusterMode(true); // master and region server would register the same names otherwise
    LocalHBaseCluster cluster = new LocalHBaseCluster(conf);
    cluster.startup(); // returns when the master has assigned the catalog
    System.out.println("HBase " + VersionInfo.getVersion() + " is ready: " + conf.get("hbase.zookeeper.quorum") + ":" + port);
    cluster.join();
  }

  private static Configuration settings(Path folder) {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.rootdir", folder.resolve("hbase").toUri().toString());
    conf.set("hbase.tmp.dir", folder.resolve("tmp").toString());
    conf.set("hbase.zookeeper.quorum", "localhost");
    // The local file system cannot promise that flushed bytes outlive the process; standalone HBase has to be told to go on nevertheless.
    conf.setBoolean("hbase.unsafe.stream.capability.enforce", false);
    conf.setBoolean("hbase.shutdown.hook", false);
    conf.set("hbase.master.hostname", "localhost");
    conf.set("hbase.unsafe.regionserver.hostname", "localhost");
    for (String part : new String[] {"hbase.master", "hbase.regionserver"}) {
      conf.set(part + ".ipc.address", "localhost");
      conf.setInt(part + ".port", 0);
      conf.setInt(part + ".info.port", -1);
    }
    return conf;
  }
}
