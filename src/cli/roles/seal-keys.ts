// The keys that seal tenants' Secrets in a host: members of the Secret with the keys of the installation. One key
// seals. There may be a next key, which every process knows before any process seals with it. Former keys open Secrets
// that are not sealed anew yet.
import { randomBytes } from 'node:crypto'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { installationKeysName } from '#crds/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'

type SecretData = Readonly<Record<string, string>>

export interface SealKeys {
  readonly sealKey: Uint8Array
  /** The next key, if there is one, and the former keys. */
  readonly otherSealKeys: readonly Uint8Array[]
}

interface Secret extends KubeObject {
  data?: SecretData
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
export const sealMember = 'seal.key'
const nextMember = 'seal.next'
const formerMember = /^seal\.former-(\d+)$/

/** A new key as a member of a Secret. */
export function newSealKey(): string {
  return randomBytes(32).toString('base64')
}

/** Throws ExitError where the key that seals is missing. */
export function sealKeysOf(data: SecretData, where: string): SealKeys {
  const key = data[sealMember]
  if (key === undefined)
    throw new ExitError(`Secret "${where}" has no "${sealMember}": restore it, tenants' Secrets are sealed with it`)
  const others = Object.entries(data).flatMap(([member, other]) =>
    member === nextMember || formerMember.test(member) ? [Buffer.from(other, 'base64')] : [],
  )
  return { sealKey: Buffer.from(key, 'base64'), otherSealKeys: others }
}

/** Adds a next key, which will seal later. Throws ExitError if there is one already. */
export function withNextKey(data: SecretData): SecretData {
  if (data[nextMember] !== undefined) throw new ExitError('there is a coming key already: kcp seal-key use')
  return { ...data, [nextMember]: newSealKey() }
}

/** Makes the next key the one that seals. Throws ExitError if there is no next key. */
export function withNextKeyInUse(data: SecretData): SecretData {
  const { [nextMember]: next, [sealMember]: present = '', ...rest } = data
  if (next === undefined) throw new ExitError('there is no coming key: kcp seal-key add')
  const numbers = Object.keys(rest).map((member) => Number(formerMember.exec(member)?.[1] ?? 0))
  return { ...rest, [`seal.former-${Math.max(0, ...numbers) + 1}`]: present, [sealMember]: next }
}

/** The data without former keys. */
export function withoutFormerKeys(data: SecretData): SecretData {
  return Object.fromEntries(Object.entries(data).filter(([member]) => !formerMember.test(member)))
}

/** Reads the keys of an installation, and replaces them. Rejects with ExitError if they were changed meanwhile. */
export async function changeSealKeys(
  client: KubeClient,
  { namespace, change, signal }: { namespace: string; change: (data: SecretData) => SecretData; signal: AbortSignal },
): Promise<void> {
  const secret = await client.get<Secret>(secrets, { namespace, name: installationKeysName }, { signal })
  const data = change(secret.data ?? {})
  await client.update<Secret>(secrets, { ...secret, data }, { signal }).catch((error: unknown) => {
    if (isStatusError(error, 'Conflict')) throw new ExitError('somebody else has changed the keys: look at them again')
    throw error
  })
}
