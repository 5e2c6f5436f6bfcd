/**
 * Loaded before the server, in its process: answers each message of the parent with the memory that the process holds.
 */
process.on('message', () => {
  const { rss, heapUsed, external } = process.memoryUsage();
  process.send?.({
    rssBytes: rss,
    heapBytes: heapUsed,
    externalBytes: external,
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
  });
});
// the server ends when it is stopped, not when the parent goes away
process.channel?.unref();
