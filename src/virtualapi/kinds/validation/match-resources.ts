// Validation of MatchResources: the requests that an admission policy or its binding handles.
import type { V1MatchResources } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { matchPolicy, operationRule } from './admission-rules.ts'
import { pathSegment } from './basic-rules.ts'
import { labelSelector } from './label-selector.ts'
import { all, each, fields, nonEmpty, optional, present, unique } from './vocabulary.ts'

type MatchResources = Data<V1MatchResources>
type NamedRule = NonNullable<MatchResources['resourceRules']>[number]

const namedRule = all<NamedRule>(fields({ resourceNames: each(all<string>(pathSegment, unique())) }), operationRule)

const resources = fields<MatchResources>({
  matchPolicy,
  namespaceSelector: labelSelector,
  objectSelector: labelSelector,
  resourceRules: each(namedRule),
  excludeResourceRules: each(namedRule),
})

/** MatchResources that have their defaults. */
export const matchResources = optional(resources)

/** matchConstraints of a policy, which must have at least one resource rule. */
export const matchConstraints = present(all<MatchResources>(resources, fields({ resourceRules: nonEmpty() })))
