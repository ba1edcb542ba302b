export { AgentEndpoints } from './agent-endpoints.ts'
export { Enrolment } from './enrolment.ts'
export { AgentRegistry } from './registry.ts'
export { createTunnels, type Tunnels } from './tunnels.ts'
