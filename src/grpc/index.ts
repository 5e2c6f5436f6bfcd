/**
 * grpc: the Cloud Bigtable API over gRPC, in terms of a service: server side (any service behind the API) and client side (any server
 * as a service). Inside, `rpc` is the wire (an interface, and its adapter on grpc-js), `codec` the bytes of the hot paths, `convert` one
 * message kind a file, `generated` protobuf-es' code for proto/.
 */
export { connectService } from './client/remote-service.ts';
export { GrpcJsServer } from './rpc/grpc-js-server.ts';
export type { ApiEnv } from './rpc/rpc-server.ts';
export { registerCloudApi } from './server/cloud-api.ts';
