/**
 * grpc: the Cloud Bigtable API over gRPC, in terms of a service: server side (any service behind the API) and client
 * side (any server as a service). Inside, `server` is one call kind a file, `codec` the bytes of the hot paths,
 * `convert` one message kind a file, `rpc` statuses and the wire of the client side, `generated` protobuf-es' code for
 * proto/.
 */
export { connectService, loadServiceOverRpc } from './client/connect-service.ts';
export { RequestDecoder } from './codec/request-decoder.ts';
export { wireStatus } from './rpc/status.ts';
export { registerCloudApi } from './server/cloud-api.ts';
export { rawCallHandler } from './server/raw-calls.ts';
