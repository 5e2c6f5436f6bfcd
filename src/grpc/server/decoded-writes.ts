/**
 * Requests that change one row, from their bytes to the service and its answers to bytes: those of clients, and those
 * that another server has passed on, whose bytes must name the table and row of their envelope.
 */
import { BigtableError, type ByteString, Code } from '../../base/index.ts';
import type { RequestContext } from '../../env/index.ts';
import type { RawWrite, RowService } from '../../service/index.ts';
import type { ApiEnv } from '../../wire/index.ts';
import { checkAndMutateAnswer, rowAnswer } from '../codec/answers.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';
import { withAnswerSpace } from './answer-space.ts';
import { ChangeRequests } from './change-requests.ts';

const EMPTY_MESSAGE = Buffer.alloc(0);
const emptyMessage = (): Buffer => EMPTY_MESSAGE;

export class DecodedWrites {
  readonly #service: RowService;
  readonly #requests: ChangeRequests;

  constructor(service: RowService, env: ApiEnv, decoder: RequestDecoder) {
    this.#service = service;
    this.#requests = new ChangeRequests(service, env, decoder);
  }

  /** The answer, in one buffer or several. `passed`: the envelope of a request that another server has passed on. */
  write(
    method: RawWrite['method'],
    context: RequestContext,
    bytes: Buffer,
    passed?: RawWrite,
  ): Promise<Uint8Array | readonly Buffer[]> {
    switch (method) {
      case 'mutateRow':
        return this.#mutateRow(context, bytes, passed);
      case 'checkAndMutateRow':
        return this.#checkAndMutateRow(context, bytes, passed);
      case 'readModifyWriteRow':
        return this.#readModifyWriteRow(context, bytes, passed);
    }
  }

  #mutateRow(given: RequestContext, bytes: Buffer, passed: RawWrite | undefined): Promise<Buffer> {
    return this.#requests
      .carryOut(
        given,
        bytes,
        'write',
        (reader) => reader.mutateRow(),
        ({ context, table, view }, mutations) => {
          checkTarget(passed, table, mutations.row);
          view?.checkRow(mutations);
          return this.#service.mutateRow(context, table, mutations);
        },
      )
      .then(emptyMessage);
  }

  #checkAndMutateRow(given: RequestContext, bytes: Buffer, passed: RawWrite | undefined): Promise<Buffer> {
    return this.#requests
      .carryOut(
        given,
        bytes,
        'transaction',
        (reader) => reader.checkAndMutateRow(),
        ({ context, table, view }, { row, predicate: given, whenTrue, whenFalse }) => {
          checkTarget(passed, table, row);
          view?.checkRow({ row, mutations: whenTrue });
          view?.checkRow({ row, mutations: whenFalse });
          const predicate = view === undefined ? given : view.narrow(given);
          return this.#service.checkAndMutateRow(context, { table, row, predicate, whenTrue, whenFalse });
        },
      )
      .then(checkAndMutateAnswer);
  }

  #readModifyWriteRow(
    given: RequestContext,
    bytes: Buffer,
    passed: RawWrite | undefined,
  ): Promise<Buffer | readonly Buffer[]> {
    return this.#requests.carryOut(
      given,
      bytes,
      'transaction',
      (reader) => reader.readModifyWriteRow(),
      ({ context, table, view }, { row, rules }) => {
        checkTarget(passed, table, row);
        view?.checkRules(row, rules);
        const call = (maxAnswerBytes: number | undefined) =>
          this.#service.readModifyWriteRow(context, table, row, rules, maxAnswerBytes);
        // the server that passed it on sends the answer, and has reserved space for it
        const answered =
          passed === undefined ? withAnswerSpace(context.reservation, call) : call(passed.maxAnswerBytes);
        return answered.then((cells) => rowAnswer(row, cells));
      },
    );
  }
}

/** Nothing is done for bytes that name another row than that by which their server was chosen. */
function checkTarget(passed: RawWrite | undefined, table: string, row: ByteString): void {
  if (passed === undefined || (passed.table === table && passed.row === row)) return;
  throw misaddressed();
}

export function misaddressed(): BigtableError {
  return new BigtableError(
    Code.INTERNAL,
    'a request that was passed on names other rows than its envelope: nothing was done',
  );
}
