export { startGateway, type Gateway, type GatewayOptions } from './start-gateway.ts'
