export * from './connect-to-member.ts'
export { connectionProtocol, remoteDialer } from './remote-dialer.ts'
