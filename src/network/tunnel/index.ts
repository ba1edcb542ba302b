export { asSocket, duplexOf, keepAlive, sessionSettings, type SessionKind, sessionKinds } from './tunnel-session.ts'
