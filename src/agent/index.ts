export { type ClientCertificate, type InstallationAddress, type ProxyEnvironment } from './dial.ts'
export { Forwarder, type ForwarderOptions } from './forward-requests.ts'
export { keepTunnel, type TunnelOptions } from './tunnel.ts'
