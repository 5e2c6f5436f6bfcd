/**
 * google.longrunning.Operations. Edubba's operations are done when the call that makes them answers; they are kept, for
 * a while, where every front door finds them (docs/decisions/0074-operations-of-every-door.md).
 */
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { type Any, anyPack, AnySchema, type Timestamp } from '@bufbuild/protobuf/wkt';
import { notFound, quote, toBigtableError } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import { type KeptOperation, MAX_OPERATION_BYTES, type OperationStore } from '../../service/index.ts';
import {
  type ListOperationsRequest,
  type Operation,
  OperationSchema,
  Operations as OperationsService,
} from '../generated/google/longrunning/operations_pb.ts';
import type { ApiEnv } from '../../wire/index.ts';
import { timestampOf } from '../convert/time.ts';
import type { MethodTable } from './method-table.ts';
import { pageOf } from './pages.ts';

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

  /**
   * A new operation that is done, about the resource that is its response. It is answered also where it cannot be kept:
   * its change stands.
   */
  async done<M extends DescMessage, R extends DescMessage>(
    context: RequestContext,
    [metadataSchema, metadataFields]: readonly [M, MessageInitShape<M>],
    [responseSchema, resourceMessage]: readonly [R, MessageShape<R> & { readonly name: string }],
  ): Promise<Operation> {
    const resource = resourceMessage.name;
    const metadata = anyPack(metadataSchema, create(metadataSchema, metadataFields));
    const response = anyPack(responseSchema, resourceMessage);
    const operation = create(OperationSchema, { metadata, done: true, result: { case: 'response', value: response } });
    operation.name = `operations/${resource}/operations/not-kept`;
    try {
      const name = await this.#store?.keep(context, resource, contentsOf(operation, metadata, response));
      if (name !== undefined) operation.name = name;
    } catch (thrown) {
      const error = toBigtableError(thrown).message;
      this.#env.logger.warn('an operation is done and cannot be kept: it will not be found', { resource, error });
    }
    return operation;
  }

  now(): Timestamp {
    return timestampOf(this.#env.clock.nowMicros());
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

  async #list(context: RequestContext, request: ListOperationsRequest) {
    const { name } = request;
    const prefix = name.endsWith('/') || name === '' ? name : `${name}/`;
    const kept = (await this.#store?.list(context, prefix)) ?? [];
    const { items, nextPageToken } = pageOf(kept, request, prefix, MAX_PAGE);
    return { operations: items.map(operationOf), nextPageToken };
  }
}

/** Without the name. Of a response, and then of metadata, that is too large only its type is kept. */
function contentsOf(operation: Operation, metadata: Any, response: Any): Uint8Array {
  const typeOf = ({ typeUrl }: Any): Any => create(AnySchema, { typeUrl });
  const shorter = { ...operation, name: '', result: { case: 'response', value: typeOf(response) } as const };
  const forms = [{ ...operation, name: '' }, shorter, { ...shorter, metadata: typeOf(metadata) }];
  const encoded = forms.map((form) => toBinary(OperationSchema, create(OperationSchema, form)));
  return encoded.find((bytes) => bytes.length <= MAX_OPERATION_BYTES) ?? encoded.at(-1)!;
}

function operationOf({ name, contents }: KeptOperation): Operation {
  const operation = fromBinary(OperationSchema, contents);
  operation.name = name;
  return operation;
}

function unknown(name: string) {
  return notFound(`operation ${quote(name, 300)} is unknown: the last operations are kept, for a day`);
}
