/** docs/formats/internal-calls.proto: the messages of internal calls for people and for other programs. */
import { protoFile } from '../../protobuf/index.ts';
import { CALL_MESSAGES, STREAM_MESSAGES, thrownError } from './call-messages.ts';

export function internalCallsProto(): string {
  const calls = Object.entries(CALL_MESSAGES).map(([name, { message, answer }]) =>
    rpc(name, message.proto, answer.proto),
  );
  const streams = Object.entries(STREAM_MESSAGES).map(([name, { message, item }]) =>
    rpc(name, message.proto, `stream ${item.proto}`),
  );
  return protoFile(
    [
      '// The messages of calls between masters, tablet servers and clients. Made by scripts/internal-calls.mjs.',
      '//',
      '// A call that fails is answered with a ThrownError. The number of a field never becomes that of another one;',
      '// readers skip the fields that they do not know. A field without `optional` or `repeated` must be there.',
      'syntax = "proto3";',
      '',
      'package edubba.internal.v1;',
      '',
      'service Calls {',
      ...calls,
      '}',
      '',
      'service Streams {',
      ...streams,
      '}',
    ],
    [
      ...Object.values(CALL_MESSAGES).flatMap(({ message, answer }) => [message, answer]),
      ...Object.values(STREAM_MESSAGES).flatMap(({ message, item }) => [message, item]),
      thrownError,
    ],
  );
}

function rpc(name: string, message: string, answer: string): string {
  return `  rpc ${name}(${message}) returns (${answer});`;
}
