// One check of the Pod Security Standards, and the pieces of text that the messages of several checks share.
import type { ContainerToCheck, PodToCheck, SecurityContextToCheck } from './pod-to-check.ts'

/** Why a pod is refused by one check. */
export interface PodSecurityViolation {
  /** Short, without values: `host namespaces`. */
  readonly reason: string
  /** The fields of this pod: `hostNetwork=true`. */
  readonly detail: string
}

/** A check of a pod. Returns undefined if the pod is allowed. */
export type CheckPod = (pod: PodToCheck) => PodSecurityViolation | undefined

export interface PodCheck {
  /** Upstream's id; checks of a level run in the order of their ids. */
  readonly id: string
  /** The check by the first minor version of Kubernetes that it applies to, oldest first. */
  readonly versions: readonly (readonly [sinceMinor: number, check: CheckPod])[]
  /** For a restricted check, the id of the baseline check that it replaces. */
  readonly overrides?: string
}

/** All containers, in the order in which messages name them. */
export function containersOf({ spec }: PodToCheck): ContainerToCheck[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])]
}

/** The names of the containers for which `isBad` holds. */
export function badContainers(pod: PodToCheck, isBad: (container: ContainerToCheck) => boolean): string[] {
  return containersOf(pod)
    .filter(isBad)
    .map(({ name = '' }) => name)
}

export function quoted(items: readonly string[]): string {
  return items.map((item) => `"${item}"`).join(', ')
}

export function plural(singular: string, pluralForm: string, count: number): string {
  return count === 1 ? singular : pluralForm
}

/** `container "a"` or `containers "a", "b"`. */
export function containersText(names: readonly string[]): string {
  return `${plural('container', 'containers', names.length)} ${quoted(names)}`
}

/**
 * `pod and containers "a", "b"`: the pod and the containers that set a field to a forbidden value; empty if none does.
 */
export function settersText(pod: PodToCheck, isBad: (context: SecurityContextToCheck) => boolean): readonly string[] {
  const context = pod.spec.securityContext
  const names = badContainers(pod, ({ securityContext }) => securityContext !== undefined && isBad(securityContext))
  return [
    ...(context !== undefined && isBad(context) ? ['pod'] : []),
    ...(names.length > 0 ? [containersText(names)] : []),
  ]
}

/** Unique texts in byte order, as Go sorts them. */
export function sortedSet(items: Iterable<string>): string[] {
  return [...new Set(items)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}
