// The next step for the Secret of one entry of spec.kubeconfigs, and the form of the Secret for the tool that reads it.
// Pure: the same observation gives the same step.
import { base64, type KubeObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import { type DeepReadonly, type KubeconfigCredentials, kubeconfigText } from '#client/index.ts'
import { contentHash, type KubeconfigEntry, type KubeconfigFormat } from '#crds/index.ts'

export interface Secret extends KubeObject {
  metadata: ObjectMeta
  type?: string
  data?: Record<string, string>
}

/** Uid of the LogicalCluster a Secret was made for: only such a Secret is changed or deleted. */
export const ownerAnnotation = 'kcp.dev/kubeconfig-of'
/** When its credentials are renewed, RFC 3339. */
export const renewAfterAnnotation = 'kcp.dev/renew-after'
/** Annotation with the hash of a Secret, as hashOf gives it. */
export const hashAnnotation = 'kcp.dev/kubeconfig-hash'

export interface Wanted {
  readonly entry: DeepReadonly<KubeconfigEntry>
  /** The uid of the LogicalCluster. */
  readonly uid: string
  readonly server: string
  /** PEM. */
  readonly ca: string
}

type SecretStep =
  | { readonly do: 'nothing'; readonly dueMs: number }
  | { readonly do: 'write'; readonly why: 'Missing' | 'Changed' | 'RenewalDue' }
  /** Delete the Secret and create it again, because the type of a Secret cannot be changed. */
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

export interface SecretRef {
  readonly namespace: string
  readonly name: string
}

/** The parts of a Secret that a format decides; `data` is base64. */
interface SecretContent {
  readonly type: string
  readonly labels: Readonly<Record<string, string>>
  readonly data: Readonly<Record<string, string>>
}

type Access = KubeconfigCredentials & {
  /** Name of the LogicalCluster. */
  readonly cluster: string
  readonly server: string
  /** PEM. */
  readonly ca: string
}

/** On every Secret that we keep, so that these can be watched and no others. */
export const ourLabel = 'kcp.dev/kubeconfig'

const labelsByFormat: Readonly<Record<KubeconfigFormat, Readonly<Record<string, string>>>> = {
  ClusterAPI: {},
  Flux: { 'reconcile.fluxcd.io/watch': 'Enabled' },
  ArgoCD: { 'argocd.argoproj.io/secret-type': 'cluster' },
}

/** Every label that a format may set. A label of a former format is removed from the Secret. */
export const formatLabels: readonly string[] = Object.values(labelsByFormat).flatMap((labels) => Object.keys(labels))

/** The Secret of an entry. */
export function secretRefOf({ namespace, name, format }: DeepReadonly<KubeconfigEntry>): SecretRef {
  return { namespace, name: format === 'ClusterAPI' ? `${name}-kubeconfig` : name }
}

/** The type and the labels of a Secret with this format. */
export function frameOf(format: KubeconfigFormat): Pick<SecretContent, 'type' | 'labels'> {
  return {
    type: format === 'ClusterAPI' ? 'cluster.x-k8s.io/secret' : 'Opaque',
    labels: { [ourLabel]: 'true', ...labelsByFormat[format] },
  }
}

/** The data of a Secret that gives this access. */
export function secretDataOf(format: KubeconfigFormat, access: Access): SecretContent['data'] {
  if (format !== 'ArgoCD') return { value: base64(kubeconfigText({ ...access, name: access.cluster })) }
  return {
    name: base64(access.cluster),
    server: base64(access.server),
    config: base64(JSON.stringify(argoConfigOf(access))),
  }
}

/** The `config` of a declarative cluster of Argo CD. */
function argoConfigOf(access: Access): object {
  const caData = base64(access.ca)
  if ('token' in access) return { bearerToken: access.token, tlsClientConfig: { insecure: false, caData } }
  const { cert, key } = access
  return { tlsClientConfig: { insecure: false, caData, certData: base64(cert), keyData: base64(key) } }
}
