/**
 * The version of the internal calls and its feature bits: every master and server writes them into its file in
 * the lock service, where each caller checks them, so that no process talks to a peer it would misunderstand.
 */
import { BigtableError, Code } from '../base/index.ts';
import { encodeDocument, PlainObject } from '../metadata/index.ts';

/** The directory of tablet servers' files and locks in the lock service. */
export const SERVERS_DIRECTORY = 'servers/';
/** The master's lock and file. */
export const MASTER_PATH = 'master';
/** The directories of SSTables and commit logs in the file system. */
export const FILES_DIRECTORY = 'sstables/';
export const LOGS_DIRECTORY = 'logs/';

/**
 * The commit log of a server incarnation: fixed by its name, so that the master that finds the server dead can fence
 * it.
 */
export function logPathOf(serverName: string): string {
  return LOGS_DIRECTORY + serverName;
}

export interface ProtocolVersion {
  readonly version: number;
  /** Bits of features that a peer must know to talk to this one. */
  readonly requires: number;
  /** Bits of all features that this one knows. Where it does not say, those that it requires. */
  readonly knows: number;
}

/**
 * A new feature takes two releases: the first knows its bit, the second requires it. So each of the two talks to the
 * other, and servers are upgraded one by one.
 */
export const PROTOCOL: ProtocolVersion = Object.freeze({ version: 1, requires: 0, knows: 0 });

/** FAILED_PRECONDITION, with the versions of both sides, if `program` and the peer cannot talk. */
export function checkProtocol(peer: string, theirs: ProtocolVersion, program = PROTOCOL): void {
  const reason =
    theirs.version === program.version
      ? (unknownFeatures(peer, theirs, program) ?? unknownFeatures('this program', program, theirs))
      : 'the versions differ';
  if (reason === undefined) return;
  throw new BigtableError(
    Code.FAILED_PRECONDITION,
    `${reason}: of the internal calls, ${peer} speaks ${wordsOf(theirs)}, this program ${wordsOf(program)}`,
  );
}

/** Features that `side` requires and the other does not know, in words. */
function unknownFeatures(side: string, { requires }: ProtocolVersion, { knows }: ProtocolVersion): string | undefined {
  // numbers of up to 53 bits, more than the operators of numbers keep
  const unknown = BigInt(requires) & ~BigInt(knows);
  return unknown === 0n ? undefined : `${side} requires features 0x${unknown.toString(16)}`;
}

function wordsOf({ version, knows }: ProtocolVersion): string {
  return `version ${version} with features 0x${knows.toString(16)}`;
}

/** A master or a tablet server as its file in the lock service describes it. */
export interface PeerFile {
  readonly name: string;
  readonly address: string;
  readonly protocol: ProtocolVersion;
}

export function encodePeerFile(peer: PeerFile): Buffer {
  return encodeDocument({ ...peer });
}

export function decodePeerFile(path: string, contents: Uint8Array): PeerFile {
  const object = PlainObject.parse(path, contents);
  const protocol = object.object('protocol');
  const requires = protocol.count('requires');
  const knows = protocol.has('knows') ? protocol.count('knows') : requires;
  return {
    name: object.text('name'),
    address: object.text('address'),
    protocol: { version: protocol.count('version'), requires, knows },
  };
}

/** The peer of a file, for a caller: FAILED_PRECONDITION if this program cannot talk to it. */
export function decodeCallablePeer(path: string, contents: Uint8Array): PeerFile {
  const peer = decodePeerFile(path, contents);
  const role = path === MASTER_PATH ? 'the master' : 'tablet server';
  checkProtocol(`${role} ${peer.name} at ${peer.address}`, peer.protocol);
  return peer;
}
