// StorageClasses and VolumeAttributesClasses.
import type {
  V1StorageClass,
  V1TopologySelectorLabelRequirement,
  V1TopologySelectorTerm,
} from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { qualifiedName } from '#virtualapi/kinds/validation/basic-rules.ts'
import { deprecatedNodeLabel } from '#virtualapi/kinds/validation/deprecated-node-labels.ts'
import {
  all,
  changes,
  each,
  fields,
  given,
  immutable,
  nonEmpty,
  oneOf,
  present,
  required,
  unchanged,
  unique,
  validating,
  validatingChange,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type StorageClass = Data<Omit<V1StorageClass, 'metadata'>>

interface AttributesClass {
  readonly driverName: string
  readonly parameters?: Readonly<Record<string, string>>
}

const mostParameters = 512
const mostParameterBytes = 256 * 1024

/** As upstream, the error prints the name in lower case. */
const provisionerName = required((name: string, report) => report.check(qualifiedName, name.toLowerCase()))

const parameterMap: Rule<Readonly<Record<string, string>> | undefined> = (parameters = {}, report) => {
  const entries = Object.entries(parameters)
  if (entries.length > mostParameters) {
    report.tooLong('', mostParameters)
    return
  }
  const bytes = entries.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
  if ('' in parameters) report.invalid('', '', 'field can not be empty.')
  if (bytes > mostParameterBytes) report.tooLong('', mostParameterBytes)
}

type Term = Data<V1TopologySelectorTerm>

const requirement = all<Data<V1TopologySelectorLabelRequirement>>(
  fields({
    values: all<string[]>(nonEmpty(), each(unique<string>())),
    key: all<string>(qualifiedName, unique()),
  }),
)
const termRule = fields<Term>({ matchLabelExpressions: each(requirement) })

/** Bounds on errors about repeated terms, whose number grows quadratically. */
const mostRepeated = 100
const mostCauses = 10_000

const topologies: Rule<readonly Term[] | undefined> = (terms = [], report) => {
  const first = report.causes.length
  const seen = new Map<string, number>()
  for (const [index, term] of terms.entries()) {
    report.at(index, termRule, term)
    const canonical = canonicalTerm(term)
    // As upstream, which by mistake also compares each term with as many empty terms as the list has terms.
    const before = (seen.get(canonical) ?? 0) + (canonical === '[]' ? terms.length : 0)
    seen.set(canonical, (seen.get(canonical) ?? 0) + 1)
    for (let times = Math.min(before, mostRepeated); times > 0; times--)
      report.duplicate(`[${index}].matchLabelExpressions`, '')
    if (report.causes.length - first > mostCauses) return
  }
}

/** Equal for terms that select the same. If a key has several requirements, the last one counts, as upstream. */
function canonicalTerm({ matchLabelExpressions = [] }: Term): string {
  const sets = new Map(matchLabelExpressions.map(({ key, values }) => [key, values as string[] | null]))
  const pairs = [...sets].map(([key, values]) => [key, [...new Set(values ?? [])].sort()] as const)
  return JSON.stringify(pairs.sort(([a], [b]) => (a < b ? -1 : 1)))
}

export const storageClassRules: KindRules = {
  validate: validating(
    fields<StorageClass>({
      provisioner: provisionerName,
      parameters: parameterMap,
      reclaimPolicy: given(oneOf(['Delete', 'Retain'])),
      volumeBindingMode: oneOf(['Immediate', 'WaitForFirstConsumer']),
      allowedTopologies: topologies,
    }),
  ),
  validateChange: validatingChange(
    changes<StorageClass>({
      parameters: unchanged('updates to parameters are forbidden.'),
      provisioner: unchanged('updates to provisioner are forbidden.'),
      reclaimPolicy: unchanged('updates to reclaimPolicy are forbidden.'),
      volumeBindingMode: immutable(),
    }),
  ),
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

const attributesClass = fields<AttributesClass>({
  driverName: provisionerName,
  parameters: all(
    parameterMap,
    present(() => undefined, 'must contain at least one key/value pair'),
  ),
})

export const volumeAttributesClassRules: KindRules = {
  validate: validating(attributesClass),
  // As upstream, which validates an update twice.
  validateChange: validatingChange(
    all<AttributesClass, AttributesClass>(
      changes({
        driverName: unchanged('updates to driverName are forbidden.'),
        parameters: unchanged('updates to parameters are forbidden.'),
      }),
      attributesClass,
    ),
  ),
}
