/** The outcome of a call, from the trailers, the HTTP status or the reset that a server sends. */
import { BigtableError, Code, ownOf } from '../../base/index.ts';
import { notReached } from '../../env/index.ts';
import { decodeBinary, decodeMessage, type Headers, headerValue } from '../grpc/metadata.ts';
import { ErrorCode, errorCodeName } from '../http2/frames.ts';
import type { RpcStatus } from '../contract/rpc-server.ts';

/** Codes for HTTP statuses that no gRPC server sent (gRPC's "HTTP to gRPC Status Code Mapping"). */
const OF_HTTP: Readonly<Record<string, Code>> = {
  400: Code.INTERNAL,
  401: Code.UNAUTHENTICATED,
  403: Code.PERMISSION_DENIED,
  404: Code.UNIMPLEMENTED,
  429: Code.UNAVAILABLE,
  502: Code.UNAVAILABLE,
  503: Code.UNAVAILABLE,
  504: Code.UNAVAILABLE,
};

/** The fault of an answer's headers; undefined where a gRPC server sent them. */
export function faultOfHeaders(headers: Headers): BigtableError | undefined {
  const status = headerValue(headers, ':status') ?? '';
  if (status !== '200')
    return new BigtableError(
      ownOf(OF_HTTP, status) ?? Code.UNKNOWN,
      `the server answered with HTTP status ${JSON.stringify(status)}`,
    );
  const type = headerValue(headers, 'content-type') ?? '';
  if (type.startsWith('application/grpc')) return undefined;
  return new BigtableError(
    Code.UNKNOWN,
    `the server answered with content-type ${JSON.stringify(type.slice(0, 64))}; gRPC's is application/grpc`,
  );
}

/** The status in trailers (or in headers that are all there is). Undefined where there is none. */
export function statusOfTrailers(headers: Headers): RpcStatus | undefined {
  const code = headerValue(headers, 'grpc-status');
  if (code === undefined) return undefined;
  const details = headerValue(headers, 'grpc-status-details-bin');
  const known = /^(?:\d|1[0-6])$/.test(code);
  return {
    code: known ? (Number(code) as Code) : Code.UNKNOWN,
    message: decodeMessage(headerValue(headers, 'grpc-message') ?? (known ? '' : `status ${code.slice(0, 32)}`)),
    details: details === undefined ? undefined : decodeBinary(details),
  };
}

/** A stream that the server reset. */
export function errorOfReset(code: number): BigtableError {
  const message = `the server reset the call: ${errorCodeName(code)}`;
  switch (code) {
    case ErrorCode.REFUSED_STREAM:
      return notReached(message);
    case ErrorCode.CANCEL:
      return new BigtableError(Code.CANCELLED, message);
    case ErrorCode.ENHANCE_YOUR_CALM:
      return new BigtableError(Code.RESOURCE_EXHAUSTED, message);
    case ErrorCode.INADEQUATE_SECURITY:
      return new BigtableError(Code.PERMISSION_DENIED, message);
    default:
      return new BigtableError(Code.INTERNAL, message);
  }
}
