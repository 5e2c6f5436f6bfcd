/**
 * The version of the internal calls and its feature bits: exchanged in every server's file in the lock service and in
 * its status, so that no process talks to a peer it would misunderstand.
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
}

export const PROTOCOL: ProtocolVersion = Object.freeze({ version: 1, requires: 0 });

/** FAILED_PRECONDITION, with the reason, if this program cannot talk to such a peer. */
export function checkProtocol(peer: string, { version, requires }: ProtocolVersion): void {
  if (version !== PROTOCOL.version) {
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${peer} speaks version ${version} of the internal calls, this program ${PROTOCOL.version}`,
    );
  }
  const unknown = BigInt(requires) & ~BigInt(PROTOCOL.requires);
  if (unknown !== 0n)
    throw new BigtableError(
      Code.FAILED_PRECONDITION,
      `${peer} requires features 0x${unknown.toString(16)} that this program does not have`,
    );
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
  return {
    name: object.text('name'),
    address: object.text('address'),
    protocol: { version: protocol.count('version'), requires: protocol.count('requires') },
  };
}
