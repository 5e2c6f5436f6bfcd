/**
 * The calls of etcd's v3 API that this adapter makes, and of their messages the fields that it uses
 * (https://etcd.io/docs/latest/dev-guide/api_reference_v3). proto3 leaves out fields that have their default, so
 * whatever etcd sends is optional.
 */
import { Code, type Int64 } from '../../base/index.ts';
import {
  bytes,
  count,
  flag,
  integer,
  list,
  type MessageCodec,
  message,
  optional,
  required,
  text,
  whole,
} from '../../protobuf/index.ts';

/** A call of etcd: its path, and its two messages. */
export interface EtcdMethod<Q, A> {
  readonly path: string;
  readonly request: MessageCodec<Q>;
  readonly answer: MessageCodec<A>;
  /** The error of a repetition when the call has happened before. */
  readonly doneCode: Code | undefined;
}

function method<Q, A>(
  name: string,
  request: MessageCodec<Q>,
  answer: MessageCodec<A>,
  doneCode?: Code,
): EtcdMethod<Q, A> {
  return { path: `/etcdserverpb.${name}`, request, answer, doneCode };
}

export interface Header {
  /** That of the store when it answered. */
  readonly revision?: number;
}
const HEADER = message<Header>('ResponseHeader', { revision: optional(3, whole) });

/** Every answer has a header. */
interface Answer {
  readonly header?: Header;
}
const ANSWER = message<Answer>('Response', { header: optional(1, HEADER) });

export interface KeyValue {
  readonly key?: Uint8Array;
  readonly createRevision?: number;
  readonly modRevision?: number;
  readonly value?: Uint8Array;
  /** The key dies with it; 0 and undefined: with none. */
  readonly lease?: Int64;
}
const KEY_VALUE = message<KeyValue>('KeyValue', {
  key: optional(1, bytes),
  createRevision: optional(2, whole),
  modRevision: optional(3, whole),
  value: optional(5, bytes),
  lease: optional(6, integer),
});

// KV

export interface RangeRequest {
  readonly key: Uint8Array;
  /** Exclusive. Left out: `key` alone. */
  readonly rangeEnd?: Uint8Array;
  readonly limit?: number;
  /** Left out: now. */
  readonly revision?: number;
}
const RANGE_REQUEST = message<RangeRequest>('RangeRequest', {
  key: required(1, bytes),
  rangeEnd: optional(2, bytes),
  limit: optional(3, whole),
  revision: optional(4, whole),
});

export interface RangeAnswer extends Answer {
  readonly kvs: readonly KeyValue[];
  readonly more?: boolean;
}
const RANGE_ANSWER = message<RangeAnswer>('RangeResponse', {
  header: optional(1, HEADER),
  kvs: list(2, KEY_VALUE),
  more: optional(3, flag),
});

interface PutRequest {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly lease?: Int64;
}
const PUT_REQUEST = message<PutRequest>('PutRequest', {
  key: required(1, bytes),
  value: required(2, bytes),
  lease: optional(3, integer),
});

interface DeleteRequest {
  readonly key: Uint8Array;
}
const DELETE_REQUEST = message<DeleteRequest>('DeleteRangeRequest', { key: required(1, bytes) });

interface DeleteAnswer {
  readonly deleted?: number;
}
const DELETE_ANSWER = message<DeleteAnswer>('DeleteRangeResponse', { deleted: optional(2, whole) });

/** One of its fields is there. */
export interface Operation {
  readonly range?: RangeRequest;
  readonly put?: PutRequest;
  readonly delete?: DeleteRequest;
}
const OPERATION = message<Operation>('RequestOp', {
  range: optional(1, RANGE_REQUEST),
  put: optional(2, PUT_REQUEST),
  delete: optional(3, DELETE_REQUEST),
});

interface OperationAnswer {
  readonly range?: RangeAnswer;
  readonly delete?: DeleteAnswer;
}
const OPERATION_ANSWER = message<OperationAnswer>('ResponseOp', {
  range: optional(1, RANGE_ANSWER),
  delete: optional(3, DELETE_ANSWER),
});

/** Results of comparing. */
export const EQUAL = 0;
export const LESS = 2;
export const CompareTarget = { create: 1, mod: 2, value: 3 } as const;

/** One of the last three fields is there, as `target` says. A key that is missing has revisions of 0. */
export interface Compare {
  readonly result: number;
  readonly target: number;
  readonly key: Uint8Array;
  readonly createRevision?: number;
  readonly modRevision?: number;
  readonly value?: Uint8Array;
}
const COMPARE = message<Compare>('Compare', {
  result: required(1, count),
  target: required(2, count),
  key: required(3, bytes),
  createRevision: optional(5, whole),
  modRevision: optional(6, whole),
  value: optional(7, bytes),
});

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly Operation[];
  readonly failure: readonly Operation[];
}
const TXN_REQUEST = message<TxnRequest>('TxnRequest', {
  compare: list(1, COMPARE),
  success: list(2, OPERATION),
  failure: list(3, OPERATION),
});

export interface TxnAnswer extends Answer {
  readonly succeeded?: boolean;
  /** Those of the operations that were carried out. */
  readonly responses: readonly OperationAnswer[];
}
const TXN_ANSWER = message<TxnAnswer>('TxnResponse', {
  header: optional(1, HEADER),
  succeeded: optional(2, flag),
  responses: list(3, OPERATION_ANSWER),
});

export const RANGE = method('KV/Range', RANGE_REQUEST, RANGE_ANSWER);
export const TXN = method('KV/Txn', TXN_REQUEST, TXN_ANSWER);

// Lease

interface LeaseRequest {
  readonly id: Int64;
}
const LEASE_REQUEST = message<LeaseRequest>('LeaseRequest', { id: required(1, integer) });

interface LeaseGrantRequest {
  readonly ttlSeconds: number;
  readonly id: Int64;
}
const LEASE_GRANT_REQUEST = message<LeaseGrantRequest>('LeaseGrantRequest', {
  ttlSeconds: required(1, whole),
  id: required(2, integer),
});

interface LeaseAnswer extends Answer {
  /** 0 and undefined: there is no such lease. */
  readonly ttlSeconds?: number;
}
const LEASE_ANSWER = message<LeaseAnswer>('LeaseResponse', {
  header: optional(1, HEADER),
  ttlSeconds: optional(3, whole),
});

export const LEASE_GRANT = method('Lease/LeaseGrant', LEASE_GRANT_REQUEST, LEASE_ANSWER, Code.ALREADY_EXISTS);
export const LEASE_REVOKE = method('Lease/LeaseRevoke', LEASE_REQUEST, ANSWER, Code.NOT_FOUND);
/** A stream of requests and answers; a request that ends after one message has one answer. */
export const LEASE_KEEP_ALIVE = method('Lease/LeaseKeepAlive', LEASE_REQUEST, LEASE_ANSWER);

// Watch

interface WatchCreateRequest {
  readonly key: Uint8Array;
  readonly rangeEnd: Uint8Array;
  readonly startRevision: number;
  readonly previous: boolean;
  /** Answers above the limit of etcd's messages are sent as several. */
  readonly fragment: boolean;
}
const WATCH_REQUEST = message<{ readonly create: WatchCreateRequest }>('WatchRequest', {
  create: required(
    1,
    message<WatchCreateRequest>('WatchCreateRequest', {
      key: required(1, bytes),
      rangeEnd: required(2, bytes),
      startRevision: required(3, whole),
      previous: required(6, flag),
      fragment: required(8, flag),
    }),
  ),
});

/** A key was put, or deleted where `type` is 1. */
export interface WatchEvent {
  readonly type?: number;
  readonly kv?: KeyValue;
  /** Undefined where the revision before was compacted. */
  readonly previous?: KeyValue;
}
const WATCH_EVENT = message<WatchEvent>('Event', {
  type: optional(1, count),
  kv: optional(2, KEY_VALUE),
  previous: optional(3, KEY_VALUE),
});

export interface WatchAnswer extends Answer {
  readonly created?: boolean;
  readonly canceled?: boolean;
  /** Above 0: revisions below it are gone, and the watch needs one of them. */
  readonly compactRevision?: number;
  readonly cancelReason?: string;
  /** True: the rest of the events comes in the next answer. */
  readonly fragment?: boolean;
  readonly events: readonly WatchEvent[];
}
const WATCH_ANSWER = message<WatchAnswer>('WatchResponse', {
  header: optional(1, HEADER),
  created: optional(3, flag),
  canceled: optional(4, flag),
  compactRevision: optional(5, whole),
  cancelReason: optional(6, text),
  fragment: optional(7, flag),
  events: list(11, WATCH_EVENT),
});

export const WATCH = method('Watch/Watch', WATCH_REQUEST, WATCH_ANSWER);

// Auth

const AUTHENTICATE_REQUEST = message<{ readonly name: string; readonly password: string }>('AuthenticateRequest', {
  name: required(1, text),
  password: required(2, text),
});
const AUTHENTICATE_ANSWER = message<{ readonly token?: string }>('AuthenticateResponse', { token: optional(2, text) });

export const AUTHENTICATE = method('Auth/Authenticate', AUTHENTICATE_REQUEST, AUTHENTICATE_ANSWER);

// Maintenance

interface Status extends Answer {
  /** For example "3.6.4". */
  readonly version?: string;
}
const STATUS = message<Status>('StatusResponse', { header: optional(1, HEADER), version: optional(2, text) });

/** The member's own. */
export const MEMBER_STATUS = method('Maintenance/Status', message<object>('StatusRequest', {}), STATUS);
