/*
 * What Linux tells of a process: its CPU time and memory, and how large its folder is.
 */
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;

final class ServerProcess {
  private static final double TICKS_PER_SECOND = 100;
  private static final long LOOK_MS = 250;
  private static final int LOOKS = 4;
  /** A server that uses less than this in LOOKS looks is at rest; standalone HBase with nothing to do uses 0.01-0.03 s a second. */
  private static final double REST_CPU_SECONDS = 0.05;

  static final class Sample {
    final double cpuSeconds;
    final long rssBytes;
    final long peakRssBytes;

    Sample(double cpuSeconds, long rssBytes, long peakRssBytes) {
      this.cpuSeconds = cpuSeconds;
      this.rssBytes = rssBytes;
      this.peakRssBytes = peakRssBytes;
    }
  }

  private final String pid;

  /** `pid`: a process id, or "self"; empty for a process that nobody named, whose samples are all zero. */
  ServerProcess(String pid) {
    this.pid = pid;
  }

  Sample sample() throws IOException {
    if (pid.isEmpty()) return new Sample(0, 0, 0);
    String stat = Files.readString(Path.of("/proc", pid, "stat"));
    String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
    double cpuSeconds = (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / TICKS_PER_SECOND;
    long rss = 0;
    long peak = 0;
    for (String line : Files.readAllLines(Path.of("/proc", pid, "status"))) {
      if (line.startsWith("VmRSS:")) rss = kilobytes(line);
      if (line.startsWith("VmHWM:")) peak = kilobytes(line);
    }
    return new Sample(cpuSeconds, rss, peak);
  }

  private static long kilobytes(String line) {
    return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
  }

  /** Waits until the process has used next to no CPU time for a second, and gives its sample with the CPU time from before that second. */
  Sample atRest(double mostSeconds) throws IOException, InterruptedException {
    List<Double> seen = new ArrayList<>();
    Sample now = sample();
    for (long deadline = System.nanoTime() + (long) (mostSeconds * 1e9); !pid.isEmpty() && System.nanoTime() < deadline; now = sample()) {
      seen.add(now.cpuSeconds);
      double before = seen.get(Math.max(0, seen.size() - 1 - LOOKS));
      if (seen.size() > LOOKS && now.cpuSeconds - before < REST_CPU_SECONDS) return new Sample(before, now.rssBytes, now.peakRssBytes);
      Thread.sleep(LOOK_MS);
    }
    return now;
  }

  /** Bytes of the files under `folder`; 0 for an empty name. Files that go away meanwhile do not count. */
  static long sizeOf(String folder) throws IOException {
    if (folder.isEmpty()) return 0;
    long[] bytes = {0};
    Files.walkFileTree(Path.of(folder), new SimpleFileVisitor<>() {
      @Override
      public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
        bytes[0] += attributes.size();
        return FileVisitResult.CONTINUE;
      }

      @Override
      public FileVisitResult visitFileFailed(Path file, IOException error) {
        return FileVisitResult.CONTINUE;
      }
    });
    return bytes[0];
  }
}
