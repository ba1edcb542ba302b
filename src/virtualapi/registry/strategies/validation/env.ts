// Environment variables.
import type { V1EnvFromSource, V1EnvVar, V1EnvVarSource } from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired, configMapKeyErrors } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { objectName, required, requiredOneOf, subdomain } from './values.ts'

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
  'spec.hostname',
  'status.phase',
  'spec.schedulerName',
  'spec.restartPolicy',
  'status.nominatedNodeName',
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

/** A field of the pod that a container may read; `allowed` differs between variables and files. */
export function fieldRefCauses(
  path: string,
  { apiVersion, fieldPath }: { apiVersion?: string; fieldPath: string },
  allowed: readonly string[],
): StatusCause[] {
  if (!apiVersion) return [fieldRequired(`${path}.apiVersion`)]
  if (fieldPath === '') return [fieldRequired(`${path}.fieldPath`)]
  const [, base, key] = /^(metadata\.(?:labels|annotations))\['(.*)'\]$/.exec(fieldPath) ?? []
  if (base !== undefined && key !== undefined) return []
  if (!convertible.has(fieldPath))
    return [
      fieldInvalid(
        `${path}.fieldPath`,
        fieldPath,
        `error converting fieldPath: field label not supported: ${fieldPath}`,
      ),
    ]
  return requiredOneOf(`${path}.fieldPath`, fieldPath, allowed)
}

/** A request or limit that a container may read. */
export function resourceRefCauses(
  path: string,
  { resource, containerName }: { resource: string; containerName?: string },
  { needsContainer = false }: { needsContainer?: boolean } = {},
): StatusCause[] {
  if (needsContainer && !containerName) return [fieldRequired(`${path}.containerName`)]
  if (resource === '') return [fieldRequired(`${path}.resource`)]
  return /^(limits|requests)\.hugepages-/.test(resource)
    ? []
    : requiredOneOf(`${path}.resource`, resource, resourceList)
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
