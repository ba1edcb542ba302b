// What both ends of a tunnel agree on when it is opened: the version of its protocol, and what the agent can do. Pure.

/** The versions of the protocol that this program speaks, at both ends. */
export const tunnelVersions: readonly number[] = [1]

/**
 * The capabilities of an agent. A server uses one only with an agent that has named it, and ignores names that it does
 * not know, so a capability needs no other version.
 */
export const actingCapability = 'act-as'
export const agentCapabilities: readonly string[] = [actingCapability]

/** Headers of the request that opens a tunnel. */
const offerHeaders = {
  versions: 'kcp-tunnel-versions',
  program: 'kcp-agent-version',
  capabilities: 'kcp-agent-capabilities',
} as const
/** Headers of its response. */
export const choiceHeaders = { version: 'kcp-tunnel-version', program: 'kcp-version' } as const

/** What an agent says of itself. */
export interface TunnelOffer {
  readonly versions: readonly number[]
  readonly capabilities: readonly string[]
  /** The version of its program: a claim, to be shown only. */
  readonly program?: string
}

/** An agent from before this negotiation. */
const silentOffer: TunnelOffer = { versions: [1], capabilities: [actingCapability] }

const maxNames = 16
const versionList = /^\d{1,4}(, ?\d{1,4}){0,15}$/
const capabilityName = /^[a-z][a-z0-9-]{0,31}$/
const programName = /^[\x21-\x7e]{1,64}$/

/** The offer in the headers of a request; undefined if they cannot be read. */
export function readOffer(header: (name: string) => string | undefined): TunnelOffer | undefined {
  const versions = header(offerHeaders.versions)
  if (versions === undefined) return silentOffer
  if (!versionList.test(versions)) return undefined
  const program = header(offerHeaders.program)
  const names = listIn(header(offerHeaders.capabilities) ?? '')
  return {
    versions: listIn(versions).map(Number),
    capabilities: names.filter((name) => capabilityName.test(name)).slice(0, maxNames),
    ...(program !== undefined && programName.test(program) && { program }),
  }
}

export function headersOf({ versions, capabilities, program }: TunnelOffer): Record<string, string> {
  return {
    [offerHeaders.versions]: versions.join(', '),
    [offerHeaders.capabilities]: capabilities.join(', '),
    ...(program !== undefined && { [offerHeaders.program]: program }),
  }
}

export type VersionChoice =
  | { readonly version: number }
  /** No version is common; `older`: the end that has to be updated. */
  | { readonly older: 'agent' | 'server' }

/** The newest version that both ends speak. */
export function chooseVersion({
  server,
  agent,
}: {
  readonly server: readonly number[]
  readonly agent: readonly number[]
}): VersionChoice {
  const common = server.filter((version) => agent.includes(version))
  if (common.length > 0) return { version: Math.max(...common) }
  return { older: Math.max(...agent) < Math.max(...server) ? 'agent' : 'server' }
}

/** The version that a server has chosen. A server from before this negotiation says nothing, and speaks version 1. */
export function chosenVersion(header: string | string[] | undefined): number {
  return header === undefined ? 1 : Number(header)
}

function listIn(text: string): string[] {
  return text.split(',').map((one) => one.trim())
}
