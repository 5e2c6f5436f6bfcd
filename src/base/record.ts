/**
 * Plain objects whose keys are names that users choose: families, tables, locality groups, options. Every JavaScript
 * object answers to `constructor`, `toString` and `__proto__` without being given them, and an assignment to
 * `__proto__` sets no property at all.
 *
 * So such an object is looked up by `ownOf` alone, and it is built by Object.fromEntries or a spread, which make
 * properties of any name; never by assignment.
 */

/** What the record was given under that name; undefined where that is nothing. */
export function ownOf<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}
