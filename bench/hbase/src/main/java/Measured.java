/*
 * What a workload came to: its rows, times and failures, and what the processes on both sides spent on it. Printed as btbench's JSON line.
 */
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

final class Measured {
  private static final int MOST_TEXT = 120;

  /** One a call, in nanoseconds, in order. */
  long[] latencies = {};
  long rows;
  double seconds;
  ServerProcess.Sample before;
  ServerProcess.Sample after;
  double clientCpuSeconds;
  long dataBytes;
  private final Map<String, Long> failures = new TreeMap<>();

  synchronized void addFailure(Exception error, long times) {
    String text = error.toString().split("\n", 2)[0];
    failures.merge(text.substring(0, Math.min(MOST_TEXT, text.length())), times, Long::sum);
  }

  boolean failed() {
    return !failures.isEmpty();
  }

  private double percentileMs(double part) {
    return latencies.length == 0 ? 0 : latencies[Math.min(latencies.length - 1, (int) (part * latencies.length))] / 1e6;
  }

  Map<String, Object> line(String workload) {
    double cpuSeconds = after.cpuSeconds - before.cpuSeconds;
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("workload", workload);
    line.put("calls", latencies.length);
    line.put("rows", rows);
    line.put("secs", seconds);
    line.put("rows_per_s", rows / seconds);
    line.put("p50_ms", percentileMs(0.5));
    line.put("p99_ms", percentileMs(0.99));
    line.put("p999_ms", percentileMs(0.999));
    line.put("errors", failures.values().stream().mapToLong(Long::longValue).sum());
    if (failed()) line.put("error_kinds", failures);
    line.put("server_cpu_us_per_row", rows == 0 ? 0 : cpuSeconds * 1e6 / rows);
    line.put("server_cpu_s", cpuSeconds);
    line.put("client_cpu_s", clientCpuSeconds);
    line.put("server_rss_bytes", after.rssBytes);
    line.put("server_rss_peak_bytes", after.peakRssBytes);
    line.put("data_bytes", dataBytes);
    return line;
  }
}
