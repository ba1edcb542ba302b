// ValidatingWebhookConfigurations and MutatingWebhookConfigurations.
import type { V1MutatingWebhook } from '@kubernetes/client-node'
import { dns1035LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { failurePolicy, matchPolicy, operationRule } from '#virtualapi/kinds/validation/admission-rules.ts'
import { labelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import { matchConditions } from '#virtualapi/kinds/validation/match-conditions.ts'
import {
  all,
  each,
  fields,
  must,
  oneOf,
  present,
  required,
  text,
  unique,
  validating,
  when,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { webhookClient } from '#virtualapi/kinds/validation/webhook-client.ts'
import type { KindRules } from './kind-rules.ts'

/** Mutating webhooks have all members of validating ones. */
type Webhook = Data<V1MutatingWebhook>

/** Mistakes that an update may keep because the stored object already has them. */
interface Leniency {
  readonly sideEffects?: boolean
  readonly reviewVersions?: boolean
  readonly repeatedNames?: boolean
}

interface Context extends Leniency {
  /** Expressions that were there before. */
  readonly stored: ReadonlySet<string>
}

const harmless = ['None', 'NoneOnDryRun']
const reviewVersions = ['v1', 'v1beta1']
const isReviewVersion = (version: string): boolean => reviewVersions.includes(version)

const webhookName = required((name: string, report) => {
  const wrong = dns1123SubdomainErrors(name)
  if (wrong.length > 0) report.invalid('', name, wrong.join(','))
  else if (name.split('.').length < 3)
    report.invalid('', name, 'should be a domain with at least three segments separated by dots')
})

const effectsOf = (words: readonly string[]): Rule<string | null> =>
  present(oneOf(words), `must specify one of ${words.join(', ')}`)
const sideEffect = effectsOf(harmless)
const anySideEffect = effectsOf([...harmless, 'Some', 'Unknown'])

const reviewVersion: Rule<string> = (version, report) => {
  if (report.isRepeated(reviewVersion, version)) report.invalid('', version, 'duplicate version')
  else report.check(label1035, version)
}
const label1035 = text(dns1035LabelErrors)
const versions = required(
  all<string[], Context>(each(reviewVersion), (list, report, { reviewVersions: lenient }) => {
    if (!lenient && !list.some(isReviewVersion))
      report.invalid('', list, `must include at least one of ${reviewVersions.join(', ')}`)
  }),
  `must specify one of ${reviewVersions.join(', ')}`,
)

const repeatedName = unique<Webhook>('name', ({ name }) => name)

const webhook = all<Webhook, Context>(
  fields<Webhook, Context>({
    name: webhookName,
    rules: each(operationRule),
    failurePolicy,
    matchPolicy,
    sideEffects: (effects, report, { sideEffects: lenient }) =>
      report.check(lenient ? anySideEffect : sideEffect, effects),
    timeoutSeconds: must(
      (seconds: number) => seconds >= 1 && seconds <= 30,
      'the timeout value must be between 1 and 30 seconds',
    ),
    namespaceSelector: labelSelector,
    objectSelector: labelSelector,
    reinvocationPolicy: oneOf(['IfNeeded', 'Never']),
    clientConfig: (config, report) => report.check(webhookClient, config as JsonObject),
    matchConditions,
    admissionReviewVersions: versions,
  }),
  when<Webhook, Context>(({ name }, { repeatedNames: lenient }) => !lenient && name !== '', repeatedName),
)
const webhookList = each(webhook)

/** The rules of both kinds of webhook configurations. */
export const webhookRules: KindRules = {
  validate: validating<KubeObject>((object, report, old) => {
    const before = old === undefined ? [] : webhooksOf(old)
    const stored = new Set(before.flatMap(({ matchConditions: list = [] }) => list.map((one) => one.expression)))
    const allowed = old === undefined ? {} : leniencyFor(before)
    report.at('webhooks', webhookList, webhooksOf(object), { ...allowed, stored })
  }),
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
