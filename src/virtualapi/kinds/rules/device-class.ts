// DeviceClasses: device selectors and configuration.
import { isDeepStrictEqual } from 'node:util'
import type { V1DeviceClassSpec } from '@kubernetes/client-node'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deviceConfigCauses, type DeviceConfig } from '#virtualapi/kinds/validation/device-config.ts'
import { listCauses } from '#virtualapi/kinds/validation/device-names.ts'
import { selectorsCauses } from '#virtualapi/kinds/validation/device-requests.ts'
import { dropFromSpec } from './drop-from-spec.ts'

const mostConfigs = 32

export const deviceClassRules: KindRules = {
  dropDisabled: (object) => dropFromSpec(object, ['extendedResourceName']),
  validate: (object) => classCauses(object, undefined),
  // As upstream, which validates a changed DeviceClass twice, the first time as a new one.
  validateChange: classCauses,
}

function classCauses({ spec }: KubeObject, old: KubeObject | undefined): StatusCause[] {
  const { selectors = [], config = [] } = spec as Data<V1DeviceClassSpec>
  const before = old?.['spec'] as Data<V1DeviceClassSpec> | undefined
  const stored = before !== undefined && isDeepStrictEqual(config, before.config)
  return [
    ...selectorsCauses('spec.selectors', selectors, {
      stored: before !== undefined && isDeepStrictEqual(selectors, before.selectors ?? []),
    }),
    ...listCauses('spec.config', config, mostConfigs, (path, one) =>
      deviceConfigCauses(path, one as DeviceConfig, { stored }),
    ),
  ]
}
