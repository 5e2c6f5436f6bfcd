/**
 * network: the transport between the processes of a cluster: internal calls over the wire, on connections whose two
 * ends have proven that they know the cluster's secret, or have certificates of its authority.
 */
export { ClusterSecret, readClusterSecret } from './cluster-secret.ts';
export type { Identity } from './greeting.ts';
export { type NetworkOptions, type NetworkTls, NetworkTransport } from './network-transport.ts';
