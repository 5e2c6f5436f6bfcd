/**
 * Loads the client side when the first client connects: it needs the descriptors of the whole API, which most servers
 * never use.
 */
import type { overRpc, RemoteOptions, RemoteService } from './remote-service.ts';

/** A service over the server at the address. Nothing is sent before the first call. */
export async function connectService(options: RemoteOptions): Promise<RemoteService> {
  const { overWire } = await import('./remote-service.ts');
  return overWire(options);
}

/** Resolves with the function that makes services over wires of any kind. */
export async function loadServiceOverRpc(): Promise<typeof overRpc> {
  return (await import('./remote-service.ts')).overRpc;
}
