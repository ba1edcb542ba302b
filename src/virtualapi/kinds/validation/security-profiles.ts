// Validation of seccomp and AppArmor profiles, as fields and as the older annotations.
import type { V1AppArmorProfile, V1SeccompProfile } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { relativePathInside } from './basic-rules.ts'
import { all, firstOf, fields, maxBytes, must, nonEmpty, oneOf, required } from './vocabulary.ts'

const knownType = oneOf(['Localhost', 'RuntimeDefault', 'Unconfined'])

/** A seccomp profile, which must name a file if and only if its type is Localhost. */
export const seccompProfile = all<Data<V1SeccompProfile>>(
  fields({ type: required(knownType, 'type is required when seccompProfile is set') }),
  (profile, report) => {
    const { type, localhostProfile: file } = profile
    if (type === 'Localhost') {
      if (file === undefined) report.required('localhostProfile', 'must be set when seccomp type is Localhost')
      else report.at('localhostProfile', relativePathInside, file)
    } else if (file !== undefined)
      report.invalidStruct(
        'localhostProfile',
        'core.SeccompProfile',
        profile,
        'can only be set when seccomp type is Localhost',
      )
  },
)

const profileName = all<string>(
  firstOf(
    must((name: string) => name.trim() === name, 'must not be padded with whitespace'),
    nonEmpty('must be set when AppArmor type is Localhost'),
  ),
  maxBytes(4095),
)

/** An AppArmor profile, which must name a profile of the node if and only if its type is Localhost. */
export const appArmorProfile = firstOf<Data<V1AppArmorProfile>>(
  fields({ type: required(knownType, 'type is required when appArmorProfile is set') }),
  ({ type, localhostProfile: name }, report) => {
    if (type === 'Localhost') report.at('localhostProfile', profileName, name ?? '')
    else if (name !== undefined)
      report.invalid('localhostProfile', name, 'can only be set when AppArmor type is Localhost')
  },
)
