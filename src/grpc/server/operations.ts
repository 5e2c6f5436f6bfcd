/**
 * google.longrunning.Operations. Edubba's operations are done when the call that makes them answers; the last ones are
 * kept in memory, so that a client which asks for one again gets it.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type Any, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { notFound } from '../../base/index.ts';
import {
  type OperationSchema,
  Operations as OperationsService,
} from '../generated/google/longrunning/operations_pb.ts';
import type { ApiEnv } from '../../wire/index.ts';
import type { MethodTable } from './method-table.ts';

const KEPT = 1000;

type Operation = MessageInitShape<typeof OperationSchema> & { readonly name: string };

export class Operations {
  readonly #env: ApiEnv;
  /** The last operations, in the order in which they were made. */
  readonly #kept = new Map<string, Operation>();

  constructor(env: ApiEnv) {
    this.#env = env;
  }

  /** A new operation about `resource` that is done, its answer given. */
  done(resource: string, metadata: Any, response: Any): Operation {
    const name = `operations/${resource}/operations/${this.#env.random.uniqueName()}`;
    const operation: Operation = { name, metadata, done: true, result: { case: 'response', value: response } };
    this.#kept.set(name, operation);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT) break;
      this.#kept.delete(oldest);
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
    methods.unary(calls.getOperation, async (_context, request) => this.#get(request.name));
    methods.unary(calls.waitOperation, async (_context, request) => this.#get(request.name));
    methods.unary(calls.cancelOperation, async (_context, request) => {
      this.#get(request.name);
      return {};
    });
    methods.unary(calls.deleteOperation, async (_context, request) => {
      this.#get(request.name);
      this.#kept.delete(request.name);
      return {};
    });
    methods.unary(calls.listOperations, async (_context, request) => {
      const prefix = request.name.endsWith('/') || request.name === '' ? request.name : `${request.name}/`;
      return { operations: [...this.#kept.values()].filter((operation) => operation.name.startsWith(prefix)) };
    });
  }

  #get(name: string): Operation {
    const operation = this.#kept.get(name);
    if (!operation)
      throw notFound(
        `operation ${JSON.stringify(name)} is unknown: the last ${KEPT} since the server's start are kept`,
      );
    return operation;
  }
}
