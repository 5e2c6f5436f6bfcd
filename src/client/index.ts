/**
 * client: the client library: implements the service over the internal calls, by the locator's cache of tablets.
 */
export { Client } from './client.ts';
