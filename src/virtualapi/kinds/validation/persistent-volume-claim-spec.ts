// Validation of the spec of a PersistentVolumeClaim: in claims, StatefulSet templates and ephemeral volumes of pods.
import type {
  V1PersistentVolumeClaimSpec,
  V1PersistentVolumeClaimTemplate,
  V1TypedObjectReference,
} from '@kubernetes/client-node'
import {
  dns1123SubdomainErrors,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labelSelectorCauses } from './label-selector.ts'
import { positiveQuantity } from './resources.ts'
import { annotationsCauses, label, labels, required, subdomain } from './values.ts'

export type ClaimSpec = Data<V1PersistentVolumeClaimSpec>

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
export const volumeModes = ['Block', 'Filesystem']

/** Validation errors of the claim spec at `path`. */
export function claimSpecCauses(path: string, spec: ClaimSpec): StatusCause[] {
  const { accessModes: modes, resources, storageClassName, volumeMode, volumeAttributesClassName } = spec
  const storage = resources?.requests?.['storage']
  return [
    ...(modes?.length ? [] : [fieldRequired(`${path}.accessModes`, 'at least 1 access mode is required')]),
    ...labelSelectorCauses(`${path}.selector`, spec.selector),
    ...accessModesCauses(`${path}.accessModes`, modes),
    ...(storage === undefined
      ? [fieldRequired(`${path}.resources[storage]`)]
      : positiveQuantity(`${path}.resources[storage]`, storage)),
    ...(storageClassName ? subdomain(`${path}.storageClassName`, storageClassName) : []),
    ...(volumeMode === undefined || volumeModes.includes(volumeMode)
      ? []
      : [fieldNotSupported(`${path}.volumeMode`, volumeMode, volumeModes)]),
    ...sourcesCauses(path, spec),
    ...(volumeAttributesClassName ? subdomain(`${path}.volumeAttributesClassName`, volumeAttributesClassName) : []),
  ]
}

/** Validation errors of access modes: each must be known, and ReadWriteOncePod excludes all others. */
export function accessModesCauses(path: string, modes: readonly string[] | undefined): StatusCause[] {
  if (modes === undefined) return []
  const causes = modes
    .filter((mode) => !accessModes.includes(mode))
    .map((mode) => fieldNotSupported(path, mode, accessModes))
  if (
    modes.includes('ReadWriteOncePod') &&
    modes.some((mode) => mode !== 'ReadWriteOncePod' && accessModes.includes(mode))
  )
    causes.push(fieldForbidden(path, 'may not use ReadWriteOncePod with other access modes'))
  return causes
}

function sourcesCauses(path: string, { dataSource, dataSourceRef }: ClaimSpec): StatusCause[] {
  const causes = [
    ...(dataSource ? sourceCauses(`${path}.dataSource`, dataSource) : []),
    ...(dataSourceRef ? sourceCauses(`${path}.dataSourceRef`, dataSourceRef) : []),
  ]
  if (!dataSource || !dataSourceRef) return causes
  const { apiGroup, kind, name } = dataSource
  const same = apiGroup === dataSourceRef.apiGroup && kind === dataSourceRef.kind && name === dataSourceRef.name
  // As upstream, where the value is a field path by mistake, which prints as {}.
  if (dataSourceRef.namespace)
    causes.push(fieldInvalid(path, {}, 'may not be specified when dataSourceRef.namespace is specified'))
  else if (!same) causes.push(fieldInvalid(path, {}, 'must match dataSourceRef'))
  return causes
}

function sourceCauses(path: string, source: Data<V1TypedObjectReference>): StatusCause[] {
  const { kind, name, namespace } = source
  // Decoding sets an absent apiGroup to null.
  const apiGroup = (source.apiGroup as string | null | undefined) ?? ''
  const causes = [...required(`${path}.name`, name), ...required(`${path}.kind`, kind)]
  if (apiGroup === '' && kind !== 'PersistentVolumeClaim')
    causes.push(fieldInvalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
  if (apiGroup !== '')
    causes.push(...dns1123SubdomainErrors(apiGroup).map((text) => fieldInvalid(`${path}.apiGroup`, apiGroup, text)))
  return namespace ? [...causes, ...label(`${path}.namespace`, namespace)] : causes
}

/**
 * Validation errors of the template of an ephemeral volume's claim. Its metadata may only have labels and annotations.
 */
export function claimTemplateCauses(path: string, template: Data<V1PersistentVolumeClaimTemplate>): StatusCause[] {
  const { annotations, labels: own, ...others } = template.metadata ?? {}
  const at = `${path}.metadata`
  return [
    ...annotationsCauses(`${at}.annotations`, annotations),
    ...labels(`${at}.labels`, own),
    ...Object.keys(others).map((member) => fieldForbidden(`${at}.${member}`, 'cannot be set')),
    ...claimSpecCauses(`${path}.spec`, template.spec),
  ]
}
