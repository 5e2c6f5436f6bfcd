/** A client of a server's door that sends messages of the API and receives what they are answered. */
import {
  create,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { BigtableError, codeName } from '../../base/index.ts';
import { type OpenDoor, wireClientOf } from '../../../test/behaviour/doors.ts';

export interface ApiClient {
  /** The answer of a unary call. */
  ask<I extends DescMethod['input'], O extends DescMethod['output']>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>>;
  /** The answers of a call, of one message or of a stream. */
  stream<I extends DescMethod['input'], O extends DescMethod['output']>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>[]>;
  close(): void;
}

/** `token`: goes with every call. */
export function apiClientOf(door: Pick<OpenDoor, 'address' | 'context'>, token?: string): ApiClient {
  const client = wireClientOf(door, 1, token);
  const pathOf = (method: DescMethod): string => `/${method.parent.typeName}/${method.name}`;
  const bytesOf = (method: DescMethod, request: object): Uint8Array =>
    toBinary(method.input, create(method.input, request as never));
  return {
    async ask(method, request) {
      const answer = await client.unary(pathOf(method), Buffer.from(bytesOf(method, request)), door.context);
      return fromBinary(method.output, answer);
    },
    async stream(method, request) {
      const answers = [];
      const bytes = Buffer.from(bytesOf(method, request));
      for await (const answer of client.stream(pathOf(method), bytes, door.context))
        answers.push(fromBinary(method.output, answer));
      return answers;
    },
    close: () => client.close(),
  };
}

/** The name of the code with which the call fails; 'OK' where it does not. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'OK';
  } catch (error) {
    if (!(error instanceof BigtableError)) throw error;
    return codeName(error.code);
  }
}
