/**
 * The greeting with which each connection between processes of a cluster begins, before HTTP/2: the two sides say who
 * they are and which version they speak, and prove that they belong to the cluster (docs/formats/internal-calls.md).
 *
 *   client: magic, Hello          server: Challenge
 *   client: Proof                 server: Welcome, or a refusal in it
 *
 * Each proof covers all that was said before it, with a fresh random number of each side and, with TLS, a key of that
 * TLS session: so a proof is worth nothing on another connection, and nobody in between can pass it on.
 *
 * Invariant: the server sends no proof to a client that has not given its own.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { BigtableError, Code, quote, toBigtableError } from '../base/index.ts';
import { notReached } from '../env/index.ts';
import { bytes, count, message, type MessageCodec, optional, required, text } from '../protobuf/index.ts';
import { checkProtocol, PROTOCOL, type ProtocolVersion, protocolVersion } from '../protocol/index.ts';
import type { ClusterSecret } from './cluster-secret.ts';
import { GreetingFrames } from './greeting-frames.ts';

const MAGIC = Buffer.from('edubba\x00\x01', 'latin1');
const NONCE_BYTES = 32;
const BINDING_LABEL = 'EXPORTER-edubba-cluster';

/** A process of the cluster. */
export interface Identity {
  readonly name: string;
  /** A name that no other cluster has: one that may have the same secret and, some day, the same addresses. */
  readonly cluster: string;
  /** Such as "master": for messages. */
  readonly role: string;
  /** Default: that of this program. */
  readonly protocol?: ProtocolVersion;
}

/** The first message of each side. */
interface Hello {
  readonly protocol: ProtocolVersion;
  readonly name: string;
  readonly role: string;
  readonly nonce: Uint8Array;
  readonly cluster: string;
}

interface Proof {
  /** Missing where the sender has no secret. */
  readonly proof?: Uint8Array;
}

interface Welcome extends Proof {
  /** Why the server takes no calls from the client. */
  readonly refusal?: { readonly code: number; readonly message: string };
}

const hello: MessageCodec<Hello> = message('Hello', {
  protocol: required(1, protocolVersion),
  name: required(2, text),
  role: required(3, text),
  nonce: required(4, bytes),
  cluster: required(5, text),
});

const proof: MessageCodec<Proof> = message('Proof', { proof: optional(1, bytes) });

const welcome: MessageCodec<Welcome> = message('Welcome', {
  proof: optional(1, bytes),
  refusal: optional(
    2,
    message<NonNullable<Welcome['refusal']>>('Refusal', { code: required(1, count), message: required(2, text) }),
  ),
});

/**
 * Greets the server at the other end. Rejects with UNAUTHENTICATED where either side does not prove that it knows the
 * secret, with FAILED_PRECONDITION where the versions do not fit, else as not reached: the port may be that of another
 * cluster or program now, whose answer says nothing about the calls that wait.
 */
export async function greetServer(
  socket: Socket,
  identity: Identity,
  secret: ClusterSecret | undefined,
): Promise<Identity> {
  const frames = new GreetingFrames(socket);
  try {
    const sent = helloOf(identity);
    frames.sendRaw(MAGIC);
    frames.send(sent);
    const challenge = await frames.receive();
    const server = readHello(challenge, 'the server');
    checkCluster(`the ${wordsOf(server)}`, server, identity);
    const transcript = transcriptOf(socket, sent, challenge);
    frames.send(proof.encode(secret === undefined ? {} : { proof: secret.prove('client', transcript) }));
    const { refusal, proof: given } = readable(await frames.receive(), welcome, 'the server');
    if (refusal !== undefined)
      throw new BigtableError(codeOf(refusal.code), `refused by the ${wordsOf(server)}: ${refusal.message}`);
    secret?.check('server', transcript, given);
    checkProtocol(`the ${wordsOf(server)}`, server.protocol, identity.protocol);
    return server;
  } catch (thrown) {
    const { code, message: why } = toBigtableError(thrown);
    throw code === Code.UNAUTHENTICATED || code === Code.FAILED_PRECONDITION ? thrown : notReached(why);
  } finally {
    frames.stop();
  }
}

/**
 * Admits the client at the other end, or tells it why not and rejects: UNAUTHENTICATED and FAILED_PRECONDITION as
 * `greetServer`, INVALID_ARGUMENT for what is no greeting, UNAVAILABLE where the connection ends, or the client is of
 * another cluster.
 */
export async function admitClient(
  socket: Socket,
  identity: Identity,
  secret: ClusterSecret | undefined,
): Promise<Identity> {
  const frames = new GreetingFrames(socket);
  try {
    if (!(await frames.take(MAGIC.length)).equals(MAGIC))
      throw new BigtableError(
        Code.UNAUTHENTICATED,
        'the client is no process of a cluster: its connection has no greeting',
      );
    const received = await frames.receive();
    const client = readHello(received, 'the client');
    const challenge = helloOf(identity);
    frames.send(challenge);
    const transcript = transcriptOf(socket, received, challenge);
    try {
      const { proof: given } = readable(await frames.receive(), proof, 'the client');
      secret?.check('client', transcript, given);
      checkCluster(`the ${wordsOf(client)}`, client, identity);
      checkProtocol(`the ${wordsOf(client)}`, client.protocol, identity.protocol);
    } catch (thrown) {
      const { code, message: why } = toBigtableError(thrown);
      frames.send(welcome.encode({ refusal: { code, message: why.slice(0, 1000) } }));
      throw thrown;
    }
    frames.send(welcome.encode(secret === undefined ? {} : { proof: secret.prove('server', transcript) }));
    return client;
  } finally {
    frames.stop();
  }
}

function helloOf({ name, role, cluster, protocol = PROTOCOL }: Identity): Buffer {
  return hello.encode({ protocol, name, role, cluster, nonce: randomBytes(NONCE_BYTES) });
}

/** Not reached if the peer is of another cluster, which has taken the address of a process of this one. */
function checkCluster(peer: string, { cluster }: Hello, own: Identity): void {
  if (cluster === own.cluster) return;
  throw notReached(`${peer} belongs to cluster ${quote(cluster)}, and this process to ${quote(own.cluster)}`);
}

function readHello(received: Buffer, sender: string): Hello {
  const read = readable(received, hello, sender);
  if (read.nonce.length === NONCE_BYTES) return read;
  throw new BigtableError(Code.INVALID_ARGUMENT, `${sender} greets with a number of ${read.nonce.length} bytes`);
}

function readable<T>(received: Buffer, codec: MessageCodec<T>, sender: string): T {
  try {
    return codec.decode(received);
  } catch (thrown) {
    const { message: why } = toBigtableError(thrown);
    throw new BigtableError(Code.INVALID_ARGUMENT, `the greeting of ${sender} cannot be read: ${why}`);
  }
}

/** Both first messages and, with TLS, a key that only the two ends of this TLS session have. */
function transcriptOf(socket: Socket, client: Buffer, server: Buffer): Buffer {
  const binding =
    socket instanceof TLSSocket ? socket.exportKeyingMaterial(32, BINDING_LABEL, Buffer.alloc(0)) : Buffer.alloc(0);
  const hash = createHash('sha256').update(MAGIC);
  for (const part of [client, server, binding]) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    hash.update(length).update(part);
  }
  return hash.digest();
}

function codeOf(code: number): Code {
  return Object.values(Code).find((known) => known === code && known !== Code.OK) ?? Code.UNKNOWN;
}

function wordsOf({ role, name }: Hello): string {
  return `${role.slice(0, 40)} ${name.slice(0, 80)}`;
}
