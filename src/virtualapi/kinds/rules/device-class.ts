// DeviceClasses: device selectors and configuration.
import { isDeepStrictEqual } from 'node:util'
import type { V1DeviceClassSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deviceConfig, type DeviceConfig } from '#virtualapi/kinds/validation/device-config.ts'
import { keyedList } from '#virtualapi/kinds/validation/device-names.ts'
import { deviceSelectors } from '#virtualapi/kinds/validation/device-requests.ts'
import { validating, validatingChange, type ObjectOf, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'
import { dropFromSpec } from './drop-from-spec.ts'
import type { KindRules } from './kind-rules.ts'

type DeviceClass = ObjectOf<Data<V1DeviceClassSpec>>

const configs = keyedList(deviceConfig, { most: 32 })

const classRule: Rule<DeviceClass, DeviceClass | undefined> = ({ spec }, report, old) => {
  const { selectors = [], config = [] } = spec
  const before = old?.spec
  const sameSelectors = before !== undefined && isDeepStrictEqual(selectors, before.selectors ?? [])
  const sameConfig = before !== undefined && isDeepStrictEqual(config, before.config)
  report.at('spec.selectors', deviceSelectors, selectors, { stored: sameSelectors })
  report.at('spec.config', configs, config as DeviceConfig[], { stored: sameConfig })
}

export const deviceClassRules: KindRules = {
  dropDisabled: (object) => dropFromSpec(object, ['extendedResourceName']),
  validate: validating<DeviceClass>((object, report) => report.check(classRule, object, undefined)),
  // As upstream, which validates a changed DeviceClass twice, the first time as a new one.
  validateChange: validatingChange<DeviceClass>(classRule),
}
