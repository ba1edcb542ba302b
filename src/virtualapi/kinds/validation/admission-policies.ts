// Validation of the parts that validating and mutating admission policies have in common.
import type { V1ParamKind, V1Variable } from '@kubernetes/client-node'
import { dns1035LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import type { PolicyCompiler } from '#virtualapi/kinds/admission-expressions/policy-compiler.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { fields, optional, required, type Rule } from './vocabulary.ts'

const apiVersion: Rule<string> = (text, report) => {
  const parts = text === '/' ? ['', ''] : text.split('/')
  if (parts.length > 2) {
    report.invalid('', text, `unexpected GroupVersion string: ${text}`)
    return
  }
  const [group, version] = parts.length === 2 ? [parts[0] ?? '', parts[1] ?? ''] : ['', text]
  const wrongGroup = group === '' ? [] : dns1123SubdomainErrors(group)
  const wrongVersion = version === '' ? [] : dns1035LabelErrors(version)
  if (wrongGroup.length > 0) report.invalid('', group, wrongGroup.join(','))
  if (version === '') report.invalid('', text, 'version must be specified')
  if (wrongVersion.length > 0) report.invalid('', version, wrongVersion.join(','))
}

const mixedCase: Rule<string> = (kind, report) => {
  const wrong = dns1035LabelErrors(kind.toLowerCase())
  if (wrong.length > 0) report.invalid('', kind, `may have mixed case, but should otherwise match: ${wrong.join(',')}`)
}

/** The kind of a policy's parameters. */
export const paramKind = optional(
  fields<Data<V1ParamKind>>({ apiVersion: required(apiVersion), kind: required(mixedCase) }),
)

const reserved: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
)

/** A variable. Expressions that are compiled after it can use it. */
export const policyVariable: Rule<Data<V1Variable>, { compiler: PolicyCompiler }> = (one, report, { compiler }) => {
  const { name, expression } = one
  const isIdentifier = /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !reserved.has(name)
  if (name.trim() === '') report.required('name', 'name is not specified')
  else if (!isIdentifier) report.invalid('name', name, 'must be a valid CEL identifier')
  if (expression.trim() === '') report.required('expression', 'expression is not specified')
  else report.add(...compiler.variable(report.path('expression'), name, expression))
}
