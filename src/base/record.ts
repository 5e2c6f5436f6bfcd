/**
 * Plain objects whose keys are names that users choose: families, tables, locality groups, options. Every JavaScript
 * object inherits `constructor`, `toString` and `__proto__`, and an assignment to `__proto__` sets no property at all.
 *
 * So such an object is read by `ownOf` alone, and it is built by Object.fromEntries or a spread, which make properties
 * of any name; never by assignment.
 */

/** The record's own property of that name; undefined where it has none. */
export function ownOf<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}
