// What a Secret with a kubeconfig looks like for the tool that reads it. Pure.
import { kubeconfigText, type DeepReadonly, type KubeconfigCredentials } from '#client/index.ts'
import type { KubeconfigEntry, KubeconfigFormat } from '#crds/index.ts'

export interface SecretRef {
  readonly namespace: string
  readonly name: string
}

/** The parts of a Secret that a format decides; `data` is base64. */
export interface SecretContent {
  readonly type: string
  readonly labels: Readonly<Record<string, string>>
  readonly data: Readonly<Record<string, string>>
}

export type Access = KubeconfigCredentials & {
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

/** Every label that a format may set: one whose entry has another format now is removed. */
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

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
