// Calls mutating webhooks one after the other; each gets the object with the changes of the webhooks before it. After
// the object was changed, the plugins run again, and then the webhooks with reinvocationPolicy IfNeeded.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { timedOut } from '#apimachinery/status/index.ts'
import type { AdmissionRequest, MutatingRounds } from '#virtualapi/write/admission/admission.ts'
import { type Shown, shownForMutation } from '#virtualapi/write/admission/shown.ts'
import { applyVerdict } from './apply-patch.ts'
import { callWebhook } from './call-webhook.ts'
import { conditionsHold } from './match-conditions.ts'
import { matchWebhook, type Matched } from './match-webhook.ts'
import type { Webhook } from './webhook-configurations.ts'
import { WebhookCallError } from './webhook-errors.ts'
import type { WebhookDependencies } from './webhook-dependencies.ts'

export class MutatingWebhooks implements MutatingRounds {
  readonly #dependencies: WebhookDependencies
  readonly #webhooks: readonly Webhook[]
  #round = 0
  #lastOutput: KubeObject | undefined
  /** The uids of webhooks that were called, and that must be called again if the object changes after them. */
  #invoked = new Set<string>()
  #toReinvoke = new Set<string>()

  constructor(dependencies: WebhookDependencies, webhooks: readonly Webhook[]) {
    this.#dependencies = dependencies
    this.#webhooks = webhooks
  }

  async run(request: AdmissionRequest, object: KubeObject | undefined, old: KubeObject | undefined): Promise<boolean> {
    if (this.#round > 0 && !isDeepStrictEqual(object, this.#lastOutput)) this.#requireReinvocation()
    let changed = false
    for (const [index, webhook] of this.#webhooks.entries()) {
      const matched = matchWebhook(webhook, request, { object, old }, this.#dependencies)
      if (matched === undefined) continue
      const shown = await shownForMutation(matched.form, request, object, old)
      const { authorizer } = this.#dependencies
      if (webhook.matchConditions.length > 0 && !(await conditionsHold(webhook, shown, authorizer))) continue
      if (this.#round > 0 && !this.#toReinvoke.has(webhook.uid)) continue
      const changedNow = await this.#call(matched, shown, object, index)
      if (changedNow) this.#requireReinvocation()
      changed ||= changedNow
      if (webhook.reinvokes) this.#invoked.add(webhook.uid)
    }
    this.#lastOutput = structuredClone(object)
    this.#round++
    return changed
  }

  #requireReinvocation(): void {
    for (const uid of this.#invoked) this.#toReinvoke.add(uid)
    this.#invoked = new Set()
  }

  async #call({ webhook }: Matched, shown: Shown, object: KubeObject | undefined, index: number): Promise<boolean> {
    const { outbound } = this.#dependencies
    const { context, signal } = shown.request
    const place = `round_${this.#round}_index_${index}`
    const { configuration, name } = webhook
    const annotate = (changed: boolean): void =>
      context.annotate?.(
        `mutation.webhook.admission.k8s.io/${place}`,
        JSON.stringify({ configuration, webhook: name, mutated: changed }),
      )
    try {
      const verdict = await callWebhook(webhook, shown, { outbound, type: 'mutating' })
      const { changed } = (await applyVerdict(webhook, verdict, shown, object)) ?? { changed: false }
      annotate(changed)
      return changed
    } catch (error) {
      annotate(false)
      if (!(error instanceof WebhookCallError)) throw error
      if (!webhook.failsOpen) throw error.status
      context.annotate?.(`failed-open.mutation.webhook.admission.k8s.io/${place}`, name)
      if (signal.aborted) throw timedOut('request did not complete within requested timeout')
      return false
    }
  }
}
