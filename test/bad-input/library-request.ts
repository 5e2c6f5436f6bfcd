/**
 * A bad request in the library's words, as data: what is asked, the code of the refusal and what its message must name.
 */
import type { Code, Database, Table } from '../../src/embedded/index.ts';

export interface LibraryRequest {
  readonly name: string;
  readonly code: Code;
  /** Part of the message that names the thing, its value or the limit. */
  readonly says: RegExp;
  /** Refused under these limits alone; default: under both. */
  readonly limits?: 'default' | 'cloud';
  ask(table: Table, database: Database): Promise<unknown>;
}

export const refused = (
  name: string,
  code: Code,
  says: RegExp,
  ask: LibraryRequest['ask'],
  limits?: LibraryRequest['limits'],
): LibraryRequest => ({
  name,
  code,
  says,
  ask,
  ...(limits && { limits }),
});

export const all = async (rows: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of rows);
};
