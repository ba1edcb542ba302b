// Validation of updates of pods: few fields are mutable.
import { isDeepStrictEqual } from 'node:util'
import type { V1NodeAffinity, V1NodeSelectorTerm } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalDiff } from '#virtualapi/kinds/resources/typed/internal-diff.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import {
  appArmorOfContainer,
  mirrorAnnotation,
  podAnnotationsCauses,
} from '#virtualapi/kinds/validation/pod-annotations.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'
import { tolerationCauses } from '#virtualapi/kinds/validation/scheduling.ts'
import { between } from '#virtualapi/kinds/validation/values.ts'
import type { Pod } from './pod-object.ts'

const updatable =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'
const additionsText = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'

/** Immutable annotations of a pod; as upstream, all annotations are then validated again. */
export function annotationChangeCauses({ metadata, spec }: Pod, { metadata: old }: Pod): StatusCause[] {
  const [now = {}, before = {}] = [metadata.annotations, old.annotations]
  const path = 'metadata.annotations'
  const kindOf = (key: string): string | undefined =>
    key.startsWith(appArmorOfContainer)
      ? 'AppArmor annotations'
      : key === mirrorAnnotation
        ? 'mirror pod annotation'
        : undefined
  const changes = (from: Record<string, string>, verb: string, changed: (key: string) => boolean): StatusCause[] =>
    Object.keys(from).flatMap((key) => {
      const kind = kindOf(key)
      return kind !== undefined && changed(key) ? [fieldForbidden(`${path}[${key}]`, `may not ${verb} ${kind}`)] : []
    })
  return [
    ...changes(before, 'remove or update', (key) => now[key] !== before[key]),
    ...changes(now, 'add', (key) => before[key] === undefined),
    ...podAnnotationsCauses(path, metadata.annotations, spec),
  ]
}

/** Errors for immutable fields of a pod spec. */
export function podChangeCauses(next: PodSpec, old: PodSpec): StatusCause[] {
  const causes: StatusCause[] = []
  for (const member of ['containers', 'initContainers'] as const) {
    if ((next[member] ?? []).length !== (old[member] ?? []).length)
      return [...causes, fieldForbidden(`spec.${member}`, 'pod updates may not add or remove containers')]
    causes.push(...imageCauses(`spec.${member}`, next[member]))
  }
  const { activeDeadlineSeconds: deadline } = next
  const deadlines = deadlineCauses(deadline, old.activeDeadlineSeconds)
  causes.push(...deadlines)
  if (deadlines.length > 0 && deadline !== undefined) return causes
  causes.push(...additionCauses(next, old))
  if (isDeepStrictEqual(next, old)) return causes
  const comparable = comparableSpec(next, old)
  if (old.schedulingGates?.length) causes.push(...gatedCauses(comparable, next, old))
  if (isDeepStrictEqual(comparable, old)) return causes
  const difference = internalDiff('core.PodSpec', old, comparable)
  return [...causes, fieldForbidden('spec', `pod updates may not change fields other than ${updatable}\n${difference}`)]
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

function imageCauses(path: string, containers: readonly { image?: string }[] | undefined): StatusCause[] {
  return (containers ?? []).flatMap(({ image = '' }, index) => {
    const at = `${path}[${index}].image`
    if (image === '') return [fieldRequired(at)]
    return image.trim() === image ? [] : [fieldInvalid(at, image, 'must not have leading or trailing whitespace')]
  })
}

function deadlineCauses(now: number | undefined, before: number | undefined): StatusCause[] {
  const path = 'spec.activeDeadlineSeconds'
  if (now === undefined)
    return before === undefined
      ? []
      : [fieldInvalid(path, null, 'must not update from a positive integer to nil value')]
  const wrong = between(path, now, 0, 2 ** 31 - 1)
  if (wrong.length > 0 || before === undefined || now <= before) return wrong
  return [fieldInvalid(path, now, 'must be less than or equal to previous value')]
}

type Toleration = NonNullable<PodSpec['tolerations']>[number]

function additionCauses(next: PodSpec, old: PodSpec): StatusCause[] {
  const textOf = ({ key, operator, value, effect }: Toleration): string =>
    JSON.stringify([key ?? '', operator ?? '', value ?? '', effect ?? ''])
  const now = new Set((next.tolerations ?? []).map(textOf))
  const kept = (old.tolerations ?? []).every((toleration) => now.has(textOf(toleration)))
  const gates = new Set((old.schedulingGates ?? []).map(({ name }) => name))
  return [
    ...(kept
      ? // As upstream, which validates them again and reports each error twice.
        tolerationCauses('spec.tolerations', next.tolerations)
      : [fieldForbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]),
    ...(next.schedulingGates ?? []).flatMap(({ name }, index) =>
      gates.has(name)
        ? []
        : [
            fieldForbidden(
              `spec.schedulingGates[${index}].name`,
              `only deletion is allowed, but found new scheduling gate '${name}'`,
            ),
          ],
    ),
  ]
}

/** The node selection of a pod with scheduling gates may be narrowed. Restores the mutable fields in `comparable`. */
function gatedCauses(comparable: PodSpec, next: PodSpec, old: PodSpec): StatusCause[] {
  const causes: StatusCause[] = []
  const selector = next.nodeSelector ?? {}
  if (Object.entries(old.nodeSelector ?? {}).some(([key, value]) => selector[key] !== value))
    causes.push(fieldInvalid('spec.nodeSelector', selector, additionsText))
  restore(comparable, old, 'nodeSelector')
  const before = old.affinity?.nodeAffinity
  const now = next.affinity?.nodeAffinity
  if (isDeepStrictEqual(now, before)) return causes
  const { nodeAffinity: _n, ...others } = next.affinity ?? {}
  if (before !== undefined) comparable.affinity = { ...others, nodeAffinity: before }
  else if (old.affinity === undefined && Object.keys(others).length === 0) delete comparable.affinity
  else comparable.affinity = others
  return [...causes, ...affinityCauses(now, before)]
}

type Affinity = Data<V1NodeAffinity> | undefined
type Term = Data<V1NodeSelectorTerm>

function affinityCauses(now: Affinity, before: Affinity): StatusCause[] {
  const path = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  const termsOf = (affinity: Affinity): readonly Term[] =>
    affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const [next, old] = [termsOf(now), termsOf(before)]
  if (old.length > 0 && old.length !== next.length)
    return [
      invalidInternal(
        path,
        'core.NodeSelectorTerm',
        next.length > 0 ? next : null,
        'no additions/deletions to non-empty NodeSelectorTerms list are allowed',
      ),
    ]
  return old.flatMap((term, index) => {
    const given = next[index] ?? {}
    return onlyAdds(given, term)
      ? []
      : [
          invalidInternal(
            `${path}[${index}]`,
            'core.NodeSelectorTerm',
            given,
            'only additions are allowed (no mutations or deletions)',
          ),
        ]
  })
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
export function ephemeralContainerChangeCauses({ spec }: Pod, { spec: old, metadata }: Pod): StatusCause[] {
  if (metadata.annotations?.[mirrorAnnotation] !== undefined)
    return [fieldForbidden('', 'static pods do not support ephemeral containers')]
  const path = 'spec.ephemeralContainers'
  const next = new Map((spec.ephemeralContainers ?? []).map((container) => [container.name, container]))
  return (old.ephemeralContainers ?? []).flatMap((before) => {
    const now = next.get(before.name)
    const called = `existing ephemeral containers ${JSON.stringify(before.name)}`
    if (now === undefined) return [fieldForbidden(path, `${called} may not be removed\n`)]
    if (isDeepStrictEqual(now, before)) return []
    const difference = internalDiff('core.EphemeralContainer', before, now)
    return [fieldForbidden(path, `${called} may not be changed\n${difference}`)]
  })
}
