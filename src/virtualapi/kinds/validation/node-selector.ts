// Validation of node selectors: terms over labels and fields of nodes, in pods and in PersistentVolumes.
import type { V1NodeSelector, V1NodeSelectorRequirement, V1NodeSelectorTerm } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired, labelValueErrors } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { qualifiedName, subdomain } from './values.ts'

const noOperator = 'not a valid selector operator'

/** Validates a required node selector. */
export function nodeSelectorCauses(path: string, { nodeSelectorTerms }: Data<V1NodeSelector>): StatusCause[] {
  const terms = nodeSelectorTerms as Data<V1NodeSelectorTerm>[] | null
  const at = `${path}.nodeSelectorTerms`
  if (!terms?.length) return [fieldRequired(at, 'must have at least one node selector term')]
  return terms.flatMap((term, index) => nodeTermCauses(`${at}[${index}]`, term, { checkValues: true }))
}

/** Validates one term. `checkValues`: false for preferred terms, where upstream has always accepted any label value. */
export function nodeTermCauses(
  path: string,
  { matchExpressions, matchFields }: Data<V1NodeSelectorTerm>,
  options: { checkValues: boolean },
): StatusCause[] {
  return [
    ...(matchExpressions ?? []).flatMap((item, index) =>
      labelCauses(`${path}.matchExpressions[${index}]`, item, options),
    ),
    ...(matchFields ?? []).flatMap((item, index) => fieldCauses(`${path}.matchFields[${index}]`, item)),
  ]
}

function labelCauses(
  path: string,
  { key, operator, values = [] }: Data<V1NodeSelectorRequirement>,
  { checkValues }: { checkValues: boolean },
): StatusCause[] {
  return [
    ...operatorCauses(path, operator, values),
    ...qualifiedName(`${path}.key`, key),
    ...(checkValues
      ? values.flatMap((value, index) =>
          labelValueErrors(value).map((text) => fieldInvalid(`${path}.values[${index}]`, value, text)),
        )
      : []),
  ]
}

function operatorCauses(path: string, operator: string, { length }: readonly string[]): StatusCause[] {
  const at = `${path}.values`
  switch (operator) {
    case 'In':
    case 'NotIn':
      return length > 0 ? [] : [fieldRequired(at, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      return length === 0
        ? []
        : [fieldForbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    case 'Gt':
    case 'Lt':
      return length === 1 ? [] : [fieldRequired(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    default:
      return [fieldInvalid(`${path}.operator`, operator, noOperator)]
  }
}

/** metadata.name is the only field of a node that can be selected. */
function fieldCauses(path: string, { key, operator, values = [] }: Data<V1NodeSelectorRequirement>): StatusCause[] {
  const causes: StatusCause[] = []
  if (operator !== 'In' && operator !== 'NotIn') causes.push(fieldInvalid(`${path}.operator`, operator, noOperator))
  else if (values.length !== 1)
    causes.push(
      fieldRequired(
        `${path}.values`,
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
      ),
    )
  if (key !== 'metadata.name') return [...causes, fieldInvalid(`${path}.key`, key, 'not a valid field selector key')]
  return [...causes, ...values.flatMap((value, index) => subdomain(`${path}.values[${index}]`, value))]
}
