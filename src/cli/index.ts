// The parts of the program that `kcp/testing` starts and uses.
export { untilReady } from './commands/create.ts'
export { issueKubeconfig, nameOfLogicalCluster } from './commands/credentials.ts'
export { startEmbedded } from './roles/embedded.ts'
export { startPlainServer } from './roles/plain-server.ts'
