// The secrets that a pod may use if its ServiceAccount allows only its own.
import { tryParseBool } from '#apimachinery/text/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'

interface Named {
  readonly name?: string
}
interface Container extends Named {
  readonly env?: readonly { readonly name?: string; readonly valueFrom?: { readonly secretKeyRef?: Named } }[]
  readonly envFrom?: readonly { readonly secretRef?: Named }[]
}
interface Spec {
  readonly volumes?: readonly { readonly secret?: { readonly secretName?: string } }[]
  readonly initContainers?: readonly Container[]
  readonly containers?: readonly Container[]
  readonly ephemeralContainers?: readonly Container[]
  readonly imagePullSecrets?: readonly Named[]
}

/** A ServiceAccount's rules for secrets. */
export interface AccountSecrets {
  readonly secrets?: readonly Named[]
  readonly imagePullSecrets?: readonly Named[]
}

const annotation = 'kubernetes.io/enforce-mountable-secrets'

/**
 * The reason why a pod may not use a secret that it names, in kube-apiserver's words; undefined if it may use all of
 * them. `onlyDebugged`: check ephemeral containers only.
 */
export function secretsOutside(
  account: KubeObject & AccountSecrets,
  pod: KubeObject,
  { onlyDebugged }: { onlyDebugged: boolean },
): string | undefined {
  const { name = '', annotations = {} } = account.metadata
  if (tryParseBool(annotations[annotation] ?? '') !== true) return undefined
  const spec = pod['spec'] as Spec
  const own = new Set((account.secrets ?? []).map((secret) => secret.name))
  const why = `is not allowed because service account ${name} does not reference that`
  const ofContainers = (what: string, containers: readonly Container[] = []): string | undefined =>
    firstOf(containers, (container) => containerProblem(what, container, own, `${why} secret`))
  if (onlyDebugged) return ofContainers('ephemeral container', spec.ephemeralContainers)
  const pulls = new Set((account.imagePullSecrets ?? []).map((secret) => secret.name))
  return (
    firstOf(spec.volumes ?? [], ({ secret }) =>
      secret === undefined || own.has(secret.secretName)
        ? undefined
        : `volume with secret.secretName="${secret.secretName ?? ''}" ${why} secret`,
    ) ??
    ofContainers('init container', spec.initContainers) ??
    ofContainers('container', spec.containers) ??
    firstOf(spec.imagePullSecrets ?? [], (secret, index) =>
      pulls.has(secret.name)
        ? undefined
        : `imagePullSecrets[${index}].name="${secret.name ?? ''}" ${why} imagePullSecret`,
    )
  )
}

function containerProblem(
  what: string,
  { name = '', env = [], envFrom = [] }: Container,
  own: ReadonlySet<string | undefined>,
  why: string,
): string | undefined {
  const place = `${what} ${name} with`
  const text = (source: string, secret: Named | undefined): string | undefined =>
    secret === undefined || own.has(secret.name)
      ? undefined
      : `${place} ${source} referencing secret.secretName="${secret.name ?? ''}" ${why}`
  return (
    firstOf(env, (variable) => text(`envVar ${variable.name ?? ''}`, variable.valueFrom?.secretKeyRef)) ??
    firstOf(envFrom, ({ secretRef }) => text('envFrom', secretRef))
  )
}

function firstOf<T>(items: readonly T[], problem: (item: T, index: number) => string | undefined): string | undefined {
  for (const [index, item] of items.entries()) {
    const found = problem(item, index)
    if (found !== undefined) return found
  }
  return undefined
}
