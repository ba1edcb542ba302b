// Warnings about scheduling constraints of pods: deprecated node labels, and selectors that match nothing.
import type { V1Affinity, V1NodeSelectorTerm, V1PodAffinity, V1PodSpec } from '@kubernetes/client-node'
import { labelValueErrors } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deprecatedNodeLabel } from '#virtualapi/kinds/validation/deprecated-node-labels.ts'

type PodSpec = Data<V1PodSpec>
type Term = Data<V1NodeSelectorTerm>

/** Warnings about nodeSelector, node affinity and topology spread constraints of the pod spec at `path`. */
export function* nodeWarnings(path: string, spec: PodSpec): Iterable<string> {
  const { nodeSelector, affinity } = spec
  for (const key of Object.keys(nodeSelector ?? {})) {
    const why = deprecatedNodeLabel(key)
    if (why !== undefined) yield `${path}.nodeSelector[${key}]: ${why}`
  }
  if (affinity?.nodeAffinity !== undefined) yield* nodeAffinityWarnings(`${path}.affinity`, affinity)
  for (const [index, { topologyKey, labelSelector }] of (spec.topologySpreadConstraints ?? []).entries()) {
    const at = `${path}.topologySpreadConstraints[${index}]`
    const why = deprecatedNodeLabel(topologyKey)
    if (why !== undefined) yield `${at}.topologyKey: ${topologyKey} is ${why}`
    if (labelSelector === undefined) yield `${at}.labelSelector: ${matchesNothing}`
  }
}

const matchesNothing = 'a null labelSelector results in matching no pod'
const required = 'requiredDuringSchedulingIgnoredDuringExecution'
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution'

function* nodeAffinityWarnings(path: string, { nodeAffinity }: Data<V1Affinity>): Iterable<string> {
  const terms = nodeAffinity?.[required]?.nodeSelectorTerms as Term[] | null | undefined
  const at = `${path}.nodeAffinity`
  for (const [index, term] of (terms ?? []).entries())
    yield* nodeTermWarnings(`${at}.${required}.nodeSelectorTerms[${index}]`, term)
  for (const [index, { preference }] of (nodeAffinity?.[preferred] ?? []).entries())
    yield* nodeTermWarnings(`${at}.${preferred}[${index}].preference`, preference, { alsoValues: true })
}

/** Warnings about a node selector term. `alsoValues`: also warn about values that no label can have. */
export function* nodeTermWarnings(path: string, term: Term, { alsoValues = false } = {}): Iterable<string> {
  for (const [index, { key, values }] of (term.matchExpressions ?? []).entries()) {
    const at = `${path}.matchExpressions[${index}]`
    const why = deprecatedNodeLabel(key)
    if (why !== undefined) yield `${at}.key: ${key} is ${why}`
    if (!alsoValues) continue
    for (const [i, value] of (values ?? []).entries())
      for (const wrong of labelValueErrors(value)) yield `${at}.values[${i}]: ${value} is invalid, ${wrong}`
  }
}

/** Warnings about pod affinity and anti-affinity. */
export function* affinityWarnings(path: string, affinity: Data<V1Affinity> | undefined): Iterable<string> {
  if (affinity === undefined) return
  yield* podAffinityWarnings(`${path}.podAffinity`, affinity.podAffinity)
  yield* podAffinityWarnings(`${path}.podAntiAffinity`, affinity.podAntiAffinity)
}

function* podAffinityWarnings(path: string, affinity: Data<V1PodAffinity> | undefined): Iterable<string> {
  for (const [index, term] of (affinity?.[required] ?? []).entries())
    if (term.labelSelector === undefined) yield `${path}.${required}[${index}].labelSelector: ${matchesNothing}`
  for (const [index, { podAffinityTerm }] of (affinity?.[preferred] ?? []).entries())
    if (podAffinityTerm.labelSelector === undefined)
      yield `${path}.${preferred}[${index}].podAffinityTerm.labelSelector: ${matchesNothing}`
}
