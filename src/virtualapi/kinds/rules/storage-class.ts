// StorageClasses and VolumeAttributesClasses.
import { isDeepStrictEqual } from 'node:util'
import type { V1StorageClass, V1TopologySelectorTerm } from '@kubernetes/client-node'
import {
  byteLength,
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  fieldTooLong,
} from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deprecatedNodeLabel } from '#virtualapi/kinds/validation/deprecated-node-labels.ts'
import { fieldImmutable, oneOf, qualifiedName, supported } from '#virtualapi/kinds/validation/values.ts'

type StorageClass = Data<Omit<V1StorageClass, 'metadata'>>

interface AttributesClass {
  readonly driverName: string
  readonly parameters?: Readonly<Record<string, string>>
}

const mostParameters = 512
const mostParameterBytes = 256 * 1024

export const storageClassRules: KindRules = {
  validate(object) {
    const { provisioner, reclaimPolicy, volumeBindingMode, parameters, allowedTopologies } =
      object as unknown as StorageClass
    return [
      ...provisionerCauses('provisioner', provisioner),
      ...parameterCauses(parameters),
      ...oneOf('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain']),
      ...supported('volumeBindingMode', volumeBindingMode, ['Immediate', 'WaitForFirstConsumer']),
      ...topologyCauses('allowedTopologies', allowedTopologies ?? []),
    ]
  },
  validateChange(object, old) {
    const { volumeBindingMode = '' } = object as unknown as StorageClass
    return [
      ...forbiddenChanges(object, old, ['parameters', 'provisioner', 'reclaimPolicy']),
      ...(volumeBindingMode === old['volumeBindingMode']
        ? []
        : [fieldInvalid('volumeBindingMode', volumeBindingMode, fieldImmutable)]),
    ]
  },
  warningsOf(object) {
    const { allowedTopologies = [] } = object as unknown as StorageClass
    return allowedTopologies.flatMap(({ matchLabelExpressions = [] }, index) =>
      matchLabelExpressions.flatMap(({ key }, i) => {
        const why = deprecatedNodeLabel(key)
        return why === undefined ? [] : [`allowedTopologies[${index}].matchLabelExpressions[${i}].key: ${why}`]
      }),
    )
  },
}

export const volumeAttributesClassRules: KindRules = {
  validate: (object) => attributesClassCauses(object as unknown as AttributesClass),
  // As upstream, which validates an update twice.
  validateChange: (object, old) => [
    ...forbiddenChanges(object, old, ['driverName', 'parameters']),
    ...attributesClassCauses(object as unknown as AttributesClass),
  ],
}

function attributesClassCauses({ driverName, parameters }: AttributesClass): StatusCause[] {
  return [
    ...provisionerCauses('driverName', driverName),
    ...parameterCauses(parameters),
    ...(parameters === undefined ? [fieldRequired('parameters', 'must contain at least one key/value pair')] : []),
  ]
}

function forbiddenChanges(object: KubeObject, old: KubeObject, members: readonly string[]): StatusCause[] {
  return members.flatMap((member) =>
    isDeepStrictEqual(object[member], old[member])
      ? []
      : [fieldForbidden(member, `updates to ${member} are forbidden.`)],
  )
}

function provisionerCauses(path: string, provisioner: string): StatusCause[] {
  return provisioner === '' ? [fieldRequired(path)] : qualifiedName(path, provisioner.toLowerCase())
}

function parameterCauses(parameters: Readonly<Record<string, string>> = {}): StatusCause[] {
  const entries = Object.entries(parameters)
  if (entries.length > mostParameters) return [fieldTooLong('parameters', mostParameters)]
  const bytes = entries.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
  return [
    ...('' in parameters ? [fieldInvalid('parameters', '', 'field can not be empty.')] : []),
    ...(bytes > mostParameterBytes ? [fieldTooLong('parameters', mostParameterBytes)] : []),
  ]
}

type Term = Data<V1TopologySelectorTerm>

function topologyCauses(path: string, terms: readonly Term[]): StatusCause[] {
  const causes: StatusCause[] = []
  const seen = new Map<string, number>()
  for (const [index, term] of terms.entries()) {
    causes.push(...termCauses(`${path}[${index}]`, term))
    const canonical = canonicalTerm(term)
    // As upstream, which by mistake also compares each term with as many empty terms as the list has terms.
    const before = (seen.get(canonical) ?? 0) + (canonical === '[]' ? terms.length : 0)
    seen.set(canonical, (seen.get(canonical) ?? 0) + 1)
    const repeated = fieldDuplicate(`${path}[${index}].matchLabelExpressions`, '')
    for (let times = Math.min(before, mostRepeated); times > 0; times--) causes.push(repeated)
    if (causes.length > mostCauses) return causes
  }
  return causes
}

/** Bounds on errors about repeated terms, whose number grows quadratically. */
const mostRepeated = 100
const mostCauses = 10_000

function termCauses(path: string, { matchLabelExpressions = [] }: Term): StatusCause[] {
  const keys = new Set<string>()
  return matchLabelExpressions.flatMap(({ key, values }, index) => {
    const at = `${path}.matchLabelExpressions[${index}]`
    const list = (values as string[] | null) ?? []
    const causes = list.length === 0 ? [fieldRequired(`${at}.values`)] : []
    const seen = new Set<string>()
    for (const [i, value] of list.entries()) {
      if (seen.has(value)) causes.push(fieldDuplicate(`${at}.values[${i}]`, value))
      seen.add(value)
    }
    causes.push(...qualifiedName(`${at}.key`, key))
    if (keys.has(key)) causes.push(fieldDuplicate(`${at}.key`, key))
    keys.add(key)
    return causes
  })
}

/** Equal for terms that select the same. If a key has several requirements, the last one counts, as upstream. */
function canonicalTerm({ matchLabelExpressions = [] }: Term): string {
  const sets = new Map(matchLabelExpressions.map(({ key, values }) => [key, values as string[] | null]))
  const pairs = [...sets].map(([key, values]) => [key, [...new Set(values ?? [])].sort()] as const)
  return JSON.stringify(pairs.sort(([a], [b]) => (a < b ? -1 : 1)))
}
