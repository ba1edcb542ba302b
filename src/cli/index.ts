// The roles that other programs may start.
export { startEmbedded } from './roles/embedded.ts'
export { startPlainServer } from './roles/plain-server.ts'
