// ValidatingWebhookConfigurations and MutatingWebhookConfigurations.
import type { V1MutatingWebhook } from '@kubernetes/client-node'
import {
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  fieldDuplicate,
  fieldInvalid,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { webhookClientCauses } from '#virtualapi/kinds/validation/webhook-client.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { failurePolicies, matchPolicies, operationRuleCauses } from '#virtualapi/kinds/validation/admission-rules.ts'
import { labelSelectorCauses } from '#virtualapi/kinds/validation/label-selector.ts'
import { matchConditionCauses } from '#virtualapi/kinds/validation/match-conditions.ts'
import { supported } from '#virtualapi/kinds/validation/values.ts'

/** Mutating webhooks have all members of validating ones. */
type Webhook = Data<V1MutatingWebhook>

/** Mistakes that an update may keep because the stored object already has them. */
interface Leniency {
  readonly sideEffects?: boolean
  readonly reviewVersions?: boolean
  readonly repeatedNames?: boolean
}

const harmless = ['None', 'NoneOnDryRun']
const reviewVersions = ['v1', 'v1beta1']

/** The rules of both kinds of webhook configurations. */
export const webhookRules: KindRules = {
  validate(object, old) {
    const allowed = old === undefined ? {} : leniencyFor(webhooksOf(old))
    const names = new Set<string>()
    const before = old === undefined ? [] : webhooksOf(old)
    const stored = new Set(before.flatMap(({ matchConditions = [] }) => matchConditions.map((one) => one.expression)))
    return webhooksOf(object).flatMap((webhook, index) => {
      const at = `webhooks[${index}]`
      const { name } = webhook
      const causes = [
        ...webhookCauses(at, webhook, allowed, stored),
        ...versionCauses(`${at}.admissionReviewVersions`, webhook.admissionReviewVersions, allowed),
      ]
      if (!allowed.repeatedNames && names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
      if (name !== '') names.add(name)
      return causes
    })
  },
}

function webhooksOf(object: KubeObject): readonly Webhook[] {
  return (object['webhooks'] as Webhook[] | undefined) ?? []
}

function leniencyFor(webhooks: readonly Webhook[]): Leniency {
  return {
    sideEffects: webhooks.some(({ sideEffects }) => !harmless.includes(sideEffects)),
    reviewVersions: webhooks.some(
      ({ admissionReviewVersions: versions }) => versions.length > 0 && !versions.some(isReviewVersion),
    ),
    repeatedNames: new Set(webhooks.map(({ name }) => name)).size < webhooks.length,
  }
}

const isReviewVersion = (version: string): boolean => reviewVersions.includes(version)

function webhookCauses(
  path: string,
  webhook: Webhook,
  { sideEffects: lenient }: Leniency,
  stored: ReadonlySet<string>,
): StatusCause[] {
  const { rules = [], timeoutSeconds = 10, matchConditions = [] } = webhook
  const sideEffects = webhook.sideEffects as string | null
  const effects = lenient ? ['None', 'NoneOnDryRun', 'Some', 'Unknown'] : harmless
  return [
    ...nameCauses(`${path}.name`, webhook.name),
    ...rules.flatMap((rule, index) => operationRuleCauses(`${path}.rules[${index}]`, rule)),
    ...supported(`${path}.failurePolicy`, webhook.failurePolicy, failurePolicies),
    ...supported(`${path}.matchPolicy`, webhook.matchPolicy, matchPolicies),
    ...(sideEffects === null
      ? [fieldRequired(`${path}.sideEffects`, `must specify one of ${effects.join(', ')}`)]
      : supported(`${path}.sideEffects`, sideEffects, effects)),
    ...(timeoutSeconds < 1 || timeoutSeconds > 30
      ? [fieldInvalid(`${path}.timeoutSeconds`, timeoutSeconds, 'the timeout value must be between 1 and 30 seconds')]
      : []),
    ...labelSelectorCauses(`${path}.namespaceSelector`, webhook.namespaceSelector),
    ...labelSelectorCauses(`${path}.objectSelector`, webhook.objectSelector),
    ...supported(`${path}.reinvocationPolicy`, webhook.reinvocationPolicy, ['IfNeeded', 'Never']),
    ...webhookClientCauses(`${path}.clientConfig`, webhook.clientConfig),
    ...matchConditionCauses(`${path}.matchConditions`, matchConditions, { stored }),
  ]
}

function nameCauses(path: string, name: string): StatusCause[] {
  if (name === '') return [fieldRequired(path)]
  const wrong = dns1123SubdomainErrors(name)
  if (wrong.length > 0) return [fieldInvalid(path, name, wrong.join(','))]
  if (name.split('.').length >= 3) return []
  return [fieldInvalid(path, name, 'should be a domain with at least three segments separated by dots')]
}

function versionCauses(
  path: string,
  list: readonly string[] | null,
  { reviewVersions: lenient }: Leniency,
): StatusCause[] {
  const known = reviewVersions.join(', ')
  if (list === null || list.length === 0) return [fieldRequired(path, `must specify one of ${known}`)]
  const seen = new Set<string>()
  const causes = list.flatMap((version, index) => {
    const at = `${path}[${index}]`
    if (seen.has(version)) return [fieldInvalid(at, version, 'duplicate version')]
    seen.add(version)
    return dns1035LabelErrors(version).map((text) => fieldInvalid(at, version, text))
  })
  return lenient || list.some(isReviewVersion)
    ? causes
    : [...causes, fieldInvalid(path, [...list], `must include at least one of ${known}`)]
}
