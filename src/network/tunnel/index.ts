export {
  actingCapability,
  agentCapabilities,
  choiceHeaders,
  chooseVersion,
  chosenVersion,
  headersOf,
  readOffer,
  type TunnelOffer,
  tunnelVersions,
} from './negotiation.ts'
export {
  asSocket,
  duplexOf,
  endTogether,
  keepAlive,
  sessionSettings,
  type SessionKind,
  sessionKinds,
} from './tunnel-session.ts'
