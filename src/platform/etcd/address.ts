/**
 * Addresses of etcd as users write them: etcd://HOST:PORT,HOST:PORT/PREFIX. The prefix separates clusters that share an
 * etcd.
 */
import { invalidArgument } from '../../base/index.ts';
import { parseAddress } from '../../wire/index.ts';

export interface EtcdAddress {
  /** HOST:PORT of each member; one at least. */
  readonly endpoints: readonly string[];
  /** The first part of every key. */
  readonly prefix: string;
}

const SCHEME = 'etcd://';
const DEFAULT_PORT = 2379;
const DEFAULT_PREFIX = 'edubba';
/** One part of a key: the keys of two prefixes never mix. */
const PREFIX = /^[A-Za-z0-9._-]{1,100}$/;

/** INVALID_ARGUMENT for an address of another form. Default port: 2379; default prefix: "edubba". */
export function parseEtcdAddress(text: string): EtcdAddress {
  const invalid = (why: string) =>
    invalidArgument(`invalid address ${JSON.stringify(text)}: ${why}; expected etcd://HOST:PORT,HOST:PORT/PREFIX`);
  if (!text.startsWith(SCHEME)) throw invalid(`it does not begin with ${SCHEME}`);
  const rest = text.slice(SCHEME.length);
  if (rest.includes('@')) throw invalid('user and password are settings of their own');
  const [hosts = '', ...parts] = rest.split('/');
  const prefix = parts.join('/');
  if (prefix !== '' && !PREFIX.test(prefix))
    throw invalid(`the prefix ${JSON.stringify(prefix)} is not 1 to 100 letters, digits, ".", "_" and "-"`);
  const endpoints = hosts.split(',').map((host) => {
    const endpoint = /(^[^:]*|\])$/.test(host) ? `${host}:${DEFAULT_PORT}` : host;
    if (parseAddress(endpoint) === undefined) throw invalid(`${JSON.stringify(host)} is not HOST:PORT`);
    return endpoint;
  });
  if (new Set(endpoints).size < endpoints.length) throw invalid('a member is named twice');
  return { endpoints, prefix: prefix === '' ? DEFAULT_PREFIX : prefix };
}
