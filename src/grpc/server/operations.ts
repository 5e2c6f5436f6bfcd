/**
 * google.longrunning.Operations. Edubba's operations are done when the call that makes them answers; they are kept, for
 * a while, where every front door finds them (docs/decisions/0074-operations-of-every-door.md).
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Any, AnySchema, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { invalidArgument, notFound, quote, toBigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { type KeptOperation, MAX_OPERATION_BYTES, type OperationStore } from '../../service/index.ts';
import {
  type ListOperationsRequest,
  type Operation,
  OperationSchema,
  Operations as OperationsService,
} from '../generated/google/longrunning/operations_pb.ts';
import type { ApiEnv } from '../../wire/index.ts';
import type { MethodTable } from './method-table.ts';

/** Answers of a page have 2 MiB at most: clients take 4 MiB. */
const MAX_PAGE = 32;

export class Operations {
  readonly #env: ApiEnv;
  readonly #store: OperationStore | undefined;

  /** Without a store none is kept. */
  constructor(env: ApiEnv, store: OperationStore | undefined) {
    this.#env = env;
    this.#store = store;
  }

  /** A new operation about `resource` that is done. It is answered also where it cannot be kept: its change stands. */
  async done(context: RequestContext, resource: string, metadata: Any, response: Any): Promise<Operation> {
    const operation = create(OperationSchema, { metadata, done: true, result: { case: 'response', value: response } });
    operation.name = `operations/${resource}/operations/not-kept`;
    try {
      const name = await this.#store?.keep(context, resource, contentsOf(operation, response));
      if (name !== undefined) operation.name = name;
    } catch (thrown) {
      const error = toBigtableError(thrown).message;
      this.#env.logger.warn('an operation is done and cannot be kept: it will not be found', { resource, error });
    }
    return operation;
  }

  now(): Timestamp {
    const micros = this.#env.clock.nowMicros();
    const seconds = Math.floor(micros / 1e6);
    return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Math.floor(micros - seconds * 1e6) * 1000 });
  }

  register(methods: MethodTable): void {
    const calls = OperationsService.method;
    methods.unary(calls.getOperation, (context, { name }) => this.#get(context, name));
    methods.unary(calls.waitOperation, (context, { name }) => this.#get(context, name));
    methods.unary(calls.cancelOperation, async (context, { name }) => {
      await this.#get(context, name);
      return {};
    });
    methods.unary(calls.deleteOperation, async (context, { name }) => {
      if (!(await this.#store?.forget(context, name))) throw unknown(name);
      return {};
    });
    methods.unary(calls.listOperations, (context, request) => this.#list(context, request));
  }

  async #get(context: RequestContext, name: string): Promise<Operation> {
    const kept = await this.#store?.find(context, name);
    if (kept === undefined) throw unknown(name);
    return operationOf(kept);
  }

  /** Page by page; a page's token is the name of its last operation. */
  async #list(context: RequestContext, { name, pageSize, pageToken }: ListOperationsRequest) {
    if (pageSize < 0) throw invalidArgument(`page_size must not be negative, is ${pageSize}`, { field: 'page_size' });
    const prefix = name.endsWith('/') || name === '' ? name : `${name}/`;
    const after = pageToken === '' ? '' : Buffer.from(pageToken, 'base64url').toString();
    if (!after.startsWith(after === '' ? '' : prefix))
      throw invalidArgument(`page_token ${quote(pageToken, 200)} is not one of this list`, { field: 'page_token' });
    const kept = ((await this.#store?.list(context, prefix)) ?? []).filter((operation) => operation.name > after);
    const page = kept.slice(0, pageSize === 0 ? MAX_PAGE : Math.min(pageSize, MAX_PAGE));
    const last = page.at(-1);
    return {
      operations: page.map(operationOf),
      nextPageToken: last && page.length < kept.length ? Buffer.from(last.name).toString('base64url') : '',
    };
  }
}

/** Without the name. Of a response that is too large only its type is kept. */
function contentsOf(operation: Operation, { typeUrl }: Any): Uint8Array {
  const whole = toBinary(OperationSchema, create(OperationSchema, { ...operation, name: '' }));
  if (whole.length <= MAX_OPERATION_BYTES) return whole;
  const value = create(AnySchema, { typeUrl });
  return toBinary(
    OperationSchema,
    create(OperationSchema, { ...operation, name: '', result: { case: 'response', value } }),
  );
}

function operationOf({ name, contents }: KeptOperation): Operation {
  const operation = fromBinary(OperationSchema, contents);
  operation.name = name;
  return operation;
}

function unknown(name: string) {
  return notFound(`operation ${quote(name, 300)} is unknown: the last operations are kept, for a day`);
}
