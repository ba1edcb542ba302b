// Validation of what validating and mutating admission policies have in common.
import type { V1ParamKind, V1Variable } from '@kubernetes/client-node'
import { dns1035LabelErrors, dns1123SubdomainErrors, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { PolicyCompiler } from '#virtualapi/kinds/admission-expressions/policy-compiler.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

/** Validation errors of the kind of a policy's parameters; none if it has none. */
export function paramKindCauses(path: string, kindOf: Data<V1ParamKind> | undefined): StatusCause[] {
  if (kindOf === undefined) return []
  const { apiVersion = '', kind = '' } = kindOf
  const wrongKind = kind === '' ? [] : dns1035LabelErrors(kind.toLowerCase())
  return [
    ...apiVersionCauses(`${path}.apiVersion`, apiVersion),
    ...(kind === '' ? [fieldRequired(`${path}.kind`)] : []),
    ...(wrongKind.length > 0
      ? [fieldInvalid(`${path}.kind`, kind, `may have mixed case, but should otherwise match: ${wrongKind.join(',')}`)]
      : []),
  ]
}

function apiVersionCauses(path: string, apiVersion: string): StatusCause[] {
  if (apiVersion === '') return [fieldRequired(path)]
  const parts = apiVersion === '/' ? ['', ''] : apiVersion.split('/')
  if (parts.length > 2) return [fieldInvalid(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)]
  const [group, version] = parts.length === 2 ? [parts[0] ?? '', parts[1] ?? ''] : ['', apiVersion]
  const wrongGroup = group === '' ? [] : dns1123SubdomainErrors(group)
  const wrongVersion = version === '' ? [] : dns1035LabelErrors(version)
  return [
    ...(wrongGroup.length > 0 ? [fieldInvalid(path, group, wrongGroup.join(','))] : []),
    ...(version === '' ? [fieldInvalid(path, apiVersion, 'version must be specified')] : []),
    ...(wrongVersion.length > 0 ? [fieldInvalid(path, version, wrongVersion.join(','))] : []),
  ]
}

const reserved: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
)

/** Validation errors of a variable; expressions compiled after it see it. */
export function variableCauses(
  path: string,
  { name, expression }: Data<V1Variable>,
  compiler: PolicyCompiler,
): StatusCause[] {
  const isIdentifier = /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !reserved.has(name)
  return [
    ...(name.trim() === ''
      ? [fieldRequired(`${path}.name`, 'name is not specified')]
      : isIdentifier
        ? []
        : [fieldInvalid(`${path}.name`, name, 'must be a valid CEL identifier')]),
    ...(expression.trim() === ''
      ? [fieldRequired(`${path}.expression`, 'expression is not specified')]
      : compiler.variable(`${path}.expression`, name, expression)),
  ]
}
