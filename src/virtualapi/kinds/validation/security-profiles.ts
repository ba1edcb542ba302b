// Validation of seccomp and AppArmor profiles, as fields and as the older annotations.
import type { V1AppArmorProfile, V1SeccompProfile } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired, fieldTooLong } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { relativePathInside } from './values.ts'

const types = ['Localhost', 'RuntimeDefault', 'Unconfined']
const maxProfileBytes = 4095

/** Validates a seccomp profile: it names a file if and only if its type is Localhost. */
export function seccompCauses(path: string, profile: Data<V1SeccompProfile> | undefined): StatusCause[] {
  if (profile === undefined) return []
  const { type, localhostProfile } = profile
  const at = `${path}.localhostProfile`
  const causes: StatusCause[] = []
  if (type === '') causes.push(fieldRequired(`${path}.type`, 'type is required when seccompProfile is set'))
  else if (!types.includes(type)) causes.push(fieldNotSupported(`${path}.type`, type, types))
  if (type === 'Localhost') {
    if (localhostProfile === undefined) causes.push(fieldRequired(at, 'must be set when seccomp type is Localhost'))
    else causes.push(...relativePathInside(at, localhostProfile))
  } else if (localhostProfile !== undefined)
    causes.push(invalidInternal(at, 'core.SeccompProfile', profile, 'can only be set when seccomp type is Localhost'))
  return causes
}

/** Validates an AppArmor profile: it names a profile of the node if and only if its type is Localhost. */
export function appArmorCauses(path: string, profile: Data<V1AppArmorProfile> | undefined): StatusCause[] {
  if (profile === undefined) return []
  const { type, localhostProfile: name } = profile
  const at = `${path}.localhostProfile`
  if (type === '') return [fieldRequired(`${path}.type`, 'type is required when appArmorProfile is set')]
  if (!types.includes(type)) return [fieldNotSupported(`${path}.type`, type, types)]
  if (type !== 'Localhost')
    return name === undefined ? [] : [fieldInvalid(at, name, 'can only be set when AppArmor type is Localhost')]
  if (name === undefined) return [fieldRequired(at, 'must be set when AppArmor type is Localhost')]
  const causes: StatusCause[] = []
  if (name.trim() !== name) causes.push(fieldInvalid(at, name, 'must not be padded with whitespace'))
  else if (name === '') causes.push(fieldRequired(at, 'must be set when AppArmor type is Localhost'))
  if (Buffer.byteLength(name) > maxProfileBytes) causes.push(fieldTooLong(at, maxProfileBytes))
  return causes
}
