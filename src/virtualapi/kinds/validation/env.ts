// Validation of environment variables.
import type {
  V1EnvFromSource,
  V1EnvVar,
  V1EnvVarSource,
  V1ObjectFieldSelector,
  V1ResourceFieldSelector,
} from '@kubernetes/client-node'
import { configMapKeyErrors } from '#apimachinery/field/index.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { objectName, qualifiedName, subdomain } from './basic-rules.ts'
import {
  all,
  fields,
  given,
  matches,
  oneOf,
  optional,
  orEmpty,
  required,
  text,
  type Report,
  type Rule,
} from './vocabulary.ts'

const envFieldPaths = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]
const convertible = new Set([
  ...envFieldPaths,
  'metadata.labels',
  'metadata.annotations',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
])
const resources = [
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
  'requests.cpu',
  'requests.memory',
  'requests.ephemeral-storage',
]
const binarySizes = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

/** A reference to a field of the pod. `allowed`: the allowed field paths, which differ between variables and files. */
export function fieldRef(allowed: readonly string[]): Rule<Data<V1ObjectFieldSelector>> {
  const allowedPath = required(oneOf(allowed))
  return ({ apiVersion, fieldPath }, report) => {
    const cannot = (why: string): void => report.invalid('fieldPath', fieldPath, `error converting fieldPath: ${why}`)
    if (!apiVersion) {
      report.required('apiVersion')
      return
    }
    if (fieldPath === '') {
      report.required('fieldPath')
      return
    }
    if (apiVersion !== 'v1') {
      cannot(`unsupported pod version: ${apiVersion}`)
      return
    }
    const bracket = fieldPath.endsWith("']") ? fieldPath.indexOf("['") : -1
    if (bracket > 0 && bracket + 2 <= fieldPath.length - 2) {
      const base = fieldPath.slice(0, bracket)
      const key = fieldPath.slice(bracket + 2, -2)
      if (base === 'metadata.labels') {
        report.check(qualifiedName, key)
        return
      }
      if (base === 'metadata.annotations') {
        report.check(qualifiedName, key.toLowerCase())
        return
      }
      cannot(`field label does not support subscript: ${fieldPath}`)
      return
    }
    // The name of the field in very old clients; upstream converts it.
    const name = fieldPath === 'spec.host' ? 'spec.nodeName' : fieldPath
    if (!convertible.has(name)) {
      cannot(`field label not supported: ${fieldPath}`)
      return
    }
    report.at('fieldPath', allowedPath, name)
  }
}

const isHugePagesRef = (resource: string): boolean => /^(limits|requests)\.hugepages-/.test(resource)
const knownResource = required(oneOf([...resources].sort()))

/** A reference to a request or limit of a container. */
export const resourceRef: Rule<Data<V1ResourceFieldSelector>> = ({ resource, divisor }, report) => {
  if (!isHugePagesRef(resource)) report.at('resource', knownResource, resource)
  checkDivisor(resource, divisor ?? '0', report)
}

/** As `resourceRef`, in a volume, which belongs to no container. */
export const resourceRefOfVolume: Rule<Data<V1ResourceFieldSelector>> = (reference, report) => {
  if (reference.containerName) {
    report.check(resourceRef, reference)
    return
  }
  report.required('containerName')
  checkDivisor(reference.resource, reference.divisor ?? '0', report)
}

/** Checks the divisor, which is the unit of the amount. */
function checkDivisor(resource: string, divisor: string, report: Report): void {
  const [, name = ''] = resource.split('.', 2)
  if (quantityOf(divisor).nanos === 0n || !(resources.includes(resource) || isHugePagesRef(resource))) return
  const units = name === 'cpu' ? ['1m', '1'] : binarySizes
  if (units.includes(divisor)) return
  const what = name === 'ephemeral-storage' ? 'local ephemeral storage' : isHugePagesRef(resource) ? 'hugepages' : name
  const list = name === 'cpu' ? '1m and 1' : units.join(', ')
  report.invalid('divisor', resource, `only divisor's values ${list} are supported with the ${what} resource`)
}

const keyRef = fields<{ readonly name?: string; readonly key: string }>({
  name: orEmpty(subdomain),
  key: required(text(configMapKeyErrors)),
})

const references = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'] as const

const source = all<Data<V1EnvVarSource>, Data<V1EnvVar>>(
  fields({
    fieldRef: optional(fieldRef(envFieldPaths)),
    resourceFieldRef: optional(resourceRef),
    configMapKeyRef: optional(keyRef),
    secretKeyRef: optional(keyRef),
  }),
  (from, report, { value }) => {
    let count = 0
    for (const member of references) if (from[member]) count++
    if (count === 0)
      report.invalid('', '', 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`')
    else if (value) report.invalid('', '', 'may not be specified when `value` is not empty')
    else if (count > 1) report.invalid('', '', 'may not have more than one field specified at a time')
  },
)

const envName = matches(
  /^[ -<>-~]+$/,
  "a valid environment variable name must consist only of printable ASCII characters other than '='",
)
const envNameOrNone = required(envName)

export const variable: Rule<Data<V1EnvVar>> = (one, report) => {
  report.at('name', envNameOrNone, one.name)
  if (one.valueFrom !== undefined) report.at('valueFrom', source, one.valueFrom, one)
}

const named = fields<{ readonly name?: string }>({ name: objectName })

/** A source of all keys of a ConfigMap or Secret. As upstream, some paths have no index. */
export const envFrom = all<Data<V1EnvFromSource>>(
  fields({ prefix: given(envName), configMapRef: optional(named), secretRef: optional(named) }),
  ({ configMapRef, secretRef }, report) => {
    if (!configMapRef && !secretRef) report.invalid('..', '', 'must specify one of: `configMapRef` or `secretRef`')
    if (configMapRef && secretRef) report.invalid('..', '', 'may not have more than one field specified at a time')
  },
)
