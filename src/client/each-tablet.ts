/**
 * Calls on all tablets that a range touches, one after another, ascending. A call that finds its tablet moved is
 * repeated. NOT_FOUND if the table does not exist, also for a range that touches no tablet.
 */
import type { ByteString } from '../base/index.ts';
import type { RequestContext } from '../env/index.ts';
import type { AssignedTablet } from '../locator/index.ts';
import { intersectRanges, isEmptyRange, type RowRange, type TableSchema } from '../model/index.ts';
import { isMisdirected, type RetryPolicy, type Router } from './router.ts';

export async function eachTablet(
  router: Router,
  context: RequestContext,
  table: string,
  range: RowRange,
  call: (schema: TableSchema, tablet: AssignedTablet, part: RowRange) => Promise<unknown>,
): Promise<void> {
  await router.table(table, context);
  let retries: RetryPolicy | undefined;
  let start: ByteString | undefined = range.start;
  while (start !== undefined && !isEmptyRange({ start, end: range.end })) {
    const from: ByteString = start;
    let tablet: AssignedTablet | undefined;
    try {
      const schema = await router.table(table, context);
      tablet = await router.locate(table, schema, context, (locator) => locator.locate(schema.id, from, context));
      await call(schema, tablet, intersectRanges({ start: from, end: range.end }, tablet.range));
      start = tablet.range.end;
      retries = undefined;
    } catch (error) {
      if (!isMisdirected(error)) throw error;
      if (tablet) router.drop(tablet);
      retries ??= router.retryPolicy(context);
      await retries.wait(error);
      await router.refresh(table, context);
    }
  }
}

/**
 * The answers of tablets that together are the table, in order. One that came of a merge in the meantime takes the
 * place of its parts.
 */
export async function ofEachTablet<T>(
  router: Router,
  context: RequestContext,
  table: string,
  call: (schema: TableSchema, tablet: AssignedTablet) => Promise<T>,
): Promise<T[]> {
  const found: { readonly range: RowRange; readonly answer: T }[] = [];
  for (;;) {
    const start = found.at(-1)?.range.end ?? '';
    await eachTablet(router, context, table, { start, end: undefined }, async (schema, tablet) => {
      found.push({ range: tablet.range, answer: await call(schema, tablet) });
    });
    const apart = found.findIndex(({ range }, i) => range.start !== (found[i - 1]?.range.end ?? ''));
    if (apart < 0) return found.map(({ answer }) => answer);
    // what lies before the merged tablet stays, and the rest is asked again
    const merged = found[apart]!.range.start;
    found.length = found.findIndex(({ range }) => range.end === undefined || range.end > merged);
  }
}
