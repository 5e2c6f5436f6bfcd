/**
 * protocol: the internal calls of master and tablet servers as typed messages over the transport, the refusal "not
 * serving", and the version that peers exchange.
 */
/** The parts of messages that are as in `service`. */
export type { FamilyChange, NewTable, QuotaChange } from '../service/index.ts';
export { callHandler, callMaster, callServer, type Handlers, readTablet, streamFrom } from './calls.ts';
export {
  CALL_CODEC,
  type CallCodec,
  type MessageForm,
  decodeThrown,
  encodedCall,
  encodedHandler,
  encodedStream,
  encodeThrown,
} from './codec/call-codec.ts';
export { protocolVersion } from './codec/call-messages.ts';
export { internalCallsProto } from './codec/call-proto.ts';
export { BACKUP_POLICY, type BackupPolicy, backupPolicyOf } from './backup-policy.ts';
export { checkClock, type ClockCheckParts } from './clock-check.ts';
export { deposed, isDeposed } from './deposed.ts';
export type {
  Addressed,
  BatchAnswer,
  CheckAndMutateMessage,
  CommitOutcome,
  Envelope,
  FromMaster,
  Holdings,
  TableFamilies,
  MasterCalls,
  NamedCounters,
  OfSchema,
  PassedRead,
  PassedWrite,
  ReadChangesMessage,
  ReadMessage,
  ServerStatus,
  SchemaRef,
  FileCopy,
  TabletBackup,
  TabletRef,
  TabletServerCalls,
} from './messages.ts';
export { checkAddressed, isNotServing, notLocated, notServing } from './not-serving.ts';
export {
  decodeOperationFile,
  encodeOperationFile,
  OPERATION_FILES,
  type OperationFile,
  OPERATIONS_DIRECTORY,
  operationPath,
} from './operation-file.ts';
export { hasPlace } from './own-lock.ts';
export {
  checkProtocol,
  decodeCallablePeer,
  decodePeerFile,
  encodePeerFile,
  FILES_DIRECTORY,
  LOGS_DIRECTORY,
  logPathOf,
  MASTER_PATH,
  type PeerFile,
  PROTOCOL,
  type ProtocolVersion,
  SERVERS_DIRECTORY,
} from './version.ts';
