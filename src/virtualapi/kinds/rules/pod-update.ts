// Validation of updates of pods: few fields are mutable.
import { isDeepStrictEqual } from 'node:util'
import type { V1NodeAffinity, V1NodeSelectorTerm } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalDiff } from '#virtualapi/kinds/resources/typed/internal-diff.ts'
import { appArmorOfContainer, mirrorAnnotation, podAnnotations } from '#virtualapi/kinds/validation/pod-annotations.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'
import { tolerations } from '#virtualapi/kinds/validation/scheduling.ts'
import {
  between,
  each,
  fields,
  must,
  required,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { Pod } from './pod-object.ts'

const updatable =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'
const additionsText = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'

const kindOf = (key: string): string | undefined =>
  key.startsWith(appArmorOfContainer)
    ? 'AppArmor annotations'
    : key === mirrorAnnotation
      ? 'mirror pod annotation'
      : undefined

/** Immutable annotations of a pod; as upstream, all annotations are then validated again. */
export const annotationChange: Rule<Pod, Pod> = ({ metadata, spec }, report, { metadata: old }) => {
  const [now = {}, before = {}] = [metadata.annotations, old.annotations]
  const refuse = (key: string, verb: string): void => {
    const kind = kindOf(key)
    if (kind !== undefined) report.forbidden(`metadata.annotations[${key}]`, `may not ${verb} ${kind}`)
  }
  for (const key of Object.keys(before)) if (now[key] !== before[key]) refuse(key, 'remove or update')
  for (const key of Object.keys(now)) if (before[key] === undefined) refuse(key, 'add')
  report.at('metadata.annotations', podAnnotations, metadata.annotations, spec)
}

const images = each(
  fields<{ image?: string }>({
    image: required(must((image) => image.trim() === image, 'must not have leading or trailing whitespace')),
  }),
)

/** The immutable fields of a pod spec. */
export const podChange: Rule<Pod, Pod> = ({ spec: next }, report, { spec: old }) => {
  for (const member of ['containers', 'initContainers'] as const) {
    if ((next[member] ?? []).length !== (old[member] ?? []).length) {
      report.forbidden(`spec.${member}`, 'pod updates may not add or remove containers')
      return
    }
    report.at(`spec.${member}`, images, next[member])
  }
  const { activeDeadlineSeconds: deadline } = next
  const before = report.causes.length
  report.at('spec.activeDeadlineSeconds', deadlineChange, deadline, old.activeDeadlineSeconds)
  if (report.causes.length > before && deadline !== undefined) return
  checkAdditions(next, old, report)
  if (isDeepStrictEqual(next, old)) return
  const comparable = comparableSpec(next, old)
  if (old.schedulingGates?.length) checkGated(comparable, next, old, report)
  if (isDeepStrictEqual(comparable, old)) return
  const difference = internalDiff('core.PodSpec', old, comparable)
  report.forbidden('spec', `pod updates may not change fields other than ${updatable}\n${difference}`)
}

/** The new spec with the old values of mutable fields, to be compared with the old spec. */
function comparableSpec(next: PodSpec, old: PodSpec): PodSpec {
  const comparable = { ...next }
  for (const member of ['containers', 'initContainers'] as const) {
    const list = next[member]
    if (list === undefined) continue
    comparable[member] = list.map((container, index) => {
      const { image: _i, ...rest } = container
      const before = old[member]?.[index]?.image
      return before === undefined ? rest : { ...rest, image: before }
    })
  }
  for (const member of ['activeDeadlineSeconds', 'tolerations', 'schedulingGates'] as const)
    restore(comparable, old, member)
  if ((old.terminationGracePeriodSeconds ?? 0) < 0 && comparable.terminationGracePeriodSeconds === 1)
    restore(comparable, old, 'terminationGracePeriodSeconds')
  return comparable
}

function restore<Of extends object>(to: Of, from: Of, member: keyof Of): void {
  if (from[member] === undefined) Reflect.deleteProperty(to, member)
  else to[member] = from[member]
}

const seconds = between(0, 2 ** 31 - 1)

const deadlineChange: Rule<number | undefined, number | undefined> = (now, report, old) => {
  if (now !== undefined && now >= 0 && now < 2 ** 31 && old !== undefined && now > old)
    report.invalid('', now, 'must be less than or equal to previous value')
  else if (now !== undefined) report.check(seconds, now)
  else if (old !== undefined) report.invalid('', null, 'must not update from a positive integer to nil value')
}

type Toleration = NonNullable<PodSpec['tolerations']>[number]

function checkAdditions(next: PodSpec, old: PodSpec, report: Report): void {
  const textOf = ({ key, operator, value, effect }: Toleration): string =>
    JSON.stringify([key ?? '', operator ?? '', value ?? '', effect ?? ''])
  const now = new Set((next.tolerations ?? []).map(textOf))
  const kept = (old.tolerations ?? []).every((one) => now.has(textOf(one)))
  const gates = new Set((old.schedulingGates ?? []).map(({ name }) => name))
  // As upstream, which validates them again and reports each error twice.
  if (kept) report.at('spec.tolerations', tolerations, next.tolerations)
  else report.forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')
  for (const [index, { name }] of (next.schedulingGates ?? []).entries())
    if (!gates.has(name))
      report.forbidden(
        `spec.schedulingGates[${index}].name`,
        `only deletion is allowed, but found new scheduling gate '${name}'`,
      )
}

/** The node selection of a pod with scheduling gates may be narrowed. Restores the mutable fields in `comparable`. */
function checkGated(comparable: PodSpec, next: PodSpec, old: PodSpec, report: Report): void {
  const selector = next.nodeSelector ?? {}
  if (Object.entries(old.nodeSelector ?? {}).some(([key, value]) => selector[key] !== value))
    report.invalid('spec.nodeSelector', selector, additionsText)
  restore(comparable, old, 'nodeSelector')
  const before = old.affinity?.nodeAffinity
  const now = next.affinity?.nodeAffinity
  if (isDeepStrictEqual(now, before)) return
  const { nodeAffinity: _n, ...others } = next.affinity ?? {}
  if (before !== undefined) comparable.affinity = { ...others, nodeAffinity: before }
  else if (old.affinity === undefined && Object.keys(others).length === 0) delete comparable.affinity
  else comparable.affinity = others
  report.at(requiredTerms, addedTerms, now, before)
}

type Affinity = Data<V1NodeAffinity> | undefined
type Term = Data<V1NodeSelectorTerm>

const requiredTerms = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
const termsOf = (affinity: Affinity): readonly Term[] =>
  affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []

const addedTerms: Rule<Affinity, Affinity> = (now, report, before) => {
  const [next, old] = [termsOf(now), termsOf(before)]
  if (old.length > 0 && old.length !== next.length) {
    report.invalidStruct(
      '',
      'core.NodeSelectorTerm',
      next.length > 0 ? next : null,
      'no additions/deletions to non-empty NodeSelectorTerms list are allowed',
    )
    return
  }
  for (const [index, term] of old.entries()) {
    const given = next[index] ?? {}
    const detail = 'only additions are allowed (no mutations or deletions)'
    if (!onlyAdds(given, term)) report.invalidStruct(index, 'core.NodeSelectorTerm', given, detail)
  }
}

function onlyAdds(next: Term, old: Term): boolean {
  const members = ['matchExpressions', 'matchFields'] as const
  const empty = (term: Term): boolean => members.every((member) => !term[member]?.length)
  if (empty(old)) return empty(next)
  return members.every((member) => {
    const before = old[member] ?? []
    return isDeepStrictEqual((next[member] ?? []).slice(0, before.length), before)
  })
}

/** Ephemeral containers may be added, but not changed or removed. */
export const ephemeralContainerChange: Rule<Pod, Pod> = ({ spec }, report, { spec: old, metadata }) => {
  if (metadata.annotations?.[mirrorAnnotation] !== undefined) {
    report.forbidden('', 'static pods do not support ephemeral containers')
    return
  }
  const path = 'spec.ephemeralContainers'
  const next = new Map((spec.ephemeralContainers ?? []).map((container) => [container.name, container]))
  for (const before of old.ephemeralContainers ?? []) {
    const now = next.get(before.name)
    const called = `existing ephemeral containers ${JSON.stringify(before.name)}`
    if (now === undefined) report.forbidden(path, `${called} may not be removed\n`)
    else if (!isDeepStrictEqual(now, before))
      report.forbidden(path, `${called} may not be changed\n${internalDiff('core.EphemeralContainer', before, now)}`)
  }
}
