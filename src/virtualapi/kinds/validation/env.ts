// Validation of environment variables.
import type { V1EnvFromSource, V1EnvVar, V1EnvVarSource } from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired, configMapKeyErrors } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { objectName, qualifiedName, required, requiredOneOf, subdomain } from './values.ts'

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
const envNameText = "a valid environment variable name must consist only of printable ASCII characters other than '='"
const resources = [
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
  'requests.cpu',
  'requests.memory',
  'requests.ephemeral-storage',
]
const resourceList = [...resources].sort()
const binarySizes = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

export function envCauses(path: string, variables: readonly Data<V1EnvVar>[] | undefined): StatusCause[] {
  return (variables ?? []).flatMap(({ name, value, valueFrom }, index) => {
    const at = `${path}[${index}]`
    const causes = name === '' ? [fieldRequired(`${at}.name`)] : envNameCauses(`${at}.name`, name)
    if (valueFrom !== undefined) causes.push(...sourceCauses(`${at}.valueFrom`, valueFrom, value ?? ''))
    return causes
  })
}

function envNameCauses(path: string, name: string): StatusCause[] {
  return /^[ -<>-~]+$/.test(name) ? [] : [fieldInvalid(path, name, envNameText)]
}

function sourceCauses(path: string, source: Data<V1EnvVarSource>, value: string): StatusCause[] {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source
  const causes: StatusCause[] = []
  const count = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef].filter(Boolean).length
  if (fieldRef) causes.push(...fieldRefCauses(`${path}.fieldRef`, fieldRef, envFieldPaths))
  if (resourceFieldRef) causes.push(...resourceRefCauses(`${path}.resourceFieldRef`, resourceFieldRef))
  if (configMapKeyRef) causes.push(...keyRefCauses(`${path}.configMapKeyRef`, configMapKeyRef))
  if (secretKeyRef) causes.push(...keyRefCauses(`${path}.secretKeyRef`, secretKeyRef))
  if (count === 0)
    causes.push(
      fieldInvalid(
        path,
        '',
        'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
      ),
    )
  else if (value !== '') causes.push(fieldInvalid(path, '', 'may not be specified when `value` is not empty'))
  else if (count > 1) causes.push(fieldInvalid(path, '', 'may not have more than one field specified at a time'))
  return causes
}

/** Validates a reference to a field of the pod. `allowed` differs between variables and files. */
export function fieldRefCauses(
  path: string,
  { apiVersion, fieldPath }: { apiVersion?: string; fieldPath: string },
  allowed: readonly string[],
): StatusCause[] {
  if (!apiVersion) return [fieldRequired(`${path}.apiVersion`)]
  if (fieldPath === '') return [fieldRequired(`${path}.fieldPath`)]
  const cannot = (why: string): StatusCause[] => [
    fieldInvalid(`${path}.fieldPath`, fieldPath, `error converting fieldPath: ${why}`),
  ]
  if (apiVersion !== 'v1') return cannot(`unsupported pod version: ${apiVersion}`)
  const bracket = fieldPath.endsWith("']") ? fieldPath.indexOf("['") : -1
  if (bracket > 0 && bracket + 2 <= fieldPath.length - 2) {
    const base = fieldPath.slice(0, bracket)
    const key = fieldPath.slice(bracket + 2, -2)
    if (base === 'metadata.labels') return qualifiedName(path, key)
    if (base === 'metadata.annotations') return qualifiedName(path, key.toLowerCase())
    return cannot(`field label does not support subscript: ${fieldPath}`)
  }
  // The name of the field in very old clients; upstream converts it.
  const name = fieldPath === 'spec.host' ? 'spec.nodeName' : fieldPath
  if (!convertible.has(name)) return cannot(`field label not supported: ${fieldPath}`)
  return requiredOneOf(`${path}.fieldPath`, name, allowed)
}

/** Validates a reference to a request or limit of a container. */
export function resourceRefCauses(
  path: string,
  { resource, containerName, divisor }: { resource: string; containerName?: string; divisor?: string },
  { needsContainer = false }: { needsContainer?: boolean } = {},
): StatusCause[] {
  const divisors = divisorCauses(path, resource, divisor ?? '0')
  if (needsContainer && !containerName) return [fieldRequired(`${path}.containerName`), ...divisors]
  if (resource === '') return [fieldRequired(`${path}.resource`), ...divisors]
  if (isHugePagesRef(resource)) return divisors
  return [...requiredOneOf(`${path}.resource`, resource, resourceList), ...divisors]
}

const isHugePagesRef = (resource: string): boolean => /^(limits|requests)\.hugepages-/.test(resource)

/** Validates the divisor: the unit in which the amount is expressed. */
function divisorCauses(path: string, resource: string, divisor: string): StatusCause[] {
  const [, name = ''] = resource.split('.', 2)
  if (quantityOf(divisor).nanos === 0n || !(resources.includes(resource) || isHugePagesRef(resource))) return []
  const units = name === 'cpu' ? ['1m', '1'] : binarySizes
  if (units.includes(divisor)) return []
  const what = name === 'ephemeral-storage' ? 'local ephemeral storage' : isHugePagesRef(resource) ? 'hugepages' : name
  const list = name === 'cpu' ? '1m and 1' : units.join(', ')
  const detail = `only divisor's values ${list} are supported with the ${what} resource`
  return [fieldInvalid(`${path}.divisor`, resource, detail)]
}

function keyRefCauses(path: string, { name = '', key }: { name?: string; key: string }): StatusCause[] {
  const causes = subdomain(`${path}.name`, name)
  if (key === '') causes.push(...required(`${path}.key`, key))
  else causes.push(...configMapKeyErrors(key).map((text) => fieldInvalid(`${path}.key`, key, text)))
  return causes
}

export function envFromCauses(path: string, sources: readonly Data<V1EnvFromSource>[] | undefined): StatusCause[] {
  return (sources ?? []).flatMap(({ prefix, configMapRef, secretRef }, index) => {
    const at = `${path}[${index}]`
    const causes = prefix ? envNameCauses(`${at}.prefix`, prefix) : []
    if (configMapRef) causes.push(...objectName(`${at}.configMapRef.name`, configMapRef.name))
    if (secretRef) causes.push(...objectName(`${at}.secretRef.name`, secretRef.name))
    if (!configMapRef && !secretRef)
      causes.push(fieldInvalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'))
    else if (configMapRef && secretRef)
      causes.push(fieldInvalid(path, '', 'may not have more than one field specified at a time'))
    return causes
  })
}
