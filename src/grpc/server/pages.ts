/** Lists that are answered page by page. A page's token is the name of its last item. */
import { invalidArgument, quote } from '../../base/index.ts';

export interface PageRequest {
  /** 0 = as many as one page may have. */
  readonly pageSize: number;
  /** '' = the first page. */
  readonly pageToken: string;
}

export interface Page<T> {
  readonly items: T[];
  /** '' = it is the last page. */
  readonly nextPageToken: string;
}

/**
 * One page of the items, which are in the order of their names. `prefix`: all of their names begin with it.
 * INVALID_ARGUMENT for a negative size, and for a token of another list.
 */
export function pageOf<T extends { readonly name: string }>(
  items: readonly T[],
  { pageSize, pageToken }: PageRequest,
  prefix: string,
  maxItems: number,
): Page<T> {
  if (pageSize < 0) throw invalidArgument(`page_size must not be negative, is ${pageSize}`, { field: 'page_size' });
  const after = Buffer.from(pageToken, 'base64url').toString();
  // what is not base64 decodes to something, too
  if (pageToken !== '' && (!after.startsWith(prefix) || tokenOf(after) !== pageToken))
    throw invalidArgument(`page_token ${quote(pageToken, 200)} is not one of this list`, { field: 'page_token' });
  const rest = items.filter(({ name }) => name > after);
  const page = rest.slice(0, pageSize === 0 ? maxItems : Math.min(pageSize, maxItems));
  const last = page.at(-1);
  const nextPageToken = last && page.length < rest.length ? tokenOf(last.name) : '';
  return { items: page, nextPageToken };
}

function tokenOf(name: string): string {
  return Buffer.from(name).toString('base64url');
}
