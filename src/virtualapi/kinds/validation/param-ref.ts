// Validation of the reference of an admission policy's binding to parameters.
import type { V1ParamRef } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { pathSegment } from './basic-rules.ts'
import { labelSelector } from './label-selector.ts'
import { all, fields, forbidden, given, oneOf, optional, required, when } from './vocabulary.ts'

type ParamRef = Data<V1ParamRef>

const notBoth = forbidden('name and selector are mutually exclusive')
const hasBoth = ({ name, selector }: ParamRef): boolean => !!name && selector !== undefined

export const paramRef = optional(
  all<ParamRef>(
    fields({ name: given(pathSegment) }),
    when(hasBoth, fields({ name: notBoth })),
    fields({ selector: labelSelector }),
    when(hasBoth, fields({ selector: notBoth })),
    ({ name, selector }, report) => {
      if (!name && selector === undefined) report.required('', 'one of name or selector must be specified')
    },
    fields({ parameterNotFoundAction: required(oneOf(['Deny', 'Allow'])) }),
  ),
)
