/**
 * Does the work for each of the items, at most `atOnce` at the same time, begun in their order. Rejects with the first
 * failure, once what had begun is over; no other begins after one.
 */
export async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  let failure: { readonly reason: unknown } | undefined;
  const worker = async (): Promise<void> => {
    for (let next = left.next(); !next.done && failure === undefined; next = left.next()) {
      try {
        await work(next.value);
      } catch (reason) {
        failure ??= { reason };
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  if (failure !== undefined) throw failure.reason;
}
