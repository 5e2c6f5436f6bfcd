/*
 * The calls of one thread, one after the other, and how long each took.
 */
import java.io.IOException;
import java.util.Arrays;

final class Calls {
  /** A server that fails every call gets no storm of them. */
  private static final int MOST_FAILURES_IN_A_ROW = 50;

  private final Measured measured;
  /** In nanoseconds; the first `count` are in use. */
  long[] latencies = new long[1024];
  int count;
  long rows;

  /** `measured`: where failures are noted. */
  Calls(Measured measured) {
    this.measured = measured;
  }

  /** Until `deadline` (of System.nanoTime) or until the work is done. */
  void runUntil(long deadline, Worker.Call call, Worker worker) {
    for (int failed = 0; failed <= MOST_FAILURES_IN_A_ROW && System.nanoTime() < deadline;) {
      long start = System.nanoTime();
      try {
        int rowsDone = call.run(worker);
        if (rowsDone == Worker.DONE) return;
        add(System.nanoTime() - start, rowsDone);
        failed = 0;
      } catch (IOException error) {
        measured.addFailure(error, 1);
        failed++;
      }
    }
  }

  private void add(long nanos, int rowsDone) {
    if (count == latencies.length) latencies = Arrays.copyOf(latencies, 2 * count);
    latencies[count++] = nanos;
    rows += rowsDone;
  }
}
