/**
 * locator: finds the server of a row by the three levels of the paper, reads and commits rows of METADATA through it,
 * and knows the tables' schemas. Used by clients, tablet servers and masters alike.
 */
export { Backoff } from './backoff.ts';
export type { AssignedTablet } from './location-cache.ts';
export { Locator } from './locator.ts';
export { MetadataClient } from './metadata-client.ts';
export { RowCollector } from './row-collector.ts';
export { loggingSchemaCache, SchemaCache } from './schema-cache.ts';
