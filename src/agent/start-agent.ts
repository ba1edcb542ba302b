// The agent of a member in pull mode put together: its certificate, its tunnel, and its health.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { childSignal, systemClock, timestamp, type ChildSignal } from '#async/index.ts'
import {
  boundedTransport,
  createClient,
  httpTransport,
  untrustedServer,
  type KubeClient,
  type Kubeconfig,
} from '#client/index.ts'
import { memberParts, newEvent, type AgentClaims } from '#crds/index.ts'
import { listenForHealth } from '#network/health/index.ts'
import { sessionKinds } from '#network/tunnel/index.ts'
import { createMetrics, programVersion, type Logger } from '#telemetry/index.ts'
import { ApiEntrance } from './api-entrance.ts'
import type { ClientCertificate } from './dial.ts'
import { keepCertificate, type EnrolState } from './enrol.ts'
import { Forwarder } from './forward-requests.ts'
import type { JoinSettings } from './join-settings.ts'
import { keepTunnel } from './tunnel.ts'

export interface AgentOptions {
  /** The member. */
  readonly kubeconfig: Kubeconfig
  /** The namespace with the agent's Secrets. */
  readonly namespace: string
  /** Port of /livez and /readyz. */
  readonly healthPort: number
  /** Port at which pods of the member reach their API. */
  readonly apiPort: number
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface RunningAgent extends AsyncDisposable {
  readonly healthPort: number
  /** Rejects when a part of the agent failed for good. */
  readonly failed: Promise<never>
}

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const events = { group: '', version: 'v1', resource: 'events' } as const
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const

/** Starts the agent; resolves once its health port is served. */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { kubeconfig, namespace, healthPort, log, signal } = options
  await using stack = new AsyncDisposableStack()
  const transport = stack.use(boundedTransport(httpTransport(kubeconfig)))
  const client = createClient(transport, untrustedServer)
  const life = stack.use(childSignal(signal))
  const tunnel = stack.use(new CurrentTunnel(options, life.signal))
  const health = stack.use(
    await listenForHealth({
      port: healthPort,
      notReady: () => tunnel.notReady,
      metrics: createMetrics(),
      beforeScrape: () => undefined,
    }),
  )
  const done = keepCertificate({
    client,
    namespace,
    claims: (limit) => claimsOf(client, limit),
    enrolled: (settings, certificate) => tunnel.use(settings, certificate),
    tell: (state) => {
      tunnel.state = state
      return tell(client, state, options)
    },
    clock: systemClock,
    log,
    signal: life.signal,
  })
  stack.defer(async () => {
    life.abort(new DOMException('the agent is stopping', 'AbortError'))
    await done
  })
  const owned = stack.move()
  return { healthPort: health.port, failed: tunnel.failed, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** The tunnel to the installation that the settings name. */
class CurrentTunnel implements AsyncDisposable {
  readonly #options: AgentOptions
  readonly #signal: AbortSignal
  readonly #forwarder: Forwarder
  #certificate: ClientCertificate | undefined
  #installation = ''
  #life: ChildSignal | undefined
  #running: Promise<void> = Promise.resolve()
  readonly #failed = Promise.withResolvers<never>()
  #open = 0
  /** What the enrolment has told last. */
  state: EnrolState | undefined

  constructor(options: AgentOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    this.#forwarder = new Forwarder({ api: options.kubeconfig, log: options.log })
    this.#failed.promise.catch(() => undefined)
  }

  get failed(): Promise<never> {
    return this.#failed.promise
  }

  /** Why the installation does not reach the member; undefined if it does. */
  get notReady(): string | undefined {
    if (this.#open === sessionKinds.length) return undefined
    return this.state === undefined ? 'it is starting' : `${this.state.reason}: ${this.state.message}`
  }

  /** Uses this certificate from now on; connects again if the installation is another one. */
  use(settings: JoinSettings, certificate: ClientCertificate): void {
    this.#certificate = certificate
    const installation = JSON.stringify([settings.installation, settings.member])
    if (this.#installation === installation) return
    this.#installation = installation
    this.#life?.abort(new DOMException('the installation has another address', 'AbortError'))
    this.#life?.[Symbol.dispose]()
    const life = (this.#life = childSignal(this.#signal))
    this.#running = this.#running.then(() => this.#keep(settings, life.signal))
    this.#running.catch((error: unknown) => this.#failed.reject(error))
  }

  async #keep({ installation, member }: JoinSettings, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const { apiPort, log } = this.#options
    await using _ = await ApiEntrance.open({ installation, port: apiPort, log })
    await keepTunnel({
      installation,
      member,
      client: () => {
        if (this.#certificate === undefined) throw new Error('the agent has no certificate')
        return this.#certificate
      },
      forwarder: this.#forwarder,
      changed: (open) => (this.#open = open.size),
      log,
      signal,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life?.abort(new DOMException('the agent is stopping', 'AbortError'))
    this.#life?.[Symbol.dispose]()
    await this.#running.catch(() => undefined)
    this.#forwarder[Symbol.dispose]()
  }
}

async function claimsOf(client: KubeClient, signal: AbortSignal): Promise<AgentClaims> {
  const kubeSystem = await client.get<KubeObject>(namespaces, { name: 'kube-system' }, { signal })
  const { gitVersion = '' } = ((await client.raw('/version', { signal })) ?? {}) as { gitVersion?: string }
  return {
    kubernetesVersion: gitVersion,
    kubeSystemUID: kubeSystem.metadata.uid ?? '',
    agentVersion: programVersion,
  }
}

/** Writes an Event about the agent's Deployment. An Event is a help only: a refusal is logged. */
async function tell(
  client: KubeClient,
  { type, reason, message }: EnrolState,
  { namespace, log, signal }: Pick<AgentOptions, 'namespace' | 'log' | 'signal'>,
): Promise<void> {
  const name = memberParts.agent
  try {
    const deployment = await client.tryGet<KubeObject>(deployments, { namespace, name }, { signal })
    const event = newEvent({
      metadata: { namespace, generateName: `${name}.` },
      about: { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name, uid: deployment?.metadata.uid ?? '' },
      ...{ type, reason, message, component: name, now: timestamp(Date.now()) },
    })
    await client.create(events, event, { signal })
  } catch (error) {
    if (!isStatusError(error) && !signal.aborted) throw error
    log.debug('could not write an event', { error })
  }
}
