// The admission webhooks of a logical cluster, compiled from its configurations in the order in which they are called.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelector, type LabelSelectorSource } from '#apimachinery/selector/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { outboundTarget, type StoredClientConfig } from '#virtualapi/outbound/calls/client-config.ts'
import type { OutboundTarget } from '#virtualapi/outbound/calls/outbound.ts'
import type { Provider } from '#virtualapi/write/admission/provider-admission.ts'
import type { WebhookRule } from './rule-match.ts'

export interface MatchCondition {
  readonly name: string
  readonly expression: string
}

/** One webhook of a configuration. Immutable. */
export interface Webhook {
  /** Unique among all webhooks of its type in the logical cluster. */
  readonly uid: string
  readonly configuration: string
  readonly name: string
  readonly rules: readonly WebhookRule[]
  /** failurePolicy Ignore. */
  readonly failsOpen: boolean
  /** matchPolicy Equivalent. */
  readonly matchesEquivalent: boolean
  readonly namespaceSelector: LabelSelector
  readonly objectSelector: LabelSelector
  /** True if the webhook may be called in a dry run. */
  readonly takesDryRun: boolean
  /** reinvocationPolicy IfNeeded. */
  readonly reinvokes: boolean
  readonly timeoutSeconds: number
  readonly reviewVersions: readonly string[]
  readonly target: OutboundTarget
  readonly matchConditions: readonly MatchCondition[]
  /** The provider that brings the webhook to its consumers; absent: the webhook is of the logical cluster itself. */
  readonly provider?: Provider
}

export type WebhookType = 'mutating' | 'validating'

const resources: Readonly<Record<WebhookType, string>> = {
  mutating: 'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  validating: 'validatingwebhookconfigurations.admissionregistration.k8s.io',
}
const none: readonly Webhook[] = []

/** The compiled webhooks by the watch cache's Entry, which is the same object while a configuration does not change. */
const compiled = new WeakMap<Entry, readonly Webhook[]>()
const lists = new WeakMap<ClusterObjects, Map<WebhookType, { changes: number; webhooks: readonly Webhook[] }>>()

/** The webhooks of this type: configurations by name, each with its webhooks in the order given. */
export function webhooksIn(objects: ClusterObjects, type: WebhookType): readonly Webhook[] {
  const changes = objects.changes(resources[type])
  const kept = lists.get(objects)?.get(type)
  if (kept?.changes === changes) return kept.webhooks
  const entries = objects.list({ resource: resources[type] })
  // The list is in the order of names.
  const webhooks = entries.length === 0 ? none : entries.flatMap((entry) => webhooksOf(entry))
  const ofCluster = lists.get(objects) ?? new Map<WebhookType, { changes: number; webhooks: readonly Webhook[] }>()
  ofCluster.set(type, { changes, webhooks })
  lists.set(objects, ofCluster)
  return webhooks
}

/** The webhooks of a provider that its export brings to consumers. */
export function providedWebhooks(provider: Provider, type: WebhookType): readonly Webhook[] {
  return webhooksIn(provider.objects, type)
    .filter(({ configuration }) => provider.brings('webhooks', configuration))
    .map((webhook) => ({ ...webhook, uid: `provider/${webhook.uid}`, provider }))
}

interface StoredWebhook {
  readonly name: string
  readonly rules?: readonly Partial<WebhookRule>[] | null
  readonly failurePolicy?: string
  readonly matchPolicy?: string
  readonly namespaceSelector?: LabelSelectorSource
  readonly objectSelector?: LabelSelectorSource
  readonly sideEffects?: string
  readonly reinvocationPolicy?: string
  readonly timeoutSeconds?: number
  readonly admissionReviewVersions?: readonly string[]
  readonly matchConditions?: readonly MatchCondition[]
  readonly clientConfig: StoredClientConfig
}

function webhooksOf(entry: Entry): readonly Webhook[] {
  const known = compiled.get(entry)
  if (known !== undefined) return known
  const object = decodeObject(entry.bytes) as KubeObject & { webhooks?: readonly StoredWebhook[] | null }
  const seen = new Map<string, number>()
  const webhooks = (object.webhooks ?? []).map((webhook): Webhook => {
    const index = seen.get(webhook.name) ?? 0
    seen.set(webhook.name, index + 1)
    return compile(webhook, object.metadata.name ?? '', index)
  })
  compiled.set(entry, webhooks)
  return webhooks
}

function compile(webhook: StoredWebhook, configuration: string, index: number): Webhook {
  const { name, sideEffects, rules } = webhook
  return {
    uid: `${configuration}/${name}/${index}`,
    configuration,
    name,
    rules: (rules ?? []).map(({ operations, apiGroups, apiVersions, resources: named, scope }) => ({
      operations: operations ?? [],
      apiGroups: apiGroups ?? [],
      apiVersions: apiVersions ?? [],
      resources: named ?? [],
      scope: scope ?? '*',
    })),
    failsOpen: webhook.failurePolicy === 'Ignore',
    matchesEquivalent: webhook.matchPolicy !== 'Exact',
    namespaceSelector: selectorFromObject(webhook.namespaceSelector ?? {}),
    objectSelector: selectorFromObject(webhook.objectSelector ?? {}),
    takesDryRun: sideEffects === 'None' || sideEffects === 'NoneOnDryRun',
    reinvokes: webhook.reinvocationPolicy === 'IfNeeded',
    timeoutSeconds: webhook.timeoutSeconds ?? 10,
    reviewVersions: webhook.admissionReviewVersions ?? [],
    target: outboundTarget(webhook.clientConfig),
    matchConditions: webhook.matchConditions ?? [],
  }
}
