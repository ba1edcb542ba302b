// The Secret that joining makes for the agent: where the installation is, and the one-time token.
import { createHash } from 'node:crypto'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { memberParts } from '#crds/index.ts'
import type { InstallationAddress } from './dial.ts'

export interface JoinSettings {
  /** The agent trusts no other authority than that of the installation. */
  readonly installation: InstallationAddress
  /** Name of the MemberCluster. */
  readonly member: string
  readonly token: string
  /** SHA-256 of the token, hexadecimal. */
  readonly tokenHash: string
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

/** Undefined if there is no such Secret. Rejects with a plain Error if it cannot be used. */
export async function readJoinSettings(
  client: Pick<KubeClient, 'tryGet'>,
  namespace: string,
  signal: AbortSignal,
): Promise<JoinSettings | undefined> {
  const name = memberParts.agentJoin
  const secret = await client.tryGet<KubeObject>(secrets, { namespace, name }, { signal })
  if (secret === undefined) return undefined
  const data = (secret['data'] ?? {}) as Record<string, string>
  const read = (key: string): string => {
    const text = Buffer.from(data[key] ?? '', 'base64')
      .toString()
      .trim()
    if (text === '') throw new Error(`Secret "${namespace}/${name}" has no "${key}": apply the manifest again`)
    return text
  }
  const [server, member, token] = ['server', 'member', 'token'].map(read) as [string, string, string]
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:')
    throw new Error(`"server" of Secret "${namespace}/${name}" is no https URL`)
  const { origin } = new URL(server)
  const tokenHash = createHash('sha256').update(token).digest('hex')
  return { installation: { url: origin, ca: `${read('ca.crt')}\n` }, member, token, tokenHash }
}
