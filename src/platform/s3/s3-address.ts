/**
 * The address of a store on S3: `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`. Without an endpoint it is AWS's of that
 * region.
 */
import { checkFilePath } from '../../env/index.ts';
import { invalidArgument } from '../../base/index.ts';

export interface S3Address {
  /** As its users name it. */
  readonly text: string;
  readonly bucket: string;
  /** Path of the store in the bucket, '' for all of it. */
  readonly prefix: string;
  readonly region: string;
  /** Where requests go: protocol, host and port. */
  readonly endpoint: URL;
  /** What the path of each request begins with: '' where the host names the bucket. */
  readonly root: string;
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const REGION = /^[a-z0-9-]{1,64}$/;
const PARAMETERS = new Set(['endpoint', 'region']);

/** INVALID_ARGUMENT where the text is no such address. `defaultRegion`: that of the environment. */
export function parseS3Address(text: string, defaultRegion = 'us-east-1'): S3Address {
  const wrong = (what: string): Error =>
    invalidArgument(`invalid address ${JSON.stringify(text)}: ${what}; expected s3://BUCKET/PREFIX?endpoint=URL`);
  const [, bucket = '', path = '', query = ''] = /^s3:\/\/([^/?#]*)\/?([^?#]*)(?:\?([^#]*))?$/.exec(text) ?? [];
  if (!BUCKET.test(bucket)) throw wrong(`a bucket has 3 to 63 characters of [a-z0-9.-]`);
  const prefix = path.replace(/\/$/, '');
  if (prefix !== '') checkFilePath(prefix);
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys()) if (!PARAMETERS.has(name)) throw wrong(`unknown parameter "${name}"`);
  const region = parameters.get('region') ?? defaultRegion;
  if (!REGION.test(region)) throw wrong(`a region has characters of [a-z0-9-]`);
  const given = parameters.get('endpoint');
  if (given === null) {
    // a certificate for *.s3... covers no bucket with dots
    const isInHost = !bucket.includes('.');
    const host = `s3.${region}.amazonaws.com`;
    const endpoint = new URL(`https://${isInHost ? `${bucket}.` : ''}${host}`);
    return { text, bucket, prefix, region, endpoint, root: isInHost ? '' : `/${bucket}` };
  }
  if (!URL.canParse(given)) throw wrong(`"${given}" is not a URL`);
  const endpoint = new URL(given);
  const isPlain = endpoint.pathname === '/' && endpoint.search === '' && endpoint.username === '';
  if (!['http:', 'https:'].includes(endpoint.protocol) || !isPlain)
    throw wrong('an endpoint is http://HOST:PORT or https://HOST:PORT');
  return { text, bucket, prefix, region, endpoint, root: `/${bucket}` };
}
