export * from './connect-to-member.ts'
export * from './dial-pod.ts'
export { connectionProtocol, remoteDialer } from './remote-dialer.ts'
