// Validation of the reference of an admission policy's binding to parameters.
import type { V1ParamRef } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labelSelectorCauses } from './label-selector.ts'

const notBoth = 'name and selector are mutually exclusive'

/** Validation errors of a paramRef; none if absent. */
export function paramRefCauses(path: string, reference: Data<V1ParamRef> | undefined): StatusCause[] {
  if (reference === undefined) return []
  const { name = '', selector, parameterNotFoundAction: action = '' } = reference
  const both = name !== '' && selector !== undefined
  return [
    ...(name === ''
      ? []
      : pathSegmentName(name, { prefix: false }).map((text) => fieldInvalid(`${path}.name`, name, text))),
    ...(both ? [fieldForbidden(`${path}.name`, notBoth)] : []),
    ...labelSelectorCauses(`${path}.selector`, selector),
    ...(both ? [fieldForbidden(`${path}.selector`, notBoth)] : []),
    ...(name === '' && selector === undefined
      ? [fieldRequired(path, 'one of name or selector must be specified')]
      : []),
    ...(action === ''
      ? [fieldRequired(`${path}.parameterNotFoundAction`)]
      : action === 'Deny' || action === 'Allow'
        ? []
        : [fieldNotSupported(`${path}.parameterNotFoundAction`, action, ['Deny', 'Allow'])]),
  ]
}
