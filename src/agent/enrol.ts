// Keeps the agent's certificate: asks for the first one with the one-time token, renews it with a new key at two thirds
// of its life, asks an admin when it has expired, and begins again when an admin joins the member with another token.
// Says in the log and in Events why it waits.
import { sleep, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { AgentClaims } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { fingerprintOf, newAgentKey, requireOwnCertificate, signingRequest, timesOf } from './agent-key.ts'
import { askForCertificate, type CertificateAnswer } from './ask-for-certificate.ts'
import type { ClientCertificate } from './dial.ts'
import { readJoinSettings, type JoinSettings } from './join-settings.ts'
import { IdentityStore, type KeptIdentity } from './kept-identity.ts'

export interface EnrolOptions {
  /** The member's API. */
  readonly client: Pick<KubeClient, 'tryGet' | 'create' | 'patch'>
  /** The namespace of the agent. */
  readonly namespace: string
  readonly claims: (signal: AbortSignal) => Promise<AgentClaims>
  /** Called with each certificate that is to be used from now on. */
  readonly enrolled: (settings: JoinSettings, certificate: ClientCertificate) => void
  /** Called when the state changes: why the agent waits, or that it has a certificate. */
  readonly tell: (state: EnrolState) => Promise<void>
  readonly clock: Pick<Clock, 'now'>
  /** Milliseconds between two looks at the Secrets, which another replica or an admin may have changed. Default 15 s. */
  readonly lookMs?: number
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface EnrolState {
  readonly type: 'Normal' | 'Warning'
  /** As in Events. */
  readonly reason: 'Enrolled' | 'Renewed' | 'WaitingForApproval' | 'Refused' | 'Unreachable' | 'NotConfigured'
  readonly message: string
}

/** What a certificate is asked for with: the token, the present certificate, or the one that has expired. */
type Asking = 'first' | 'renewal' | 'readmission'

const defaultLookMs = 15_000
/** Milliseconds between two questions whether an admin has approved the key. */
const approvalMs = 5000
/** Milliseconds until a failed question is repeated: the first time, and at most. */
const [firstWaitMs, maxWaitMs] = [1000, 60_000]

/** Runs until the signal aborts. */
export async function keepCertificate(options: EnrolOptions): Promise<void> {
  const { signal } = options
  const enrolment = new Enrolment(options)
  while (!signal.aborted) await sleep(await enrolment.step(), signal).catch(() => undefined)
}

class Enrolment {
  readonly #options: EnrolOptions
  readonly #store: IdentityStore
  #used: string | undefined
  #told: string | undefined
  #failures = 0

  constructor(options: EnrolOptions) {
    this.#options = options
    this.#store = new IdentityStore(options.client, options.namespace)
  }

  /** Does what is to be done now. Resolves with the milliseconds to wait. Never rejects. */
  async step(): Promise<number> {
    const { signal, namespace, client } = this.#options
    try {
      const settings = await readJoinSettings(client, namespace, signal)
      if (settings === undefined)
        return await this.#failed('NotConfigured', `there is no Secret "${namespace}/kcp-agent-join"`)
      const identity = await this.#store.of(settings.tokenHash, signal)
      return await this.#withIdentity(settings, identity)
    } catch (error) {
      if (signal.aborted) return 0
      return await this.#failed('Unreachable', messageOf(error))
    }
  }

  async #withIdentity(settings: JoinSettings, identity: KeptIdentity): Promise<number> {
    const { clock, lookMs = defaultLookMs } = this.#options
    const { key, certificate } = identity
    const times = certificate === undefined ? undefined : timesOf(certificate)
    const isUsable = times !== undefined && clock.now() < times.endMs
    if (certificate !== undefined && isUsable) this.#use(settings, { certificate, key })
    if (isUsable && clock.now() < times.dueMs) {
      this.#failures = 0
      return Math.min(lookMs, times.dueMs - clock.now())
    }
    const asking = isUsable ? 'renewal' : times === undefined ? 'first' : 'readmission'
    return await this.#ask(settings, identity, asking)
  }

  async #ask(settings: JoinSettings, identity: KeptIdentity, asking: Asking): Promise<number> {
    const { claims, signal } = this.#options
    const { key: present, certificate } = identity
    const told = await claims(signal)
    const askFor = async (key: string): Promise<CertificateAnswer> =>
      await askForCertificate(
        {
          settings,
          signingRequest: await signingRequest(key, settings.member),
          claims: told,
          ...(certificate !== undefined && { client: { certificate, key: present } }),
        },
        signal,
      )
    const key = asking === 'renewal' ? newAgentKey() : present
    const answer = await askFor(key)
    // An installation from before keys were renewed, too, refuses every key but the present one.
    if (key !== present && answer.kind === 'refused' && answer.isForbidden)
      return await this.#take(await askFor(present), settings, { identity, key: present, asking })
    return await this.#take(answer, settings, { identity, key, asking })
  }

  async #take(
    answer: CertificateAnswer,
    settings: JoinSettings,
    { identity, key, asking }: { readonly identity: KeptIdentity; readonly key: string; readonly asking: Asking },
  ): Promise<number> {
    switch (answer.kind) {
      case 'waiting': {
        this.#failures = 0
        const message = `approve the key ${fingerprintOf(key)} with: kcp member approve ${settings.member}`
        await this.#tell({ type: 'Normal', reason: 'WaitingForApproval', message })
        return approvalMs * (0.8 + Math.random() * 0.4)
      }
      case 'refused':
        return await this.#failed('Refused', this.#adviceOn(answer, asking), answer.afterMs)
      case 'issued': {
        requireOwnCertificate(answer.certificate, key, settings.member)
        const { certificate } = answer
        const isKept = await this.#store.keep(identity, { certificate, key }, this.#options.signal)
        this.#failures = 0
        // Another replica was faster: the next step uses what it has kept.
        if (!isKept) return 0
        this.#use(settings, { certificate, key })
        const message = `the certificate of member "${settings.member}" is valid until ${new Date(timesOf(certificate).endMs).toISOString()}`
        await this.#tell({ type: 'Normal', reason: asking === 'renewal' ? 'Renewed' : 'Enrolled', message })
        return 0
      }
    }
  }

  #adviceOn({ isProof, message }: Extract<CertificateAnswer, { kind: 'refused' }>, asking: Asking): string {
    if (!isProof) return `the installation answers ${message}`
    if (asking === 'readmission')
      return `the certificate has expired, and the installation gives no other one for it (${message}): run kcp member join --pull again, and apply what it prints`
    return asking === 'renewal'
      ? `the installation does not renew the certificate, which may have been revoked (${message}): run kcp member join --pull again`
      : `the installation does not accept the token (${message}): run kcp member join --pull again, and apply what it prints`
  }

  #use(settings: JoinSettings, certificate: ClientCertificate): void {
    const text = JSON.stringify([settings.installation, certificate.certificate])
    if (this.#used === text) return
    this.#used = text
    this.#options.enrolled(settings, certificate)
  }

  /** Tells of a failure. Resolves with the milliseconds to wait, which become more with each failure. */
  async #failed(reason: EnrolState['reason'], message: string, afterMs = 0): Promise<number> {
    await this.#tell({ type: 'Warning', reason, message })
    const waitMs = Math.min(firstWaitMs * 2 ** Math.min(this.#failures++, 10), maxWaitMs)
    return Math.max(afterMs, waitMs * (0.75 + Math.random() * 0.25))
  }

  async #tell(state: EnrolState): Promise<void> {
    const text = `${state.reason} ${state.message}`
    if (this.#told === text) return
    this.#told = text
    const { log, tell } = this.#options
    const keys = { reason: state.reason, why: state.message }
    if (state.type === 'Normal') log.info('enrolment', keys)
    else log.warn('the agent has no certificate, or not a new one', keys)
    await tell(state)
  }
}

/** The errors of several addresses of one host come together, without a message of their own. */
function messageOf(error: unknown): string {
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : []
  const shown = first ?? error
  return shown instanceof Error ? shown.message : String(shown)
}
