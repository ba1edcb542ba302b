export { AgentEndpoints } from './agent-endpoints.ts'
export { AgentRegistry } from './registry.ts'
export { createTunnels, type Tunnels } from './tunnels.ts'
