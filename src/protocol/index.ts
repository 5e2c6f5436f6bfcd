/**
 * protocol: the internal calls of master and tablet servers as typed messages over the transport, the refusal "not serving", and the version
 * that peers exchange.
 */
export { callHandler, callMaster, callServer, errorOf, type Handlers, plainError, readTablet } from './calls.ts';
export type {
  CheckAndMutateMessage,
  CommitOutcome,
  FamilyChangeMessage,
  Holdings,
  MasterCalls,
  NamedCounters,
  NewTableMessage,
  PlainError,
  ReadMessage,
  ServerStatus,
  TabletRef,
  TabletServerCalls,
} from './messages.ts';
export { isNotServing, notServing } from './not-serving.ts';
export {
  checkProtocol,
  decodePeerFile,
  encodePeerFile,
  FILES_DIRECTORY,
  LOGS_DIRECTORY,
  logPathOf,
  MASTER_PATH,
  type PeerFile,
  PROTOCOL,
  SERVERS_DIRECTORY,
} from './version.ts';
