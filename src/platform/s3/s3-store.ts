/**
 * A store that many machines share, under a prefix of a bucket: on AWS, or on any store with S3's API and conditional
 * writes. Format: docs/formats/shared-store.md, reasons: docs/decisions/0085-s3.md.
 *
 * Invariant: the promises of file-system.ts, for all machines together; a prefix with other content is refused and left
 * unchanged.
 */
import { BigtableError, Code, unavailable } from '../../base/index.ts';
import {
  type Clock,
  proveFiles,
  proveStore,
  type Random,
  type SlotLogsOptions,
  withSlotLogs,
} from '../../env/index.ts';
import { FORMAT_NAME, formatText, parseFormat } from '../directory/format-file.ts';
import type { SharedStore } from '../shared/shared-store.ts';
import { parseS3Address } from './s3-address.ts';
import { S3Client, type S3ClientOptions } from './s3-client.ts';
import { S3Files } from './s3-files.ts';
import { S3Objects } from './s3-objects.ts';
import { type S3Credentials, s3Signer } from './s3-signer.ts';
import { S3Slots } from './s3-slots.ts';

export interface S3StoreOptions
  extends Omit<SlotLogsOptions, 'clock' | 'random' | 'retryForMs'>,
    Pick<S3ClientOptions, 'retryForMs' | 'attemptMs'> {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Default: those of AWS's standard chain: the environment's variables, the shared files, a web identity, the
   * container or the machine.
   */
  readonly credentials?: () => Promise<S3Credentials>;
  /** Region where the address names none. Default: AWS_REGION, AWS_DEFAULT_REGION, or us-east-1. */
  readonly defaultRegion?: string;
  /** Objects in a page of a list of slots or logs, at most 1000. Default: 1000. */
  readonly pageSize?: number;
  /** Larger files are multipart uploads, with parts of this size. Default: 8 MiB; S3 wants 5 MiB or more. */
  readonly partBytes?: number;
  /** False: this process has proven the store already. Default: true. */
  readonly selfTest?: boolean;
}

const PAGE_SIZE = 1000;
/** A GET takes 20 to 30 ms, and 32 are under way: 64 MiB of short slots are 4,096, or 3 seconds. */
const SLOT_COST_BYTES = 16 * 1024;
const MAX_FORMAT_BYTES = 4096;
/** Age at which an upload has no writer any more. */
const MAX_UPLOAD_AGE_MS = 24 * 3_600_000;

/**
 * Opens the store of the address `s3://BUCKET/PREFIX?endpoint=URL&region=NAME`, and proves that it keeps its promises.
 * INVALID_ARGUMENT: a wrong address. FAILED_PRECONDITION: it breaks a promise, holds something else, or there is no
 * such bucket. UNAUTHENTICATED, PERMISSION_DENIED: the credentials are wrong, or do not suffice.
 */
export async function openS3Store(address: string, options: S3StoreOptions): Promise<SharedStore> {
  const { clock, random, pageSize = PAGE_SIZE, partBytes, retryForMs, attemptMs } = options;
  const parsed = parseS3Address(address, options.defaultRegion ?? environmentRegion());
  const credentials = options.credentials ?? (await standardCredentials());
  const client = new S3Client({
    address: parsed,
    clock,
    random,
    signer: await s3Signer(parsed, credentials),
    ...(retryForMs !== undefined && { retryForMs }),
    ...(attemptMs !== undefined && { attemptMs }),
  });
  try {
    const objects = new S3Objects(client);
    const files = new S3Files(objects, partBytes === undefined ? {} : { partBytes });
    const slots = new S3Slots(objects, pageSize);
    const identity = await checkFormat(objects);
    if (options.selfTest !== false) {
      const about = { where: address, clock, random };
      await proveStore({ files, slots, ...about });
      // large files are made by a request of another kind
      await proveFiles({ files: new S3Files(objects, { alwaysMultipart: true }), ...about });
      await abortOldUploads(objects);
    }
    return {
      fileSystem: withSlotLogs(files, slots, logOptions(options)),
      slots,
      identity,
      close: async () => client.close(),
    };
  } catch (error) {
    client.close();
    throw error;
  }
}

/** How long logs send their calls again is a setting of theirs. */
function logOptions({
  clock,
  random,
  checksum,
  doubtMs,
  switchAfterMs,
  slotCostBytes,
}: S3StoreOptions): SlotLogsOptions {
  return {
    clock,
    random,
    slotCostBytes: slotCostBytes ?? SLOT_COST_BYTES,
    ...(checksum && { checksum }),
    ...(doubtMs !== undefined && { doubtMs }),
    ...(switchAfterMs !== undefined && { switchAfterMs }),
  };
}

/** As AWS's own programs find it. */
function environmentRegion(): string | undefined {
  return process.env['AWS_REGION'] || process.env['AWS_DEFAULT_REGION'] || undefined;
}

/** Loaded only where it is needed: it is large. In the bundle a CommonJS package has its default export alone. */
async function standardCredentials(): Promise<() => Promise<S3Credentials>> {
  const { default: credentialProviders } = await import('@aws-sdk/credential-provider-node');
  const provider = credentialProviders.defaultProvider();
  return async () => {
    try {
      return await provider();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new BigtableError(Code.UNAUTHENTICATED, `no credentials for S3: ${why}`, { cause: error });
    }
  };
}

/** The identity in the format file, which is made where the store is new. */
async function checkFormat(objects: S3Objects): Promise<string> {
  const { client } = objects;
  const found = await readFormat(objects);
  if (found !== undefined) return found;
  const { objects: some } = await client.retried(() => objects.list('', { size: 10 }));
  const strange = some.find(({ path }) => path !== FORMAT_NAME);
  if (strange !== undefined) {
    const what = `it has no object ${FORMAT_NAME} but holds ${JSON.stringify(strange.path)}`;
    throw new BigtableError(Code.FAILED_PRECONDITION, `${client.address.text} is not an Edubba store: ${what}`);
  }
  const text = Buffer.from(formatText('store', client.random.uniqueName()), 'latin1');
  // of several that make the store one gives it its identity
  await client.retried(() => objects.create(FORMAT_NAME, [text]));
  const made = await readFormat(objects);
  if (made === undefined) throw unavailable(`${client.address.text}: ${FORMAT_NAME} was removed while it was made`);
  return made;
}

async function readFormat(objects: S3Objects): Promise<string | undefined> {
  const bytes = await objects.client.retried(() => objects.read(FORMAT_NAME, 0, MAX_FORMAT_BYTES));
  return bytes && parseFormat(bytes.toString('latin1'), `${objects.client.address.text}/${FORMAT_NAME}`, 'store');
}

/** Their parts cost space. A store that does not list them leaves that to a rule of the bucket. */
async function abortOldUploads(objects: S3Objects): Promise<void> {
  const beforeMs = objects.client.clock.nowMicros() / 1000 - MAX_UPLOAD_AGE_MS;
  const uploads = await objects.oldUploads(beforeMs).catch(() => []);
  for (const { path, upload } of uploads) await objects.abortUpload(path, upload).catch(() => undefined);
}
