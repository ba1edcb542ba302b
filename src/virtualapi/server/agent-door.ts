// The contract between the listener and the endpoints of members' agents, which are a room above this one.
import type { IncomingRequest } from '#virtualapi/request/exchange.ts'
import type { Handled } from './handle.ts'
import type { UpgradeRequest } from './upgrade.ts'

/** Requests for paths that begin with this are those of agents, and of processes that use their tunnels. */
export const agentPath = '/services/agent/'

export interface AgentDoor {
  /** Answers a request. Never rejects. */
  handle(request: IncomingRequest): Promise<Handled>
  /** Answers an upgrade on its socket. Never rejects. */
  upgrade(upgrading: UpgradeRequest): Promise<void>
}
