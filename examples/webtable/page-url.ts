/**
 * Names of pages: URL, host and path, row key. The row key is the paper's: the host's labels in reverse, so that pages
 * of one domain lie side by side, then the path as text, percent-escapes undone: http://www.example.com/a/b.html ->
 * com.example.www/a/b.html.
 */

export interface PageName {
  readonly host: string;
  /** Without the leading slash; parts are separated by slashes. */
  readonly path: string;
}

export function reversedHost(host: string): string {
  return host.toLowerCase().split('.').reverse().join('.');
}

export function rowOf({ host, path }: PageName): string {
  return `${reversedHost(host)}/${path}`;
}

/** The page that a row key names; a key that no page can have gives undefined. */
export function pageOfRow(row: string): PageName | undefined {
  const slash = row.indexOf('/');
  if (slash <= 0) return undefined;
  return { host: row.slice(0, slash).split('.').reverse().join('.'), path: row.slice(slash + 1) };
}

export function urlOf({ host, path }: PageName): string {
  return `http://${host}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** What a user types: a URL, or one without its scheme. Undefined where there is no host in it. */
export function parsePageUrl(text: string): PageName | undefined {
  const url = parseUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  return url && nameOf(url);
}

/**
 * The page a link leads to, query and fragment dropped; undefined where it is not a page on the web (mailto:,
 * javascript:, nonsense).
 */
export function resolveLink(href: string, base: string): PageName | undefined {
  const url = parseUrl(href, base);
  return url && nameOf(url);
}

function nameOf(url: URL): PageName | undefined {
  if ((url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') return undefined;
  try {
    return { host: url.hostname, path: decodeURIComponent(url.pathname.slice(1)) };
  } catch {
    return undefined;
  }
}

export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
