export { type ClientCertificate, type InstallationAddress } from './dial.ts'
export { ApiEntrance } from './api-entrance.ts'
export { Forwarder, type ForwarderOptions } from './forward-requests.ts'
export { keepTunnel, type TunnelOptions } from './tunnel.ts'
