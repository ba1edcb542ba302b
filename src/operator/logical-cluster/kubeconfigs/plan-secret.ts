// What is left to do for the Secret of one entry. Pure: the same observation gives the same step.
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { contentHash, type KubeconfigEntry } from '#crds/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { frameOf } from './secret-format.ts'

export interface Secret extends KubeObject {
  metadata: ObjectMeta
  type?: string
  data?: Record<string, string>
}

/** Uid of the LogicalCluster a Secret was made for: only such a Secret is changed or deleted. */
export const ownerAnnotation = 'kcp.dev/kubeconfig-of'
/** When its credentials are renewed, RFC 3339. */
export const renewAfterAnnotation = 'kcp.dev/renew-after'
/** See hashOf. */
export const hashAnnotation = 'kcp.dev/kubeconfig-hash'

export interface Wanted {
  readonly entry: DeepReadonly<KubeconfigEntry>
  /** Of the LogicalCluster. */
  readonly uid: string
  readonly server: string
  /** PEM. */
  readonly ca: string
}

export type SecretStep =
  | { readonly do: 'nothing'; readonly dueMs: number }
  | { readonly do: 'write'; readonly why: 'Missing' | 'Changed' | 'RenewalDue' }
  /** The type of a Secret cannot be changed. */
  | { readonly do: 'replace' }
  | { readonly do: 'refuse' }

/** The step for an entry, given its Secret and the time (milliseconds since 1970). */
export function planSecret(wanted: Wanted, secret: DeepReadonly<Secret> | undefined, nowMs: number): SecretStep {
  if (secret === undefined) return { do: 'write', why: 'Missing' }
  if (!isOurs(secret, wanted.uid)) return { do: 'refuse' }
  const { type, labels } = frameOf(wanted.entry.format)
  if ((secret.type ?? 'Opaque') !== type) return { do: 'replace' }
  const annotations = secret.metadata.annotations ?? {}
  const isLabelled = Object.entries(labels).every(([key, value]) => secret.metadata.labels?.[key] === value)
  if (!isLabelled || annotations[hashAnnotation] !== hashOf(wanted, secret.data ?? {}))
    return { do: 'write', why: 'Changed' }
  const dueMs = Date.parse(annotations[renewAfterAnnotation] ?? '')
  return dueMs > nowMs ? { do: 'nothing', dueMs } : { do: 'write', why: 'RenewalDue' }
}

/** Whether the Secret was made for the LogicalCluster with this uid. */
export function isOurs({ metadata }: DeepReadonly<Secret>, uid: string): boolean {
  return metadata.annotations?.[ownerAnnotation] === uid
}

/** A hash of what a Secret was made from and of its data: it differs if either was changed. */
export function hashOf({ entry, server, ca }: Wanted, data: Readonly<Record<string, string>>): string {
  const { format, subject = null } = entry
  return contentHash({ format, subject, server, ca, data })
}
