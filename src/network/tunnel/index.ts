export {
  asSocket,
  duplexOf,
  endTogether,
  keepAlive,
  sessionSettings,
  type SessionKind,
  sessionKinds,
} from './tunnel-session.ts'
