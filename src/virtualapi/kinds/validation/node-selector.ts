// Validation of node selectors: terms over labels and fields of nodes, in pods and in PersistentVolumes.
import type { V1NodeSelector, V1NodeSelectorRequirement, V1NodeSelectorTerm } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labelValue, qualifiedName, subdomain } from './basic-rules.ts'
import { noOperator, operatorOf, operators } from './label-selector.ts'
import { all, each, fields, required, type Rule } from './vocabulary.ts'

type Requirement = Data<V1NodeSelectorRequirement>
type Term = Data<V1NodeSelectorTerm>

const single: Rule<readonly string[] | undefined> = (values, report) => {
  if (values?.length !== 1) report.required('', "must be specified single value when `operator` is 'Lt' or 'Gt'")
}
const preferredLabel = all<Requirement>(
  operatorOf({ ...operators, Gt: single, Lt: single }),
  fields<Requirement>({ key: qualifiedName }),
)
const requiredLabel = all(preferredLabel, fields<Requirement>({ values: each(labelValue) }))

/** metadata.name is the only field of a node that can be selected. */
const nodeField: Rule<Requirement> = ({ key, operator, values = [] }, report) => {
  if (operator !== 'In' && operator !== 'NotIn') report.invalid('operator', operator, noOperator)
  else if (values.length !== 1)
    report.required('values', "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
  if (key !== 'metadata.name') report.invalid('key', key, 'not a valid field selector key')
  else report.at('values', names, values)
}
const names = each(subdomain)

/** A preferred term. Upstream has always accepted any label value in it. */
export const preferredNodeTerm = fields<Term>({ matchExpressions: each(preferredLabel), matchFields: each(nodeField) })
const requiredTerm = fields<Term>({ matchExpressions: each(requiredLabel), matchFields: each(nodeField) })

export const nodeSelector = fields<Data<V1NodeSelector>>({
  nodeSelectorTerms: required(each(requiredTerm), 'must have at least one node selector term'),
})
